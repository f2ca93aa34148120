//! What comes out of a peer: outputs for its driver, and events for people and metrics, with the phases of its
//! life. Events never drive logic.

use crate::schedule::Certificate;
use crate::wire::{Message, PeerRecord, Reason, WireError};
use crate::{
    Base, Digest, Directive, Evaluation, FragmentId, Order, OrderId, PeerId, Proof, Recoding,
    Round, SliceId, SliceMeta, StateId, Time, TrainSummary,
};
use core::fmt;
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// An enum whose variants people and programs see as one word each.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize,
        )]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// All of them.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// It in one word, as people and programs see it.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The one with this word.
            pub fn of_word(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.word() == word)
            }
        }
    };
}

words!(
    /// What a peer was waiting for.
    Wait {
        /// Enough peers to begin.
        Peers = "peers",
        /// A state to start from.
        State = "state",
        /// The round's group.
        Group = "group",
        /// Contributions of the group's members.
        Contributions = "contributions",
        /// The shards' aggregates and the votes on them.
        Agreement = "agreement",
        /// A higher ballot, because a member did not do its part.
        Repair = "repair",
        /// Results of other columns of a grid.
        Results = "results",
        /// Pushes of the gossip partners.
        Partners = "partners",
        /// Shards of the center, from their owners.
        Center = "center",
        /// Peers that are so far behind that this one must wait.
        Lead = "lead",
    }
);

