//! Messages about who takes part: greetings, addresses, signs of life.

use crate::limits::RECORDS_PER_MESSAGE_MAX;
use crate::wire::check::ok;
use crate::wire::{PeerRecord, Rates, Setting, WireError};
use crate::{Branch, Digest, LayoutHash, PlanHash, Round, RunId};
use core::fmt;
use serde::{Deserialize, Serialize};

/// How far a peer is on its way to its first round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Muster {
    /// It has met fewer peers than it needs to begin.
    #[default]
    Waiting,
    /// It has met enough peers and waits until they have too.
    Met,
    /// It has begun.
    Begun,
}

/// The first message on every link: which run a peer belongs to, and how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The run.
    pub run: RunId,
    /// The model.
    pub layout: LayoutHash,
    /// The plan.
    pub plan: PlanHash,
    /// The round this peer is in.
    pub round: Round,
    /// Hash of its anchor.
    pub anchor: Digest,
    /// Whether it takes part in rounds already, or still fetches a state.
    pub ready: bool,
    /// Whether it has begun.
    pub muster: Muster,
    /// The branch that it is in, after a split of the swarm.
    pub branch: Option<Box<Branch>>,
}

/// Why a peer is refused or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// It leaves because it was asked to.
    Leaving,
    /// It trains another run.
    OtherRun,
    /// It trains another model.
    OtherModel,
    /// It follows another plan.
    OtherPlan,
    /// It speaks another version of the protocol.
    OtherVersion,
    /// It broke the rules too often.
    Misbehaved,
    /// The run is full.
    Full,
    /// It has links with enough others.
    Spare,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leaving => "it leaves",
            Self::OtherRun => "it belongs to another run (compare `run.name` in both configs)",
            Self::OtherModel => {
                "it trains another model (compare the `[task]` tables, the names of a table's columns and \
                 classes, and the model that it starts from; set `task.classes` if the data differ; of attached \
                 loops compare names, shapes and order of the parameters)"
            }
            Self::OtherPlan => {
                "it follows another plan (compare seed, rounds and strategy in both configs)"
            }
            Self::OtherVersion => {
                "it speaks another version of the protocol (upgrade the older of the two: the same release \
                 on both, or the one after it)"
            }
            Self::Misbehaved => "it broke the protocol's rules too often",
            Self::Full => "the run has as many peers as one group can hold",
            Self::Spare => "it has links with enough others",
        })
    }
}

/// A message about who takes part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MembershipMessage {
    /// Opens a link.
    Hello(Hello),
    /// Peers that the sender knows of.
    Records(Vec<PeerRecord>),
    /// The sender leaves or refuses the receiver.
    Goodbye(Reason),
    /// A sign of life, and how far the sender is.
    Alive {
        /// The round it is in.
        round: Round,
        /// Whether it takes part in rounds.
        ready: bool,
        /// Hash of its anchor.
        anchor: Digest,
        /// Whether it has begun.
        muster: Muster,
        /// The branch that it is in, after a split of the swarm.
        branch: Option<Box<Branch>>,
    },
    /// The rates of the sender's links.
    Rates(Rates),
    /// The settings on which the sender's model and plan depend, before it refuses the receiver for another
    /// model or plan. Hosts make and compare them; for a [`Peer`](crate::Peer) they mean nothing.
    Settings(Vec<Setting>),
}

impl MembershipMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Records(_) => "records",
            Self::Goodbye(_) => "goodbye",
            Self::Alive { .. } => "alive",
            Self::Rates(_) => "rates",
            Self::Settings(_) => "settings",
        }
    }

    pub(super) fn check(&self) -> Result<(), WireError> {
        match self {
            Self::Records(records) => {
                ok(records.len() <= RECORDS_PER_MESSAGE_MAX, "records")?;
                records.iter().try_for_each(PeerRecord::check)
            }
            Self::Hello(Hello { branch, .. }) | Self::Alive { branch, .. } => {
                branch.as_ref().map_or(Ok(()), |branch| branch.check())
            }
            Self::Rates(rates) => rates.check(),
            Self::Settings(settings) => Setting::check_all(settings),
            Self::Goodbye(_) => Ok(()),
        }
    }
}
