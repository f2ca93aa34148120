//! Rounds of a trainer that does what it should.

use crate::client::{Client, VALUES};
use crate::{Count, Side, mode_of};
use murmurate_attach::{FromTrainer, Mode};
use murmurate_protocol::{InnerStep, Participants, PeerId, Round};
use murmurate_strategies::inner::StepRule;
use murmurate_strategies::state::MemoryState;
use murmurate_strategies::{Proceed, StepControl, Trainer};

const START: [f32; VALUES] = [0.0, 1.0, 2.0, 3.0, 4.0];

#[test]
fn rounds_read_the_cut_and_write_what_was_agreed_on() {
    let (mut side, client) = Side::attach(Mode::Deltas, |socket| {
        Client::attach(&socket, &START).train()
    });
    assert_eq!(side.parameters(), START);
    let report = side.trainer.steps(&mut Count(3)).unwrap();
    assert_eq!((report.steps, report.samples, report.loss), (3, 24, 0.5));
    assert_eq!(side.parameters(), [3.0, 4.0, 5.0, 6.0, 7.0]);
    side.trainer.write(1, &[10.0, 20.0]);
    side.trainer.visit(4..5, &mut |_, piece| piece[0] *= 2.0);
    side.trainer.steps(&mut Count(1)).unwrap();
    assert_eq!(side.parameters(), [4.0, 11.0, 21.0, 7.0, 15.0]);
    drop(side);
    let client = client.join().unwrap();
    assert_eq!(client.values, [4.0, 11.0, 21.0, 7.0, 15.0]);
    assert_eq!((client.welcome.seed, client.welcome.shard.index), (7, 1));
}

/// Takes three steps, at a falling rate.
struct Falling;

impl StepControl for Falling {
    fn before(&mut self, step: InnerStep) -> Proceed {
        match step.0 < 3 {
            true => Proceed::Go,
            false => Proceed::Stop,
        }
    }

    fn rule(&self, step: InnerStep) -> StepRule {
        StepRule {
            rate: 1.0 / (1 << step.0) as f64,
            ..StepRule::default()
        }
    }
}

#[test]
fn a_trainer_hears_the_rate_of_every_step() {
    let (mut side, client) = Side::attach(Mode::Deltas, |socket| {
        Client::attach(&socket, &START).train()
    });
    side.trainer.steps(&mut Falling).unwrap();
    side.trainer.steps(&mut Count(1)).unwrap();
    drop(side);
    assert_eq!(client.join().unwrap().rates, [1.0, 0.5, 0.25, 1.0]);
}

#[test]
fn a_trainer_hears_of_its_part_of_the_data_when_that_changes() {
    let (mut side, client) = Side::attach(Mode::Deltas, |socket| {
        Client::attach(&socket, &START).train()
    });
    let peer = |number: u8| PeerId::from_bytes([number; 32]);
    for others in [vec![3, 9], vec![3]] {
        let others = others.into_iter().map(peer);
        side.trainer.deal(&Participants::new(peer(5), others));
        side.trainer.steps(&mut Count(1)).unwrap();
    }
    drop(side);
    let heard = client.join().unwrap().welcome.shard;
    assert_eq!((heard.index, heard.of), (1, 2));
}

#[test]
fn an_evaluation_sees_what_was_written_last() {
    let (mut side, client) = Side::attach(Mode::Deltas, |socket| {
        Client::attach(&socket, &START).train()
    });
    side.trainer.write(0, &[0.25]);
    let found = side.trainer.evaluate().unwrap();
    assert_eq!(
        (found.loss, found.accuracy, found.samples),
        (0.25, Some(0.5), 10)
    );
    drop(side);
    client.join().unwrap();
}

#[test]
fn named_numbers_are_those_of_the_last_evaluation_and_not_of_a_trial() {
    let named = |value: Option<f64>| [("f1".to_owned(), value)].into();
    let (mut side, client) = Side::attach(Mode::Deltas, move |socket| {
        let mut client = Client::attach(&socket, &START);
        client.named = [Some(0.5), Some(0.25), None].map(named).into();
        client.train()
    });
    let scores = side.trainer.named_scores();
    side.trainer.evaluate().unwrap();
    assert_eq!(scores.last(), [("f1".to_owned(), 0.5)].into());
    // How good other parameters would be is asked in the same way.
    side.trainer.held_loss(Round(1), 0).unwrap();
    assert_eq!(scores.last(), [("f1".to_owned(), 0.5)].into());
    side.trainer.evaluate().unwrap();
    assert_eq!(scores.last(), [].into());
    drop(side);
    client.join().unwrap();
}

#[test]
fn a_trainer_ends_with_the_parameters_that_were_agreed_on_last() {
    let (mut side, client) = Side::attach(Mode::Deltas, |socket| {
        Client::attach(&socket, &START).train()
    });
    side.trainer.steps(&mut Count(2)).unwrap();
    // Of the training on top of an older result, which no one else has.
    side.trainer.visit(0..5, &mut |_, piece| piece[0] += 7.0);
    side.trainer.finish(&[5.0; VALUES]);
    drop(side);
    assert_eq!(client.join().unwrap().values, [5.0; VALUES]);
}

#[test]
fn a_gradient_arrives_tensor_by_tensor_and_changes_no_parameter() {
    let (mut side, client) = Side::attach(Mode::Gradients, |socket| {
        let mut client = Client::attach(&socket, &START);
        while client.serve() {
            client.write_spare(&[0.1, 0.2, 0.3, 0.4, client.values[0]]);
            client.say(&FromTrainer::Step {
                samples: 16,
                loss: Some(1.5),
            });
        }
    });
    side.trainer.write(0, &[9.0]);
    let mut pieces = Vec::new();
    let mut on_ready = |at: usize, piece: &mut [f32]| pieces.push((at, piece.to_vec()));
    let report = side.trainer.gradients(&mut on_ready).unwrap();
    assert_eq!((report.steps, report.samples, report.loss), (1, 16, 1.5));
    assert_eq!(pieces, [(0, vec![0.1, 0.2, 0.3, 0.4]), (4, vec![9.0])]);
    assert_eq!(side.parameters(), [9.0, 1.0, 2.0, 3.0, 4.0]);
    drop(side);
    client.join().unwrap();
}

#[test]
fn the_state_goes_into_a_checkpoint_and_comes_back() {
    let (mut side, client) = Side::attach(Mode::Deltas, |socket| {
        Client::attach(&socket, &START).train()
    });
    side.trainer.steps(&mut Count(5)).unwrap();
    let mut checkpoint = MemoryState::default();
    side.trainer.save(&mut checkpoint).unwrap();
    drop(side);
    assert_eq!(client.join().unwrap().state, [5]);

    let (mut side, client) = Side::attach(Mode::Deltas, |socket| {
        Client::attach(&socket, &START).train()
    });
    side.trainer.load(&checkpoint).unwrap();
    side.trainer.steps(&mut Count(2)).unwrap();
    drop(side);
    assert_eq!(client.join().unwrap().state, [7]);
}

#[test]
fn only_the_owner_reaches_the_socket_and_it_goes_with_the_daemon() {
    let (side, client) = Side::attach(Mode::Deltas, |socket| {
        Client::attach(&socket, &START).train()
    });
    let socket = side.socket();
    assert_eq!(mode_of(&socket), 0o600);
    assert_eq!(mode_of(socket.parent().unwrap()), 0o700);
    drop(side.trainer);
    assert!(!socket.exists());
    client.join().unwrap();
}
