//! What a machine that lies about everything knows: values that it can vote for, true and made up.

use murmurate_protocol::limits::BALLOTS_SIGNED_MAX;
use murmurate_protocol::wire::{
    AgreedMessage, ExchangeMessage, FormingMessage, FragmentMessage, Message, Scoped, ShardVersion,
    SignedGroup, SignedMessage, Stated, value_of,
};
use murmurate_protocol::{Digest, FragmentId, GroupTag, PeerId, Round, RunId, SortedMap};

/// Groups and values that are remembered.
const REMEMBERED_MAX: usize = 256;

/// Versions with the value that stands for them.
pub(super) type Value = (Digest, Vec<ShardVersion>);

/// What a machine knows that helps it to lie.
#[derive(Debug, Default)]
pub(crate) struct Forger {
    groups: SortedMap<GroupTag, (Digest, SignedGroup)>,
    values: SortedMap<(Round, FragmentId, GroupTag), Vec<Value>>,
    /// The anchor of the last proposal.
    anchor: Option<Digest>,
    lied: bool,
}

impl Forger {
    pub(crate) fn has_lied(&self) -> bool {
        self.lied
    }

    /// The anchor of the last group that it heard of.
    pub(super) fn anchor(&self) -> Digest {
        self.anchor.unwrap_or(Digest::of(b"none"))
    }

    pub(super) fn begin(&mut self) {
        self.lied = true;
    }

    pub(super) fn learn(&mut self, run: &RunId, message: &Message) {
        let Message::Exchange(ExchangeMessage::Agreed(message)) = message else {
            return;
        };
        if self.groups.len() > REMEMBERED_MAX {
            self.groups.pop_first();
        }
        while self.values.len() > REMEMBERED_MAX {
            self.values.pop_first();
        }
        match message {
            AgreedMessage::Forming(FormingMessage::SignedPropose(proposal)) => {
                let anchor = proposal.anchor;
                let group = SignedGroup::new(proposal.seats, anchor, &proposal.members);
                let digest = group.digest(run, proposal.round);
                self.anchor = Some(anchor);
                self.groups
                    .insert(GroupTag::of_digest(&digest), (digest, group));
            }
            AgreedMessage::Fragment(Scoped {
                round,
                fragment,
                group,
                body:
                    FragmentMessage::Signed(SignedMessage::Vote(Stated {
                        value, versions, ..
                    })),
            }) => {
                let known = self.values.entry((*round, *fragment, *group)).or_default();
                if known.len() < 8 && known.iter().all(|(other, _)| other != value) {
                    known.push((*value, versions.clone()));
                    // One that no machine holds, and the void.
                    if let Some((digest, _)) = self.groups.get(group) {
                        let mut forged = versions.clone();
                        if let Some(first) = forged.first_mut() {
                            first.digest = Digest::of(first.digest.as_bytes());
                        }
                        known.push((value_of(digest, &forged), forged));
                        known.push((value_of(digest, &[]), Vec::new()));
                    }
                }
            }
            _ => {}
        }
    }

    /// The last ballot of a group that a member coordinates.
    pub(super) fn last_ballot(&self, run: &RunId, scoped: &Scoped, of: PeerId) -> Option<u8> {
        let (_, group) = self.groups.get(&scoped.group)?;
        let coordinators = group.coordinators(run, scoped.round);
        let led = |ballot: &u8| {
            let at = usize::from(ballot - 1) % coordinators.len().max(1);
            let coordinator = coordinators
                .get(at)
                .and_then(|index| group.members.get(*index));
            coordinator.is_some_and(|member| member.peer == of)
        };
        (1..BALLOTS_SIGNED_MAX).rev().find(led)
    }

    pub(super) fn of(&self, scoped: &Scoped) -> &[Value] {
        let known = self
            .values
            .get(&(scoped.round, scoped.fragment, scoped.group));
        known.map_or(&[], Vec::as_slice)
    }
}
