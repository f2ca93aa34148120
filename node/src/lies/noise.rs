//! Messages in bulk: records with bad signatures, and random messages that are well formed.

use murmurate_protocol::limits::{RECORD_LIFETIME, RECORDS_PER_MESSAGE_MAX, SIGNATURE_BYTES_MAX};
use murmurate_protocol::wire::{
    Alive, Ballot, FormingMessage, FragmentMessage, Member, MembershipMessage, Message, Muster,
    Offer, PeerRecord, Proposed, RecordFields, Said, Scoped, ShardVersion, TransferMessage,
};
use murmurate_protocol::{
    Attempt, Base, Digest, FragmentId, GroupTag, Members, Output, Peer, PeerId, Round, StateId,
    Time,
};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Messages to one peer in each tick. The queue to a peer holds twice as many.
const FLOOD_FRAMES: usize = 128;

/// Random messages to one peer in each tick.
const RANDOM_FRAMES: usize = 8;

/// Makes messages up.
#[derive(Debug)]
pub(super) struct Noise {
    me: PeerId,
    random: ChaCha8Rng,
}

impl Noise {
    pub(super) fn new(me: PeerId) -> Self {
        let random = ChaCha8Rng::from_seed(*me.as_bytes());
        Self { me, random }
    }

    /// Records of this peer, each with another wrong signature.
    pub(super) fn flood(&mut self, now: Time, peer: &Peer) -> Vec<Output> {
        Self::to_all(peer, FLOOD_FRAMES, |_| {
            let records = (0..RECORDS_PER_MESSAGE_MAX).map(|_| self.record(now, peer));
            MembershipMessage::Records(records.collect()).into()
        })
    }

    /// Random messages to every peer.
    pub(super) fn random(&mut self, peer: &Peer) -> Vec<Output> {
        Self::to_all(peer, RANDOM_FRAMES, |peers| self.message(peer, peers))
    }

    /// This number of messages to each greeted peer.
    fn to_all(
        peer: &Peer,
        count: usize,
        mut message: impl FnMut(&[PeerId]) -> Message,
    ) -> Vec<Output> {
        let peers: Vec<PeerId> = peer.view().greeted().map(|(id, _)| id).collect();
        let mut outputs = Vec::new();
        for to in peers.iter().copied() {
            outputs.extend((0..count).map(|_| {
                let message = message(&peers);
                Output::Send { to, message }
            }));
        }
        outputs
    }

    fn record(&mut self, now: Time, peer: &Peer) -> PeerRecord {
        let mut signature = vec![0; SIGNATURE_BYTES_MAX];
        self.random.fill_bytes(&mut signature);
        PeerRecord::from(RecordFields {
            peer: self.me,
            run: peer.plan().run,
            sequence: self.random.next_u64() >> 1,
            expires: now + RECORD_LIFETIME,
            addresses: Vec::new(),
            locality: murmurate_protocol::Locality::default(),
            signature,
        })
    }

    fn message(&mut self, peer: &Peer, peers: &[PeerId]) -> Message {
        let round = Round((peer.round().0 + self.below(6)).saturating_sub(2));
        match self.below(9) {
            0 => FormingMessage::Ready {
                round,
                said: Said::new(self.weight()),
                anchor: self.anchor(peer),
                proposes: self.below(2) == 0,
            }
            .into(),
            1 => FormingMessage::Propose(Proposed {
                round,
                term: self.below(4) as u8,
                members: self.members(peers),
            })
            .into(),
            2 => FormingMessage::Decline {
                round,
                term: self.below(4) as u8,
            }
            .into(),
            3 => FormingMessage::Behind {
                round,
                resync: self.below(2) == 0,
            }
            .into(),
            4 => {
                let anchor = self.anchor(peer);
                let began = Base { round, anchor };
                TransferMessage::HistoryAsk { began }.into()
            }
            5 => TransferMessage::StateOffer(Offer {
                state: StateId {
                    round,
                    root: self.digest(),
                    bytes: self.below(1 << 20),
                },
                anchor: self.anchor(peer),
            })
            .into(),
            6 => MembershipMessage::Alive(Alive {
                round,
                ready: self.below(2) == 0,
                anchor: self.anchor(peer),
                muster: Muster::Begun,
                branch: None,
            })
            .into(),
            _ => Scoped {
                round,
                fragment: FragmentId(self.below(peer.plan().fragments.len() as u64) as u16),
                group: self.group(round, peers),
                body: self.body(peers),
            }
            .into(),
        }
    }

    fn body(&mut self, peers: &[PeerId]) -> FragmentMessage {
        let ballot = Ballot {
            number: self.below(4) as u8,
            coordinator: self.peer(peers),
        };
        match self.below(5) {
            0 => FragmentMessage::Vote {
                ballot,
                versions: self.versions(peers),
            },
            1 => FragmentMessage::Prepare { ballot },
            2 => FragmentMessage::Void { ballot },
            3 => FragmentMessage::Reduced {
                shard: self.below(4) as u16,
                version: self.version(peers),
            },
            _ => FragmentMessage::Decided {
                ballot: ballot.number,
                members: self.members(peers),
                versions: self.versions(peers),
            },
        }
    }

    fn versions(&mut self, peers: &[PeerId]) -> Vec<ShardVersion> {
        let count = self.below(2 + peers.len() as u64);
        (0..count).map(|_| self.version(peers)).collect()
    }

    fn version(&mut self, peers: &[PeerId]) -> ShardVersion {
        ShardVersion {
            owner: self.peer(peers),
            attempt: Attempt(self.below(4) as u8),
            contributors: Members::from_bits(self.random.next_u64()),
            digest: self.digest(),
        }
    }

    /// This peer and some others, with random weights.
    fn members(&mut self, peers: &[PeerId]) -> Vec<Member> {
        let mut some: Vec<PeerId> = Vec::new();
        for peer in peers {
            if self.below(4) > 0 {
                some.push(*peer);
            }
        }
        some.push(self.me);
        some.sort_unstable();
        some.dedup();
        let members = some
            .into_iter()
            .map(|peer| Member::new(peer, self.weight()));
        members.collect()
    }

    /// The group of all peers as often as one that does not exist.
    fn group(&mut self, round: Round, peers: &[PeerId]) -> GroupTag {
        if self.below(2) == 0 {
            return GroupTag::from_bits(self.random.next_u64());
        }
        let mut all = peers.to_vec();
        all.push(self.me);
        all.sort_unstable();
        GroupTag::of(round, &all)
    }

    fn anchor(&mut self, peer: &Peer) -> Digest {
        match self.below(2) {
            0 => peer.digest(),
            _ => self.digest(),
        }
    }

    fn peer(&mut self, peers: &[PeerId]) -> PeerId {
        let at = self.below(1 + peers.len() as u64) as usize;
        peers.get(at).copied().unwrap_or(self.me)
    }

    fn weight(&mut self) -> f64 {
        self.below(1000) as f64
    }

    fn digest(&mut self) -> Digest {
        Digest::of(&self.random.next_u64().to_le_bytes())
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound.max(1)
    }
}
