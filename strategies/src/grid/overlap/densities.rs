//! The share of its values that each layer sends, from the time that there is to send it: LAGS.

use super::super::StrategyError;
use super::super::tables::Overlap as Table;
use super::super::validate::{absent, choose};
use super::merged::Times;
use super::rules::{DENSITIES, SELECT_MS};
use crate::compress::CodecKind;
use crate::parameter::Range as Values;
use std::ops::Range;

pub(super) const KEY: &str = "overlap.density";

const BY_LAYER: &str = "by-layer";

/// The parameter of a codec that it changes.
const PARAMETER: &str = "density";

/// Each fragment has a density of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ByLayer {
    pub(super) times: Times,
    /// Milliseconds in which the kept values of the whole model are chosen. A fragment's part of it is its
    /// share of the values.
    pub(super) select_ms: f64,
}

/// Reads `overlap.density` and its keys; `None` where all fragments have the codec's own density.
pub(super) fn read(table: &Table) -> Result<Option<ByLayer>, StrategyError> {
    if choose(&table.density, "one", KEY, &DENSITIES)? != BY_LAYER {
        absent(&table.select_ms, SELECT_MS.name, "density = \"one\"")?;
        return Ok(None);
    }
    Ok(Some(ByLayer {
        times: Times::read(table)?,
        select_ms: SELECT_MS.given(table.select_ms, |ms| Values::NotNegative.contains(ms))?,
    }))
}

/// Set for a codec whose configuration must name the share of values that it keeps.
pub(super) fn takes(kind: &CodecKind) -> bool {
    let mut parameters = kind.spec().parameters.iter();
    parameters.any(|parameter| parameter.name == PARAMETER && parameter.default.is_none())
}

impl ByLayer {
    pub(super) fn write(self, table: &mut Table) {
        table.density = Some(BY_LAYER.to_owned());
        self.times.write(table);
        table.select_ms = Some(self.select_ms);
    }

    /// The codec of each fragment: `codec` with the fragment's density.
    ///
    /// ```text
    /// d(l) = max(d, max{ k / n(l) : alpha + 2 beta bytes(k, n(l)) + S n(l) / n <= B n(l - 1) / n })
    /// ```
    ///
    /// n(l) are the values of fragment l, n those of all, d is the density of `codec`, B the time of a whole
    /// backward pass and S that of choosing the kept values. The pass goes from the last fragment to the first,
    /// so it computes fragment l - 1 while l is chosen and sent. d stands for the paper's largest ratio of
    /// compression, `c_u = 1 / d`. Nothing follows fragment 0, which has density d.
    ///
    /// The density of k values is (k - 1/2) / n(l), which keeps k of them whatever way it is rounded; all are
    /// a density of 1.
    ///
    /// **Source:** Shi et al., "Layer-wise adaptive gradient sparsification for distributed deep learning with
    /// convergence guarantees", ECAI 2020, section on adaptive compression ratios (number not verified). There
    /// the times are measured while training; all peers must have the same densities, so they are configured.
    pub(super) fn codecs(self, codec: &CodecKind, fragments: &[Range<usize>]) -> Vec<CodecKind> {
        let all = fragments.iter().map(Range::len).sum::<usize>().max(1) as f64;
        let share = |fragment: &Range<usize>| fragment.len() as f64 / all;
        let mut next = 0.0;
        let mut codecs = Vec::with_capacity(fragments.len());
        for fragment in fragments {
            let room_ms = self.times.backward_ms * next - self.select_ms * share(fragment);
            let fits = |codec: &CodecKind| {
                let bytes = codec.build().bytes_bound().of(fragment.len() as u64);
                self.times.exchange(bytes) <= room_ms
            };
            codecs.push(largest(codec, fragment.len(), &fits));
            next = share(fragment);
        }
        codecs
    }
}

