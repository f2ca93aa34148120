//! What the status says of the branches of a swarm that was split, of the owner's directives, and of what is
//! wrong.

use super::ControlStatus;
use super::observer::Observer;
use super::rounds::RoundWindow;
use super::status::{BranchStatus, MergedStatus};
use super::why::{Facts, state, troubles};
use crate::directive::CONFIGURED;
use murmurate_protocol::{Branch, Digest, PeerId, Round, Time};
use murmurate_trust::Refusal;

impl Observer {
    /// Stores the branch that the daemon is in, how many peers are missing from it, and whether peers of another
    /// one are linked.
    pub fn set_branch(&mut self, branch: Option<(Branch, usize)>, met: bool) {
        self.status.branch = branch.map(|(branch, missing)| BranchStatus {
            since_round: branch.began().0,
            weight: branch.weight,
            missing: missing as u64,
            met,
        });
    }

    /// Stores what the owner has directed, and the number of rounds that follows from it.
    pub fn set_control(&mut self, control: ControlStatus, rounds: u64) {
        let rate = self.about.rate.as_ref();
        let mut control = ControlStatus {
            rate_ends: rate.and_then(|rate| rate.factor.ends()),
            codecs: self.about.codecs.clone(),
            ..control
        };
        let known = |codec: &String| control.codecs.contains(codec) || codec == CONFIGURED;
        for directive in &mut control.directives {
            if directive.codec.as_ref().is_some_and(|codec| !known(codec)) {
                directive.state = "refused".to_owned();
            }
        }
        if !control.codecs.contains(&control.codec) {
            let chosen = control.agreed_codec.as_ref();
            let chosen = chosen.and_then(|words| words.split(' ').next());
            control.codec = chosen.unwrap_or(&self.about.codec).to_owned();
        }
        self.status.control = control;
        self.status.rounds = rounds;
    }

    /// A round is opened by these parameters, which may have been taken over from others: no round of this daemon
    /// has ended with them.
    pub fn opens(&mut self, round: Round, digest: Digest) {
        let status = &mut self.status;
        if let Some(before) = round.0.checked_sub(1)
            && status.digest_round.is_some_and(|known| known <= before)
        {
            (status.digest, status.digest_round) = (Some(digest.to_hex()), Some(before));
        }
    }

    /// A peer's configuration differs from this daemon's in these keys.
    pub fn differs(&mut self, peer: &PeerId, keys: &[String]) {
        self.insight.differs(peer, keys);
    }

    /// The link to a peer is up.
    pub(super) fn linked(&mut self, peer: PeerId) {
        let peer = self.peer(peer);
        (peer.linked, peer.suspected, peer.lost_unix_s) = (true, false, None);
        peer.left = false;
    }

    /// A peer said goodbye and left.
    pub(super) fn left(&mut self, peer: PeerId) {
        let peer = self.peer(peer);
        (peer.linked, peer.left, peer.lost_unix_s) = (false, true, None);
    }

    /// The link to a peer is gone.
    pub(super) fn unlinked(&mut self, now: Time, peer: PeerId) {
        let peer = self.peer(peer);
        (peer.linked, peer.lost_unix_s) = (false, Some(now.as_secs_f64()));
    }

    /// The peer whose link is gone is not missed: it has left in order, or takes no part.
    pub fn not_missed(&mut self, peer: PeerId) {
        self.peer(peer).lost_unix_s = None;
    }

    /// A peer is no member any more.
    pub fn dismissed(&mut self, peer: PeerId) {
        self.insight.outages.dismissed(&peer);
        if let Some(known) = self.status.peers.get_mut(&peer.to_hex()) {
            known.lost_unix_s = None;
        }
    }

    /// The peers that are missed.
    pub fn missed(&self) -> Vec<PeerId> {
        let peers = self.status.peers.iter();
        let missed = peers.filter(|(_, known)| known.lost_unix_s.is_some());
        missed.filter_map(|(id, _)| PeerId::from_hex(id)).collect()
    }

    /// A member refuses this daemon.
    pub fn refused_by(&mut self, now: Time, peer: PeerId, refusal: Refusal) {
        self.insight.outages.refused_by(now, &peer, refusal);
    }

    /// Counts a checkpoint that could not be written.
    pub fn save_failed(&mut self) {
        self.status.saves_failed += 1;
        self.insight.outages.unsaved = true;
    }

    /// Finds out what is wrong.
    pub(super) fn judge(&mut self, now: Time) {
        let facts = Facts {
            status: &self.status,
            insight: &self.insight,
            claims: &self.claims,
            about: &self.about,
            now: now.as_secs_f64(),
        };
        let troubles = troubles(&facts);
        let state = state(&facts, &troubles);
        (self.status.state, self.status.troubles) = (state.to_owned(), troubles);
    }

    /// Training begins, at the start or after a pause: rates and costs are measured from here.
    pub(super) fn begin_windows(&mut self, now: Time) {
        self.started.get_or_insert(now);
        if self.window.is_empty() {
            self.mark(now);
            self.window.push_back((now, self.status.inner_steps));
        }
    }

    /// The run pauses: the time of the pause is no part of a round.
    pub(super) fn end_windows(&mut self) {
        self.window.clear();
        self.rounds = RoundWindow::default();
        self.status.inner_steps_per_s = 0.0;
    }

    /// Branches were merged.
    pub(super) fn merged(&mut self, round: Round, sides: &[(u16, f64)]) {
        self.status.merged = Some(MergedStatus {
            round: round.0,
            sides: sides.to_vec(),
        });
    }
}
