//! What arrives: parts for the means that this peer makes, and means for itself.

use super::state::GroupMeans;
use crate::core::context::Context;
use crate::exchange::neighbours::rule::MixesOf;
use crate::exchange::neighbours::slices::unexpected;
use crate::exchange::{Arrived, foreign_tag};
use crate::limits::VIEW_PEERS_MAX;
use crate::{Order, Part, PeerError, Round, Tag};

impl GroupMeans {
    /// A part arrived for a mean that this peer makes.
    pub(super) fn part_arrived(
        &mut self,
        cx: &mut Context,
        arrived: &Arrived,
        round: Round,
    ) -> Result<(), PeerError> {
        let (from, slice) = (arrived.from, arrived.slice);
        if slice.part != Part::Contribution {
            return unexpected("an answer must be its sender's own contribution");
        }
        if slice.round < self.bounds.oldest(round) {
            return unexpected("parameters that are older than the bound");
        }
        if !self.means.part(cx, (from, slice), round, &self.parts) {
            cx.order(Order::Release { slice });
        }
        Ok(())
    }

    /// The mean of this peer's group arrived, or one that it no longer needs.
    pub(super) fn mean_arrived(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        arrived: &Arrived,
    ) -> Result<(), PeerError> {
        let (from, slice) = (arrived.from, arrived.slice);
        let Tag::GroupMean { round, parts, own } = arrived.meta.tag else {
            return Err(foreign_tag(arrived.meta.tag, "group means"));
        };
        if slice.part != Part::Aggregate || slice.round != round {
            return unexpected("a mean of a group must be named as its maker's aggregate");
        }
        if !(1..=VIEW_PEERS_MAX as u32).contains(&parts) {
            return unexpected("a mean of a group is that of one or more members");
        }
        let held = mixes.get_mut(slice.fragment).and_then(|mix| mix.own.got);
        if held.is_some_and(|(held, ..)| held == slice) {
            return Ok(()); // a retry of what is here already
        }
        let current = round == cx.round;
        if current && mixes.came(cx, slice.fragment, from) {
            if let Some(mix) = mixes.get_mut(slice.fragment) {
                mix.own.got = Some((slice, parts, own == Some(round)));
            }
        } else {
            cx.order(Order::Release { slice });
        }
        Ok(())
    }
}