/// Something worth reporting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// A peer of the same run and plan is there.
    PeerUp(PeerId),
    /// The link to a peer is gone, and the peer has not said goodbye.
    PeerDown(PeerId),
    /// A peer did not do its part in time and is not waited for until it speaks again.
    Suspected {
        /// Which.
        peer: PeerId,
        /// In which round.
        round: Round,
    },
    /// We refused a peer.
    Refused {
        /// Which.
        peer: PeerId,
        /// Why.
        reason: Reason,
    },
    /// A peer refused us.
    RefusedBy {
        /// Which.
        peer: PeerId,
        /// Why.
        reason: Reason,
    },
    /// A new phase began.
    Phase {
        /// The round.
        round: Round,
        /// The phase.
        phase: Phase,
    },
    /// The round's training ended.
    Trained {
        /// The round.
        round: Round,
        /// Its summary.
        summary: TrainSummary,
    },
    /// The round's group is formed.
    Group {
        /// The round.
        round: Round,
        /// Its members in `PeerId` order.
        members: Vec<PeerId>,
    },
    /// The round's grid is known, and this peer's place in it.
    Seated {
        /// The round.
        round: Round,
        /// Number of peers in the roll.
        peers: u32,
        /// Number of columns.
        columns: u32,
        /// This peer's place.
        place: u32,
        /// Names roll, round and anchor: those who have the same end the round with the same bits.
        state: Digest,
    },
    /// A fragment's exchange ended with these contributors in each shard.
    Decided {
        /// The round.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The ballot's number, zero when all went well.
        ballot: u8,
        /// Shard by shard, the contributors with their weights, in `PeerId` order.
        contributors: Vec<Vec<(PeerId, f64)>>,
    },
    /// A fragment's exchange had no result; the anchor stays.
    Voided {
        /// The round.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
    },
    /// Gossip mixed what had arrived.
    Mixed {
        /// The round.
        round: Round,
        /// How many slices went in.
        inputs: u32,
        /// Push-sum weight afterwards; where sums are relayed, how many peers' parameters went in.
        weight: f64,
    },
    /// A transfer's link died with the transfer unacknowledged: its mass may be lost or doubled.
    MassUncertain {
        /// The peer.
        peer: PeerId,
        /// Push-sum weight in question.
        weight: f64,
    },
    /// The round found no group: it continues with more inner steps.
    Alone {
        /// The round.
        round: Round,
        /// Seconds since the round's training began or was taken up again.
        seconds: f64,
    },
    /// A round ended.
    RoundEnded {
        /// The round that ended.
        round: Round,
        /// Hash of the parameters (gossip) or the anchor (all-reduce) that opens the next.
        digest: Digest,
        /// Seconds from the round's start to its end.
        seconds: f64,
    },
    /// An evaluation ended.
    Evaluated {
        /// The parameters at the start of this round.
        round: Round,
        /// Its result.
        evaluation: Evaluation,
    },
    /// A checkpoint was written.
    Saved {
        /// The round it starts at.
        round: Round,
    },
    /// This peer is behind and takes over the swarm's state.
    CatchUp {
        /// From which round.
        from: Round,
        /// To which round.
        to: Round,
        /// How many donors.
        donors: u32,
    },
    /// This peer took over the result of a round that was decided without it.
    Replayed {
        /// The round.
        round: Round,
        /// Set if what this peer trained stays on top of the result.
        kept: bool,
    },
    /// A wait ended.
    Waited {
        /// For what.
        wait: Wait,
        /// How long.
        waited: Duration,
        /// How long at most.
        allowed: Duration,
        /// Set if it ended because the time was up.
        expired: bool,
    },
    /// A peer broke a rule.
    Misbehaved {
        /// Which.
        peer: PeerId,
        /// Its score now.
        score: u32,
        /// The broken rule, in words.
        what: String,
    },
    /// A peer lied: its signed statements contradict each other or do not justify its proposal, or it
    /// sent other bytes than it signed.
    Lied {
        /// Which.
        peer: PeerId,
        /// Set if everyone can check that.
        proven: bool,
        /// In which round.
        round: Round,
        /// What they say.
        what: String,
    },
    /// A peer has contributed nothing to rounds in which it took part: the others go on without it.
    Absent {
        /// Which.
        peer: PeerId,
        /// Until this round, when it is given another chance.
        until: Round,
    },
    /// Bytes that are not a message.
    Malformed {
        /// From whom.
        peer: PeerId,
        /// The error of their decoding.
        error: WireError,
    },
    /// An order of ours failed.
    WorkFailed {
        /// In words.
        what: String,
    },
    /// No peer that has a state answered in time; there is nothing to join.
    JoinFailed {
        /// How long it was waited for.
        waited: Duration,
    },
    /// A clock is wrong: records are signed and expire by it.
    ClockOff {
        /// Whose, or `None` if this peer's differs from those of most others.
        peer: Option<PeerId>,
        /// By how many seconds the other peer's clock, or those of the others, are ahead of this
        /// peer's.
        ahead: i64,
    },
    /// Too few peers are here to begin; this one keeps waiting.
    Missing {
        /// How many are here, this one included.
        here: usize,
        /// How many it waits for, this one included.
        wanted: usize,
        /// How long it has waited.
        waited: Duration,
    },
    /// Too few others know with which state this peer, or any that waits, is to go on; it keeps
    /// waiting.
    Unconfirmed {
        /// The round of its own state.
        round: Round,
    },
    /// Peers of another branch are here: the swarm was split, and both sides went on. The sides are
    /// to be merged.
    BranchesMet {
        /// The round this peer is in.
        round: Round,
        /// The round in which the branches began.
        base: Round,
        /// The weight of this side's rounds since then.
        weight: f64,
    },
    /// The branches of a swarm that was split are one again.
    Merged {
        /// The round that merged them.
        round: Round,
        /// Hash of the merged anchor.
        digest: Digest,
        /// The sides, each with its members in the merge and its weight; this peer's first.
        sides: Vec<(u16, f64)>,
    },
    /// A merge of branches did not come about.
    NotMerged {
        /// The round that was to merge them.
        round: Round,
        /// Set if it is tried no more: one side takes over the other's state.
        given_up: bool,
    },
    /// This peer's branch is kept in a checkpoint, because another state takes its place.
    BranchSaved {
        /// The round that the branch's state opens.
        round: Round,
        /// The weight of its rounds.
        weight: f64,
    },
    /// The owner of the run changes something.
    Directed {
        /// The round this peer is in.
        round: Round,
        /// The owner's directive.
        directive: Directive,
    },
    /// All rounds of the plan are done.
    Finished {
        /// Hash of the parameters (gossip) or the anchor (all-reduce) that it ends with.
        digest: Digest,
        /// How many.
        rounds: Round,
    },
    /// From this round on a round has another number of inner steps, because of what the members have said
    /// of their training.
    Paced {
        /// The round.
        round: Round,
        /// Its inner steps.
        steps: u32,
        /// Those of the round before.
        before: u32,
        /// What the members agree on: their loss, or how many inner steps an exchange holds training up.
        said: f64,
    },
    /// From this round on the schedule of the all-reduce is for links that were measured meanwhile.
    Rescheduled {
        /// The round.
        round: Round,
        /// Its cost by the model.
        certificate: Certificate,
    },
    /// From this round on contributions have another codec, because of how long exchanges hold training up.
    Recoded {
        /// The round.
        round: Round,
        /// The codecs, and the reason.
        change: Recoding,
    },
    /// This peer's trainer does not go on, so this peer leaves.
    TrainerFailed {
        /// In words.
        what: String,
    },
    /// A peer said goodbye, because it leaves.
    PeerLeft(PeerId),
}

