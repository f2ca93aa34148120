//! What holds for any ledger after any rounds, and for any bytes.

use super::ledger::Tally;
use super::runs::{Runs, count};
use super::stream::Stream;
use super::*;
use crate::{PeerId, Round};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn peer(number: u8) -> PeerId {
    PeerId::from_bytes([number; 32])
}

fn always(_: Round, _: PeerId) -> bool {
    true
}

fn any_taken() -> impl Strategy<Value = Taken> {
    let from = proptest::option::weighted(0.4, 0..400u64);
    (0..2u64, 0..20u16, from).prop_map(|(pool, blocks, from)| Taken { pool, blocks, from })
}

type Said = BTreeMap<u8, Taken>;

/// The blocks of a list.
fn blocks(list: &[Run]) -> Vec<u64> {
    list.iter().flat_map(|run| run.first..run.end()).collect()
}

/// The blocks that are done: neither to be trained, nor with a peer.
fn done(stream: &Stream) -> BTreeSet<u64> {
    let held = stream
        .members
        .values()
        .flat_map(|entry| blocks(&entry.held));
    let ahead = stream
        .ahead
        .iter()
        .flatten()
        .flat_map(|(_, runs)| blocks(runs));
    let open: BTreeSet<u64> = held.chain(ahead).collect();
    let all = (0..stream.next).filter(|block| !stream.redo.has(*block));
    all.filter(|block| !open.contains(block)).collect()
}

/// What a peer is about to train.
fn lists(ledger: &Ledger, pool: u64, turn: Turn<'_>) -> BTreeMap<u8, Vec<u64>> {
    let list = |number| Some((number, blocks(&ledger.list(pool, peer(number), turn)?)));
    (0..12).filter_map(list).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn a_block_is_done_only_with_a_contribution_that_counted(
        rounds in vec((btree_map(0..12u8, any_taken(), 0..9), any::<bool>()), 1..14),
        ahead: bool,
    ) {
        let mut ledger = Ledger::default();
        for (round, (said, decided)) in (0..).map(Round).zip(rounds) {
            let said: Said = if decided { said } else { Said::new() };
            let turn = Turn { round, ahead, draws: &always };
            let before: Vec<_> = (0..2u64)
                .map(|pool| ledger.pools.get(&pool).map(done).unwrap_or_default())
                .collect();
            let dealt: Vec<_> = (0..2u64).map(|pool| lists(&ledger, pool, turn)).collect();
            let counted: Vec<_> = said.iter().map(|(p, taken)| (peer(*p), *taken)).collect();
            ledger.settle(decided.then_some(&counted), turn);
            for (pool, stream) in &ledger.pools {
                let at = *pool as usize;
                let mut allowed: BTreeSet<u64> = before[at].clone();
                for (p, taken) in said.iter().filter(|(_, taken)| taken.pool == *pool) {
                    match (taken.from, dealt[at].get(p)) {
                        (Some(from), _) => allowed.extend(from..from + u64::from(taken.blocks)),
                        (None, Some(list)) => {
                            allowed.extend(list.iter().take(usize::from(taken.blocks)));
                        }
                        (None, None) => {}
                    }
                }
                let now = done(stream);
                prop_assert!(now.is_subset(&allowed), "{:?}", now.difference(&allowed));
                prop_assert!(before[at].is_subset(&now), "a block that is done was dealt again");
            }
            let turn = Turn { round: round.next(), ahead, draws: &always };
            for pool in 0..2 {
                let dealt: Vec<u64> = lists(&ledger, pool, turn).into_values().flatten().collect();
                let once: BTreeSet<u64> = dealt.iter().copied().collect();
                prop_assert_eq!(once.len(), dealt.len(), "a block is dealt to two peers");
            }
            let back = Ledger::from_bytes(&ledger.to_bytes());
            prop_assert_eq!(back.as_ref().map(Ledger::digest), Ok(ledger.digest()));
            prop_assert_eq!(back, Ok(ledger.clone()));
        }
    }

    #[test]
    fn a_peer_computes_the_share_that_the_deal_gives_it(
        said in btree_map(0..12u8, any_taken(), 0..12),
        more in btree_map(0..12u8, any_taken(), 0..12),
    ) {
        let mut ledger = Ledger::default();
        for (round, said) in (0..).map(Round).zip([said, more]) {
            let counted: Vec<_> = said.iter().map(|(p, taken)| (peer(*p), *taken)).collect();
            ledger.settle(Some(&counted), Turn { round, ahead: true, draws: &always });
        }
        // Where rounds overlap, each peer computes the deal of the next round by itself.
        let turn = Turn { round: Round(2), ahead: true, draws: &always };
        let expected: Vec<_> = (0..12)
            .map(|p| ledger.next_list(0, peer(p), turn))
            .collect();
        ledger.settle(None, turn);
        let ahead = ledger.pools.get(&0).and_then(|stream| stream.ahead.clone()).unwrap_or_default();
        for (p, expected) in (0..12).zip(expected) {
            prop_assert_eq!(ahead.get(&peer(p)).cloned(), expected);
        }
    }

    #[test]
    fn no_bytes_make_a_ledger_that_is_not_whole(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(ledger) = Ledger::from_bytes(&bytes) {
            prop_assert_eq!(ledger.to_bytes(), bytes.clone());
        }
        if let Ok(tally) = Tally::from_bytes(&bytes) {
            prop_assert!(tally.entries().count() <= crate::limits::ROLL_PEERS_MAX);
        }
    }

    #[test]
    fn a_tally_says_what_it_was_made_of(said in btree_map(0..900u16, any_taken(), 0..60)) {
        let entries: Vec<TallyEntry> =
            said.iter().map(|(place, taken)| TallyEntry { place: *place, taken: *taken }).collect();
        let tally = Tally::of(&entries);
        let back = Tally::from_bytes(&tally.to_bytes()).unwrap();
        let said: BTreeMap<u16, Taken> = back.entries().map(|e| (e.place, e.taken)).collect();
        prop_assert_eq!(said, entries.iter().map(|e| (e.place, e.taken)).collect());
    }
}

