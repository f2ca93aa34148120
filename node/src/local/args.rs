//! The arguments of the flags of `murmurate local`: faults, liars, splits, cuts, islands and shards; the
//! faults that occurred; and when `--kill-every` kills a daemon, and which one.

use super::LocalError;
use crate::faults::{FaultError, FaultPhase, round_and_phase};
use crate::lies::{self, Lie, LieError};
use crate::splits::Split;
use crate::store::Store;
use murmurate_strategies::RANKS_MAX;
use murmurate_tasks::data::ShardKind;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use serde::Serialize;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// `--kill N@round:R[:train|exchange|apply]`, and the same of `--stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultAt {
    /// Index of the daemon, from zero.
    pub node: usize,
    /// The round.
    pub round: u64,
    /// The phase.
    pub phase: FaultPhase,
}

/// A fault that occurred.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FaultEntry {
    /// Index of the daemon, from zero.
    pub node: usize,
    /// `kill`, `stop` or `late`.
    pub kind: String,
    /// The round in which it occurred.
    pub round: u64,
    /// The phase in which it occurred, if known.
    pub phase: Option<String>,
    /// Seconds from the start of the first daemon. Only for kills of `--kill-every`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_s: Option<f64>,
    /// Peak resident bytes of the killed process. Only for kills of `--kill-every`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_rss_bytes: Option<u64>,
}

/// `--late N@round:R`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateAt {
    /// Index of the daemon, from zero.
    pub node: usize,
    /// The daemon starts when the others have reached this round.
    pub round: u64,
}

impl FromStr for FaultAt {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let form = "N@round:R, or N@round:R:PHASE with train, exchange or apply";
        let bad = || FaultError::new(text, form);
        let (node, rest) = text.split_once("@round:").ok_or_else(bad)?;
        let (round, phase) = round_and_phase(rest).ok_or_else(bad)?;
        let node = node.parse().map_err(|_| bad())?;
        Ok(Self { node, round, phase })
    }
}

impl FromStr for LateAt {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let bad = || FaultError::new(text, "N@round:R");
        let (node, rest) = text.split_once("@round:").ok_or_else(bad)?;
        let node = node.parse().map_err(|_| bad())?;
        let round = rest.parse().map_err(|_| bad())?;
        Ok(Self { node, round })
    }
}

/// `--partition 0,1|2,3@round:R`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionAt {
    /// The daemons of each side, by index from zero.
    pub sides: Vec<Vec<usize>>,
    /// The round in which the sides lose each other.
    pub round: u64,
}

/// `--heal @round:S`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealAt {
    /// From this round on the sides can reach each other again.
    pub round: u64,
}

impl FromStr for PartitionAt {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let bad = || FaultError::new(text, "the sides and a round: 0,1|2,3@round:R");
        let (sides, round) = text.split_once("@round:").ok_or_else(bad)?;
        let side = |side: &str| {
            side.split(',')
                .map(|node| node.trim().parse().ok())
                .collect()
        };
        let sides: Option<Vec<Vec<usize>>> = sides.split('|').map(side).collect();
        let round = round.parse().map_err(|_| bad())?;
        match sides {
            Some(sides) if sides.len() > 1 => Ok(Self { sides, round }),
            _ => Err(bad()),
        }
    }
}

impl FromStr for HealAt {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let round = text.strip_prefix("@round:");
        let round = round.and_then(|round| round.parse().ok());
        let round = round.ok_or_else(|| FaultError::new(text, "@round:S"))?;
        Ok(Self { round })
    }
}

impl PartitionAt {
    /// Why this number of daemons cannot be split so, if that is so.
    pub(super) fn wrong(&self, nodes: usize) -> Option<String> {
        let mut named: Vec<usize> = self.sides.concat();
        named.sort_unstable();
        (!named.into_iter().eq(0..nodes)).then(|| {
            let last = nodes.saturating_sub(1);
            format!("name each daemon from 0 to {last} on one side")
        })
    }

    /// The sides, for people.
    pub(super) fn words(&self) -> String {
        let side = |side: &Vec<usize>| {
            let nodes: Vec<String> = side.iter().map(usize::to_string).collect();
            nodes.join(",")
        };
        let sides: Vec<String> = self.sides.iter().map(side).collect();
        sides.join(" | ")
    }

    /// The split as one daemon of the swarm in `dir` has it.
    pub(super) fn of(
        &self,
        node: usize,
        heal: Option<HealAt>,
        dir: &Path,
    ) -> Result<Split, LocalError> {
        let others = self.sides.iter().filter(|side| !side.contains(&node));
        let mut peers = murmurate_protocol::SortedSet::new();
        for other in others.flatten() {
            let home = dir.join(format!("node-{other}"));
            let identity = Store::identity_of(&home).map_err(LocalError::of_directory(&home))?;
            peers.insert(identity.peer());
        }
        Ok(Split {
            from: self.round,
            until: heal.map_or(u64::MAX, |heal| heal.round),
            peers,
        })
    }
}

