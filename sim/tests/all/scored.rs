//! Gathered contributions that are scored before they are merged, with tensors, time and faults. The invariants
//! hold after every event: peers with the same anchor hold the same ratings, and all merge the same.

use crate::common::{crash, crash_and_return, last, lies, run_with, seeds, stall};
use murmurate_protocol::{Evaluation, InnerStep, Participants, Round};
use murmurate_sim::{Report, TrainerRequest};
use murmurate_strategies::inner::StepRule;
use murmurate_strategies::state::{StateError, StateSink, StateSource};
use murmurate_strategies::toy::ToyTask;
use murmurate_strategies::{Layout, Proceed, StepControl, TrainError, TrainReport, Trainer};
use std::ops::Range;

const PEERS: usize = 6;
const ROUNDS: u64 = 30;
const DIM: usize = 32;
const CALM: &str = "[network]\nlatency_ms = 20.0\ndetection_ms = 300.0\nbootstrap = 32\n";
const GAUNTLET: &str = "[strategy.aggregation]\nrule = \"gauntlet\"\n";

fn text(peers: usize, rounds: u64, more: &str) -> String {
    format!(
        "seed = 2\npeers = {peers}\nrounds = {rounds}\n[task]\nkind = \"own\"\n\
         [strategy]\npreset = \"local-sgd\"\n[strategy.architecture]\nexchange = \"gathered\"\n\
         [strategy.synchronization]\ninner_steps = 8\n\
         [strategy.deadlines]\nfloor_ms = 300\ninitial_ms = 1500\nceiling_ms = 5000\n{CALM}{more}"
    )
}

/// What a machine makes of its training before it contributes it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Spoils {
    /// Nothing.
    Nothing,
    /// Moves the other way, and farther.
    Negates,
    /// Moves anywhere.
    Noise,
    /// Has the data of the machine before it and draws the same batches: its contribution is a copy.
    Copies,
}

struct Spoiler {
    honest: Box<dyn Trainer>,
    spoils: Spoils,
    draw: u64,
}

