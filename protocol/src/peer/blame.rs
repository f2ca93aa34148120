//! Blame: what a broken rule costs, and when a peer is cut off.

use crate::core::PeerError;
use crate::core::remote::DIALS_REFUSED;
use crate::core::{Event, Output};
use crate::limits::SCORE_MAX;
use crate::peer::Peer;
use crate::wire::{MembershipMessage, Reason, WireError};
use crate::{PeerId, Proof};

/// What one broken rule costs; ten of them cut a peer off.
const PENALTY: u32 = 10;

impl Peer {
    /// Scores a peer that broke a rule, and cuts it off if it continues.
    pub(super) fn judge(
        &mut self,
        from: PeerId,
        result: Result<(), PeerError>,
    ) -> Result<(), PeerError> {
        let Err(error) = &result else { return Ok(()) };
        let Some(remote) = self.cx.view.get_mut(from) else {
            return result;
        };
        remote.score = remote.score.saturating_add(PENALTY);
        let (score, banned) = (remote.score, remote.banned);
        let what = error.to_string();
        self.cx.emit(Event::Misbehaved {
            peer: from,
            score,
            what,
        });
        if score >= SCORE_MAX && !banned {
            self.cut_off(from, Reason::Misbehaved);
        }
        result
    }

    /// Cuts off a peer that lies. A proof is passed on, also when the peer is cut off already.
    pub(super) fn convict(&mut self, peer: PeerId, what: String, proof: Option<Box<Proof>>) {
        let proven = proof.is_some();
        if let Some(proof) = proof {
            self.cx.put(Output::Prove(proof));
        }
        if self.cx.view.get(peer).is_some_and(|remote| remote.banned) {
            return;
        }
        let round = self.cx.round;
        self.cx.emit(Event::Lied {
            peer,
            proven,
            round,
            what,
        });
        self.cut_off(peer, Reason::Misbehaved);
    }

    /// Says goodbye and closes the link; for good where the peer broke rules.
    pub(super) fn cut_off(&mut self, peer: PeerId, reason: Reason) {
        if let Some(remote) = self.cx.view.get_mut(peer) {
            // Another run, model, plan or version is a mistake that the user may correct.
            remote.banned |= reason == Reason::Misbehaved;
            remote.contact.refused = true;
            remote.contact.dials = DIALS_REFUSED;
        }
        self.cx.emit(Event::Refused { peer, reason });
        self.cx.send(peer, MembershipMessage::Goodbye(reason));
        self.cx.put(Output::Disconnect { peer, reason });
        self.peer_gone(peer);
    }

    /// Bytes that are not a message. Another version breaks no rule, but the two cannot talk.
    pub(super) fn malformed(&mut self, from: PeerId, error: WireError) -> Result<(), PeerError> {
        if matches!(error, WireError::Version { .. }) {
            self.cut_off(from, Reason::OtherVersion);
            return Err(PeerError::Malformed(error));
        }
        self.cx.emit(Event::Malformed {
            peer: from,
            error: error.clone(),
        });
        self.judge(from, Err(PeerError::Malformed(error)))
    }
}