/// `--cut A-B` or, where only what A sends to B is lost, `--cut A>B`; either with `@START+LENGTH` in seconds from the
/// start of the swarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The two daemons, by index from zero.
    pub between: [usize; 2],
    /// Only what the first one sends to the second one is lost.
    pub one_way: bool,
    /// From when and until when nothing arrives between them.
    pub during: Range<Duration>,
}

/// What a cut is and how it is written.
const FORM: &str = "a cut lets nothing arrive between two daemons: write 2-3 for the whole run, 2>3 for what 2 \
                    sends to 3, or 2-3@5s+10s for 10 s from second 5 on";

impl FromStr for Cut {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is no cut; {FORM}");
        let (pair, time) = match text.split_once('@') {
            Some((pair, time)) => (pair, Some(time)),
            None => (text, None),
        };
        let one_way = pair.contains('>');
        let (a, b) = pair.split_once(['-', '>']).ok_or_else(bad)?;
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| bad());
        let between = [number(a)?, number(b)?];
        let during = match time {
            Some(time) => range(time).ok_or_else(bad)?,
            None if between.contains(&0) => {
                return Err(format!(
                    "`{text}` cuts off daemon 0, through which the others join; {FORM}"
                ));
            }
            None => Duration::ZERO..Duration::MAX,
        };
        if between[0] == between[1] {
            return Err(format!(
                "`{text}` names daemon {} twice; {FORM}",
                between[0]
            ));
        }
        if during.is_empty() {
            return Err(bad());
        }
        Ok(Self {
            between,
            one_way,
            during,
        })
    }
}

/// Parses `5s+10s`.
fn range(text: &str) -> Option<Range<Duration>> {
    let seconds = |text: &str| {
        let number = text.trim().strip_suffix('s')?.parse().ok()?;
        Duration::try_from_secs_f64(number).ok()
    };
    let (start, length) = text.split_once('+')?;
    let start = seconds(start)?;
    Some(start..start.saturating_add(seconds(length)?))
}

/// `--liar N@MODE[:ROUND]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiarAt {
    /// Index of the daemon, from zero.
    pub node: usize,
    /// The lie, with the round in which it begins.
    pub lie: Lie,
}

impl FromStr for LiarAt {
    type Err = LieError;

    fn from_str(text: &str) -> Result<Self, LieError> {
        let bad = || LieError::new(text, "N@MODE or N@MODE:ROUND");
        let (node, lie) = text.split_once('@').ok_or_else(bad)?;
        let node = node.parse().map_err(|_| bad())?;
        let lie = lies::parse(lie).ok_or_else(bad)?;
        Ok(Self { node, lie })
    }
}

/// The most daemons of one local swarm: what the processes of one machine can hold.
pub(super) const NODES_MAX: usize = 256;

/// The argument of `--islands`: `2x4` is two peers of four ranks each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IslandsArg {
    /// Number of peers.
    pub peers: usize,
    /// Number of ranks of each.
    pub ranks: u32,
}

impl FromStr for IslandsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('x');
        let numbers = numbers.and_then(|(peers, ranks)| {
            let (peers, ranks) = (peers.parse().ok()?, ranks.parse().ok()?);
            Some(Self { peers, ranks })
        });
        let Some(this) = numbers else {
            return Err(format!(
                "`{text}` is not PEERSxRANKS; write 2x4 for two peers of four ranks each"
            ));
        };
        let (Self { peers, ranks }, most) = (this, NODES_MAX);
        if !(1..=most).contains(&peers) {
            return Err(format!("`{text}` has {peers} peers; give 1 to {most}"));
        }
        if !(1..=RANKS_MAX).contains(&ranks) {
            return Err(format!(
                "`{text}` has {ranks} ranks in each peer; give 1 to {RANKS_MAX}"
            ));
        }
        Ok(this)
    }
}

/// Parses the argument of `--shards`: how the data is divided. Data of each daemon's own is for `--config`.
///
/// # Errors
/// Names the ways.
pub fn shards_of(text: &str) -> Result<ShardKind, String> {
    let alpha = text.strip_prefix("dirichlet:");
    match (text, alpha.and_then(|alpha| alpha.parse().ok())) {
        ("dealt", _) => Ok(ShardKind::Dealt),
        ("iid", _) => Ok(ShardKind::Iid),
        ("by-label", _) => Ok(ShardKind::ByLabel),
        (_, Some(alpha)) => Ok(ShardKind::Dirichlet { alpha }),
        _ => Err(format!(
            "`{text}` is not a split; write dealt, iid, by-label or dirichlet:ALPHA"
        )),
    }
}

