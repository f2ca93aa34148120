//! Mixes of parameters with those of neighbours: the mix is made in the anchor, and the local
//! parameters stay as training left them until it is good.

use crate::executor::codecs::{Codecs, encoded};
use crate::executor::frame::Held;
use crate::executor::host::{Host, WorkResult};
use crate::executor::mix_core::MixCore;
use crate::executor::mixer::{Inputs, Mixer, Stored, Work, foreign, missing, total};
use murmurate_protocol::{Combination, Done, FragmentId, Piece, SliceId};

impl Work<'_> {
    /// Performs `Combination::Mix` by the weighted mean; any other belongs to another exchange.
    pub(super) fn mix(self, piece: Piece, how: &Combination) -> WorkResult<Done> {
        self.mix_by(piece, how, mean)
    }

    /// As [`Work::mix`], by `make`. If that fails, the anchor holds the local parameters.
    pub(super) fn mix_by(
        self,
        piece: Piece,
        how: &Combination,
        make: impl FnOnce(Mix<'_>) -> WorkResult,
    ) -> WorkResult<Done> {
        let Combination::Mix { keep, inputs, .. } = how else {
            return Err(foreign("combine"));
        };
        let (core, host) = (self.core, self.host);
        let range = core.places.of(piece.fragment);
        let local = &core.local.values()[range.clone()];
        let mix = &mut core.anchor.values[range];
        let made = make(Mix {
            codecs: &core.codecs,
            local,
            mix,
            keep: *keep,
            inputs,
            host,
        });
        if made.is_err() {
            mix.copy_from_slice(local);
        }
        core.mixed[usize::from(piece.fragment.0)] = made.is_ok();
        made.map(|()| Done::Combined)
    }

    /// Performs `Combination::MixReplicas` by `make(work, fragment, inputs)`; any other belongs to another
    /// exchange.
    pub(super) fn mix_copies(
        mut self,
        piece: Piece,
        how: &Combination,
        make: impl FnOnce(&mut Self, FragmentId, Inputs<'_>) -> WorkResult,
    ) -> WorkResult<Done> {
        let Combination::MixReplicas { inputs, .. } = how else {
            return Err(foreign("combine"));
        };
        let made = make(&mut self, piece.fragment, inputs);
        self.core.mixed[usize::from(piece.fragment.0)] = made.is_ok();
        made.map(|()| Done::Combined)
    }
}

impl MixCore {
    /// Ends a fragment's round: the anchor is the mix, or what training left where there is none.
    /// `in_anchor` says that the anchor holds the result in any case.
    pub(in crate::executor) fn end_mixed(&mut self, fragment: FragmentId, in_anchor: bool) {
        let mixed = std::mem::take(&mut self.mixed[usize::from(fragment.0)]);
        if mixed || in_anchor {
            self.local.set(fragment, Held::TakeAnchor);
        } else if self.local.of(fragment) == Held::Contribution {
            self.keep_own(fragment);
            self.local.set(fragment, Held::Nothing);
        }
    }
}

/// One fragment's parameters and those of others, with their weights.
pub(super) struct Mix<'a> {
    pub(super) codecs: &'a Codecs,
    pub(super) local: &'a [f32],
    /// Takes the result.
    pub(super) mix: &'a mut [f32],
    /// The weight of the local parameters.
    pub(super) keep: f64,
    pub(super) inputs: Inputs<'a>,
    pub(super) host: &'a dyn Host,
}

/// `mix = (keep local + sum_k a_k decode(slice_k)) / (keep + sum_k a_k)`.
pub(super) fn mean(of: Mix<'_>) -> WorkResult {
    let total = of.keep + total(of.inputs);
    let share = (of.keep / total) as f32;
    let own = |start: usize, mixed: &mut [f32]| {
        if share == 0.0 {
            // Peers that take only what others sent hold the same bits, of zeros, too.
            mixed.fill(0.0);
            return;
        }
        for (mixed, value) in mixed.iter_mut().zip(&of.local[start..]) {
            *mixed = share * value;
        }
    };
    of.codecs.sum_all(of.mix, of.inputs, total, of.host, own)
}