fn takes(blocks: u16, from: Option<u64>) -> Taken {
    let pool = 7;
    Taken { pool, blocks, from }
}

fn turn(round: u64) -> Turn<'static> {
    let (round, draws) = (Round(round), &always);
    let ahead = false;
    Turn {
        round,
        ahead,
        draws,
    }
}

#[test]
fn what_was_not_counted_is_dealt_first_in_the_next_round() {
    let mut ledger = Ledger::default();
    let start = |p: u8| {
        ledger.own_start(
            Pool {
                name: 7,
                blocks: 40,
            },
            (u32::from(p), 4),
        )
    };
    assert_eq!([0, 1, 2, 3].map(start), [0, 10, 20, 30]);
    let all: Vec<_> = (0..4)
        .map(|p| (peer(p), takes(8, Some(u64::from(p) * 10))))
        .collect();
    ledger.settle(Some(&all), turn(0));
    // Each is in the middle of its ninth block. The blocks between them come first.
    let one = ledger.list(7, peer(0), turn(1)).unwrap();
    assert_eq!(blocks(&one)[..4], [8, 9, 19, 29]);
    assert_eq!(count(&one), 12);
    // Peer 1 is not counted. Its contribution may come with the next one, so its blocks stay with it.
    let of_one = blocks(&ledger.list(7, peer(1), turn(1)).unwrap());
    let rest = [0, 2, 3].map(|p| (peer(p), takes(11, None)));
    ledger.settle(Some(&rest), turn(1));
    let kept = blocks(&ledger.list(7, peer(1), turn(2)).unwrap());
    assert_eq!(kept[..of_one.len()], of_one);
    // It is not counted again: they come back, and the first peer gets them.
    ledger.settle(Some(&rest), turn(2));
    assert_eq!(ledger.list(7, peer(1), turn(3)), None);
    let redone = blocks(&ledger.list(7, peer(0), turn(3)).unwrap());
    assert!(
        of_one[..5].iter().all(|block| redone.contains(block)),
        "{redone:?}"
    );
    assert_eq!(kept.last().map(|block| redone.contains(block)), Some(false));
}