/// The shortest time between two kills, about as long as a daemon needs to start.
const EVERY_MIN: Duration = Duration::from_millis(500);

/// The longest time between two kills.
const EVERY_MAX: Duration = Duration::from_secs(24 * 3600);

/// The argument of `--kill-every`, such as `5s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KillEvery(Duration);

impl FromStr for KillEvery {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is no time between kills; write 5s, 500ms or 1min");
        let units = [("ms", 1e-3), ("min", 60.0), ("s", 1.0)];
        let found = units
            .iter()
            .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
        let (number, seconds) = found.ok_or_else(bad)?;
        let number: f64 = number.trim().parse().map_err(|_| bad())?;
        let every = Duration::try_from_secs_f64(number * seconds).map_err(|_| bad())?;
        if !(EVERY_MIN..=EVERY_MAX).contains(&every) {
            return Err(format!(
                "`{text}` between kills; give {EVERY_MIN:?} to {EVERY_MAX:?}"
            ));
        }
        Ok(Self(every))
    }
}

/// Chooses the time and the victim of each kill.
#[derive(Debug)]
pub(super) struct Killer {
    every: Duration,
    next: Option<Instant>,
    rng: ChaCha8Rng,
    pub(super) kills: Vec<FaultEntry>,
}

impl Killer {
    /// With the same seed and the same running daemons, the order of victims repeats.
    pub(super) fn new(every: KillEvery, seed: u64) -> Self {
        Self {
            every: every.0,
            next: None,
            rng: ChaCha8Rng::seed_from_u64(seed),
            kills: Vec::new(),
        }
    }