/// `mix = local + sum_k a_k / (keep + sum_k a_k) (slice_k - local)`, at each place over the slices that have
/// it. Where all of them have all values this is the weighted mean. Source: Tang et al. 2020, SAPS-PSGD,
/// equation 7, with the mask of the codec.
pub(super) fn mean_of_parts(of: Mix<'_>, part: &mut Vec<f32>) -> WorkResult {
    let total = of.keep + total(of.inputs);
    part.resize(of.local.len(), 0.0);
    of.mix.copy_from_slice(of.local);
    for (slice, weight) in of.inputs {
        // A value that is added to -0 is never -0 again, unless it is -0 itself.
        let one = [(*slice, 1.0)];
        of.codecs
            .sum_all(part, &one, 1.0, of.host, |_, run| run.fill(-0.0))?;
        let share = (weight / total) as f32;
        let here = of.mix.iter_mut().zip(of.local).zip(&*part);
        for ((mixed, own), theirs) in here.filter(|(_, v)| v.to_bits() != (-0.0f32).to_bits()) {
            *mixed += share * (theirs - own);
        }
    }
    Ok(())
}

/// Means that one member of a group makes.
#[derive(Default)]
pub(super) struct Grouped {
    /// Room for the mean of one fragment.
    sum: Vec<f32>,
    /// Of which fragment it is, until it is encoded.
    of: Option<FragmentId>,
}

impl Mixer for Grouped {
    /// `Combination::Reduce` is `sum = sum_k a_k decode(slice_k) / sum_k a_k` over whole fragments, in the
    /// order given. Of this peer's values it reads only the published ones, so it can be done
    /// while the trainer trains. `Order::Encode` follows at once.
    fn combine(&mut self, work: Work<'_>, piece: Piece, how: &Combination) -> WorkResult<Done> {
        let Combination::Reduce(inputs) = how else {
            return work.mix(piece, how);
        };
        let (codecs, places) = (&work.core.codecs, &work.core.places);
        self.of = None;
        self.sum.resize(places.of(piece.fragment).len(), 0.0);
        let zero = |_, sum: &mut [f32]| sum.fill(0.0);
        codecs.sum_all(&mut self.sum, inputs, total(inputs), work.host, zero)?;
        self.of = Some(piece.fragment);
        Ok(Done::Combined)
    }

    fn encode(&mut self, core: &mut MixCore, from: Stored<'_>) -> WorkResult {
        if self.of.take() != Some(from.slice.fragment) {
            return Err(missing("mean of a group"));
        }
        core.codecs
            .encode_aggregate(&from.slice, &self.sum, None, from.out);
        Ok(())
    }

    fn shards(&self) -> usize {
        self.sum.len()
    }
}

/// Means that travel along a tree.
#[derive(Default)]
pub(super) struct Relayed {
    /// Room for a message before it is encoded.
    message: Vec<f32>,
}

impl Mixer for Relayed {
    fn combine(&mut self, work: Work<'_>, piece: Piece, how: &Combination) -> WorkResult<Done> {
        work.mix(piece, how)
    }

    /// Encodes `(local + sum_k a_k decode(slice_k)) / (1 + sum_k a_k)`, where a_k is the number of
    /// peers whose parameters slice k is the mean of. This is the sum that RelaySum passes on,
    /// divided by its count, so that the encoded mean has the size of parameters. Sums run in the
    /// order given. Without inputs it is this peer's parameters. Source: Vogels et al. 2021
    /// (NeurIPS), algorithm 1, line 5.
    fn relay(&mut self, work: Work<'_>, slice: SliceId, inputs: Inputs<'_>) -> WorkResult<Done> {
        let (core, host) = (work.core, work.host);
        let range = core.places.of(slice.fragment);
        let local = &core.local.values()[range.clone()];
        let total = 1.0 + total(inputs);
        let own = (1.0 / total) as f32;
        let begin = |start: usize, sum: &mut [f32]| {
            let values = sum.iter_mut().zip(&local[start..]);
            values.for_each(|(s, x)| *s = own * x);
        };
        let message = &mut self.message;
        message.resize(range.len(), 0.0);
        core.places.must_be_finite(range.start, local)?;
        core.codecs.sum_all(message, inputs, total, host, begin)?;
        let mut out = core.codecs.room(&slice, message.len(), host);
        core.encode_values(slice, message, &mut out);
        Ok(encoded(slice, out, host))
    }

    fn shards(&self) -> usize {
        self.message.len()
    }
}
