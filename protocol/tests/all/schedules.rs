//! All-reduce by schedules: what they cost, and that survivors hold the same bits, the weighted
//! mean of a stated set (the club compares every applied aggregate with what its member said it
//! decided), whichever member dies, stalls or lies, and at whichever message.

use crate::common::club::{Club, lose_slices, lose_words};
use crate::common::peer;
use crate::seeds::seeds;
use core::time::Duration;
use murmurate_protocol::wire::{FragmentMessage, Message, Scoped, ShardVersion};
use murmurate_protocol::{
    Digest, Event, ExchangeKind, FragmentId, GroupTag, LinkCodes, LinkPlan, LinkTable, Members,
    Part, PeerId, Phase, PushOutcome, Round, Schedule, ServerPlan, SliceId,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Every schedule, the hierarchical one with small and with large islands.
const NAMED: [Schedule; 9] = [
    Schedule::Ring,
    Schedule::RecursiveDoubling,
    Schedule::HalvingDoubling,
    Schedule::BinaryTree,
    Schedule::DoubleTree,
    Schedule::Torus,
    Schedule::Hierarchical { island: 2 },
    Schedule::Hierarchical { island: 3 },
    Schedule::Sites { island: 3 },
];

/// The links of `n` members of which the second has a slow line.
fn second_is_slow(n: u8) -> LinkTable {
    let slow = |i, j| if i == 1 || j == 1 { 5 } else { 100 };
    let rows = (0..n).map(|i| (0..n).map(|j| slow(i, j)).collect());
    LinkTable::new(rows.collect()).expect("a square table")
}

/// These, and trees packed for five to seven members of which the second has a slow line. Groups of
/// other sizes go along the butterfly.
fn schedules() -> Vec<Schedule> {
    let packed = [5, 6, 7].map(|n| {
        let schedule = Schedule::synthesized(&second_is_slow(n));
        assert!(matches!(schedule, Schedule::Packed(_)));
        schedule
    });
    NAMED.into_iter().chain(packed).collect()
}

/// Runs to the end of the plan's rounds and checks what must hold.
fn together(club: &mut Club) {
    // Losses in the last round are repaired after it.
    let one = |club: &Club| {
        let mut anchors = club.members.values().map(|m| m.anchor);
        let first = anchors.next();
        anchors.all(|anchor| Some(anchor) == first)
    };
    club.run_until(600, |club| club.has_finished() && one(club));
    assert!(club.has_finished(), "at {}", club.now);
    club.anchor();
    club.assert_waits();
}

#[test]
fn counted_pushes_and_bytes_are_those_of_the_formula() {
    let direct = [Schedule::Butterfly];
    for schedule in schedules().iter().chain(&direct) {
        for n in 2..=33u8 {
            let mut club = Club::scheduled(n, *schedule, 2);
            let words = Rc::new(Cell::new(0));
            let counter = words.clone();
            club.hears = Box::new(move |_, _, message| {
                if message.name() == "reduced" && message.round() == Some(Round(1)) {
                    counter.set(counter.get() + 1);
                }
                true
            });
            together(&mut club);
            let cost = schedule.cost(usize::from(n));
            let fragment = 4 * 64 * cost.shards;
            let sent = club.sent(1);
            let pushes: u64 = sent.values().map(|(pushes, _)| pushes).sum();
            let bytes: u64 = sent.values().map(|(_, bytes)| bytes).sum();
            let busiest = sent.values().map(|(pushes, _)| *pushes).max();
            let most = sent.values().map(|(_, bytes)| *bytes).max();
            let what = format!("{schedule:?} among {n}");
            assert_eq!(pushes, cost.pushes, "{what}");
            assert_eq!(bytes, cost.pushes * fragment / cost.shards, "{what}");
            assert_eq!(busiest, Some(cost.busiest), "{what}");
            assert_eq!(most, Some(fragment * cost.busiest / cost.shards), "{what}");
            let others = u64::from(n) - 1;
            let told = if schedule.relays() { cost.shards } else { 0 };
            assert_eq!(words.get(), told * others, "{what}");
            club.assert_whole(1, &what);
        }
    }
}

#[test]
fn members_hold_the_same_bits_round_after_round() {
    for schedule in schedules() {
        for n in [2, 3, 5, 6, 8, 12] {
            let mut club = Club::scheduled(n, schedule, 4);
            together(&mut club);
            club.assert_rules();
            for member in club.members.values() {
                let partial = |s: &&SliceId| s.part != Part::Aggregate && s.round.0 < 3;
                assert_eq!(member.store.keys().find(partial), None, "{schedule:?}");
            }
        }
    }
}

#[test]
fn the_same_inputs_give_the_same_pushes() {
    for schedule in schedules() {
        let pushes = || {
            let mut club = Club::scheduled(7, schedule, 3);
            together(&mut club);
            club.pushes
        };
        assert_eq!(pushes(), pushes(), "{schedule:?}");
    }
}

#[test]
fn pushes_that_are_lost_once_are_sent_again() {
    for schedule in schedules() {
        let mut club = Club::scheduled(6, schedule, 3);
        let mut seen = std::collections::BTreeSet::new();
        club.fate = Box::new(move |from, to, slice| {
            Some(match seen.insert((from, to, *slice)) {
                true => PushOutcome::Lost,
                false => PushOutcome::Delivered,
            })
        });
        together(&mut club);
        let decided = club.decided(1);
        // The member that is served last may find the others a round ahead and take over theirs.
        assert!(decided.len() > 3);
        assert!(
            decided.iter().all(|d| d.0 == 0),
            "{schedule:?}: {decided:?}"
        );
    }
}

#[test]
fn whatever_is_lost_survivors_hold_the_same_bits() {
    for schedule in schedules() {
        for seed in seeds(100) {
            let mut club = Club::scheduled(5, schedule, 4);
            lose_words(&mut club, seed, |name| ["vote", "reduced"].contains(&name));
            loses(club, seed);
        }
    }
    for exchange in TWICE {
        for seed in seeds(200) {
            let mut club = Club::passing_twice(exchange, 5, 4);
            lose_words(&mut club, seed, |name| name == "vote");
            loses(club, seed);
        }
    }
    for seed in seeds(40) {
        loses(Club::scheduled(5, measured(5, 4), 6), seed);
    }
}

/// Slices are lost, too, by this seed.
fn loses(mut club: Club, seed: u64) {
    lose_slices(&mut club, seed);
    together(&mut club);
}

/// What a member does when it dies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    /// It dies before it sends.
    Before,
    /// It dies after half of the others have received it.
    During,
    /// It dies after it has sent.
    After,
}