    /// If a kill is due, draws one of the indices `up` of running daemons.
    pub(super) fn strike(&mut self, now: Instant, up: &[usize]) -> Option<usize> {
        let next = *self.next.get_or_insert(now + self.every);
        if now < next {
            return None;
        }
        self.next = Some(now + self.every);
        let draw = self.rng.next_u64();
        let place = draw.checked_rem(up.len() as u64)?;
        up.get(usize::try_from(place).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lies::LieMode;
    use crate::tests::assert_has;

    #[test]
    fn kills_and_late_starts_are_read() {
        let kill: FaultAt = "2@round:5:exchange".parse().unwrap();
        assert_eq!(
            kill,
            FaultAt {
                node: 2,
                round: 5,
                phase: FaultPhase::Exchange
            }
        );
        let plain: FaultAt = "0@round:0".parse().unwrap();
        assert_eq!(
            plain,
            FaultAt {
                node: 0,
                round: 0,
                phase: FaultPhase::Train
            }
        );
        assert_eq!("3@round:9".parse(), Ok(LateAt { node: 3, round: 9 }));
        for text in [
            "",
            "2",
            "2@5",
            "x@round:1",
            "2@round:",
            "2@round:1:sleep",
            "2@round:1:apply:x",
        ] {
            assert!(text.parse::<FaultAt>().is_err(), "{text}");
        }
        let line = "3@round:9:train".parse::<LateAt>().unwrap_err().to_string();
        assert_eq!(line, "`3@round:9:train` is not a fault; write N@round:R");
    }

    #[test]
    fn partitions_and_heals_are_read() {
        let partition: PartitionAt = "0,1|2,3@round:5".parse().unwrap();
        let sides = vec![vec![0, 1], vec![2, 3]];
        assert_eq!(partition, PartitionAt { sides, round: 5 });
        assert_eq!(partition.words(), "0,1 | 2,3");
        assert_eq!("@round:9".parse(), Ok(HealAt { round: 9 }));
        for text in [
            "",
            "0,1@round:5",
            "0|1",
            "0,|1@round:5",
            "0|1@5",
            "0|1@round:x",
        ] {
            let line = text.parse::<PartitionAt>().unwrap_err().to_string();
            assert!(line.ends_with("0,1|2,3@round:R"), "{line}");
        }
        for text in ["", "9", "round:9", "@round:", "@9"] {
            assert!(text.parse::<HealAt>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_daemon_is_on_one_side() {
        let wrong = |text: &str, nodes| text.parse::<PartitionAt>().unwrap().wrong(nodes);
        assert_eq!(wrong("2,0|1,3@round:1", 4), None);
        let line = Some("name each daemon from 0 to 3 on one side".to_owned());
        for text in ["0,1|2@round:1", "0,1|2,3,4@round:1", "0,1|1,2,3@round:1"] {
            assert_eq!(wrong(text, 4), line, "{text}");
        }
    }

    #[test]
    fn cuts_are_read() {
        let cut: Cut = "2-3".parse().unwrap();
        assert_eq!(cut.between, [2, 3]);
        assert_eq!(cut.during, Duration::ZERO..Duration::MAX);
        assert!(!cut.one_way && "2>3".parse::<Cut>().unwrap().one_way);
        for text in ["0-1", "2>0"] {
            let line = text.parse::<Cut>().unwrap_err();
            assert!(
                line.starts_with(&format!("`{text}` cuts off daemon 0")),
                "{line}"
            );
        }
        let cut: Cut = "1-0@5s+2.5s".parse().unwrap();
        assert_eq!(cut.between, [1, 0]);
        let during = Duration::from_secs(5)..Duration::from_millis(7_500);
        assert_eq!(cut.during, during);
        for text in [
            "",
            "2",
            "2-",
            "2-x",
            "2-3@",
            "2-3@5s",
            "2-3@5+10",
            "2-3@5s+0s",
            "2-3@-1s+2s",
        ] {
            let line = text.parse::<Cut>().unwrap_err();
            assert_eq!(line, format!("`{text}` is no cut; {FORM}"));
        }
        let line = "1-1@5s+10s".parse::<Cut>().unwrap_err();
        assert_eq!(line, format!("`1-1@5s+10s` names daemon 1 twice; {FORM}"));
    }

    #[test]
    fn liars_are_read() {
        let liar: LiarAt = "3@owner-lie:5".parse().unwrap();
        let lie = Lie {
            mode: LieMode::OwnerLie,
            from: 5,
        };
        assert_eq!(liar, LiarAt { node: 3, lie });
        for text in ["", "3", "weight", "x@weight", "3@", "3@wait", "3@weight:"] {
            let line = text.parse::<LiarAt>().unwrap_err().to_string();
            assert!(line.contains("write N@MODE or N@MODE:ROUND"), "{line}");
        }
    }

    #[test]
    fn peers_and_ranks_are_read_and_nonsense_is_one_line() {
        let parsed = |text: &str| text.parse::<IslandsArg>();
        assert_eq!(parsed("2x4"), Ok(IslandsArg { peers: 2, ranks: 4 }));
        for text in [
            "", "4", "2x", "x4", "2X4", "2x4x2", "-1x2", "2x1e3", "2 x 4",
        ] {
            let line = parsed(text).unwrap_err();
            assert_has(&line, "PEERSxRANKS");
            assert!(!line.contains('\n'), "{line}");
        }
        assert_eq!(
            parsed("0x4").unwrap_err(),
            "`0x4` has 0 peers; give 1 to 256"
        );
        assert_eq!(
            parsed("2x0").unwrap_err(),
            "`2x0` has 0 ranks in each peer; give 1 to 64"
        );
        assert!(parsed("2x65").unwrap_err().ends_with("give 1 to 64"));
        assert!(parsed("257x1").unwrap_err().ends_with("give 1 to 256"));
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        let second = Duration::from_secs(1);
        assert_eq!("5s".parse(), Ok(KillEvery(5 * second)));
        assert_eq!("500ms".parse(), Ok(KillEvery(second / 2)));
        assert_eq!("1.5min".parse(), Ok(KillEvery(90 * second)));
        for text in ["", "5", "s", "-1s", "nans", "1e300s"] {
            let line = text.parse::<KillEvery>().unwrap_err();
            assert!(line.contains("write 5s"), "{line}");
        }
        let line = "1ms".parse::<KillEvery>().unwrap_err();
        assert_eq!(line, "`1ms` between kills; give 500ms to 86400s");
    }

    #[test]
    fn kills_follow_the_seed_and_the_time() {
        let every = KillEvery(Duration::from_secs(5));
        let start = Instant::now();
        let victims = |seed| {
            let mut killer = Killer::new(every, seed);
            let at = |second| start + Duration::from_secs(second);
            assert_eq!(killer.strike(at(0), &[0, 1, 2]), None);
            assert_eq!(killer.strike(at(4), &[0, 1, 2]), None);
            (1..40)
                .map(|k| killer.strike(at(5 * k), &[0, 1, 2]))
                .collect::<Vec<_>>()
        };
        assert!(victims(1).iter().all(Option::is_some));
        assert_eq!(victims(1), victims(1));
        assert_ne!(victims(1), victims(2));
        let all = [0, 1, 2].map(Some);
        assert!(all.iter().all(|place| victims(1).contains(place)));
    }

    #[test]
    fn no_daemon_is_killed_while_none_is_up() {
        let mut killer = Killer::new(KillEvery(Duration::from_secs(1)), 0);
        let start = Instant::now();
        assert_eq!(killer.strike(start, &[]), None);
        assert_eq!(killer.strike(start + Duration::from_secs(1), &[]), None);
    }
}
