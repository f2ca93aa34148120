//! Merged branches are the mean of the branches that the decision names, by their weights.

use crate::host::Host;
use murmurate_protocol::{Event, FragmentId, PeerId, Plan, Round};
use std::collections::BTreeMap;
use std::ops::Range;

/// Relative tolerance: sums of f32 in another order.
const ROUNDING: f64 = 1e-5;

/// Shard by shard, the contributors with their weights.
type Contributors = Vec<Vec<(PeerId, f64)>>;

/// What peers brought into merges, and the decisions about it.
#[derive(Debug)]
pub(super) struct MergedByWeight {
    fragments: Vec<Range<usize>>,
    brought: BTreeMap<(Round, PeerId), Vec<f32>>,
    decided: BTreeMap<(PeerId, Round, FragmentId), Contributors>,
}

impl MergedByWeight {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            fragments: plan.ranges(),
            brought: BTreeMap::new(),
            decided: BTreeMap::new(),
        }
    }

    pub(super) fn brings(&mut self, peer: PeerId, round: Round, host: &Host) {
        let brought = self.brought.entry((round, peer));
        brought.or_insert_with(|| host.parameters());
    }

    pub(super) fn check(&mut self, peer: PeerId, host: &Host, event: &Event) -> Result<(), String> {
        match event {
            Event::Decided {
                round,
                fragment,
                contributors,
                ..
            } if self.brought.contains_key(&(*round, peer)) => {
                let key = (peer, *round, *fragment);
                self.decided.insert(key, contributors.clone());
                Ok(())
            }
            Event::Merged { round, .. } => self.merged(peer, *round, &host.parameters()),
            _ => Ok(()),
        }
    }

    fn merged(&self, peer: PeerId, round: Round, found: &[f32]) -> Result<(), String> {
        let of_round = (0u16..).zip(&self.fragments);
        for (fragment, range) in of_round {
            // A companion travels too, and is not among the parameters.
            if range.end > found.len() {
                continue;
            }
            let key = (peer, round, FragmentId(fragment));
            let Some(shards) = self.decided.get(&key) else {
                return Err(format!("merged fragment {fragment} without a decision"));
            };
            let (len, of) = (range.len(), shards.len());
            for (shard, contributors) in shards.iter().enumerate() {
                let at = |i: usize| range.start + len * i / of;
                for index in at(shard)..at(shard + 1) {
                    let mean = self.mean(round, contributors, index)?;
                    let off = (f64::from(found[index]) - mean).abs();
                    if off > ROUNDING * (1.0 + mean.abs()) {
                        let found = found[index];
                        return Err(format!(
                            "merged value {index} is {found}, the mean of the branches {mean}"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    fn mean(&self, round: Round, of: &[(PeerId, f64)], index: usize) -> Result<f64, String> {
        let total: f64 = of.iter().map(|(_, weight)| weight).sum();
        let mut mean = 0.0;
        for (peer, weight) in of {
            let brought = self.brought.get(&(round, *peer));
            let brought = brought.ok_or_else(|| format!("{peer} brought no branch"))?;
            mean += weight / total * f64::from(brought[index]);
        }
        Ok(mean)
    }
}