/// A kind of message.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Contribution,
    Partial,
    Basis,
    Second,
    Aggregate,
    Reduced,
    Vote,
    Prepare,
    Promise,
    Repair,
}

/// What members of a schedule send.
const KINDS: [Kind; 5] = [
    Kind::Contribution,
    Kind::Partial,
    Kind::Aggregate,
    Kind::Reduced,
    Kind::Vote,
];

const MOMENTS: [Moment; 3] = [Moment::Before, Moment::During, Moment::After];

/// Each of these kinds, at each moment, by each of `n` members.
fn deaths(n: u8, kinds: &[Kind]) -> impl Iterator<Item = (u8, Kind, Moment)> {
    let kinds = kinds
        .iter()
        .flat_map(|kind| MOMENTS.map(|moment| (*kind, moment)));
    kinds.flat_map(move |(kind, moment)| (1..=n).map(move |victim| (victim, kind, moment)))
}

fn kind_of_slice(slice: &SliceId) -> Kind {
    match slice.part {
        Part::Contribution => Kind::Contribution,
        Part::Aggregate => Kind::Aggregate,
        Part::Partial => Kind::Partial,
        Part::Basis => Kind::Basis,
        Part::Second => Kind::Second,
        other => panic!("no schedule has {other:?}"),
    }
}

fn kind_of(message: &Message) -> Option<(Kind, Round)> {
    let kind = match message.name() {
        "reduced" => Kind::Reduced,
        "vote" => Kind::Vote,
        "prepare" => Kind::Prepare,
        "promise" => Kind::Promise,
        "repair" => Kind::Repair,
        _ => return None,
    };
    Some((kind, message.round()?))
}

/// Kills `victim` at its first sending of a kind in round 1. A member that is killed before that
/// leaves the others a ballot above zero to die in.
struct Reaper {
    victim: Option<PeerId>,
    kind: Kind,
    moment: Moment,
    sent: usize,
    half: usize,
    doom: Rc<Cell<Option<PeerId>>>,
}

