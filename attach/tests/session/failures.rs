//! Trainers that die, hang, or say what cannot be.

use crate::client::{Answer, Client, VALUES, hello};
use crate::{Count, Side};
use murmurate_attach::{FromTrainer, Mode, ToTrainer};
use murmurate_strategies::{TrainError, Trainer};
use std::path::PathBuf;

const ZEROS: [f32; VALUES] = [0.0; VALUES];

/// What a trainer is that replaces one that died: its own parameters do not matter.
const OTHERS: [f32; VALUES] = [-5.0; VALUES];

/// A round of three steps, then one whose trainer dies at `end`, and is replaced.
fn dies(end: impl FnOnce(&mut Client) + Send + 'static) {
    let (mut side, first) = Side::attach(Mode::Deltas, |socket| {
        let mut client = Client::attach(&socket, &ZEROS);
        for _ in 0..3 {
            assert!(client.serve());
            client.step();
        }
        assert!(client.serve());
        end(&mut client);
    });
    side.trainer.steps(&mut Count(3)).unwrap();
    let socket = side.socket();
    let second = std::thread::spawn(move || {
        first.join().unwrap();
        Client::attach(&socket, &OTHERS).train()
    });
    let report = side.trainer.steps(&mut Count(2)).unwrap();
    assert_eq!((report.steps, report.samples), (2, 16));
    assert_eq!(side.parameters(), [5.0; VALUES]);
    assert!(side.noted("the trainer is gone"), "{:?}", side.notes);
    assert!(side.noted("attached again"), "{:?}", side.notes);
    drop(side);
    // The state of the last cut came with the parameters of the last cut.
    assert_eq!(second.join().unwrap().state, [5]);
}

#[test]
fn a_trainer_that_dies_in_a_step_is_replaced_and_the_round_begins_again() {
    dies(|client| {
        client.step();
        assert!(client.serve());
    });
}

#[test]
fn a_trainer_that_dies_at_a_cut_spoils_nothing() {
    dies(|client| {
        client.step();
        assert!(client.serve());
        client.step();
        assert!(matches!(client.hear(), Some(ToTrainer::Cut { .. })));
        client.write_spare(&[77.0, 77.0]);
    });
}

#[test]
fn a_second_trainer_is_told_so() {
    let (side, first) = Side::attach(Mode::Deltas, |socket| {
        Client::attach(&socket, &ZEROS).train()
    });
    match Client::try_attach(&side.socket(), hello(), &ZEROS) {
        Answer::Refused(reason) => assert!(reason.starts_with("another trainer is attached")),
        Answer::Attached(_) => panic!("two trainers at once"),
    }
    drop(side);
    first.join().unwrap();
}

#[test]
fn another_model_is_refused_by_name_and_the_right_one_is_waited_for() {
    let (mut side, first) = Side::attach(Mode::Deltas, |socket| {
        drop(Client::attach(&socket, &ZEROS));
    });
    first.join().unwrap();
    let socket = side.socket();
    let second = std::thread::spawn(move || {
        let mut other = hello();
        other.tensors[0].shape = vec![4];
        let refused = match Client::try_attach(&socket, other, &ZEROS) {
            Answer::Refused(reason) => reason,
            Answer::Attached(_) => panic!("another model"),
        };
        Client::attach(&socket, &ZEROS).train();
        refused
    });
    side.trainer.steps(&mut Count(1)).unwrap();
    drop(side);
    assert_eq!(
        second.join().unwrap(),
        "tensor 0 is `w` of shape [4], this daemon trains `w` of shape [2, 2] there"
    );
}

/// What the daemon says to a trainer whose first step is `message`.
fn says(message: FromTrainer) -> (Result<(), TrainError>, String) {
    let (mut side, client) = Side::attach(Mode::Deltas, move |socket| {
        let mut client = Client::attach(&socket, &ZEROS);
        assert!(client.serve());
        client.say(&message);
        let refused = match client.hear() {
            Some(ToTrainer::Refuse { reason }) => reason,
            other => panic!("{other:?}"),
        };
        drop(client);
        refused
    });
    side.leave();
    let result = side.trainer.steps(&mut Count(1)).map(|_| ());
    assert_eq!(side.parameters(), ZEROS);
    (result, client.join().unwrap())
}

#[test]
fn a_loss_that_is_not_finite_ends_the_run_before_it_reaches_the_model() {
    let (result, refused) = says(FromTrainer::Step {
        samples: 1,
        loss: None,
    });
    assert!(matches!(result, Err(TrainError::NotFinite)));
    assert!(refused.contains("lower the learning rate"), "{refused}");
}

#[test]
fn a_loop_that_changes_no_parameter_is_told_so_and_ends_at_last() {
    let (mut side, first) = Side::attach(Mode::Deltas, |socket| {
        let mut client = Client::attach(&socket, &ZEROS);
        client.still = true;
        client.train()
    });
    for round in 1..20 {
        side.trainer.steps(&mut Count(2)).unwrap();
        assert_eq!(side.noted("last 3 rounds changed no parameter"), round >= 3);
    }
    let error = side.trainer.steps(&mut Count(2)).unwrap_err().to_string();
    assert!(
        error.starts_with("the last 20 rounds changed no parameter"),
        "{error}"
    );
    first.join().unwrap();
}

#[test]
fn what_is_no_step_sends_the_trainer_away() {
    let none = FromTrainer::Step {
        samples: 0,
        loss: Some(1.0),
    };
    let (result, refused) = says(none);
    assert!(result.is_ok());
    assert!(refused.contains("step(samples=N)"), "{refused}");
    let (_, refused) = says(FromTrainer::Saved { bytes: 3 });
    assert_eq!(refused, "`saved` where `step` is due");
}

#[test]
fn a_peer_that_leaves_does_not_wait_for_a_trainer_that_is_gone() {
    let (mut side, first) = Side::attach(Mode::Deltas, |socket: PathBuf| {
        drop(Client::attach(&socket, &ZEROS));
    });
    first.join().unwrap();
    side.leave();
    let report = side.trainer.steps(&mut Count(4)).unwrap();
    assert_eq!(report.steps, 0);
    assert!(side.trainer.evaluate().is_err());
    assert_eq!(side.parameters(), ZEROS);
}

#[test]
fn a_trainer_that_takes_no_step_is_noticed() {
    let (mut side, client) = Side::attach(Mode::Deltas, |socket| {
        let mut client = Client::attach(&socket, &ZEROS);
        assert!(client.serve());
        client.step();
        assert!(client.serve());
        // Longer than the patience and the grace of one second each.
        std::thread::sleep(std::time::Duration::from_millis(2500));
        client.step();
        client.train();
    });
    side.trainer.steps(&mut Count(2)).unwrap();
    assert!(side.noted("has not called step()"), "{:?}", side.notes);
    assert!(side.noted("start it again"), "{:?}", side.notes);
    assert_eq!(side.parameters(), [2.0; VALUES]);
    drop(side);
    client.join().unwrap();
}
