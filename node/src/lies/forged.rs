//! Messages and pushes that a lying daemon changes or makes up.

use super::forger::Forger;
use crate::depot::Depot;
use murmurate_protocol::limits::BALLOTS_SIGNED_MAX;
use murmurate_protocol::wire::{
    AgreedMessage, Ballot, ExchangeMessage, FormingMessage, FragmentMessage, Member, Message,
    Proposed, Scoped, ShardVersion, SignedGroup, SignedMessage, value_of,
};
use murmurate_protocol::{
    Attempt, Digest, GroupTag, Members, Output, Part, Peer, PeerId, Round, RunId, SliceId,
    SliceMeta, SortedMap, Tag,
};
use murmurate_strategies::slices::SliceStore;

/// The samples that a round is claimed to have trained on, which are the contribution's weight. Their
/// sum over 18,000 rounds still fits its counter.
pub(super) const SAMPLES: u64 = 1_000_000_000_000_000;

/// The push-sum mass that is claimed for a slice.
const MASS: f64 = 1e6;

/// The number of peers that a relayed sum is claimed to come from.
const PEERS: u32 = 1_000_000;

/// The attempt of aggregates that were never reduced, which no honest name has in ballot zero.
const INVENTED: Attempt = Attempt(1);

/// The name of a group whose members sign, where a message proposes one.
pub(super) fn signed_group(run: &RunId, message: &Message) -> Option<Digest> {
    let Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Forming(
        FormingMessage::SignedPropose(proposal),
    ))) = message
    else {
        return None;
    };
    let group = SignedGroup::new(proposal.seats, proposal.anchor, &proposal.members);
    Some(group.digest(run, proposal.round))
}

/// The message about the forming of a group that an output sends, if it is one.
pub(super) fn forming(output: &Output) -> Option<(PeerId, &FormingMessage)> {
    let Output::Send {
        to,
        message: Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Forming(forming))),
    } = output
    else {
        return None;
    };
    Some((*to, forming))
}

/// A push with absurd mass.
pub(super) fn weighed(mut output: Output) -> Output {
    if let Output::Push { meta, .. } = &mut output {
        match &mut meta.tag {
            Tag::Mass { weight } => *weight = MASS,
            Tag::Relayed { peers, .. } => *peers = PEERS,
            _ => {}
        }
    }
    output
}

/// A proposal of all peers in which only this one has weight.
pub(super) fn propose(me: PeerId, to: PeerId, round: Round, peer: &Peer) -> Output {
    let mut peers: Vec<PeerId> = peer.view().greeted().map(|(id, _)| id).collect();
    peers.push(me);
    peers.sort_unstable();
    let weight = |id| if id == me { 1.0 } else { 0.0 };
    let members = peers
        .into_iter()
        .map(|peer| Member::new(peer, weight(peer)));
    let message = FormingMessage::Propose(Proposed {
        round,
        term: 0,
        members: members.collect(),
    });
    Output::Send {
        to,
        message: message.into(),
    }
}

pub(super) fn behind(to: PeerId, round: Round) -> Output {
    let message = FormingMessage::Behind {
        round: round.next(),
        resync: true,
    };
    Output::Send {
        to,
        message: message.into(),
    }
}

