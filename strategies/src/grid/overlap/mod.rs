//! Overlap: into which fragments the flat parameters are cut, which of them a round exchanges, and
//! when results are applied.

mod check;
mod cuts;
mod densities;
mod merged;
mod rules;
mod timing;

use super::StrategyError;
use super::tables::{self, Overlap as Table};
use super::validate::{absent, count, range};
use crate::Layout;
use crate::compress::CodecKind;
use crate::executor::Blend;
use crate::names::hint;
pub(super) use check::check;
use cuts::{Cuts, TimesApply};
use densities::ByLayer;
use murmurate_protocol::limits::FRAGMENTS_MAX;
use murmurate_protocol::{ExchangeFacts, OverlapPlan, StepBudget};
pub use rules::{CUTS, DENSITIES, LAYERS};
use std::ops::Range;

/// The rules without a number.
const OWN_PROGRESS: &str = "own-progress";
const EAGER: &str = "eager";
const ESTIMATE: &str = "estimate";

/// Fragments, and when they are exchanged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Overlap {
    /// Where the flat parameters are cut.
    cuts: Cuts,
    /// How the density of each fragment is found; `None` where all have the codec's own.
    densities: Option<ByLayer>,
    pub(super) plan: OverlapPlan,
    pub(super) blend: Blend,
}

pub(super) fn read(table: &Table, budget: StepBudget) -> Result<Overlap, StrategyError> {
    let words = "from 1 to 1024";
    let bounded =
        |key: &str, value: usize| count(key, value, [1, FRAGMENTS_MAX], words).map(|c| c as u16);
    let fragments = table.fragments;
    if let Some(fragments) = fragments {
        bounded("overlap.fragments", fragments)?;
    }
    let stagger = bounded("overlap.stagger", table.stagger.unwrap_or(1))?;
    let late_steps = timing::late_steps(&table.late_steps, budget)?;
    if late_steps == 0 {
        absent(&table.blend, "overlap.blend", "late_steps = 0")?;
    }
    let densities = densities::read(table)?;
    let times = match densities {
        None => TimesApply::ToCuts,
        Some(_) => TimesApply::ToDensities,
    };
    Ok(Overlap {
        cuts: cuts::read(table, times)?,
        densities,
        plan: OverlapPlan {
            stagger,
            late_steps,
            layers: timing::layers(table)?,
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
        Some(tables::Blend::Name(name)) if name == ESTIMATE => Ok(Blend::Estimate),
        Some(tables::Blend::Name(name)) => Err(StrategyError::UnknownValue {
            key: key.to_owned(),
            found: name.clone(),
            hint: format!(
                "{}, or a number in [0, 1)",
                hint(name, &[EAGER, ESTIMATE, OWN_PROGRESS])
            ),
        }),
        Some(tables::Blend::Alpha(alpha)) => {
            let ok = (0.0..1.0).contains(&(*alpha as f32));
            let words = "\"own-progress\", \"eager\", \"estimate\" or a number in [0, 1)";
            range(ok, key, *alpha, words)?;
            Ok(Blend::Alpha(*alpha as f32))
        }
    }
}

impl Table {
    pub(super) fn from_overlap(overlap: &Overlap) -> Self {
        let mut table = Self {
            layers: Some(timing::layers_name(overlap.plan.layers)),
            stagger: Some(usize::from(overlap.plan.stagger)),
            late_steps: Some(i64::from(overlap.plan.late_steps).into()),
            ..Self::default()
        };
        overlap.cuts.write(&mut table);
        if let Some(densities) = overlap.densities {
            densities.write(&mut table);
        }
        Self {
            blend: (overlap.plan.late_steps > 0).then(|| match overlap.blend {
                Blend::OwnProgress => tables::Blend::Name(OWN_PROGRESS.to_owned()),
                Blend::Eager => tables::Blend::Name(EAGER.to_owned()),
                Blend::Estimate => tables::Blend::Name(ESTIMATE.to_owned()),
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
    /// Set where fragments were asked for, or densities of their own.
    pub(super) fn is_cut(&self) -> bool {
        let whole = matches!(self.cuts, Cuts::Even(None | Some(1)));
        !whole || self.densities.is_some()
    }

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

    /// The codec of each fragment, where their densities differ.
    pub(super) fn codecs(
        &self,
        codec: &CodecKind,
        fragments: &[Range<usize>],
    ) -> Option<Vec<CodecKind>> {
        Some(self.densities?.codecs(codec, fragments))
    }

    /// Set where each fragment has a density of its own.
    pub(super) const fn has_densities(&self) -> bool {
        self.densities.is_some()
    }

    /// How many fragments were asked for.
    pub(super) const fn fragments(&self) -> Option<usize> {
        self.cuts.count()
    }
}
