//! A thousand peers of different speeds, of which some die, come and are late in every round.

use super::*;
use crate::{Digest, PeerId, Round};
use std::collections::BTreeMap;

const PEERS: usize = 1000;
const EPOCH: u64 = 60_000;
/// Units (samples) in a block.
const UNITS: u64 = 16;
const POOL: Pool = Pool {
    name: 3,
    blocks: EPOCH as u32,
};

/// One peer's training.
#[derive(Debug)]
struct Trainee {
    /// Units in a round.
    speed: u64,
    mine: Mine,
    list: Vec<u64>,
    finished: usize,
    /// Units of the block that it is in the middle of.
    partial: u64,
    /// Units of the next round that it has trained already.
    early: u64,
    /// Units that no contribution counted yet; a late peer keeps its training.
    kept: Vec<(u64, u64)>,
}

impl Trainee {
    fn new(dice: u64) -> Self {
        Self {
            speed: 48 + dice % 49,
            mine: Mine::default(),
            list: Vec::new(),
            finished: 0,
            partial: 0,
            early: 0,
            kept: Vec::new(),
        }
    }

    /// It begins another life from its checkpoint, in which its trainer's place is.
    fn restart(&mut self) {
        self.mine = Mine::default();
        self.mine.resume(match self.early {
            0 => 0,
            _ => self.finished as u64,
        });
    }

    /// Takes a round's blocks, as a trainer does.
    fn told(&mut self, blocks: Blocks) {
        let list: Vec<u64> = blocks
            .runs
            .iter()
            .flat_map(|run| run.first..run.end())
            .collect();
        let middle = self.list.get(self.finished).copied();
        let done = blocks.done.unwrap_or(0) as usize;
        if blocks.done.is_none() || list.get(done).copied() != middle {
            self.partial = 0;
        }
        (self.list, self.finished) = (list, done);
    }

    /// Trains, and says which units.
    fn train(&mut self, mut left: u64) -> Vec<(u64, u64)> {
        let mut done = Vec::new();
        while left > 0 {
            let some = left.min(UNITS - self.partial);
            let last = self.list.last().copied().unwrap_or(0);
            let over = (self.finished + 1).saturating_sub(self.list.len()) as u64;
            let block = self.list.get(self.finished).copied();
            done.push((block.unwrap_or(last + over), some));
            self.partial += some;
            left -= some;
            if self.partial == UNITS {
                self.partial = 0;
                self.finished += 1;
            }
        }
        done
    }
}

fn dice(round: u64, peer: u64, what: u64) -> u64 {
    let bytes = [round, peer, what].map(u64::to_le_bytes).concat();
    Digest::of(&bytes).first_bits()
}

fn id(number: u64) -> PeerId {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&dice(0, number, 9).to_le_bytes());
    PeerId::from_bytes(bytes)
}

/// How many peers of a thousand die, are late and begin another life in a round.
#[derive(Clone, Copy, Default)]
struct PerMille {
    dying: u64,
    late: u64,
    restarting: u64,
}