impl Reaper {
    /// Whether it still gets through.
    fn passes(&mut self, from: PeerId, round: Round, kind: Kind) -> bool {
        let any = matches!(self.kind, Kind::Prepare | Kind::Promise | Kind::Repair);
        let his = self.victim == Some(from) || (any && self.victim.is_none());
        if !his || round != Round(1) || kind != self.kind {
            return true;
        }
        self.victim = Some(from);
        self.sent += 1;
        let (passes, dies) = match self.moment {
            Moment::Before => (false, true),
            Moment::During => (true, self.sent == self.half),
            Moment::After => (true, true),
        };
        if dies {
            self.doom.set(Some(from));
            // Each death happens once.
            self.kind = Kind::Vote;
            self.victim = Some(PeerId::from_bytes([0xff; 32]));
        }
        passes
    }
}

/// Arms deaths, one after the other.
fn arm(club: &mut Club, deaths: &[(Option<PeerId>, Kind, Moment)]) {
    let reaper = |(victim, kind, moment): &(Option<PeerId>, Kind, Moment)| Reaper {
        victim: *victim,
        kind: *kind,
        moment: *moment,
        sent: 0,
        half: club.members.len() / 2,
        doom: club.doom.clone(),
    };
    let reapers: Vec<Reaper> = deaths.iter().map(reaper).collect();
    let reapers = Rc::new(RefCell::new(reapers));
    let others = reapers.clone();
    let passes = |reapers: &RefCell<Vec<Reaper>>, from, round, kind| {
        let mut all = reapers.borrow_mut();
        all.iter_mut()
            .all(|reaper| reaper.passes(from, round, kind))
    };
    club.fate = Box::new(move |from, _, slice| {
        let passes = passes(&reapers, from, slice.round, kind_of_slice(slice));
        passes.then_some(PushOutcome::Delivered)
    });
    club.hears = Box::new(move |from, _, message| {
        let kind = kind_of(message);
        kind.is_none_or(|(kind, round)| passes(&others, from, round, kind))
    });
}

/// All that decided round 1 decided the same, and it is void for all members or for none.
fn agreed(club: &Club, what: &str) {
    let decided = club.decided(1);
    assert!(
        decided.iter().all(|d| *d == decided[0]),
        "{what}: {decided:?}"
    );
    let apart = !decided.is_empty() && club.voided(1) > 0;
    assert!(!apart, "{what}: {decided:?} and {} void", club.voided(1));
}

#[test]
fn a_death_at_any_message_leaves_survivors_with_the_same_bits() {
    for schedule in schedules() {
        for n in [3, 4, 6, 7] {
            for death in deaths(n, &KINDS) {
                let mut club = Club::scheduled(n, schedule, 3);
                all_decide(&mut club, death, &format!("{schedule:?} {n} {death:?}"));
            }
        }
    }
}

/// Members of a club at two sites in turn.
fn interleaved(n: u8, island: u16, rounds: u64) -> Club {
    let mut club = Club::scheduled(n, Schedule::Sites { island }, rounds);
    club.locate(|id| murmurate_protocol::Locality {
        site: murmurate_protocol::Site::new(["east", "west"][usize::from(id % 2)]).ok(),
        rate: None,
    });
    club
}

#[test]
fn islands_of_interleaved_sites_send_each_sum_once_between_them() {
    for (n, island) in [
        (2u8, 64u16),
        (5, 64),
        (6, 64),
        (8, 64),
        (6, 2),
        (8, 2),
        (9, 3),
    ] {
        let mut club = interleaved(n, island, 8);
        let counts = Rc::new(Cell::new((0u64, 0u64)));
        let counter = counts.clone();
        let site = |peer: PeerId| peer.as_bytes()[0] % 2;
        club.fate = Box::new(move |from, to, slice| {
            if slice.round == Round(6) {
                let (all, far) = counter.get();
                counter.set((all + 1, far + u64::from(site(from) != site(to))));
            }
            Some(PushOutcome::Delivered)
        });
        together(&mut club);
        // Shard s ends at island s mod L, and crosses once for each site but where the ring is open.
        let of = |site: u64| ((u64::from(n) + site) / 2).div_ceil(u64::from(island));
        let (east, west) = (of(0), of(1));
        let crossings = |end: u64| {
            let (at, count) = match end < west {
                true => (end, west),
                false => (end - west, east),
            };
            4 - u64::from(at == 0) - u64::from(at + 1 == count)
        };
        let far: u64 = (0..u64::from(n))
            .map(|s| crossings(s % (east + west)))
            .sum();
        let others = u64::from(n) - 1;
        assert_eq!(
            counts.get(),
            (2 * u64::from(n) * others, far),
            "{n} {island}"
        );
        assert!(club.decided(6).iter().all(|d| d.0 == 0), "{n} {island}");
        assert_eq!(club.decided(6).len(), usize::from(n), "{n} {island}");
    }
}

