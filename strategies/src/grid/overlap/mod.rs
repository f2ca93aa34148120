//! Overlap: into which fragments the flat parameters are cut, which of them a round exchanges, and
//! when what was agreed on is put in force.

mod cuts;
mod layers;
mod merged;

use super::entry::hint;
use super::tables::{self, Overlap as Table};
use super::validate::{absent, count, range};
use super::{Strategy, StrategyError};
use crate::Layout;
use crate::correct::CorrectionKind;
use crate::executor::Blend;
use cuts::Cuts;
use murmurate_protocol::limits::FRAGMENTS_MAX;
use murmurate_protocol::{Contribution, ExchangeFacts, OverlapPlan, Pace, StepBudget};
use std::ops::Range;

/// The rules without a number.
const OWN_PROGRESS: &str = "own-progress";
const EAGER: &str = "eager";

/// Fragments, and when they are exchanged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Overlap {
    /// Where the flat parameters are cut.
    cuts: Cuts,
    pub(super) plan: OverlapPlan,
    pub(super) blend: Blend,
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
    let late_steps = table.late_steps.unwrap_or(0);
    if late_steps == 0 {
        absent(&table.blend, "overlap.blend", "late_steps = 0")?;
    }
    Ok(Overlap {
        cuts: cuts::read(table)?,
        plan: OverlapPlan {
            stagger,
            late_steps,
            layers: layers::read(table)?,
        },
        blend: blend(table)?,
    })
}

/// The rule by its name, or Streaming DiLoCo's alpha.
fn blend(table: &Table) -> Result<Blend, StrategyError> {
    let key = "overlap.blend";
    match &table.blend {
        None => Ok(Blend::OwnProgress),
        Some(tables::Blend::Name(name)) if name == OWN_PROGRESS => Ok(Blend::OwnProgress),
        Some(tables::Blend::Name(name)) if name == EAGER => Ok(Blend::Eager),
        Some(tables::Blend::Name(name)) => Err(StrategyError::UnknownValue {
            key: key.to_owned(),
            found: name.clone(),
            hint: format!(
                "{}, or a number in [0, 1)",
                hint(name, &[EAGER, OWN_PROGRESS])
            ),
        }),
        Some(tables::Blend::Alpha(alpha)) => {
            let ok = (0.0..1.0).contains(&(*alpha as f32));
            let words = "\"own-progress\", \"eager\" or a number in [0, 1)";
            range(ok, key, *alpha, words)?;
            Ok(Blend::Alpha(*alpha as f32))
        }
    }
}

impl Table {
    /// Writes it down.
    pub(super) fn from_overlap(overlap: &Overlap) -> Self {
        let mut table = Self {
            layers: Some(layers::name(overlap.plan.layers)),
            stagger: Some(usize::from(overlap.plan.stagger)),
            late_steps: Some(overlap.plan.late_steps),
            ..Self::default()
        };
        overlap.cuts.write(&mut table);
        Self {
            blend: (overlap.plan.late_steps > 0).then(|| match overlap.blend {
                Blend::OwnProgress => tables::Blend::Name(OWN_PROGRESS.to_owned()),
                Blend::Eager => tables::Blend::Name(EAGER.to_owned()),
                // By its shortest decimal: what is read again is the same number.
                Blend::Alpha(alpha) => {
                    tables::Blend::Alpha(alpha.to_string().parse().unwrap_or_default())
                }
            }),
            ..table
        }
    }
}

impl Overlap {
    /// Cuts of the flat parameters, in order; then the same of each further channel: of the
    /// companion beside the parameters. `bytes(values)` is their size on the wire.
    pub(super) fn cut(
        &self,
        layout: &Layout,
        exchange: ExchangeFacts,
        channels: usize,
        bytes: &dyn Fn(usize) -> u64,
    ) -> Vec<Range<usize>> {
        let bounds = [usize::from(self.plan.stagger), cuts::most(channels)];
        let once = self.cuts.of(layout, exchange, bounds, bytes);
        let starts = (0..channels).map(|channel| channel * layout.len());
        starts
            .flat_map(|start| once.iter().map(move |f| start + f.start..start + f.end))
            .collect()
    }

    /// How many fragments were asked for.
    pub(super) const fn fragments(&self) -> Option<usize> {
        self.cuts.count()
    }
}

/// Refuses overlap that the rest does not allow.
pub(super) fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    late(strategy)?;
    eager(strategy)?;
    layers::check(strategy)?;
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
    if overlap.fragments().as_ref().is_some_and(few) {
        return refused(
            key,
            "every round exchanges at least one fragment, and there are fewer than this",
            "make `overlap.fragments` a multiple of it, or leave that out",
        );
    }
    Ok(())
}

/// Refuses eager updates if a late result could not subtract the peer's own part again.
fn eager(strategy: &Strategy) -> Result<(), StrategyError> {
    let refused = |reason, remedy| {
        Err(StrategyError::Refused {
            key: "overlap.blend",
            reason,
            remedy,
        })
    };
    if strategy.overlap().blend != Blend::Eager {
        return Ok(());
    }
    if strategy.contribution() != Contribution::Delta {
        return refused(
            "of a gradient there is no own delta that could be put in force at once",
            "use contribution = \"delta\", or leave `overlap.blend` out",
        );
    }
    match strategy.outer_kind().is_linear() {
        true => Ok(()),
        false => refused(
            "a peer's own part is applied separately, and this outer optimizer's answer to a sum is not the sum of its answers",
            "use outer optimizer \"nesterov\", \"slow-mo\" or \"average\", or blend = \"own-progress\"",
        ),
    }
}

/// Refuses late results where they cannot be.
fn late(strategy: &Strategy) -> Result<(), StrategyError> {
    let late = strategy.overlap().plan.late_steps;
    if late == 0 {
        return Ok(());
    }
    let refused = |reason, remedy| {
        Err(StrategyError::Refused {
            key: "overlap.late_steps",
            reason,
            remedy,
        })
    };
    if !strategy.exchange().agrees() {
        return refused(
            "a late result replaces an anchor that peers agree on, and here there is none",
            "set it to 0, or use exchange = \"all-reduce\"; \"push\", \"pairs\" and mode = \"asp\" do not wait",
        );
    }
    match strategy.budget() {
        StepBudget::Time(_) => refused(
            "a result is applied a fixed number of inner steps after the cut, but a time bounds them here",
            "set it to 0, or give `synchronization.inner_steps` instead of `round_time`",
        ),
        StepBudget::Steps(steps) if late > steps => refused(
            "a result that is more than a round late would meet the next one",
            "set it to at most `synchronization.inner_steps`",
        ),
        StepBudget::Steps(_) if strategy.synchronization().pace != Pace::Steady => refused(
            "a result is applied a fixed number of inner steps after the cut, but rounds change their length here",
            "set it to 0, or leave `synchronization.pace` out",
        ),
        StepBudget::Steps(_) if *strategy.correction_kind() != CorrectionKind::None => refused(
            "a correction towards the anchor would pull to the old one while the new one is on its way",
            "set it to 0, or leave `inner.correction` out",
        ),
        StepBudget::Steps(_) => Ok(()),
    }
}
