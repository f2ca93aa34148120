//! Several trainers of one daemon.

use crate::Count;
use crate::client::{Answer, Client, VALUES, hello};
use murmurate_attach::{FromTrainer, Mode, Notes, Terms, ToTrainer, Waiting};
use murmurate_protocol::{Participants, PeerId};
use murmurate_strategies::state::MemoryState;
use murmurate_strategies::{Island, Rank, Trainer};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const START: [f32; VALUES] = [0.0, 1.0, 2.0, 3.0, 4.0];

/// What a rank's own process begins with: it does not matter.
const OTHERS: [f32; VALUES] = [-5.0; VALUES];

/// An island, its notes, and its directory.
struct Side {
    island: Island,
    notes: Arc<Mutex<Vec<String>>>,
    _dir: tempfile::TempDir,
}

impl Side {
    /// An island of this many ranks; `begin(rank, socket)` starts each of them.
    fn new<T>(
        ranks: u32,
        mode: Mode,
        begin: impl Fn(u32, PathBuf) -> JoinHandle<T>,
    ) -> (Self, Vec<JoinHandle<T>>) {
        let dir = tempfile::tempdir().unwrap();
        let notes: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&notes);
        let show: Notes = Arc::new(move |text| kept.lock().unwrap().push(text.to_owned()));
        let open = |rank: Rank| {
            let terms = Terms {
                dir: dir.path().join(format!("rank-{}", rank.index)),
                run: "test".to_owned(),
                seed: 7,
                shard: 1,
                shards: 4,
                dealt: true,
                rank,
                mode,
                patience: Duration::from_secs(5),
                notes: Arc::clone(&show),
            };
            Waiting::open(terms).unwrap()
        };
        let mut doors: Vec<_> = Rank::all(ranks).map(open).collect();
        let begin = |(rank, door): (u32, &Waiting)| begin(rank, door.socket().to_owned());
        let threads = (0..).zip(&doors).map(begin).collect();
        let first = doors.remove(0).wait(None, &|| false).unwrap();
        let others = doors
            .into_iter()
            .map(|door| door.beside(&first, None).unwrap());
        let others: Vec<_> = others.collect();
        let all = std::iter::once(first).chain(others);
        let all = all.map(|rank| Box::new(rank) as Box<dyn Trainer>).collect();
        let side = Self {
            island: Island::new(all).unwrap(),
            notes,
            _dir: dir,
        };
        (side, threads)
    }

    fn parameters(&mut self) -> Vec<f32> {
        let mut all = vec![0.0; VALUES];
        self.island.read(0, &mut all);
        all
    }

    /// How many notes have this text.
    fn noted(&self, text: &str) -> usize {
        let notes = self.notes.lock().unwrap();
        notes.iter().filter(|note| note.contains(text)).count()
    }
}

/// A rank of an island: each step adds `by` to every value, on as many samples.
fn rank(socket: &Path, by: u32) -> Client {
    let values = if by == 1 { START } else { OTHERS };
    Client::attach(socket, &values)
}

fn step(client: &mut Client, by: u32) {
    client
        .values
        .iter_mut()
        .for_each(|value| *value += by as f32);
    client.state[0] += 1;
    client.say(&FromTrainer::Step {
        samples: by.into(),
        loss: Some(by.into()),
    });
}

fn train(number: u32, socket: PathBuf) -> JoinHandle<Client> {
    std::thread::spawn(move || {
        let mut client = rank(&socket, number + 1);
        while client.serve() {
            step(&mut client, number + 1);
        }
        client
    })
}

#[test]
fn the_ranks_are_one_trainer_with_the_mean_of_what_they_did() {
    let (mut side, threads) = Side::new(3, Mode::Deltas, train);
    let report = side.island.steps(&mut Count(2)).unwrap();
    assert_eq!((report.steps, report.samples), (2, 2 * (1 + 2 + 3)));
    // Weighted by samples: (1 * 2 + 2 * 4 + 3 * 6) / 6.
    let moved = 28.0_f64 / 6.0;
    let expected = START.map(|value| (f64::from(value) + moved) as f32);
    assert_eq!(side.parameters(), expected);
    assert!((report.loss - 14.0 / 6.0).abs() < 1e-12);
    assert_eq!(side.island.batch(), 6);
    // What was agreed on reaches all of them.
    side.island.write(0, &[100.0; VALUES]);
    let peer = |number| PeerId::from_bytes([number; 32]);
    side.island.deal(&Participants::new(peer(2), [peer(1)]));
    side.island.steps(&mut Count(1)).unwrap();
    drop(side);
    for (number, thread) in (0..).zip(threads) {
        let client = thread.join().unwrap();
        assert_eq!(client.values, [101.0 + number as f32; VALUES]);
        let shard = client.welcome.shard;
        assert_eq!((shard.index, shard.of), (3 + number, 6));
    }
}

