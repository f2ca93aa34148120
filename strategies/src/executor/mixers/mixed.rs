//! Mixes of parameters with those of neighbours: the mix is made in the anchor, and the local
//! parameters stay as training left them until it is good.

use crate::executor::host::Host;
use crate::executor::local::Held;
use crate::executor::mix_core::MixCore;
use crate::executor::mixer::foreign;
use murmurate_protocol::{Done, FragmentId, Order, SliceId, WorkError};

/// Fragments whose mix of this round is in the anchor already.
#[derive(Debug)]
pub(super) struct Mixed(Vec<bool>);

impl Mixed {
    pub(super) fn new(fragments: usize) -> Self {
        Self(vec![false; fragments])
    }

    /// A new round, or another anchor: nothing is mixed yet.
    pub(super) fn clear(&mut self) {
        self.0.fill(false);
    }

    /// Remembers whether a fragment's mix is good.
    pub(super) fn set(&mut self, fragment: FragmentId, mixed: bool) {
        self.0[usize::from(fragment.0)] = mixed;
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
        let share = (keep / total) as f32;
        let own = |mixed: &mut [f32]| {
            for (mixed, value) in mixed.iter_mut().zip(local) {
                *mixed = share * value;
            }
        };
        own(mix);
        let result = core.codecs.add_all(mix, inputs, total, host, own);
        if result.is_err() {
            mix.copy_from_slice(local);
        }
        self.set(fragment, result.is_ok());
        result.map(|()| Done::Combined)
    }

    /// Ends a fragment's round: the anchor is the mix, or what training left where there is none.
    /// `in_anchor` says that the anchor holds the result in any case.
    pub(super) fn end(&mut self, core: &mut MixCore, fragment: FragmentId, in_anchor: bool) {
        let mixed = std::mem::take(&mut self.0[usize::from(fragment.0)]);
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