/// The claim that a fragment's exchange has ended with values that this peer makes up and holds.
/// `like` is a slice of that exchange.
pub(super) fn decided(
    (forger, depot): (&Forger, &Depot),
    (me, group): (PeerId, &[PeerId]),
    like: SliceId,
    meta: SliceMeta,
) -> Vec<Output> {
    let Some(tag) = meta.tag.group() else {
        return Vec::new();
    };
    let all = Members::all(group.len());
    let version = |shard: u16| {
        let slice = SliceId {
            shard,
            part: Part::Aggregate,
            origin: me,
            attempt: INVENTED,
            ..like
        };
        let bytes = forger.invented(&slice, meta.of)?;
        let digest = Digest::of(&bytes);
        SliceStore::put(depot, slice, bytes);
        let tag = Tag::Mean {
            group: tag,
            members: all,
        };
        depot.describe(&slice, SliceMeta { tag, ..meta });
        Some(ShardVersion {
            owner: me,
            attempt: INVENTED,
            contributors: all,
            digest,
        })
    };
    let versions: Option<Vec<ShardVersion>> = (0..meta.of).map(version).collect();
    let Some(versions) = versions else {
        return Vec::new();
    };
    let members = group.iter().map(|peer| Member::new(*peer, 1.0));
    let message = Scoped {
        round: like.round,
        fragment: like.fragment,
        group: tag,
        body: FragmentMessage::Decided {
            ballot: 0,
            members: members.collect(),
            versions,
        },
    };
    let others = group.iter().filter(|peer| **peer != me);
    let send = |to: &PeerId| Output::Send {
        to: *to,
        message: message.clone().into(),
    };
    others.map(send).collect()
}

/// A vote in which the versions that this peer made are those that the receiver was given. `gathered`
/// says that versions are whole contributions; `groups` are the names of groups whose members sign.
pub(super) fn vote_for(
    (forger, depot): (&Forger, &Depot),
    me: PeerId,
    (gathered, groups): (bool, &SortedMap<GroupTag, Digest>),
    mut output: Output,
) -> Output {
    let Output::Send {
        to,
        message: Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Fragment(scoped))),
    } = &mut output
    else {
        return output;
    };
    let (versions, signs) = match &mut scoped.body {
        FragmentMessage::Vote { versions, .. } => (versions, None),
        FragmentMessage::Signed(SignedMessage::Vote(said)) => {
            (&mut said.versions, Some(&mut said.value))
        }
        _ => return output,
    };
    let parts = versions.len() as u16;
    for (shard, version) in (0u16..).zip(versions.iter_mut()) {
        let slice = SliceId {
            round: scoped.round,
            fragment: scoped.fragment,
            shard: if gathered { 0 } else { shard },
            part: Part::Aggregate,
            origin: version.owner,
            attempt: version.attempt,
        };
        let bytes = SliceStore::get(depot, &slice).filter(|_| version.owner == me);
        if let Some(bytes) = bytes {
            let meta = SliceMeta {
                of: if gathered { 1 } else { parts },
                bytes: bytes.len() as u64,
                tag: Tag::Mass { weight: 0.0 },
            };
            version.digest = Digest::of(&forger.variant(*to, &slice, &meta, &bytes));
        }
    }
    if let (Some(value), Some(group)) = (signs, groups.get(&scoped.group)) {
        *value = value_of(group, versions);
    }
    output
}

/// In place of a vote: the sender asks for the last ballot.
pub(super) fn last_ballot(output: &Output) -> Option<Output> {
    let ballot = BALLOTS_SIGNED_MAX - 1;
    let ask = SignedMessage::Prepare { ballot };
    in_place_of_a_vote(output, FragmentMessage::Signed(ask))
}

/// In place of a vote: the sender coordinates a ballot, and there is no majority.
pub(super) fn no_majority(me: PeerId, output: &Output) -> Option<Output> {
    let ballot = Ballot {
        number: 1,
        coordinator: me,
    };
    in_place_of_a_vote(output, FragmentMessage::Void { ballot })
}

fn in_place_of_a_vote(output: &Output, body: FragmentMessage) -> Option<Output> {
    let Output::Send {
        to,
        message: Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Fragment(scoped))),
    } = output
    else {
        return None;
    };
    let votes = matches!(
        scoped.body,
        FragmentMessage::Vote { .. }
            | FragmentMessage::VoteFor { .. }
            | FragmentMessage::Signed(SignedMessage::Vote(_))
    );
    let said = Scoped {
        body,
        ..scoped.clone()
    };
    votes.then(|| Output::Send {
        to: *to,
        message: said.into(),
    })
}
