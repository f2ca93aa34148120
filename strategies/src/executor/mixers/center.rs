//! A parameter server whose workers keep no common round. As an owner, this peer moves its shards
//! of the center by contributions as they arrive. As a worker, it takes over the shards that it
//! pulls.

use crate::aggregate::{RMS_MAX, quarantine};
use crate::executor::codecs::bad_slice;
use crate::executor::frame::Held;
use crate::executor::host::WorkResult;
use crate::executor::mix_core::MixCore;
use crate::executor::mixer::{End, Mixer, Stored, Work, foreign};
use crate::outer::{StalenessWeight, compensate_delay};
use murmurate_protocol::{
    CenterPlan, Combination, Done, ExchangeKind, FragmentId, Piece, SliceId, StoreId,
};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Earlier values of a shard of the center, newest first; empty without compensation.
type Versions = VecDeque<Vec<f32>>;

/// How a center applies contributions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CenterRule {
    /// The weight of a late contribution.
    pub staleness: StalenessWeight,
    /// Elastic averaging's alpha: parameters arrive, and pull the center towards them.
    pub elastic: Option<f64>,
    /// DC-ASGD's lambda: how strongly a late gradient is corrected for the center's moves since; 0
    /// turns the correction off.
    pub compensation: f64,
}

/// Versions of an owned shard that are kept for late gradients. An older gradient is corrected from
/// the oldest of them.
const VERSIONS_MAX: usize = 16;

impl Default for CenterRule {
    fn default() -> Self {
        Self {
            staleness: StalenessWeight::Constant,
            elastic: None,
            compensation: 0.0,
        }
    }
}

/// Contributions, each with how many versions of the shard came since its sender pulled it.
type Arrivals<'a> = &'a [(SliceId, u64)];

/// Names an owned shard.
type Place = (FragmentId, u16);

/// Owned shards of the center, and this peer's pulls.
pub(super) struct Center {
    plan: CenterPlan,
    rule: CenterRule,
    shards: BTreeMap<Place, Vec<f32>>,
    /// What those shards were, for late gradients.
    versions: BTreeMap<Place, Versions>,
}

impl Center {
    pub(super) const fn new(plan: CenterPlan, rule: CenterRule) -> Self {
        Self {
            plan,
            rule,
            shards: BTreeMap::new(),
            versions: BTreeMap::new(),
        }
    }

    /// A shard of the center becomes another owner's copy of it, or what the anchor holds.
    fn reset(&mut self, work: Work<'_>, piece: Piece, copy: Option<SliceId>) -> WorkResult {
        let (core, place) = (work.core, (piece.fragment, piece.shard));
        let range = core.places.shard(place.0, place.1, piece.of);
        let values = match copy {
            None => core.anchor.values[range].to_vec(),
            Some(slice) => {
                let mut values = vec![0.0; range.len()];
                core.codecs.set_checked(&mut values, slice, work.host)?;
                values
            }
        };
        // Gradients for the earlier versions are of values that this shard no longer continues.
        self.versions.remove(&place);
        self.shards.insert(place, values);
        Ok(())
    }

    /// Moves a shard of the center by K contributions, each weighed by its staleness tau:
    ///
    /// ```text
    /// c' = outer(c, sum_k w(tau_k) d_k / K),  or  c' = inner(c, sum_k w(tau_k) g_k / K)
    /// c' = c + sum_k w(tau_k) alpha (x_k - c)                                          (elastic)
    /// ```
    ///
    /// With a compensation each g_k is corrected for what the shard was when its sender pulled it,
    /// tau_k versions ago: [`compensate_delay`].
    ///
    /// Source: Nguyen et al. 2022, "FedBuff", algorithm 1; Zhang et al. 2015 (EASGD), equation 3;
    /// Zheng et al. 2017 (DC-ASGD), algorithm 2. Special cases: K = 1 with constant weights is ASP.
    fn move_by(&mut self, work: Work<'_>, piece: Piece, inputs: Arrivals<'_>) -> WorkResult {
        let (core, place) = (&*work.core, (piece.fragment, piece.shard));
        let range = core.places.shard(place.0, place.1, piece.of);
        let held = self.shards.remove(&place);
        let mut center = held.unwrap_or_else(|| core.anchor.values[range.clone()].to_vec());
        let compensates = self.rule.compensation > 0.0;
        let before = compensates.then(|| center.clone());
        let versions = self.versions.remove(&place);
        let mut versions = versions.unwrap_or_default();
        let moved = match self.rule.elastic {
            None => self.move_by_deltas(work, range, &mut center, inputs, &versions),
            Some(alpha) => self.move_elastically(work, alpha, &mut center, inputs),
        };
        if let (Some(before), Ok(())) = (before, &moved) {
            versions.push_front(before);
            versions.truncate(VERSIONS_MAX);
        }
        if compensates {
            self.versions.insert(place, versions);
        }
        self.shards.insert(place, center);
        moved
    }

