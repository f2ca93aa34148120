//! A parameter server's center: the shards that this peer owns, moved by what arrives, and what a worker
//! makes of a shard that it pulls.

use super::host::Host;
use super::mix_lane::{Local, MixLane};
use crate::aggregate::{RMS_MAX, quarantine};
use crate::outer::{StalenessWeight, compensate_delay};
use murmurate_protocol::{Done, FragmentId, SliceId, WorkError};
use std::collections::VecDeque;
use std::ops::Range;

/// What a shard of the center was, the newest first; empty without compensation.
pub(super) type Versions = VecDeque<Vec<f32>>;

/// How a center takes arrivals in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CenterRule {
    /// What a late contribution counts.
    pub staleness: StalenessWeight,
    /// Elastic averaging's alpha: parameters arrive, and pull the center towards them.
    pub elastic: Option<f64>,
    /// DC-ASGD's lambda: what a late gradient is corrected by for how the center has moved; 0 is not.
    pub compensation: f64,
}

/// Versions of an own shard that are kept for late gradients: older ones count as the oldest of them.
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

impl MixLane {
    /// A shard of the center takes over what the anchor holds, or what somebody else's copy does.
    pub(super) fn seed(
        &mut self,
        fragment: FragmentId,
        shard: u16,
        of: u16,
        copy: Option<SliceId>,
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        let range = self.shard_range(fragment, shard, of);
        let values = match copy {
            None => self.anchor[range].to_vec(),
            Some(slice) => {
                let mut values = vec![0.0; range.len()];
                self.add_checked(&mut values, slice, 1.0, host)?;
                values
            }
        };
        self.versions.remove(&(fragment, shard));
        self.centers.insert((fragment, shard), values);
        Ok(Done::Combined)
    }

    /// Moves a shard of the center by K contributions, each weighed by its staleness tau:
    ///
    /// ```text
    /// c' = outer(c, sum_k w(tau_k) d_k / K),  or  c' = inner(c, sum_k w(tau_k) g_k / K)
    /// c' = c + sum_k w(tau_k) alpha (x_k - c)                                          (elastic)
    /// ```
    ///
    /// With a compensation each g_k is corrected for what the shard was when its sender pulled it,
    /// tau_k versions ago: [`compensate_delay`](crate::outer::compensate_delay).
    ///
    /// Source: Nguyen et al. 2022, "FedBuff", algorithm 1; Zhang et al. 2015 (EASGD), equation 3; Zheng et
    /// al. 2017 (DC-ASGD), algorithm 2. Special cases: K = 1 with constant weights is ASP.
    pub(super) fn arrive(
        &mut self,
        fragment: FragmentId,
        shard: u16,
        of: u16,
        inputs: &[(SliceId, u64)],
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        let range = self.shard_range(fragment, shard, of);
        let held = self.centers.remove(&(fragment, shard));
        let mut center = held.unwrap_or_else(|| self.anchor[range.clone()].to_vec());
        let compensates = self.center.compensation > 0.0;
        let before = compensates.then(|| center.clone());
        let versions = self.versions.remove(&(fragment, shard));
        let mut versions = versions.unwrap_or_default();
        let moved = match self.center.elastic {
            None => self.arrive_deltas(range, &mut center, inputs, &versions, host),
            Some(alpha) => self.arrive_elastic(alpha, &mut center, inputs, host),
        };
        if let (Some(before), Ok(())) = (before, &moved) {
            versions.push_front(before);
            versions.truncate(VERSIONS_MAX);
        }
        if compensates {
            self.versions.insert((fragment, shard), versions);
        }
        self.centers.insert((fragment, shard), center);
        moved.map(|()| Done::Combined)
    }

    fn arrive_deltas(
        &mut self,
        range: Range<usize>,
        center: &mut [f32],
        inputs: &[(SliceId, u64)],
        versions: &Versions,
        host: &dyn Host,
    ) -> Result<(), WorkError> {
        let mut sum = vec![0.0; center.len()];
        let share = 1.0 / inputs.len().max(1) as f64;
        for (slice, stale) in inputs {
            let weight = (self.center.staleness.of(*stale) * share) as f32;
            // Version c' is what was pulled no version ago, versions[0] what was one ago.
            let ago = usize::try_from(*stale).unwrap_or(usize::MAX);
            let Some(pulled) = versions.get(ago.min(versions.len()).wrapping_sub(1)) else {
                self.add_checked(&mut sum, *slice, weight, host)?;
                continue;
            };
            let mut late = vec![0.0; center.len()];
            self.add_checked(&mut late, *slice, 1.0, host)?;
            compensate_delay(&mut late, center, pulled, self.center.compensation as f32);
            sum.iter_mut().zip(late).for_each(|(s, g)| *s += weight * g);
            quarantine(&sum, RMS_MAX).map_err(|error| WorkError::BadSlice {
                slice: *slice,
                origin: slice.origin,
                reason: error.to_string(),
            })?;
        }
        match &mut self.inner {
            Some(inner) => {
                inner.begin_step();
                inner.apply(range, center, &sum);
            }
            None => self.outer.apply(range, center, &mut sum),
        }
        Ok(())
    }

    fn arrive_elastic(
        &mut self,
        alpha: f64,
        center: &mut [f32],
        inputs: &[(SliceId, u64)],
        host: &dyn Host,
    ) -> Result<(), WorkError> {
        let mut pull = vec![0.0; center.len()];
        for (slice, stale) in inputs {
            let weight = (alpha * self.center.staleness.of(*stale)) as f32;
            let mut theirs = vec![0.0; center.len()];
            self.add_checked(&mut theirs, *slice, 1.0, host)?;
            for ((pull, x), c) in pull.iter_mut().zip(theirs).zip(&*center) {
                *pull += weight * (x - c);
            }
        }
        center.iter_mut().zip(pull).for_each(|(c, p)| *c += p);
        Ok(())
    }

    /// What was pulled becomes the anchor, shard by shard; where a shard did not come the anchor stays.
    /// Elastic: the own parameters, drawn towards the center, do.
    pub(super) fn pull(
        &mut self,
        fragment: FragmentId,
        pulled: &[SliceId],
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        self.collect();
        let whole = self.range(fragment);
        let of = self.exchange.parts(whole.len() as u64, 1) as u16;
        let mut shards = Vec::with_capacity(pulled.len());
        for slice in pulled {
            let range = self.shard_range(fragment, slice.shard, of);
            let mut values = vec![0.0; range.len()];
            self.add_checked(&mut values, *slice, 1.0, host)?;
            shards.push((range, values));
        }
        let local = self.take_local();
        if let Some(alpha) = self.center.elastic {
            self.anchor[whole.clone()].copy_from_slice(&local[whole]);
            for (range, center) in shards {
                let own = self.anchor[range].iter_mut().zip(center);
                own.for_each(|(x, c)| *x -= alpha as f32 * (*x - c));
            }
        } else {
            for (range, center) in shards {
                self.anchor[range].copy_from_slice(&center);
            }
        }
        self.put_local(local);
        self.local[usize::from(fragment.0)] = Local::TakeAnchor;
        Ok(Done::Applied {
            digest: self.digest(fragment),
        })
    }
}