#[test]
fn a_death_at_any_message_between_sites_leaves_survivors_with_the_same_bits() {
    for (n, island) in [(4, 64), (6, 2), (7, 64)] {
        for death in deaths(n, &KINDS) {
            let mut club = interleaved(n, island, 3);
            one_death(&mut club, death, &format!("{n} {island} {death:?}"));
        }
    }
}

/// A schedule that begins with trees for `n` members of which the second has a slow line, and is found again.
fn measured(n: u8, every: u16) -> Schedule {
    Schedule::Measured(LinkPlan {
        every,
        latency_micros: 0,
        start: LinkCodes::of(&second_is_slow(n)),
    })
}

#[test]
fn members_send_their_shards_one_at_a_time_along_trees_and_all_at_once_in_rounds_that_measure() {
    for n in [4u8, 6, 7] {
        let mut club = Club::scheduled(n, measured(n, 3), 7);
        together(&mut club);
        for round in 0..7 {
            let of = |part| {
                let all = club.pushes.iter();
                all.filter(|(_, slice, _)| (slice.round.0, slice.part) == (round, part))
                    .count()
            };
            let shards = club
                .pushes
                .iter()
                .filter(|(_, slice, _)| slice.round.0 == round);
            let shards = 1 + shards
                .map(|(_, slice, _)| slice.shard)
                .max()
                .expect("pushes");
            // The slow member sends and gets a sum once, in place of every shard from and to everyone.
            let pushes = of(Part::Contribution) + of(Part::Partial) + of(Part::Aggregate);
            assert_eq!(
                pushes,
                2 * usize::from(shards) * usize::from(n - 1),
                "{round}"
            );
            let slow = |(from, slice, _): &&(PeerId, SliceId, u64)| {
                *from == peer(2) && slice.round.0 == round
            };
            let slow = club.pushes.iter().filter(slow).count();
            match round % 3 {
                0 => assert_eq!((u16::from(n), slow), (shards, 2 * usize::from(n - 1))),
                _ => assert!(slow < 2 * usize::from(shards) * usize::from(n - 1) / usize::from(n)),
            }
        }
        assert_eq!(club.decided(6).len(), usize::from(n));
    }
}

#[test]
fn a_death_at_any_message_along_measured_links_leaves_survivors_with_the_same_bits() {
    // Round one goes along trees, or measures.
    for (n, every) in [(4u8, 50u16), (5, 50), (5, 1)] {
        for death in deaths(n, &KINDS) {
            let mut club = Club::scheduled(n, measured(n, every), 3);
            one_death(&mut club, death, &format!("{n} {every} {death:?}"));
        }
    }
}

/// A member dies at this moment, and the others decide the round and the next one.
fn all_decide(club: &mut Club, death: (u8, Kind, Moment), what: &str) {
    let lives = dies_and_round_one_is_decided(club, death, what);
    assert_eq!(club.decided(2).len(), lives, "{what}");
}

/// A member dies at this moment, and the others decide that round. Gives how many live.
fn dies_and_round_one_is_decided(
    club: &mut Club,
    (victim, kind, moment): (u8, Kind, Moment),
    what: &str,
) -> usize {
    let members = club.members.len();
    arm(club, &[(Some(peer(victim)), kind, moment)]);
    together(club);
    agreed(club, what);
    let lives = club.members.len();
    assert!(lives + 1 >= members, "{what}");
    assert_eq!(club.decided(1).len(), lives, "{what}");
    lives
}

