//! Names of own slices, and what every slice of a neighbour must be.

use crate::core::context::Context;
use crate::exchange::Arrived;
use crate::{Attempt, FragmentId, Part, PeerError, SliceId};

/// The bits of an attempt that tell slices of one round apart; the others tell lives apart.
const SLOT_BITS: u32 = 6;

/// The one slice of a fragment that this peer encodes in a round.
pub(super) fn own(cx: &Context, fragment: FragmentId) -> SliceId {
    SliceId {
        round: cx.round,
        fragment,
        shard: 0,
        part: Part::Contribution,
        origin: cx.me(),
        attempt: Attempt(cx.life()),
    }
}

/// One of several slices of a fragment that this peer encodes in a round, one for each neighbour.
pub(super) fn own_of_slot(cx: &Context, fragment: FragmentId, slot: usize) -> SliceId {
    let slot = slot as u8 & ((1 << SLOT_BITS) - 1);
    SliceId {
        attempt: Attempt((cx.life() << SLOT_BITS) | slot),
        ..own(cx, fragment)
    }
}

/// Checks what holds for a slice of any neighbour: its sender made it, it is a whole fragment, and
/// the plan has that fragment.
pub(super) fn check(cx: &Context, arrived: &Arrived) -> Result<(), PeerError> {
    let slice = arrived.slice;
    if slice.origin != arrived.from {
        return unexpected("a neighbour's slice that its sender did not make");
    }
    if slice.shard != 0 || arrived.meta.of != 1 {
        return unexpected("a neighbour's slice that is not a whole fragment");
    }
    if cx.plan.fragment(slice.fragment).is_none() {
        return unexpected("a slice of a fragment that the plan does not have");
    }
    Ok(())
}

/// The error for a slice or a message that breaks a rule.
pub(super) fn unexpected<T>(what: &str) -> Result<T, PeerError> {
    Err(PeerError::Unexpected {
        what: what.to_owned(),
    })
}
