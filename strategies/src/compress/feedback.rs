//! Error feedback: what a codec leaves out of one round is added to the next. The Executor owns the
//! residual.
//!
//! With delta_t the delta of the round, e_t the residual and C the codec:
//!
//! ```text
//! v_t     = delta_t + e_t                 fold_in
//! e_{t+1} = v_t - C(v_t)                  Codec::encode_residual
//! e'      = e + C(v_t)                    if C(v_t) did not become part of the anchor
//! ```
//!
//! The sums telescope: if every contribution is delivered, `sum_t C(v_t) = sum_t delta_t + e_0 -
//! e_T`. So the applied changes differ from the learned ones only by the last residual, however
//! much the codec leaves out in each round. After a contribution is lost, `e' = v_t`, so nothing is
//! missing. For a codec with contraction delta the residual stays bounded by `||e||^2 <= 4 (1 -
//! delta) / delta^2 max ||delta_t||^2`. With a lossless codec the residual stays zero.
//!
//! Source: Seide et al., "1-bit stochastic gradient descent" (Interspeech 2014); bound: Karimireddy
//! et al., "Error feedback fixes SignSGD" (ICML 2019), lemma 3.

/// `values += residual`: the values to encode are the delta plus what earlier rounds left out.
///
/// # Panics
///
/// If the lengths differ.
pub fn fold_in(residual: &[f32], values: &mut [f32]) {
    assert_eq!(residual.len(), values.len());
    for (v, e) in values.iter_mut().zip(residual) {
        *v += e;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{CodecKind, EncodeContext};

    const LEN: usize = 50;

    fn delta(round: usize) -> Vec<f32> {
        // Multiples of 1/8: sums are exact, so the telescoping is exact for top-k.
        (0..LEN)
            .map(|i| ((round * 37 + i * 11) % 41) as f32 / 8.0 - 2.5)
            .collect()
    }

    /// Exchanges 40 rounds, of which every `lost_every`-th is lost; gives the sum of the
    /// applied values, the sum of the deltas, and the last residual.
    fn exchange(kind: CodecKind, lost_every: usize) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
        let mut codec = kind.build();
        let [mut applied, mut learned, mut residual] = [const { Vec::new() }; 3];
        for all in [&mut applied, &mut learned, &mut residual] {
            all.resize(LEN, 0.0f32);
        }
        for round in 1..=40 {
            fold_in(&delta(round), &mut learned);
            let (mut bytes, mut decoded, mut memory) = (Vec::new(), vec![0.0; LEN], Vec::new());
            let mut context = EncodeContext::seeded(round as u64, &mut memory);
            codec.encode_residual(&delta(round), &mut residual, &mut context, &mut bytes);
            codec.decode_add(&bytes, 1.0, &mut decoded).unwrap();
            if round % lost_every == 0 {
                // It did not become part of the anchor.
                fold_in(&decoded, &mut residual);
            } else {
                fold_in(&decoded, &mut applied);
            }
        }
        (applied, learned, residual)
    }

    #[test]
    fn what_was_applied_and_the_residual_sum_to_what_was_learned() {
        for lost_every in [3, 5, usize::MAX] {
            let (mut sum, learned, residual) = exchange(
                CodecKind::new("top-k", &[("density", 0.1)]).unwrap(),
                lost_every,
            );
            assert!(residual.iter().any(|e| *e != 0.0));
            fold_in(&residual, &mut sum);
            assert_eq!(sum, learned);

            let (mut sum, learned, residual) =
                exchange(CodecKind::new("int8", &[]).unwrap(), lost_every);
            fold_in(&residual, &mut sum);
            for (s, l) in sum.iter().zip(&learned) {
                // f32 rounding of 40 additions of values below 100.
                assert!((s - l).abs() < 1e-3, "{s} is not {l}");
            }
        }
    }

    #[test]
    fn a_lossless_codec_leaves_nothing() {
        let (applied, learned, residual) =
            exchange(CodecKind::new("f32", &[]).unwrap(), usize::MAX);
        assert_eq!(applied, learned);
        assert!(residual.iter().all(|e| *e == 0.0));
    }
}
