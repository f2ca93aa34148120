//! News that members tell each other of a run, and lessons from it.

use crate::chain::Chain;
use crate::directive::SignedDirective;
use crate::revocation::Revocation;
use murmurate_protocol::wire::WireVersion;
use murmurate_protocol::{PeerId, Proof};
use serde::{Deserialize, Serialize};
use std::fmt;

/// News of one member for another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct News {
    /// Members that were let in.
    pub members: Vec<Chain>,
    /// Revocations.
    pub revocations: Vec<Revocation>,
    /// Proofs that members lie, which ban them.
    pub bans: Vec<Proof>,
    /// Directives of the owner. They travel in a message of their own
    /// ([`Message::Directives`](crate::gate::Message)).
    #[serde(skip)]
    pub directives: Vec<SignedDirective>,
}

/// The effects of news on a register.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// The part that was new.
    pub fresh: News,
    /// The news contained what no honest member passes on: certificates or a revocation that are
    /// forged, a proof that proves nothing, or a directive that the owner has not signed. What came after it
    /// was not read.
    pub slanders: bool,
    /// Peers that used an invite which others had used up at other members.
    pub overused: Vec<Overused>,
}

/// More peers used an invite than may, each at another member. All members keep those who used it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overused {
    /// The key of the invite.
    pub invite: PeerId,
    /// How many peers may use it.
    pub uses: u32,
    /// A peer that used it later than these, and is out.
    pub out: PeerId,
}

impl fmt::Display for Overused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { invite, uses, out } = self;
        let machines = if *uses == 1 { "machine" } else { "machines" };
        write!(
            f,
            "the invite {invite} is for {uses} {machines} and was used by more, at different members: all keep those \
             that used it first, and {out} is out. Make an invite for each machine, or revoke this one if you do not \
             know who used it"
        )
    }
}

impl Learned {
    /// The news changed nothing, and there is nothing to report.
    pub fn is_nothing(&self) -> bool {
        self.fresh.is_empty() && !self.slanders && self.overused.is_empty()
    }
}

impl News {
    /// The part of it that a peer can read which speaks this version of the wire.
    #[must_use]
    pub fn within(mut self, wire: WireVersion) -> Self {
        let reads = |signed: &SignedDirective| signed.directive().change.since() <= wire.number();
        self.directives.retain(reads);
        self
    }

    /// News without content.
    pub fn is_empty(&self) -> bool {
        self.are_directives() && self.directives.is_empty()
    }

    /// News of nothing but directives.
    pub(crate) fn are_directives(&self) -> bool {
        self.members.is_empty() && self.revocations.is_empty() && self.bans.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::RunKey;
    use murmurate_protocol::wire::WireVersions;
    use murmurate_protocol::{Change, Round};

    #[test]
    fn a_peer_is_told_what_its_version_of_the_wire_can_say() {
        let key = RunKey::from_seed("run".to_owned(), [7; 32]);
        let signed = |number, change| key.direct(number, 1_700_000_000, (Round(3), change));
        let news = News {
            directives: vec![
                signed(1, Change::Pause),
                signed(2, Change::Codec(Some(6))),
                signed(3, Change::Rounds(9)),
            ],
            ..News::default()
        };
        let version = |number| {
            let all = WireVersions::claimed(number, number);
            all.newest_shared(&WireVersions::OURS).expect("spoken")
        };
        let told = |number| {
            let told = news.clone().within(version(number)).directives;
            told.iter()
                .map(|d| d.directive().number)
                .collect::<Vec<_>>()
        };
        assert_eq!(told(7), [1, 3]);
        assert_eq!(told(8), [1, 2, 3]);
    }
}
