//! Moniqua: parameters modulo a bound of their distance. Arithmetic alone: the receiver decodes next to
//! its own parameters, which an exchange's decoder does not see.

use super::CodecError;
use super::random::Random;
use super::raw::{expect_len, tag, take};

/// Quantizes what two peers may differ by, however large the parameters themselves are.
///
/// ```text
/// B     = 2 theta / (1 - 2 delta),   delta = 1 / 2^bits
/// q     = Q(x / B mod 1)                            sent: one of 2^bits levels, rounded at random
/// x^    = (q B - y) mod B + y                       at a receiver with y; mod into [-B/2, B/2)
/// ```
///
/// With `|x - y| < theta` in every place, `|x^ - x| <= delta B`, one level: no replica, no
/// residual, no shared scale. `bits` a value. State: none. Sent relative to nothing; decoded relative to
/// the receiver's parameters. A mix takes the same of its own `q`, so that rounding moves nobody's mean:
/// `x_i' = x_i + sum_j w_ij (x^_j - x^_i)`. Layout: the codec's byte, bits (u8), theta (f32), the levels,
/// `bits` each, the lowest first. Source: Lu and De Sa, "Moniqua: modulo quantized communication in
/// decentralized SGD" (ICML 2020), algorithm 1, lemma 1. Special cases: where the distance is theta or
/// more the value comes out wrong by multiples of B, and nobody can tell; values that are not finite
/// count as zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moniqua {
    bits: u32,
    theta: f32,
}

impl Moniqua {
    /// With 2 to 8 bits a value and this bound of the distance.
    ///
    /// # Panics
    /// If there are not 2 to 8 bits, or the bound is not above zero and below 1e30.
    pub fn new(bits: u32, theta: f32) -> Self {
        assert!((2..=8).contains(&bits), "{bits} bits are not 2 to 8");
        let within = theta > 1e-30 && theta < 1e30;
        assert!(within, "the bound {theta} is not in (1e-30, 1e30)");
        Self { bits, theta }
    }

    /// B.
    pub fn modulus(&self) -> f64 {
        let delta = 1.0 / f64::from(1u32 << self.bits);
        2.0 * f64::from(self.theta) / (1.0 - 2.0 * delta)
    }

    /// Appends the encoding of `x`.
    pub fn encode(&self, x: &[f32], seed: u64, out: &mut Vec<u8>) {
        let (random, modulus) = (Random::new(seed), self.modulus());
        let levels = f64::from(1u32 << self.bits);
        out.push(tag::MONIQUA);
        out.push(self.bits as u8);
        out.extend_from_slice(&self.theta.to_le_bytes());
        let (mut held, mut count) = (0u32, 0);
        for (at, x) in (0..).zip(x) {
            let x = if x.is_finite() { f64::from(*x) } else { 0.0 };
            let share = (x / modulus).rem_euclid(1.0) * levels;
            let level = (share + f64::from(random.unit(at))).floor() as u32;
            held |= (level & ((1 << self.bits) - 1)) << count;
            count += self.bits;
            while count >= 8 {
                out.push(held as u8);
                (held, count) = (held >> 8, count - 8);
            }
        }
        if count > 0 {
            out.push(held as u8);
        }
    }

