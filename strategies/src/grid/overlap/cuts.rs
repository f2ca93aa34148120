//! Where the flat parameters are cut into fragments.

use super::super::StrategyError;
use super::super::tables::Overlap as Table;
use super::super::validate::{absent, choose};
use super::merged::{Times, merge};
use super::rules::{BACKWARD_MS, CUTS, LATENCY_MS, MBIT_S};
use crate::Layout;
use murmurate_protocol::ExchangeFacts;
use murmurate_protocol::limits::FRAGMENTS_MAX;
use std::ops::Range;

/// The most values of a fragment by default: 4 MiB as f32.
const FRAGMENT_LEN: usize = 1 << 20;

/// The rule by which the parameters are cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cuts {
    /// Equal fragments; with `None` the exchange chooses their number.
    Even(Option<usize>),
    /// A fragment for each tensor.
    Tensors,
    /// Tensors merged where that is faster.
    Merged(Times),
}

/// What the times of links and the backward pass are for, beside merging tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimesApply {
    /// Nothing else.
    ToCuts,
    /// Also the density of each fragment.
    ToDensities,
}

/// Reads `overlap.cut` and its keys. The times may be there for the densities alone.
pub(super) fn read(table: &Table, times_apply: TimesApply) -> Result<Cuts, StrategyError> {
    let cut = choose(&table.cut, "even", "overlap.cut", &CUTS)?;
    if cut != "even" {
        absent(
            &table.fragments,
            "overlap.fragments",
            "cut = \"tensors\" or \"merged\"",
        )?;
    }
    if cut != "merged" && times_apply == TimesApply::ToCuts {
        let only = "a cut other than \"merged\"";
        absent(&table.latency_ms, LATENCY_MS.name, only)?;
        absent(&table.mbit_s, MBIT_S.name, only)?;
        absent(&table.backward_ms, BACKWARD_MS.name, only)?;
    }
    Ok(match cut {
        "tensors" => Cuts::Tensors,
        "merged" => Cuts::Merged(Times::read(table)?),
        _ => Cuts::Even(table.fragments),
    })
}

impl Cuts {
    pub(super) fn write(self, table: &mut Table) {
        let name = |name: &str| Some(name.to_owned());
        match self {
            Self::Even(fragments) => {
                table.cut = name("even");
                table.fragments = fragments;
            }
            Self::Tensors => table.cut = name("tensors"),
            Self::Merged(times) => {
                table.cut = name("merged");
                times.write(table);
            }
        }
    }

    /// How many fragments were asked for.
    pub(super) const fn count(self) -> Option<usize> {
        match self {
            Self::Even(count) => count,
            Self::Tensors | Self::Merged(_) => None,
        }
    }

    /// The fragments of the flat parameters, in order.
    ///
    /// Even ones differ in length by one at most. Without a count an exchange with an anchor cuts
    /// into pieces of 2^20 values at most, so that the slices in flight are small beside a large model.
    /// Staggered, there is a multiple of the stagger: every round moves as much as any other, and
    /// its fragments are spread over the whole depth of the model (the strided pattern of Douillard
    /// et al., arXiv 2501.18512).
    pub(super) fn of(
        self,
        layout: &Layout,
        exchange: ExchangeFacts,
        [stagger, most]: [usize; 2],
        bytes: &dyn Fn(usize) -> u64,
    ) -> Vec<Range<usize>> {
        let tensors = || layout.tensors().iter().map(crate::TensorSpec::range);
        match self {
            Self::Even(count) => {
                let len = layout.len();
                let usual = if exchange.moves_the_anchor {
                    len.div_ceil(FRAGMENT_LEN)
                } else {
                    1
                };
                let most = most.min(len) / stagger * stagger;
                let usual = usual.next_multiple_of(stagger).min(most).max(1);
                let count = count.unwrap_or(usual);
                let cut = |at: usize| (at as u128 * len as u128 / count as u128) as usize;
                (0..count).map(|at| cut(at)..cut(at + 1)).collect()
            }
            Self::Tensors => tensors().filter(|tensor| !tensor.is_empty()).collect(),
            Self::Merged(times) => merge(&tensors().collect::<Vec<_>>(), times, bytes),
        }
    }
}

/// The most fragments of one channel, for this number of channels.
pub(super) const fn most(channels: usize) -> usize {
    FRAGMENTS_MAX / channels
}
