//! Mixes of parameters with those of neighbours: the mix is made in the anchor, and the local
//! parameters stay as training left them until it is good.

use crate::aggregate::{Aggregator, Input};
use crate::executor::codecs::Codecs;
use crate::executor::held::Held;
use crate::executor::host::Host;
use crate::executor::mix_core::MixCore;
use crate::executor::mixer::foreign;
use murmurate_protocol::{Done, FragmentId, Order, SliceId, WorkError};
use std::fmt;

/// Fragments whose mix of this round is in the anchor already.
pub(super) struct Mixed {
    fragments: Vec<bool>,
    /// `None` is the weighted mean.
    rule: Option<Box<dyn Aggregator>>,
    /// Whether slices are parts of the parameters.
    parts: bool,
    /// Decoded parameters of others, where a rule compares them or they are parts.
    decoded: Vec<Vec<f32>>,
}

impl fmt::Debug for Mixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut mixed = f.debug_struct("Mixed");
        mixed
            .field("fragments", &self.fragments)
            .field("has_rule", &self.rule.is_some());
        mixed.finish_non_exhaustive()
    }
}

impl Mixed {
    pub(super) fn new(fragments: usize) -> Self {
        Self {
            fragments: vec![false; fragments],
            rule: None,
            parts: false,
            decoded: Vec::new(),
        }
    }

    /// Mixes by a rule, or by the weighted mean: of all values, or of those that a slice has.
    pub(super) fn by(self, rule: Option<Box<dyn Aggregator>>, parts: bool) -> Self {
        Self {
            rule,
            parts,
            ..self
        }
    }

    /// Number of f32 in its buffers.
    pub(super) fn len(&self) -> usize {
        self.decoded.iter().map(Vec::len).sum()
    }

    /// A new round, or another anchor: nothing is mixed yet.
    pub(super) fn clear(&mut self) {
        self.fragments.fill(false);
    }

    /// Remembers whether a fragment's mix is good.
    pub(super) fn set(&mut self, fragment: FragmentId, mixed: bool) {
        self.fragments[usize::from(fragment.0)] = mixed;
    }

    /// Performs `Order::Mix`; any other order belongs to another exchange.
    pub(super) fn combine(
        &mut self,
        core: &mut MixCore,
        order: &Order,
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        match order {
            Order::Mix {
                fragment,
                keep,
                inputs,
                ..
            } => self.mix(core, *fragment, *keep, inputs, host),
            _ => Err(foreign("combine")),
        }
    }

    /// `mix = (keep local + sum_k a_k decode(slice_k)) / (keep + sum_k a_k)`, into the anchor.
    fn mix(
        &mut self,
        core: &mut MixCore,
        fragment: FragmentId,
        keep: f64,
        inputs: &[(SliceId, f64)],
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        let range = core.places.of(fragment);
        let local = &core.local.values()[range.clone()];
        let mix = &mut core.anchor.values[range];
        let total = keep + inputs.iter().map(|(_, weight)| weight).sum::<f64>();
        let result = match &mut self.rule {
            Some(rule) => {
                let decoded = decode(&core.codecs, local.len(), inputs, host, &mut self.decoded);
                decoded.map(|()| {
                    let others = self.decoded.iter().zip(inputs);
                    let others = others.map(|(values, (_, w))| (values.as_slice(), *w as f32));
                    let all: Vec<Input<'_>> = core::iter::once((local, keep as f32))
                        .chain(others)
                        .collect();
                    rule.aggregate(&all, mix);
                })
            }
            None if self.parts => {
                let part = &mut self.decoded;
                mix_parts(&core.codecs, (local, mix), (inputs, total), host, part)
            }
            None => {
                let share = (keep / total) as f32;
                let own = |start: usize, mixed: &mut [f32]| {
                    if share == 0.0 {
                        // Peers that take only what others sent hold the same bits, of zeros, too.
                        mixed.fill(0.0);
                        return;
                    }
                    for (mixed, value) in mixed.iter_mut().zip(&local[start..]) {
                        *mixed = share * value;
                    }
                };
                core.codecs.sum_all(mix, inputs, total, host, own)
            }
        };
        if result.is_err() {
            mix.copy_from_slice(local);
        }
        self.set(fragment, result.is_ok());
        result.map(|()| Done::Combined)
    }

    /// Ends a fragment's round: the anchor is the mix, or what training left where there is none.
    /// `in_anchor` says that the anchor holds the result in any case.
    pub(super) fn end(&mut self, core: &mut MixCore, fragment: FragmentId, in_anchor: bool) {
        let mixed = std::mem::take(&mut self.fragments[usize::from(fragment.0)]);
        if mixed || in_anchor {
            core.local.set(fragment, Held::TakeAnchor);
        } else if core.local.of(fragment) == Held::Contribution {
            let range = core.places.of(fragment);
            let trained = &core.local.values()[range.clone()];
            core.anchor.values[range].copy_from_slice(trained);
            core.local.set(fragment, Held::Nothing);
        }
    }
}

/// `mix = local + sum_k a_k / total (slice_k - local)`, at each place over the slices that have it.
/// Where all of them have all values this is the weighted mean. Source: Tang et al. 2020, SAPS-PSGD,
/// equation 7, with the mask of the codec.
fn mix_parts(
    codecs: &Codecs,
    (local, mix): (&[f32], &mut [f32]),
    (inputs, total): (&[(SliceId, f64)], f64),
    host: &dyn Host,
    room: &mut Vec<Vec<f32>>,
) -> Result<(), WorkError> {
    room.resize(1, Vec::new());
    let part = &mut room[0];
    part.resize(local.len(), 0.0);
    mix.copy_from_slice(local);
    for (slice, weight) in inputs {
        // A value that is added to -0 is never -0 again, unless it is -0 itself.
        codecs.sum_all(part, &[(*slice, 1.0)], 1.0, host, |_, run| run.fill(-0.0))?;
        let share = (weight / total) as f32;
        let here = mix.iter_mut().zip(local).zip(&*part);
        for ((mixed, own), theirs) in here.filter(|(_, v)| v.to_bits() != (-0.0f32).to_bits()) {
            *mixed += share * (theirs - own);
        }
    }
    Ok(())
}

/// Decodes the parameters of others, each checked by itself.
fn decode(
    codecs: &Codecs,
    len: usize,
    inputs: &[(SliceId, f64)],
    host: &dyn Host,
    decoded: &mut Vec<Vec<f32>>,
) -> Result<(), WorkError> {
    decoded.resize(inputs.len(), Vec::new());
    for (values, (slice, _)) in decoded.iter_mut().zip(inputs) {
        values.resize(len, 0.0);
        codecs.set_checked(values, *slice, host)?;
    }
    Ok(())
}