    fn move_by_deltas(
        &self,
        work: Work<'_>,
        range: Range<usize>,
        center: &mut [f32],
        inputs: Arrivals<'_>,
        versions: &Versions,
    ) -> WorkResult {
        let (core, host) = (work.core, work.host);
        let mut sum = vec![0.0; center.len()];
        let share = 1.0 / inputs.len().max(1) as f64;
        for (slice, stale) in inputs {
            let weight = (self.rule.staleness.of(*stale) * share) as f32;
            // A sender that pulled zero versions ago has the present values and needs no correction;
            // versions[0] is what was pulled one version ago.
            let ago = usize::try_from(*stale).unwrap_or(usize::MAX);
            let Some(pulled) = versions.get(ago.min(versions.len()).wrapping_sub(1)) else {
                core.codecs.add_checked(&mut sum, *slice, weight, host)?;
                continue;
            };
            let mut late = vec![0.0; center.len()];
            core.codecs.set_checked(&mut late, *slice, host)?;
            compensate_delay(&mut late, center, pulled, self.rule.compensation as f32);
            sum.iter_mut().zip(late).for_each(|(s, g)| *s += weight * g);
            let checked = quarantine(&sum, RMS_MAX);
            checked.map_err(|error| bad_slice(*slice, error.to_string()))?;
        }
        core.anchor.step_elsewhere(range, center, &mut sum);
        Ok(())
    }

    fn move_elastically(
        &self,
        work: Work<'_>,
        alpha: f64,
        center: &mut [f32],
        inputs: Arrivals<'_>,
    ) -> WorkResult {
        let mut pull = vec![0.0; center.len()];
        for (slice, stale) in inputs {
            let weight = (alpha * self.rule.staleness.of(*stale)) as f32;
            let mut theirs = vec![0.0; center.len()];
            let codecs = &work.core.codecs;
            codecs.set_checked(&mut theirs, *slice, work.host)?;
            for ((pull, x), c) in pull.iter_mut().zip(theirs).zip(&*center) {
                *pull += weight * (x - c);
            }
        }
        center.iter_mut().zip(pull).for_each(|(c, p)| *c += p);
        Ok(())
    }
}

impl Mixer for Center {
    fn combine(&mut self, work: Work<'_>, piece: Piece, how: &Combination) -> WorkResult<Done> {
        match how {
            Combination::ResetCenter(copy) => self.reset(work, piece, *copy)?,
            Combination::MoveCenter(inputs) => self.move_by(work, piece, inputs)?,
            _ => return Err(foreign("combine")),
        }
        Ok(Done::Combined)
    }

    fn encode(&mut self, core: &mut MixCore, from: Stored<'_>) -> WorkResult {
        let slice = from.slice;
        let held = match from.store {
            StoreId::Center => self.shards.get(&(slice.fragment, slice.shard)),
            _ => None,
        };
        // A shard that was not moved yet is the anchor's.
        let range = core.places.shard(slice.fragment, slice.shard, from.of);
        let values = held.map_or(&core.anchor.values[range], Vec::as_slice);
        core.codecs.encode_aggregate(&slice, values, None, from.out);
        Ok(())
    }

    /// The pulled shards become the anchor, one by one; where a shard did not arrive the anchor
    /// stays. With elastic averaging this peer's parameters, drawn towards the center, become the
    /// anchor.
    fn apply(&mut self, work: Work<'_>, end: End, pulled: &[SliceId]) -> WorkResult {
        let (core, host) = (work.core, work.host);
        let whole = core.places.of(end.fragment);
        let exchange = ExchangeKind::Center(self.plan);
        let of = exchange.parts(whole.len() as u64, 1) as u16;
        // All shards are decoded before the first is taken over: a bad one changes nothing.
        let mut shards = Vec::with_capacity(pulled.len());
        for slice in pulled {
            let range = core.places.shard(end.fragment, slice.shard, of);
            let mut values = vec![0.0; range.len()];
            core.codecs.set_checked(&mut values, *slice, host)?;
            shards.push((range, values));
        }
        let anchor = &mut core.anchor.values;
        if let Some(alpha) = self.rule.elastic {
            let trained = &core.local.values()[whole.clone()];
            anchor[whole].copy_from_slice(trained);
            for (range, center) in shards {
                let own = anchor[range].iter_mut().zip(center);
                own.for_each(|(x, c)| *x -= alpha as f32 * (*x - c));
            }
        } else {
            for (range, center) in shards {
                anchor[range].copy_from_slice(&center);
            }
        }
        core.local.set(end.fragment, Held::TakeAnchor);
        Ok(())
    }

    fn start_over(&mut self, _core: &mut MixCore) {
        self.shards.clear();
        self.versions.clear();
    }

    fn shards(&self) -> usize {
        let versions = self.versions.values().flatten();
        let values = self.shards.values().chain(versions);
        values.map(Vec::len).sum()
    }
}
