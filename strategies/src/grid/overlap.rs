//! Overlap: into which fragments the flat parameters are cut, and which of them a round exchanges.

use super::tables::Overlap as Table;
use super::validate::count;
use super::{Strategy, StrategyError};
use murmurate_protocol::limits::FRAGMENTS_MAX;
use murmurate_protocol::{Contribution, ExchangeKind, OverlapPlan};
use std::ops::Range;

/// Values of one fragment at most where the configuration does not say: 4 MiB as f32.
const FRAGMENT_LEN: usize = 1 << 20;

/// Fragments, and when they are exchanged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Overlap {
    /// `None` is as many as the exchange likes.
    pub(super) fragments: Option<usize>,
    pub(super) plan: OverlapPlan,
}

/// Reads the table.
pub(super) fn read(table: &Table) -> Result<Overlap, StrategyError> {
    let words = "from 1 to 1024";
    let bounded =
        |key: &str, value: usize| count(key, value, [1, FRAGMENTS_MAX], words).map(|c| c as u16);
    let fragments = table.fragments;
    if let Some(fragments) = fragments {
        bounded("overlap.fragments", fragments)?;
    }
    let stagger = bounded("overlap.stagger", table.stagger.unwrap_or(1))?;
    Ok(Overlap {
        fragments,
        plan: OverlapPlan { stagger },
    })
}

impl Table {
    /// Writes it down.
    pub(super) fn from_overlap(overlap: &Overlap) -> Self {
        Self {
            fragments: overlap.fragments,
            stagger: Some(usize::from(overlap.plan.stagger)),
        }
    }
}

impl Overlap {
    /// Equal cuts of `len` flat parameters, in order; their lengths differ by one at most. Then the same of
    /// each further channel: of the companion beside the parameters.
    ///
    /// Without a count an exchange with an anchor cuts into pieces of 2^20 values at most, so that what
    /// is in flight is small beside a large model. Staggered, there is a multiple of the stagger: every
    /// round moves as much as any other, and its fragments are spread over the whole depth of the model
    /// (the strided pattern of Douillard et al., arXiv 2501.18512).
    pub(super) fn cuts(
        &self,
        len: usize,
        exchange: ExchangeKind,
        channels: usize,
    ) -> Vec<Range<usize>> {
        let stagger = usize::from(self.plan.stagger);
        let usual = match exchange {
            kind if kind == ExchangeKind::None || kind.has_neighbours() => 1,
            _ => len.div_ceil(FRAGMENT_LEN),
        };
        let most = (FRAGMENTS_MAX / channels).min(len) / stagger * stagger;
        let usual = usual.next_multiple_of(stagger).min(most).max(1);
        let count = self.fragments.unwrap_or(usual);
        let cut = |at: usize| (at as u128 * len as u128 / count as u128) as usize;
        let starts = (0..channels).map(|channel| channel * len);
        starts
            .flat_map(|start| (0..count).map(move |at| start + cut(at)..start + cut(at + 1)))
            .collect()
    }
}

/// Refuses overlap that the rest does not allow.
pub(super) fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    let overlap = strategy.overlap();
    let refused = |key, reason, remedy| {
        Err(StrategyError::Refused {
            key,
            reason,
            remedy,
        })
    };
    let stagger = overlap.plan.stagger;
    if stagger == 1 {
        return Ok(());
    }
    let key = "overlap.stagger";
    if !strategy.exchange().agrees() {
        return refused(
            key,
            "fragments whose round it is not keep their anchor and their delta, and here peers agree on no anchor",
            "set it to 1, or use exchange = \"all-reduce\", \"gathered\" or \"parameter-server\" with mode = \"bsp\"",
        );
    }
    if strategy.contribution() != Contribution::Delta {
        return refused(
            key,
            "the gradient of a fragment whose round it is not would be lost: the next is another batch's",
            "set it to 1, or use contribution = \"delta\"",
        );
    }
    let few = |fragments: &usize| *fragments < usize::from(stagger);
    if overlap.fragments.as_ref().is_some_and(few) {
        return refused(
            key,
            "every round exchanges at least one fragment, and there are fewer than this",
            "make `overlap.fragments` a multiple of it, or leave that out",
        );
    }
    Ok(())
}