/// A member dies at this moment, and the others decide both fragments.
fn one_death(club: &mut Club, death: (u8, Kind, Moment), what: &str) {
    let lives = dies_and_round_one_is_decided(club, death, what);
    // Where a member dies in the middle of its vote, one that waits for its turn may get what it lacks of the
    // round only after a deadline. Then it takes over the next round's result from the others.
    let events = club.members.values().flat_map(|m| &m.events);
    let replayed = |event: &&Event| matches!(event, Event::Replayed { round, .. } if round.0 == 2);
    let replayed = events.filter(replayed).count();
    let late = (death.1, death.2) == (Kind::Vote, Moment::During);
    assert!(replayed <= usize::from(late), "{what}: {replayed}");
    assert_eq!(club.decided(2).len() + replayed, lives, "{what}");
}

#[test]
fn a_death_among_owners_of_parts_leaves_survivors_with_the_same_bits() {
    for (n, owners) in [(3u8, 3u16), (4, 2), (6, 4)] {
        for death in deaths(n, &[Kind::Contribution, Kind::Aggregate, Kind::Vote]) {
            let mut club = Club::in_parts(n, (owners, 8), 3);
            club.locate(|id| murmurate_protocol::Locality {
                site: None,
                rate: (id < 6).then(|| murmurate_protocol::RateClass::of(1_000_000 << id)),
            });
            one_death(&mut club, death, &format!("{n} {owners} {death:?}"));
        }
    }
}

#[test]
fn a_second_death_in_the_repairing_ballot_does_no_harm() {
    for schedule in schedules() {
        for kind in [Kind::Prepare, Kind::Promise, Kind::Repair] {
            for moment in MOMENTS {
                for victim in [1, 3, 6] {
                    let mut club = Club::scheduled(6, schedule, 3);
                    let first = (Some(peer(victim)), Kind::Contribution, Moment::Before);
                    arm(&mut club, &[first, (None, kind, moment)]);
                    together(&mut club);
                    agreed(&club, &format!("{schedule:?} {kind:?} {moment:?} {victim}"));
                }
            }
        }
    }
}

/// Runs until all members but one have finished.
fn others_finish(club: &mut Club, but: PeerId) {
    let done = |club: &Club| {
        let mut others = club.members.iter().filter(|(id, _)| **id != but);
        others.all(|(_, m)| m.peer.phase() == Phase::Finished)
    };
    club.run_until(600, done);
    assert!(done(club), "at {}", club.now);
}

#[test]
fn one_that_stalls_for_ever_costs_one_deadline_and_is_left_out() {
    for schedule in schedules() {
        for n in [3, 5, 8] {
            for victim in 1..=n {
                // Six rounds to measure how long waits take, then it falls silent in the middle of
                // one.
                let mut club = Club::scheduled(n, schedule, 8);
                let silent = Rc::new(Cell::new(false));
                let (id, speaks) = (peer(victim), silent.clone());
                club.fate = Box::new(move |from, _, slice| {
                    silent.set(silent.get() || (from == id && slice.round.0 >= 6));
                    (from != id || !silent.get()).then_some(PushOutcome::Delivered)
                });
                club.hears = Box::new(move |from, _, _| from != id || !speaks.get());
                let began = club.now;
                others_finish(&mut club, id);
                let took = club.now.since(began);
                let what = format!("{schedule:?} {n} {victim}: {took:?}");
                // Deadlines are the floor here, 2 s: the schedule's, two for a ballot that the
                // silent one should coordinate, a question to it, and those of the next group.
                assert!(took < Duration::from_secs(16), "{what}");
                decide_without(&club, usize::from(n) - 1, &what);
            }
        }
    }
}

#[test]
fn a_member_that_answers_but_contributes_nothing_is_left_out() {
    let is_late = |slice: &SliceId| slice.round.0 >= 6;
    for victim in 1..=5 {
        for schedule in schedules() {
            let club = Club::scheduled(5, schedule, 8);
            idles(club, victim, is_late, &format!("{schedule:?} {victim}"));
        }
        for exchange in TWICE {
            // It never answers a basis.
            let answer = move |slice: &SliceId| is_late(slice) && slice.part == Part::Second;
            let club = Club::passing_twice(exchange, 5, 8);
            idles(club, victim, answer, &format!("{exchange:?} {victim}"));
        }
    }
}