impl Spoiler {
    /// In [-1, 1).
    fn draw(&mut self) -> f32 {
        self.draw = self
            .draw
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.draw >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

impl Trainer for Spoiler {
    fn layout(&self) -> &Layout {
        self.honest.layout()
    }

    fn steps(&mut self, control: &mut dyn StepControl) -> Result<TrainReport, TrainError> {
        let mut before = vec![0.0; self.layout().len()];
        self.honest.read(0, &mut before);
        let report = self.honest.steps(control)?;
        let mut after = vec![0.0; before.len()];
        self.honest.read(0, &mut after);
        for (a, b) in after.iter_mut().zip(&before) {
            match self.spoils {
                Spoils::Nothing | Spoils::Copies => {}
                Spoils::Negates => *a = b - 6.0 * (*a - b),
                Spoils::Noise => *a = b + 8.0 * self.draw(),
            }
        }
        self.honest.write(0, &after);
        Ok(report)
    }

    fn deal(&mut self, participants: &Participants) {
        self.honest.deal(participants);
    }

    fn batch(&self) -> u64 {
        self.honest.batch()
    }

    fn gradients(
        &mut self,
        on_ready: &mut dyn FnMut(usize, &mut [f32]),
    ) -> Result<TrainReport, TrainError> {
        self.honest.gradients(on_ready)
    }

    fn visit(&mut self, range: Range<usize>, f: &mut dyn FnMut(usize, &mut [f32])) {
        self.honest.visit(range, f);
    }

    fn evaluate(&mut self) -> Result<Evaluation, TrainError> {
        self.honest.evaluate()
    }

    fn holds_a_sample(&self) -> bool {
        self.honest.holds_a_sample()
    }

    fn held_loss(&mut self, round: Round, batches: u16) -> Result<f64, TrainError> {
        self.honest.held_loss(round, batches)
    }

    fn save(&mut self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        self.honest.save(sink)
    }

    fn load(&mut self, source: &dyn StateSource) -> Result<(), StateError> {
        self.honest.load(source)
    }
}

/// Runs a text; machine `at` spoils its contributions.
fn run(text: &str, seed: u64, (at, spoils): (usize, Spoils)) -> Report {
    let make = move |request: &TrainerRequest<'_>| {
        let task = ToyTask::Quadratic {
            dim: DIM,
            heterogeneity: 0.0,
            noise: 0.05,
            inner: *request.inner,
        };
        let own = (request.peer == at).then_some(spoils);
        let spoils = own.unwrap_or(Spoils::Nothing);
        let index = request.peer - usize::from(spoils == Spoils::Copies);
        Ok(Box::new(Spoiler {
            honest: task.build(index, request.peers, request.seed),
            spoils,
            draw: request.seed | 1,
        }) as Box<dyn Trainer>)
    };
    run_with(text, Some(seed), &make)
}

const HONEST: (usize, Spoils) = (0, Spoils::Nothing);

/// Checks that `peers` machines are up at the end and hold the same bits; gives their loss.
fn agreed(report: &Report, peers: usize, rounds: u64, what: &str) -> f64 {
    assert_eq!(report.live, peers, "{what}: {report}");
    let last = last(report);
    let at = (last.round, last.consensus_distance);
    assert_eq!(at, (rounds, 0.0), "{what}: {report}");
    last.loss.expect("a loss")
}

/// In how many decisions each machine's contribution was, over all machines.
fn merged(report: &Report, peers: usize) -> Vec<u64> {
    let of = |machine: usize| report.counters.merged.get(&machine).copied();
    (0..peers).map(|machine| of(machine).unwrap_or(0)).collect()
}

#[test]
fn a_peer_that_harms_is_never_merged_and_the_others_learn_as_without_it() {
    let gauntlet = text(PEERS, ROUNDS, GAUNTLET);
    let honest = run(&gauntlet, 1, HONEST);
    let reached = agreed(&honest, PEERS, ROUNDS, "honest");
    println!("honest: {reached}, {:?}", merged(&honest, PEERS));
    assert!(reached < 0.1, "{honest}");
    for spoils in [Spoils::Negates, Spoils::Noise] {
        let report = run(&gauntlet, 1, (3, spoils));
        let loss = agreed(&report, PEERS, ROUNDS, "spoiled");
        let found = merged(&report, PEERS);
        let plain = run(&text(PEERS, ROUNDS, ""), 1, (3, spoils));
        let plain = plain.samples.last().and_then(|s| s.loss);
        let plain = plain.unwrap_or(f64::INFINITY);
        println!("{spoils:?}: {loss} merged {found:?}, plain {plain}");
        assert_eq!(found[3], 0, "{spoils:?}: {found:?}");
        // Both circle the optimum by the noise of their gradients.
        assert!(loss < reached + 0.1, "{spoils:?}: {loss} after {reached}");
        assert!(
            plain.is_nan() || plain >= 4.0 * (reached + 0.1),
            "{spoils:?}: the plain mean reaches {plain}"
        );
    }
}

#[test]
fn of_a_contribution_and_its_copy_one_is_merged() {
    let report = run(&text(PEERS, ROUNDS, GAUNTLET), 1, (4, Spoils::Copies));
    agreed(&report, PEERS, ROUNDS, "copied");
    let found = merged(&report, PEERS);
    let most = found.iter().max().copied().expect("peers");
    assert!(found[3] + found[4] <= most && most > 0, "{found:?}");
}

#[test]
fn liars_about_scores_change_nothing_while_they_are_few() {
    let honest = run(&text(7, ROUNDS, GAUNTLET), 1, HONEST);
    let reached = agreed(&honest, 7, ROUNDS, "honest");
    let false_scores = lies(5, 0.0, 1e4, "scores") + &lies(6, 0.0, 1e4, "scores");
    let report = run(
        &text(7, ROUNDS, &format!("{GAUNTLET}{false_scores}")),
        1,
        HONEST,
    );
    let loss = agreed(&report, 7, ROUNDS, "liars");
    assert!(report.counters.lies > 0);
    println!("{reached} without lies, {loss} with them");
    assert!(loss < reached + 0.1, "{loss} after {reached}");
    let with_spoiler = text(7, ROUNDS, &format!("{GAUNTLET}{false_scores}"));
    let report = run(&with_spoiler, 1, (2, Spoils::Negates));
    agreed(&report, 7, ROUNDS, "liars for a spoiler");
    assert_eq!(merged(&report, 7)[2], 0);
}

#[test]
fn survivors_joiners_and_the_restarted_hold_the_same_bits_and_ratings() {
    const SHORT: u64 = 10;
    let join =
        "[[fault]]\nkind = \"join\"\npeer = 5\nround = 5\nphase = \"train\"\ndelay_s = 0.05\n";
    let part = "[[fault]]\nkind = \"partition\"\npeers = [3, 4, 5]\nround = 4\nphase = \"exchange\"\n\
                delay_s = 0.01\nlasts_s = 2.0\n";
    let mut caught_up = 0;
    for seed in seeds(4) {
        let delay = 0.01 * (seed % 7) as f64;
        for (faults, live) in [
            (crash(2, 3, "exchange", delay), PEERS - 1),
            (crash_and_return(2, 3, "exchange", delay), PEERS),
            (crash_and_return(1, 4, "apply", delay), PEERS),
            (
                crash(1, 3, "exchange", delay) + &crash(4, 3, "exchange", 0.05),
                PEERS - 2,
            ),
            (stall(3, 0.3, 30.0), PEERS),
            (join.to_owned(), PEERS),
            (part.to_owned(), PEERS),
            (lies(2, 0.1, 3.0, "garbage"), PEERS),
        ] {
            let report = run(
                &text(PEERS, SHORT, &format!("{GAUNTLET}{faults}")),
                seed,
                HONEST,
            );
            let what = format!("{seed}: {faults}");
            if faults.contains("partition") {
                // Sides that go on alone are merged afterwards, which takes rounds of their own.
                let last = last(&report);
                let at = (report.live, last.consensus_distance);
                assert_eq!(at, (live, 0.0), "{what}: {report}");
                assert!(last.round >= SHORT, "{what}: {report}");
            } else if !faults.contains("garbage") {
                agreed(&report, live, SHORT, &what);
            }
            caught_up += report.counters.catch_ups;
        }
    }
    println!("{caught_up} catch-ups");
    assert!(caught_up > 8, "{caught_up}");
}

/// Counts inner steps.
struct Count(u64);

impl StepControl for Count {
    fn before(&mut self, step: InnerStep) -> Proceed {
        if step.0 < self.0 {
            Proceed::Go
        } else {
            Proceed::Stop
        }
    }

    fn rule(&self, _: InnerStep) -> StepRule {
        StepRule::default()
    }
}

#[test]
fn measuring_a_held_sample_does_not_move_the_training() {
    for task in [ToyTask::quadratic(8), ToyTask::logistic(8)] {
        let (mut asked, mut left) = (task.build(1, 3, 5), task.build(1, 3, 5));
        for round in 0..4 {
            let first = asked.held_loss(Round(round), 3).expect("a loss");
            assert_eq!(asked.held_loss(Round(round), 3).expect("a loss"), first);
            let reports = [&mut asked, &mut left].map(|t| t.steps(&mut Count(3)).expect("steps"));
            assert_eq!(reports[0], reports[1]);
        }
    }
}