/// The codec with the largest density that fits; as it is where none above its own does. More values take no
/// fewer bytes, so halving the range finds it.
fn largest(codec: &CodecKind, len: usize, fits: &dyn Fn(&CodecKind) -> bool) -> CodecKind {
    let own = codec.number(PARAMETER);
    let of = |kept: usize| {
        if kept == len {
            codec.with(PARAMETER, 1.0)
        } else {
            codec.with(PARAMETER, ((kept as f64 - 0.5) / len as f64).max(own))
        }
    };
    let (mut low, mut high) = ((own * len as f64).ceil() as usize, len);
    if low >= len || !fits(&of(low)) {
        return *codec;
    }
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(&of(middle)) {
            low = middle
        } else {
            high = middle - 1
        }
    }
    of(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAGMENTS: [Range<usize>; 6] = [
        0..40_000,
        40_000..40_200,
        40_200..90_200,
        90_200..91_200,
        91_200..151_200,
        151_200..160_000,
    ];

    fn by_layer(latency_ms: f64, mbit_s: f64, select_ms: f64) -> ByLayer {
        ByLayer {
            times: Times {
                latency_ms,
                mbit_s,
                backward_ms: 100.0,
            },
            select_ms,
        }
    }

    fn top_k(density: f64) -> CodecKind {
        CodecKind::new("top-k", &[(PARAMETER, density)]).unwrap()
    }

    /// The rule as it is written, with every number of values tried.
    fn reference(rule: ByLayer, least: f64, at: usize) -> usize {
        let (len, all) = (FRAGMENTS[at].len() as f64, 160_000.0);
        let hidden = match at {
            0 => 0.0,
            at => rule.times.backward_ms * FRAGMENTS[at - 1].len() as f64 / all,
        };
        let beta = 1.0 / (rule.times.mbit_s * 125.0);
        let first = (least * len).ceil() as usize;
        let fits = |kept: &usize| {
            let density = if *kept as f64 == len {
                1.0
            } else {
                ((*kept as f64 - 0.5) / len).max(least)
            };
            let bytes = top_k(density).build().bytes_bound().of(len as u64) as f64;
            rule.times.latency_ms + 2.0 * beta * bytes + rule.select_ms * len / all <= hidden
        };
        (first..=len as usize).rev().find(fits).unwrap_or(first)
    }

    #[test]
    fn each_layer_has_the_largest_density_that_is_hidden() {
        let kept = |codec: &CodecKind, len: usize| (codec.number(PARAMETER) * len as f64).ceil();
        let mut different = 0;
        for rule in [
            by_layer(0.01, 2.0, 1.0),
            by_layer(0.3, 400.0, 0.0),
            by_layer(1.0, 0.5, 0.0),
        ] {
            let codecs = rule.codecs(&top_k(0.001), &FRAGMENTS);
            let all: Vec<_> = codecs.iter().zip(&FRAGMENTS).enumerate().collect();
            for (at, (codec, fragment)) in &all {
                let found = kept(codec, fragment.len()) as usize;
                assert_eq!(found, reference(rule, 0.001, *at), "{rule:?} {at}");
            }
            let mut densities: Vec<f64> = codecs.iter().map(|c| c.number(PARAMETER)).collect();
            densities.sort_by(f64::total_cmp);
            densities.dedup();
            different += densities.len();
        }
        assert!(different >= 9, "{different}");
    }

    #[test]
    fn links_that_are_too_slow_leave_the_codecs_density_and_fast_ones_all_values() {
        let densities = |rule: ByLayer| {
            let codecs = rule.codecs(&top_k(0.01), &FRAGMENTS);
            codecs
                .iter()
                .map(|c| c.number(PARAMETER))
                .collect::<Vec<_>>()
        };
        assert_eq!(densities(by_layer(40.0, 50.0, 10.0)), [0.01; 6]);
        let fast = densities(by_layer(0.0, 1e9, 0.0));
        assert_eq!(fast[0], 0.01, "nothing is computed after the first layer");
        assert_eq!(fast[1..], [1.0; 5]);
        // Choosing takes longer than what is computed meanwhile.
        assert_eq!(densities(by_layer(0.0, 1e9, 1e6)), [0.01; 6]);
    }

    /// Halving the range is right only then.
    #[test]
    fn more_values_take_no_fewer_bytes() {
        let densities = (1..=1000).map(|kept| f64::from(kept) / 1000.0);
        let bytes = densities.map(|d| top_k(d).build().bytes_bound().of(10_000));
        let bytes: Vec<u64> = bytes.collect();
        assert!(bytes.windows(2).all(|pair| pair[0] <= pair[1]));
    }
}
