//! Which proposals of a group this peer follows. The proposer is believed in nothing that this peer
//! knows better: its own weight, who takes part, and what a weight may be.

use super::message::Member;
use super::weights::cap_of;
use crate::core::context::Context;
use crate::{Digest, Loss, PeerError, PeerId, Taken};

/// What this peer has said of itself in this round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stated {
    /// The weight of its contribution.
    pub(super) weight: f64,
    /// The data behind it.
    pub(super) taken: Option<Taken>,
    /// Its training loss, where the pace follows it.
    pub(super) loss: Option<Loss>,
    /// Whether it has said another weight in this round before, by which the proposer may go still.
    pub(super) before: bool,
}

/// What to do about a proposal.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// Follow it.
    Join,
    /// Do not follow it; an honest proposer may have made it.
    Decline,
}

/// Judges a proposal that names this peer. `start` is how its sender says that it began the round.
///
/// # Errors
/// When no honest peer proposes this: a group without its proposer, weights above the cap, or
/// another weight for this peer than it stated.
pub(super) fn judge(
    cx: &Context,
    from: PeerId,
    members: &[Member],
    stated: Stated,
    start: Option<Digest>,
) -> Result<Verdict, PeerError> {
    let wrong = |what: &str| {
        Err(PeerError::Unexpected {
            what: what.to_owned(),
        })
    };
    let of = |peer| members.iter().find(|member| member.peer == peer);
    if of(from).is_none() {
        return wrong("a proposal of a group without its proposer");
    }
    let weighing = cx.plan.agreement.weighing;
    let most = cap_of(members, weighing);
    if members.iter().any(|member| !weighing.allows(member.weight)) {
        return wrong("a proposal with a weight that is no count of inner steps");
    }
    if members.iter().any(|member| member.weight > most) {
        return wrong("a proposal with a weight far above the others");
    }
    let Some(mine) = of(cx.me()) else {
        return Ok(Verdict::Decline);
    };
    let same = mine.weight.to_bits() == stated.weight.min(most).to_bits();
    if !same || mine.taken != stated.taken || mine.loss != stated.loss {
        return match stated.before {
            // It may go by what this peer said before it trained on.
            true => Ok(Verdict::Decline),
            false => {
                wrong("a proposal with another weight, data or loss of this peer than it stated")
            }
        };
    }
    if start.is_some_and(|start| start != cx.start()) {
        return Ok(Verdict::Decline);
    }
    // A few members may be unknown here, because views grow at different speeds. A group that is
    // mostly made of strangers could outvote all peers that this one knows.
    let known = |peer: PeerId| peer == cx.me() || cx.view.get(peer).is_some_and(|r| r.greeted);
    let count = members.iter().filter(|member| known(member.peer)).count();
    match 2 * count > members.len() {
        true => Ok(Verdict::Join),
        false => Ok(Verdict::Decline),
    }
}