impl Event {
    /// A peer is gone; `left` where it said goodbye because it leaves.
    pub(crate) const fn gone(peer: PeerId, left: bool) -> Self {
        if left {
            Self::PeerLeft(peer)
        } else {
            Self::PeerDown(peer)
        }
    }
}

/// What a peer waits for at this moment, for people. Nothing in the protocol depends on it.
///
/// A wait that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The kind of the wait.
    pub wait: Wait,
    /// The fragment that waits; the first one for waits of the whole round.
    pub fragment: FragmentId,
    /// Which peers, in `PeerId` order; empty where the wait is for peers that are not known yet, or
    /// for this peer's own work.
    pub peers: Vec<PeerId>,
    /// When the wait began.
    pub since: Time,
    /// When this peer gives up, or asks others.
    pub deadline: Time,
}

words!(
    /// Where a peer is in its round.
    Phase {
        /// Not started.
        New = "new",
        /// Waits for enough peers, or for a state to start from.
        Join = "join",
        /// Inner steps are under way.
        Train = "train",
        /// Contributions are under way.
        Exchange = "exchange",
        /// The result of the exchange is being applied.
        Apply = "apply",
        /// Between rounds: an evaluation or a checkpoint is under way.
        Settle = "settle",
        /// The owner has paused the run before this round.
        Paused = "paused",
        /// All rounds are done; still serves others.
        Finished = "finished",
        /// Writes its last checkpoint.
        Leaving = "leaving",
        /// Done.
        Left = "left",
    }
);

impl Phase {
    /// Returns `true` if `next` may follow. Any phase before `Leaving` may turn to it.
    pub const fn may_become(self, next: Self) -> bool {
        use Phase::{Apply, Exchange, Finished, Join, Leaving, Left, New, Paused, Settle, Train};
        matches!(
            (self, next),
            (New, Join)
                | (Join, Train | Exchange | Settle | Finished)
                | (Train, Exchange | Join | Apply)
                | (Exchange, Apply | Join)
                | (Apply, Settle)
                | (Settle, Train | Exchange | Join | Paused | Finished)
                | (Paused, Train | Exchange | Join | Finished)
                | (Finished, Exchange | Join)
                | (Leaving, Left)
                | (
                    New | Join | Train | Exchange | Apply | Settle | Paused | Finished,
                    Leaving
                )
        )
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Something for the driver to do, in the order given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Output {
    /// Send a control message. Delivery is not promised; the peer has deadlines of its own.
    Send {
        /// To whom.
        to: PeerId,
        /// What.
        message: Message,
    },
    /// Push an encoded slice. Answered by `Pushed`.
    Push {
        /// To whom.
        to: PeerId,
        /// What.
        slice: SliceId,
        /// What its header says.
        meta: SliceMeta,
        /// Lower goes first.
        priority: u8,
        /// When to give up.
        deadline: Time,
    },
    /// Fetch a slice or a state. Answered by `Fetched` or `FetchFailed`.
    Fetch {
        /// What.
        what: FetchId,
        /// From whom; a state may be drawn from all of them at once.
        from: Vec<PeerId>,
        /// When to give up.
        deadline: Time,
    },
    /// Stop pushing a slice.
    Cancel {
        /// Which.
        slice: SliceId,
    },
    /// A work order for the Executor.
    Order {
        /// Its number.
        id: OrderId,
        /// What to do.
        order: Order,
    },
    /// Let the training that is under way end at the next inner step.
    Interrupt,
    /// Open a link.
    Dial(PeerRecord),
    /// Close a link.
    Disconnect {
        /// To whom.
        peer: PeerId,
        /// Why.
        reason: Reason,
    },
    /// Something for people and metrics. Never drives logic.
    Emit(Event),
    /// The peer is done: the driver may stop.
    Left,
    /// Remember, across restarts, with which parameters a round began. Asked for only where members
    /// sign. Those of the last [`OPENINGS_MAX`](crate::limits::OPENINGS_MAX) rounds suffice.
    Opened(Base),
    /// A peer lies, and this proves it to everyone.
    Prove(Box<Proof>),
}

/// Something that a peer fetches from another one over the bulk protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FetchId {
    /// An encoded slice.
    Slice(SliceId),
    /// A pinned state.
    State(StateId),
}