/// A member pushes none of these slices: the others decide without it.
fn idles(mut club: Club, victim: u8, withheld: impl Fn(&SliceId) -> bool + 'static, what: &str) {
    let idle = peer(victim);
    club.fate = Box::new(move |from, _, slice| {
        (from != idle || !withheld(slice)).then_some(PushOutcome::Delivered)
    });
    others_finish(&mut club, idle);
    decide_without(&club, 4, what);
    assert_eq!([6, 7].map(|round| club.voided(round)), [0; 2], "{what}");
}

/// At least this number of members decided the last two of eight rounds, and all the same.
fn decide_without(club: &Club, least: usize, what: &str) {
    for round in 6..8 {
        let decided = club.decided(round);
        let same = decided.iter().all(|d| d.1 == decided[0].1);
        assert!(
            same && decided.len() >= least,
            "{what} {round}: {decided:?}"
        );
    }
}

#[test]
fn a_member_that_encodes_at_random_is_found_out_and_no_other() {
    for schedule in schedules() {
        for n in [4, 5, 8] {
            for liar in [1, 2, n] {
                let mut club = Club::scheduled(n, schedule, 60);
                club.garbles = Some((peer(liar), 2));
                let what = format!("{schedule:?} {n}, liar {liar}");
                let honest = |club: &Club| {
                    let all = club.members.iter().filter(|(id, _)| **id != peer(liar));
                    let mut anchors = all.map(|(_, m)| (m.anchor, m.peer.phase()));
                    let first = anchors.next();
                    first.is_some_and(|f| f.1 == Phase::Finished && anchors.all(|a| a == f))
                };
                club.run_until(6000, honest);
                let blamed = |by: &PeerId, who: PeerId| {
                    let view = club.members[by].peer.view();
                    view.get(who).is_some_and(|remote| remote.score > 0)
                };
                let others = || club.members.keys().filter(|id| **id != peer(liar));
                assert!(others().any(|by| blamed(by, peer(liar))), "{what}");
                for by in others() {
                    let unjust = others().find(|who| *who != by && blamed(by, **who));
                    assert_eq!(unjust, None, "{what}: {by:?} blames who did nothing");
                }
                // The club checks that every applied aggregate is a mean.
                let anchors: Vec<Digest> = others().map(|id| club.members[id].anchor).collect();
                assert!(anchors.iter().all(|a| *a == anchors[0]), "{what}");
            }
        }
    }
}

#[test]
fn announcements_and_slices_outside_the_schedule_are_refused() {
    let mut club = Club::scheduled(4, Schedule::Ring, 3);
    club.run_to(1);
    let version = ShardVersion {
        owner: peer(2),
        attempt: murmurate_protocol::Attempt(0),
        contributors: Members::all(4),
        digest: Digest::of(b"made up"),
    };
    let ids: Vec<PeerId> = club.members.keys().copied().collect();
    let has = |e: &Event| matches!(e, Event::Group { round: r, .. } if r.0 == 1);
    club.run_until(60, |club| {
        club.members.values().all(|m| m.events.iter().any(has))
    });
    let word = |shard, version| Scoped {
        round: Round(1),
        fragment: FragmentId(0),
        group: GroupTag::of(Round(1), &ids),
        body: FragmentMessage::Reduced { shard, version },
    };
    let (mut of_no_one, mut second) = (version, version);
    of_no_one.contributors = Members::NONE;
    second.attempt = murmurate_protocol::Attempt(1);
    let lies = [
        (3, word(1, version)),
        (2, word(0, version)),
        (2, word(9, version)),
        (2, word(1, of_no_one)),
        (2, word(1, second)),
    ];
    for (from, message) in lies {
        let input = murmurate_protocol::Input::Received {
            from: peer(from),
            message: message.into(),
        };
        let me = club.members.get_mut(&peer(1)).expect("a member");
        assert!(me.peer.handle(club.now, input).is_err());
        while me.peer.poll_output().is_some() {}
    }
}

#[test]
fn a_fragment_shorter_than_its_shards_goes_directly_and_others_beside_it_do_not() {
    let mut plan = crate::common::plan(ExchangeKind::AllReduce, 3);
    (plan.schedule, plan.rounds) = (Schedule::Ring, 3);
    plan.fragments[1].len = 700;
    let mut club = Club::of(12, &plan, |_| Digest::of(b"anchor"));
    club.run_until(600, Club::has_finished);
    assert!(club.has_finished());
    let partial = |fragment: u16| {
        let of = |s: &&(PeerId, SliceId, u64)| s.1.fragment == FragmentId(fragment);
        let partial = |s: &(PeerId, SliceId, u64)| s.1.part == Part::Partial;
        club.pushes.iter().filter(of).any(partial)
    };
    assert_eq!([0, 1, 2].map(partial), [false, true, false]);
    for member in club.members.values() {
        let decided = |e: &&Event| matches!(e, Event::Decided { ballot: 0, .. });
        assert_eq!(member.events.iter().filter(decided).count(), 9);
    }
}