#[test]
fn a_late_contribution_counts_for_both_rounds() {
    let mut ledger = Ledger::default();
    let both = [(peer(1), takes(3, Some(0))), (peer(2), takes(3, Some(4)))];
    ledger.settle(Some(&both), turn(0));
    let first = blocks(&ledger.list(7, peer(2), turn(1)).unwrap());
    ledger.settle(Some(&[(peer(1), takes(4, None))]), turn(1));
    let list = blocks(&ledger.list(7, peer(2), turn(2)).unwrap());
    assert_eq!(list[..first.len()], first);
    let late = takes(first.len() as u16 + 2, None);
    ledger.settle(Some(&[(peer(1), takes(4, None)), (peer(2), late)]), turn(2));
    let done = done(&ledger.pools[&7]);
    assert!(
        list[..first.len() + 2]
            .iter()
            .all(|block| done.contains(block))
    );
}

#[test]
fn the_blocks_of_a_round_without_a_result_stay_with_their_peers() {
    let mut ledger = Ledger::default();
    ledger.settle(Some(&[(peer(1), takes(5, Some(0)))]), turn(0));
    let before = blocks(&ledger.list(7, peer(1), turn(1)).unwrap());
    for round in 1..9 {
        ledger.settle(None, turn(round));
        let now = blocks(&ledger.list(7, peer(1), turn(round + 1)).unwrap());
        assert_eq!(now[..before.len()], before);
        // But not of ever more rounds.
        assert!(now.len() < 6 * before.len(), "{now:?}");
    }
}

#[test]
fn a_peer_that_is_not_drawn_keeps_its_quota_and_is_dealt_nothing() {
    let only_two = |round: Round, drawn: PeerId| round.0 == 0 || drawn == peer(2);
    let turn = |round| Turn {
        round: Round(round),
        ahead: false,
        draws: &only_two,
    };
    let mut ledger = Ledger::default();
    let both = [(peer(1), takes(3, Some(0))), (peer(2), takes(3, Some(4)))];
    ledger.settle(Some(&both), turn(0));
    assert_eq!(
        blocks(&ledger.list(7, peer(2), turn(1)).unwrap())[..2],
        [7, 8]
    );
    ledger.settle(Some(&[(peer(2), takes(3, None))]), turn(1));
    assert!(ledger.pools[&7].members.contains_key(&peer(1)));
}

#[test]
fn a_liar_takes_nothing_of_others_and_ends_no_epoch() {
    let mut ledger = Ledger::default();
    let honest = (peer(1), takes(4, Some(0)));
    ledger.settle(Some(&[honest]), turn(0));
    let mine = ledger.list(7, peer(1), turn(1)).unwrap();
    let far = takes(u16::MAX, Some(u64::MAX - 3));
    let farther = takes(9, Some(1 << 40));
    let over = takes(u16::MAX, None);
    let all = [honest, (peer(2), far), (peer(3), farther), (peer(4), over)];
    ledger.settle(Some(&all), turn(1));
    assert_eq!(ledger.epochs(Pool { name: 7, blocks: 5 }), 0);
    assert!(ledger.pools[&7].next < 100, "{:?}", ledger.pools[&7]);
    assert!(
        ledger
            .list(7, peer(1), turn(2))
            .is_some_and(|list| list[0] == mine[0])
    );
}

#[test]
fn many_runs_are_joined_and_lose_no_block() {
    let mut runs = Runs::default();
    (0..100u64).for_each(|at| runs.insert(Run::new(at * 3, 1 + at % 2)));
    runs.fill(10);
    assert_eq!(runs.len(), 10);
    assert!((0..100u64).all(|at| runs.has(at * 3)));
}