#[test]
fn gradients_of_the_ranks_are_one() {
    let gradients = |number: u32, socket: PathBuf| {
        std::thread::spawn(move || {
            let mut client = rank(&socket, number + 1);
            while client.serve() {
                client.write_spare(&[number as f32; VALUES]);
                client.say(&FromTrainer::Step {
                    samples: u64::from(number) + 1,
                    loss: Some(1.0),
                });
            }
        })
    };
    let (mut side, threads) = Side::new(2, Mode::Gradients, gradients);
    let mut seen = Vec::new();
    let mut on_ready = |_: usize, piece: &mut [f32]| seen.extend_from_slice(piece);
    let report = side.island.gradients(&mut on_ready).unwrap();
    assert_eq!((report.steps, report.samples), (1, 3));
    assert_eq!(seen, [2.0 / 3.0; VALUES]);
    assert_eq!(side.parameters(), START, "no parameter changes");
    drop(side);
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_rank_with_another_model_is_refused_in_one_line_and_the_round_goes_on() {
    let odd = |number: u32, socket: PathBuf| {
        std::thread::spawn(move || {
            if number != 1 {
                return train(number, socket).join().map(|_| String::new()).unwrap();
            }
            let mut other = hello();
            other.tensors[1].shape = vec![3];
            match Client::try_attach(&socket, other, &OTHERS) {
                Answer::Refused(reason) => reason,
                Answer::Attached(_) => panic!("another model"),
            }
        })
    };
    let (mut side, threads) = Side::new(3, Mode::Deltas, odd);
    for _ in 0..3 {
        let report = side.island.steps(&mut Count(2)).unwrap();
        assert_eq!(report.samples, 2 * (1 + 3));
    }
    assert_eq!(
        side.noted("rank 1 of the trainer was refused"),
        1,
        "{:?}",
        side.notes
    );
    assert_eq!(
        side.noted("goes on without it: tensor 1 is `b`"),
        1,
        "{:?}",
        side.notes
    );
    drop(side);
    let reasons: Vec<_> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    assert_eq!(
        reasons[1],
        "tensor 1 is `b` of shape [3], this daemon trains `b` of shape [1] there"
    );
}

#[test]
fn a_rank_that_dies_misses_a_round_and_comes_back_with_the_parameters_of_all() {
    let dying = |number: u32, socket: PathBuf| {
        std::thread::spawn(move || {
            if number == 1 {
                let mut client = rank(&socket, 2);
                for _ in 0..3 {
                    assert!(client.serve());
                    step(&mut client, 2);
                }
                assert!(client.serve(), "in the second round");
                drop(client);
            }
            train(number, socket).join().unwrap()
        })
    };
    let (mut side, threads) = Side::new(2, Mode::Deltas, dying);
    assert_eq!(side.island.steps(&mut Count(2)).unwrap().samples, 2 * 3);
    let before = side.parameters();
    let report = side.island.steps(&mut Count(2)).unwrap();
    assert_eq!((report.steps, report.samples), (2, 2), "rank 0 alone");
    let alone: Vec<f32> = before.iter().map(|value| value + 2.0).collect();
    assert_eq!(side.parameters(), alone);
    // It is there again.
    let report = side.island.steps(&mut Count(1)).unwrap();
    assert_eq!(report.samples, 3);
    assert_eq!(
        side.noted("rank 1 of the trainer is gone"),
        1,
        "{:?}",
        side.notes
    );
    let of_all = side.parameters();
    drop(side);
    let back = threads.into_iter().nth(1).unwrap().join().unwrap();
    assert_eq!(back.values[0], alone[0] + 2.0);
    assert!((of_all[0] - (alone[0] + 5.0 / 3.0)).abs() < 1e-5);
    // Its state is that of its last cut, and the step since.
    assert_eq!(back.state, [3]);
}

#[test]
fn the_state_of_every_rank_is_in_a_checkpoint() {
    let (mut side, threads) = Side::new(2, Mode::Deltas, train);
    side.island.steps(&mut Count(3)).unwrap();
    let mut checkpoint = MemoryState::default();
    side.island.save(&mut checkpoint).unwrap();
    drop(side);
    threads
        .into_iter()
        .for_each(|thread| drop(thread.join().unwrap()));
    let (mut side, threads) = Side::new(2, Mode::Deltas, train);
    side.island.load(&checkpoint).unwrap();
    side.island.steps(&mut Count(2)).unwrap();
    drop(side);
    for thread in threads {
        assert_eq!(thread.join().unwrap().state, [5]);
    }
}

#[test]
fn a_rank_that_is_there_evaluates() {
    let dying = |number: u32, socket: PathBuf| {
        std::thread::spawn(move || {
            let mut client = rank(&socket, number + 1);
            while client.serve() {
                step(&mut client, number + 1);
                if number == 0 {
                    assert!(matches!(client.hear(), Some(ToTrainer::Cut { .. })));
                    return;
                }
            }
        })
    };
    let (mut side, threads) = Side::new(2, Mode::Deltas, dying);
    side.island.steps(&mut Count(1)).unwrap();
    let value = f64::from(side.parameters()[0]);
    assert_eq!(side.island.evaluate().unwrap().loss, value);
    drop(side);
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}