/// A regression: a peer that returned after the last round took over the others' result, finished
/// without an evaluation, and reported no digest or that of its old parameters.
#[test]
fn a_peer_that_returns_after_the_last_round_evaluates_the_state_it_took_over() {
    let mut club = Club::scheduled(3, Schedule::Butterfly, 8);
    let (id, deaf) = (peer(2), Rc::new(Cell::new(false)));
    club.isolate(id, &deaf);
    club.run_to(3);
    deaf.set(true);
    others_finish(&mut club, id);
    assert!(club.members[&id].peer.round() < Round(8));
    deaf.set(false);
    together(&mut club);
    let anchor = club.anchor();
    for member in club.members.values() {
        let looked =
            |event: &&Event| matches!(event, Event::Evaluated { round, .. } if *round == Round(8));
        assert_eq!(member.events.iter().filter(looked).count(), 1);
        let ended = member.events.iter().rev().find_map(|event| match event {
            Event::Finished { digest, .. } => Some(*digest),
            _ => None,
        });
        assert_eq!(ended, Some(anchor));
    }
}

/// The exchanges whose members can contribute twice.
const TWICE: [ExchangeKind; 3] = [
    ExchangeKind::AllReduce,
    ExchangeKind::Server(ServerPlan { owners: 1 }),
    ExchangeKind::Server(ServerPlan { owners: 2 }),
];

#[test]
fn two_passes_push_twice_as_much_as_one() {
    for exchange in TWICE {
        for n in 2..=9u8 {
            let mut club = Club::passing_twice(exchange, n, 2);
            together(&mut club);
            let owners = exchange.owners().map_or(n, |owners| n.min(owners as u8));
            let pushes: u64 = club.sent(1).values().map(|(pushes, _)| pushes).sum();
            assert_eq!(pushes, 4 * u64::from(owners) * u64::from(n - 1));
            club.assert_whole(1, &format!("{exchange:?} {n}"));
            club.assert_rules();
            for member in club.members.values() {
                let left = |s: &&SliceId| s.part != Part::Aggregate && s.round.0 == 0;
                assert_eq!(member.store.keys().find(left), None, "{exchange:?}");
            }
        }
    }
}

#[test]
fn a_death_in_either_pass_or_between_leaves_survivors_with_the_same_bits() {
    let kinds = [
        Kind::Contribution,
        Kind::Basis,
        Kind::Second,
        Kind::Aggregate,
        Kind::Vote,
    ];
    for exchange in TWICE {
        for n in [3, 4, 5, 7] {
            for death in deaths(n, &kinds) {
                let mut club = Club::passing_twice(exchange, n, 3);
                all_decide(&mut club, death, &format!("{exchange:?} {n} {death:?}"));
            }
        }
    }
}

#[test]
fn a_second_death_while_a_successor_begins_again_does_no_harm() {
    let first = [Kind::Basis, Kind::Second, Kind::Aggregate];
    let second = [
        Kind::Basis,
        Kind::Second,
        Kind::Prepare,
        Kind::Promise,
        Kind::Repair,
    ];
    for exchange in TWICE {
        for (kind, then) in first.iter().flat_map(|f| second.map(|s| (*f, s))) {
            for moment in MOMENTS {
                for (victim, other) in [(1, 2), (3, 6), (6, 1), (2, 5), (5, 3)] {
                    let mut club = Club::passing_twice(exchange, 7, 3);
                    let any = matches!(then, Kind::Prepare | Kind::Promise | Kind::Repair);
                    let other = (!any).then_some(peer(other));
                    let deaths = [
                        (Some(peer(victim)), kind, Moment::Before),
                        (other, then, moment),
                    ];
                    arm(&mut club, &deaths);
                    together(&mut club);
                    let what = format!("{exchange:?} {kind:?} {then:?} {moment:?} {victim}");
                    agreed(&club, &what);
                }
            }
        }
    }
}