/// Units of each block that are in the parameters after these rounds, and the ledger. Where rounds
/// overlap, a quarter of the next round is trained before a round is decided.
fn simulate(rounds: u64, of: PerMille, ahead: bool) -> (BTreeMap<u64, u64>, Ledger) {
    let always = |_: Round, _: PeerId| true;
    let mut ledger = Ledger::default();
    let mut seen: BTreeMap<u64, u64> = BTreeMap::new();
    let mut peers: BTreeMap<u64, Trainee> = BTreeMap::new();
    (0..PEERS as u64).for_each(|p| drop(peers.insert(p, Trainee::new(dice(0, p, 0)))));
    let mut newest = PEERS as u64;
    for round in (0..rounds).map(Round) {
        let draws = &always;
        let turn = Turn {
            round,
            ahead,
            draws,
        };
        let mut counted = Vec::new();
        let mut dead = Vec::new();
        for (place, (number, trainee)) in (0u32..).zip(&mut peers) {
            let place = (place, PEERS as u32);
            let (id, pool) = (id(*number), POOL);
            let me = Me { id, pool, place };
            let blocks = trainee.mine.tell(&ledger, &me, turn, round);
            trainee.told(blocks);
            let rest = trainee.speed - std::mem::take(&mut trainee.early);
            let mut trained = trainee.train(rest);
            trainee.mine.finish(round, trainee.finished as u64);
            let taken = trainee.mine.claim(&ledger, &me, turn);
            trainee.kept.append(&mut trained);
            let fate = dice(round.0, *number, 1) % 1000;
            if fate < of.dying {
                dead.push(*number);
            } else if fate >= of.dying + of.late {
                for (block, units) in trainee.kept.drain(..) {
                    *seen.entry(block).or_default() += units;
                }
                counted.push((id, taken));
            }
            if ahead {
                let blocks = trainee.mine.tell(&ledger, &me, turn, round.next());
                trainee.told(blocks);
                trainee.early = trainee.speed / 4;
                let trained = trainee.train(trainee.early);
                trainee.kept.extend(trained);
                let finished = trainee.finished as u64;
                trainee.mine.finish(round.next(), finished);
            }
        }
        ledger.settle(Some(&counted), turn);
        let restarting = |number: u64| dice(round.0, number, 2) % 1000 < of.restarting;
        let restarted = peers.iter_mut().filter(|(number, _)| restarting(**number));
        restarted.for_each(|(_, trainee)| trainee.restart());
        for number in dead {
            peers.remove(&number);
            peers.insert(newest, Trainee::new(dice(0, newest, 0)));
            newest += 1;
        }
    }
    (seen, ledger)
}

/// Of the epochs that are done: units that are not in the parameters, and the share that is twice.
fn unseen_and_twice(seen: &BTreeMap<u64, u64>, epochs: u64) -> (u64, f64) {
    let units = |block: u64| seen.get(&block).copied().unwrap_or(0);
    let all = (0..epochs * EPOCH).map(units);
    let unseen = all.clone().map(|units| UNITS.saturating_sub(units)).sum();
    let twice: u64 = all.map(|units| units.saturating_sub(UNITS)).sum();
    (unseen, twice as f64 / (epochs * EPOCH * UNITS) as f64)
}

fn measured((dying, late): (u64, u64), ahead: bool) -> (u64, u64, f64) {
    let of = PerMille {
        dying,
        late,
        ..PerMille::default()
    };
    let (seen, ledger) = simulate(45, of, ahead);
    let epochs = ledger.epochs(POOL);
    let (unseen, twice) = unseen_and_twice(&seen, epochs);
    println!(
        "{epochs} epochs, {unseen} unseen, {:.3} % twice",
        100.0 * twice
    );
    (epochs, unseen, twice)
}

#[test]
fn without_churn_every_unit_is_trained_once() {
    let (epochs, unseen, twice) = measured((0, 0), false);
    assert!(epochs >= 2 && unseen == 0 && twice == 0.0);
}

#[test]
fn with_one_percent_dying_in_a_round_no_unit_is_left_out_and_few_are_trained_twice() {
    let (epochs, unseen, twice) = measured((10, 0), false);
    assert!(epochs >= 2 && unseen == 0 && twice < 0.002);
}

#[test]
fn late_peers_that_keep_their_training_cost_what_they_trained() {
    let (epochs, unseen, twice) = measured((10, 5), false);
    assert!(epochs >= 2 && unseen == 0 && twice < 0.002);
}

#[test]
fn where_rounds_overlap_the_same_holds() {
    let (epochs, unseen, twice) = measured((0, 0), true);
    assert!(epochs >= 2 && unseen == 0 && twice < 0.001);
    let (epochs, unseen, twice) = measured((10, 0), true);
    assert!(epochs >= 2 && unseen == 0 && twice < 0.002);
}

#[test]
fn a_restart_changes_nothing_of_what_is_trained() {
    for ahead in [false, true] {
        let restarting = |restarting| PerMille {
            restarting,
            ..PerMille::default()
        };
        let without = simulate(12, restarting(0), ahead);
        assert!(without == simulate(12, restarting(300), ahead), "{ahead}");
    }
}