    /// The values next to `near`. Nothing has changed when it fails.
    ///
    /// # Errors
    /// When the bytes are not an encoding of as many values with these parameters.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn decode(&self, bytes: &[u8], near: &[f32], into: &mut [f32]) -> Result<(), CodecError> {
        assert_eq!(near.len(), into.len());
        let ([found, bits], rest) = take::<2>(bytes, "codec")?;
        if found != tag::MONIQUA {
            return Err(CodecError::Codec {
                expected: tag::MONIQUA,
                found,
            });
        }
        let (theta, body) = take::<4>(rest, "bound")?;
        if u32::from(bits) != self.bits || theta != self.theta.to_le_bytes() {
            return Err(CodecError::OutOfRange {
                field: "parameters",
            });
        }
        let all = near.len() * self.bits as usize;
        expect_len(body, all.div_ceil(8), "levels")?;
        let spare = body.len() * 8 - all;
        if body
            .last()
            .is_some_and(|last| spare > 0 && last >> (8 - spare) != 0)
        {
            return Err(CodecError::OutOfRange { field: "levels" });
        }
        let (modulus, levels) = (self.modulus(), f64::from(1u32 << self.bits));
        for (at, (near, into)) in near.iter().zip(into).enumerate() {
            let place = at * self.bits as usize;
            let byte = |i: usize| u32::from(body.get(i).copied().unwrap_or(0));
            let two = byte(place / 8) | byte(place / 8 + 1) << 8;
            let level = two >> (place % 8) & ((1 << self.bits) - 1);
            let y = f64::from(*near);
            let off = f64::from(level) / levels * modulus - y;
            let wrapped = off - modulus * (off / modulus + 0.5).floor();
            *into = (wrapped + y) as f32;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(len: usize) -> (Vec<f32>, Vec<f32>) {
        let x: Vec<f32> = (0..len).map(|i| ((i * 37) % 101) as f32 * 3.0).collect();
        let y = (0..len).map(|i| x[i] + ((i * 53) % 97) as f32 / 50.0 - 0.96);
        (x.clone(), y.collect())
    }

    #[test]
    fn what_is_near_comes_back_within_a_level_and_unbiased() {
        for bits in 2..=8 {
            let moniqua = Moniqua::new(bits, 1.0);
            let level = moniqua.modulus() / f64::from(1u32 << bits);
            for len in [0, 1, 7, 8, 9, 4095, 4096, 4097] {
                let (x, y) = values(len);
                let mut mean = vec![0.0f64; len];
                for seed in 0..64 {
                    let (mut bytes, mut back) = (Vec::new(), vec![0.0; len]);
                    moniqua.encode(&x, seed, &mut bytes);
                    assert_eq!(bytes.len(), 6 + (len * bits as usize).div_ceil(8));
                    moniqua.decode(&bytes, &x, &mut back).unwrap();
                    for ((b, x), m) in back.iter().zip(&x).zip(&mut mean) {
                        assert!(f64::from(b - x).abs() <= level + 1e-3, "{b} {x}");
                        *m += f64::from(b - x) / 64.0;
                    }
                    {
                        let mut far = vec![0.0; len];
                        moniqua.decode(&bytes, &y, &mut far).unwrap();
                        let close = far
                            .iter()
                            .zip(&x)
                            .all(|(b, x)| f64::from(b - x).abs() <= level + 1e-3);
                        assert!(close, "{bits} bits");
                    }
                }
                let all = mean.iter().sum::<f64>() / len.max(1) as f64;
                assert!(all.abs() < 0.1 * level + 1e-4 || len < 10, "{all}");
            }
        }
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let (moniqua, mut bytes) = (Moniqua::new(3, 1.0), Vec::new());
        let (x, y) = values(9);
        moniqua.encode(&x, 1, &mut bytes);
        let mut into = vec![7.0; 9];
        let mut refuse = |bytes: &[u8], field: &str| {
            let error = moniqua
                .decode(bytes, &y, &mut into)
                .unwrap_err()
                .to_string();
            assert!(error.contains(field), "{error}");
            assert!(into.iter().all(|v| *v == 7.0));
        };
        refuse(&[], "codec");
        refuse(&bytes[..4], "bound");
        refuse(&bytes[..9], "levels");
        refuse(&[&bytes[..], &[0]].concat(), "levels");
        for (at, field) in [
            (0, "codec"),
            (1, "parameters"),
            (5, "parameters"),
            (9, "levels"),
        ] {
            let mut bad = bytes.clone();
            bad[at] ^= 0x80;
            refuse(&bad, field);
        }
    }
}
