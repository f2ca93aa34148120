//! One entry of the log. The field names are an interface: programs read them.

use serde::{Deserialize, Serialize};

/// The version of the entries, in their field `v`. It grows when a field changes its meaning; new kinds
/// and new fields do not change it.
pub const VERSION: u32 = 1;

/// Something that happened at one daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// [`VERSION`].
    pub v: u32,
    /// Its number in this daemon's log. Numbers grow, over restarts too.
    pub seq: u64,
    /// Unix time by the daemon's clock, seconds.
    pub time: f64,
    /// The daemon's peer id, hexadecimal.
    pub daemon: String,
    /// The round that it is about; otherwise the daemon's own.
    pub round: u64,
    /// The event.
    #[serde(flatten)]
    pub kind: Kind,
}

/// Declares the kinds of events, each with its name in the field `kind`.
macro_rules! kinds {
    (
        $(#[$meta:meta])*
        pub enum Kind {
            $($(#[$doc:meta])* $variant:ident = $name:literal $({ $($fields:tt)* })?,)+
        }
    ) => {
        $(#[$meta])*
        pub enum Kind {
            $($(#[$doc])* #[serde(rename = $name)] $variant $({ $($fields)* })?,)+
            /// A kind that this version does not know.
            #[serde(other, rename = "unknown")]
            Unknown,
        }

        /// The names of all kinds.
        pub const KINDS: [&str; [$($name),+].len()] = [$($name),+];

        impl Kind {
            /// The name in the field `kind`.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)+
                    Self::Unknown => "unknown",
                }
            }
        }
    };
}

kinds! {
    /// Kind of an event. The field `kind` of the JSON object names it.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "kind")]
    #[non_exhaustive]
    pub enum Kind {
        /// The daemon started.
        Started = "started" {
            /// Version of the program.
            version: String,
            /// The run's name.
            run: String,
            /// The daemon's name, if it has one.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            name: Option<String>,
        },
        /// A peer has given itself a name.
        Named = "named" {
            /// The peer's id, hexadecimal.
            peer: String,
            /// Its name, in its own words.
            name: String,
        },
        /// A link to a peer of the run is up.
        PeerUp = "peer_up" {
            /// The peer's id, hexadecimal.
            peer: String,
        },
        /// The link to a peer is gone, and the peer has not said goodbye.
        PeerDown = "peer_down" {
            /// The peer's id, hexadecimal.
            peer: String,
        },
        /// A peer said goodbye and left.
        PeerLeft = "peer_left" {
            /// The peer's id, hexadecimal.
            peer: String,
        },
        /// A peer missed a deadline and is not waited for until it speaks again.
        Suspected = "suspected" {
            /// The peer's id, hexadecimal.
            peer: String,
        },
        /// This daemon refused a peer.
        Refused = "refused" {
            /// The peer's id, hexadecimal.
            peer: String,
            /// Why.
            reason: String,
        },
        /// A peer refused this daemon.
        RefusedBy = "refused_by" {
            /// The peer's id, hexadecimal.
            peer: String,
            /// Why.
            reason: String,
        },
        /// A peer that does not fit has said which settings it has.
        Differs = "differs" {
            /// The peer's id, hexadecimal.
            peer: String,
            /// Keys of the configuration in which the two differ.
            keys: Vec<String>,
        },
        /// A phase of the round began.
        Phase = "phase" {
            /// The phase of the round.
            phase: String,
        },
        /// Training of the round ended.
        Trained = "trained" {
            /// Inner steps.
            steps: u64,
            /// Samples.
            samples: u64,
            /// Loss; see `/status`.
            loss: f64,
            /// Seconds of training.
            train_s: f64,
        },
        /// The round's group is formed.
        Group = "group" {
            /// The members, hexadecimal.
            members: Vec<String>,
        },
        /// The place of this daemon in a grid.
        Seated = "seated" {
            /// Peers.
            peers: u32,
            /// This daemon's place in the roll.
            place: u32,
        },
        /// A result was decided; these are all that contributed to some part of it.
        Decided = "decided" {
            /// The fragment of the model.
            fragment: u16,
            /// The ballot that decided; 0 when all went well.
            ballot: u8,
            /// The contributors, hexadecimal.
            contributors: Vec<String>,
        },
        /// A fragment has no result in this round.
        Voided = "voided" {
            /// The fragment of the model.
            fragment: u16,
        },
        /// Neighbours' parameters were mixed in.
        Mixed = "mixed" {
            /// Neighbours whose parameters were mixed in.
            inputs: u32,
            /// Weight afterwards.
            weight: f64,
        },
        /// No group came about.
        Alone = "alone" {
            /// Duration.
            seconds: f64,
        },
        /// The round ended with these parameters.
        RoundEnded = "round_ended" {
            /// Duration.
            seconds: f64,
            /// Digest of the parameters, hexadecimal: equal at all daemons that agree.
            digest: String,
        },
        /// The parameters that open the round were evaluated.
        Evaluated = "evaluated" {
            /// Loss; see `/status`.
            loss: f64,
            /// Fraction of correct predictions, 0 to 1.
            accuracy: Option<f64>,
        },
        /// A checkpoint was written.
        Saved = "saved",
        /// The daemon fetches the state that opens round `to`.
        CatchUp = "catch_up" {
            /// The round that it goes on from.
            to: u64,
            /// Daemons that help.
            donors: u32,
        },
        /// The daemon took over the result of a round that was decided without it.
        Replayed = "replayed" {
            /// Its own training stays on top of the result.
            kept: bool,
        },
        /// A wait is long: these peers are waited for, until the deadline.
        Waiting = "waiting" {
            /// What, in words.
            what: String,
            /// Peers.
            peers: Vec<String>,
            /// Seconds waited.
            waited_s: f64,
            /// Seconds to the deadline.
            deadline_s: f64,
        },
        /// A wait ended.
        Waited = "waited" {
            /// What, in words.
            what: String,
            /// Seconds waited.
            waited_s: f64,
            /// Seconds allowed.
            allowed_s: f64,
            /// The time was up.
            expired: bool,
        },
        /// A peer broke a rule of the protocol.
        Misbehaved = "misbehaved" {
            /// The peer's id, hexadecimal.
            peer: String,
            /// What, in words.
            what: String,
        },
        /// A peer lied.
        Lied = "lied" {
            /// The peer's id, hexadecimal.
            peer: String,
            /// What, in words.
            what: String,
            /// Everyone can check that.
            proven: bool,
        },
        /// A peer contributes nothing; rounds go on without it until round `until`.
        Absent = "absent" {
            /// The peer's id, hexadecimal.
            peer: String,
            /// The round in which it gets another chance.
            until: u64,
        },
        /// Work of this daemon failed.
        WorkFailed = "work_failed" {
            /// What, in words.
            what: String,
        },
        /// No peer that could be joined answered.
        JoinFailed = "join_failed" {
            /// Seconds waited.
            waited_s: f64,
        },
        /// A clock is wrong: a peer's, or without a peer this daemon's.
        ClockOff = "clock_off" {
            /// The peer, if it is not this daemon's clock.
            #[serde(default)]
            peer: Option<String>,
            /// Seconds ahead of this daemon's clock.
            ahead_s: i64,
        },
        /// Too few daemons are here to begin.
        Missing = "missing" {
            /// Daemons that are here.
            here: u64,
            /// Daemons that a run begins with.
            wanted: u64,
        },
        /// The sides of a swarm that was split are one again.
        Merged = "merged" {
            /// Digest of the parameters, hexadecimal: equal at all daemons that agree.
            digest: String,
        },
        /// They could not be merged.
        NotMerged = "not_merged" {
            /// It is not tried again.
            given_up: bool,
        },
        /// Sides of a swarm that was split meet.
        BranchesMet = "branches_met" {
            /// The round in which they parted.
            base: u64,
            /// Samples that the rounds of this daemon's side have trained on since then.
            weight: f64,
        },
        /// Another state takes the place of this daemon's branch, which is saved.
        BranchSaved = "branch_saved" {
            /// Samples that its rounds have trained on.
            weight: f64,
        },
        /// A peer trains the same data as this daemon.
        SameData = "same_data" {
            /// The peer's id, hexadecimal.
            peer: String,
            /// Two rounds with equal training losses.
            rounds: Vec<u64>,
        },
        /// Another daemon runs with this one's identity.
        Elsewhere = "elsewhere",
        /// Files of the daemon's directory were lost or changed.
        Altered = "altered" {
            /// What, in words.
            what: String,
        },
        /// The owner of the run changes something.
        Directive = "directive" {
            /// Number of the directive.
            number: u32,
            /// The change: `pause`, `resume`, `rounds`, `inner_steps`, `learning_rate` or `codec`.
            change: String,
            /// To what, where that is a number.
            value: Option<f64>,
            /// To which codec, where the codec changes.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            codec: Option<String>,
            /// The first round in which it is in force; zero is at once.
            from: u64,
        },
        /// From this round on a round has another number of inner steps, because of what the members have said
        /// of their training.
        Paced = "paced" {
            /// Its inner steps.
            steps: u32,
            /// Those of the round before.
            before: u32,
            /// The agreed value: the members' loss, or the inner steps for which an exchange holds training up.
            said: f64,
        },
        /// From this round on contributions have another codec, because of how long exchanges hold training up.
        Recoded = "recoded" {
            /// The codec.
            codec: String,
            /// That of the round before.
            before: String,
            /// For how many inner steps an exchange has held training up with that one, as the members agree.
            wait: f64,
            /// For how many it may.
            room: f64,
        },
        /// All rounds are done.
        Finished = "finished",
        /// The log could not keep up, and entries are missing before this one.
        Lost = "lost" {
            /// Entries that are missing.
            count: u64,
        },
    }
}

impl Kind {
    /// The peer that it is about, if it is about one.
    pub fn peer(&self) -> Option<&str> {
        match self {
            Self::PeerUp { peer }
            | Self::PeerDown { peer }
            | Self::PeerLeft { peer }
            | Self::Named { peer, .. }
            | Self::Suspected { peer }
            | Self::Refused { peer, .. }
            | Self::RefusedBy { peer, .. }
            | Self::Differs { peer, .. }
            | Self::Misbehaved { peer, .. }
            | Self::Lied { peer, .. }
            | Self::SameData { peer, .. }
            | Self::Absent { peer, .. } => Some(peer),
            Self::ClockOff { peer, .. } => peer.as_deref(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_name_in_json_and_is_documented() {
        let json = serde_json::to_value(Kind::Saved).unwrap();
        assert_eq!(json["kind"], Kind::Saved.name());
        let seated = Kind::Seated { peers: 2, place: 1 };
        let json = serde_json::to_value(&seated).unwrap();
        assert_eq!(
            (&json["kind"], &json["place"]),
            (&seated.name().into(), &1.into())
        );
        assert_eq!(serde_json::from_value::<Kind>(json).unwrap(), seated);
        let page = include_str!("../../../docs/events.md");
        for name in KINDS {
            assert!(
                page.contains(&format!("`{name}`")),
                "docs/events.md does not name {name}"
            );
        }
    }
}
