//! Schedules of the inner learning rate, carried out by real peers and Executors: the rates that inner
//! steps take, for deltas and for gradients, and after a restart.

use crate::common::store::{Still, Store};
use crate::common::{Swarm, bare_trainer, gradient, near, orders, peer, quadratic, quadratics};
use murmurate_protocol::{FragmentId, InnerStep, Round, RunId, StepBudget};
use murmurate_strategies::executor::{Executor, Parts};
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::inner::{InnerKind, InnerOptimizer};
use murmurate_strategies::state::StateSource;
use murmurate_strategies::toy::ToyTask;
use murmurate_strategies::{Layout, Proceed, StepControl, TrainError, TrainReport, Trainer, Visit};
use std::f64::consts::PI;

const DIM: usize = 16;
const PEERS: usize = 3;
const SEED: u64 = 5;
const LR: f64 = 0.2;
const HETEROGENEITY: f64 = 0.5;

/// Warm-up over 3 rounds, then a cosine to 0.25 at round 12.
const COSINE: &str =
    "schedule = \"cosine\"\nwarmup_rounds = 3\nschedule_rounds = 12\nfinal_rate = 0.25";

fn cosine(time: f64) -> f64 {
    match time {
        t if t < 3.0 => t / 3.0,
        t if t < 12.0 => 0.25 + 0.75 * (1.0 + (PI * (t - 3.0) / 9.0).cos()) / 2.0,
        _ => 0.25,
    }
}

fn task(strategy: &str) -> ToyTask {
    quadratic(
        DIM,
        HETEROGENEITY,
        *strategy.parse::<Strategy>().unwrap().inner_kind(),
    )
}

/// Rounds of all peers together, each peer with this number of inner steps; `rate(round, step)`.
fn model(rounds: u64, steps: u64, rate: impl Fn(u64, u64) -> f64) -> Vec<f64> {
    let mut anchor = vec![0.0f64; DIM];
    for round in 0..rounds {
        let mut mean = vec![0.0f64; DIM];
        for of in quadratics(DIM, HETEROGENEITY, PEERS, SEED) {
            let mut x = anchor.clone();
            for step in 0..steps {
                let moves = gradient(&of, &x);
                let rate = LR * rate(round, step);
                x.iter_mut().zip(moves).for_each(|(x, g)| *x -= rate * g);
            }
            mean.iter_mut()
                .zip(x)
                .for_each(|(m, x)| *m += x / PEERS as f64);
        }
        anchor = mean;
    }
    anchor
}

fn assert_follows(text: &str, rounds: u64, expected: &[f64]) {
    let mut swarm = Swarm::training(text, task(text), PEERS, [0, SEED]);
    swarm.run(rounds);
    for member in swarm.members.values() {
        // f32 rounding of some hundred inner steps on values of a few units.
        near(&member.anchors[&Round(rounds - 1)], expected, 1e-4, text);
    }
    assert!(swarm.members.contains_key(&peer(0)));
}

#[test]
fn inner_steps_take_the_rates_of_their_time() {
    let text = format!(
        "preset = \"local-sgd\"\n[synchronization]\ninner_steps = 4\n[inner]\nlr = {LR}\n{COSINE}"
    );
    let rate = |round, step| cosine(round as f64 + (step as f64 + 0.5) / 4.0);
    let expected = model(15, 4, rate);
    assert_follows(&text, 15, &expected);
    let constant = model(15, 4, |_, _| 1.0);
    let far = |x: &[f64]| x.iter().zip(&expected).any(|(a, b)| (a - b).abs() > 1e-2);
    assert!(far(&constant), "the schedule makes a difference");
}

#[test]
fn mean_gradients_are_applied_at_the_rate_of_their_round() {
    let text = format!("preset = \"bsp\"\n[inner]\nlr = {LR}\nmomentum = 0.0\n{COSINE}");
    let expected = model(15, 1, |round, _| cosine(round as f64 + 0.5));
    assert_follows(&text, 15, &expected);
}

fn executor(text: &str) -> Executor {
    averaged(text, None)
}

/// One that keeps an average of the anchor.
fn averaged(text: &str, ema: Option<f64>) -> Executor {
    let strategy: Strategy = text.parse().unwrap();
    let trainer = task(text).build(0, 2, SEED);
    let plan = strategy.plan(RunId::from_bytes([1; 32]), trainer.layout(), 0);
    let mut parts = Parts::new(&strategy, &plan.unwrap(), DIM);
    parts.ema = ema;
    Executor::new(trainer, parts, Box::new(Still))
}

/// Trains a round alone and makes what was trained the anchor.
fn round(executor: &mut Executor, round: u64, steps: u32) -> Vec<f32> {
    let (store, round) = (Store::default(), Round(round));
    let train = orders::train(round, StepBudget::Steps(steps));
    orders::perform(executor, &store, &[train]);
    let kept = orders::keeps_its_own(round, FragmentId(0));
    orders::perform(executor, &store, &kept);
    executor.anchor().to_vec()
}

#[test]
fn a_restarted_peer_goes_on_at_the_rate_of_its_round() {
    for schedule in ["linear", "cosine", "wsd"] {
        let text = format!(
            "preset = \"none\"\n[synchronization]\ninner_steps = 4\n\
             [inner]\noptimizer = \"adam-w\"\nlr = 0.05\nschedule = \"{schedule}\"\n\
             warmup_rounds = 2\nschedule_rounds = 8"
        );
        let mut first = executor(&text);
        (0..4).for_each(|at| _ = round(&mut first, at, 4));
        let mut again = orders::restarted(&mut first, executor(&text));
        for at in 4..10 {
            let [one, other] = [&mut first, &mut again].map(|e| round(e, at, 4));
            assert_eq!(one, other, "round {at}");
        }
    }
}

#[test]
fn schedules_that_cannot_work_are_refused() {
    let layout = Layout::new([("w", vec![4]), ("b.bias", vec![2])]);
    let plan = |text: &str, rounds| {
        let strategy = Strategy::parse(&format!("[inner]\n{text}"), Some("local-sgd"))?;
        strategy.plan(RunId::from_bytes([1; 32]), &layout, rounds)
    };
    for (text, rounds, words) in [
        (
            "schedule = \"linear\"",
            0,
            "`inner.schedule_rounds` is missing",
        ),
        (
            "schedule = \"wsd\"\nwarmup_rounds = 8",
            8,
            "`inner.warmup_rounds`",
        ),
        (
            "schedule = \"linear\"\ndecay_rounds = 8",
            8,
            "`inner.decay_rounds`",
        ),
        ("schedule = \"linaer\"", 8, "did you mean `linear`"),
        ("no_decay = [\"*.bais\"]", 8, "`*.bais`"),
        (
            "optimizer = \"one-bit-adam\"\nno_decay = [\"*\"]",
            8,
            "`inner.no_decay` does not apply",
        ),
        (
            "correction = \"scaffold\"\nwarmup_rounds = 2",
            8,
            "divides by the learning rate",
        ),
    ] {
        let said = plan(text, rounds).unwrap_err().to_string();
        assert!(said.contains(words), "{text}: {said}");
    }
    let hash = |text: &str| plan(text, 8).unwrap().hash();
    let plain = hash("");
    assert_eq!(plain, hash("schedule = \"constant\""));
    let all = [
        plain,
        hash("warmup_rounds = 2"),
        hash("schedule = \"linear\""),
        hash("schedule = \"cosine\""),
        hash("schedule = \"cosine\"\nfinal_rate = 0.0"),
        hash("no_decay = [\"*.bias\"]"),
    ];
    let different: std::collections::BTreeSet<_> = all.iter().map(|h| *h.as_bytes()).collect();
    assert_eq!(different.len(), all.len(), "all of it is part of the plan");
}

#[test]
fn a_configuration_with_a_schedule_is_read_as_it_is_written() {
    let text = "preset = \"local-sgd\"\n[inner]\nschedule = \"wsd\"\nwarmup_rounds = 3\n\
                schedule_rounds = 40\ndecay_rounds = 8\nfinal_rate = 0.05\nno_decay = [\"*.bias\", \"*norm*\"]";
    let strategy: Strategy = text.parse().unwrap();
    let again: Strategy = strategy.to_toml().parse().unwrap();
    assert_eq!(again, strategy);
    assert_eq!(again.no_decay(), ["*.bias", "*norm*"]);
}

#[test]
fn tensors_by_pattern_do_not_decay() {
    // With decay 1 and rate 0.1 every step shrinks by a tenth what has no gradient.
    let strategy = |more: &str| {
        let text = format!("[inner]\noptimizer = \"sgd\"\nlr = 0.1\nweight_decay = 1.0\n{more}");
        Strategy::parse(&text, Some("none")).unwrap()
    };
    let left = |more: &str| {
        let strategy = strategy(more);
        let trainer = Box::new(Idle::new(*strategy.inner_kind()));
        let plan = strategy.plan(RunId::from_bytes([1; 32]), trainer.layout(), 0);
        let parts = Parts::new(&strategy, &plan.unwrap(), trainer.layout().len());
        round(&mut Executor::new(trainer, parts, Box::new(Still)), 0, 1)
    };
    assert_eq!(left(""), [0.9; 5]);
    assert_eq!(left("no_decay = [\"*.bias\"]"), [0.9, 0.9, 0.9, 1.0, 1.0]);
    assert_eq!(left("no_decay = [\"*\"]"), [1.0; 5]);
}

/// A trainer whose gradients are zero: only decay moves its ones.
struct Idle {
    layout: Layout,
    values: Vec<f32>,
    inner: InnerOptimizer,
}

impl Idle {
    fn new(kind: InnerKind) -> Self {
        let layout = Layout::new([("a.weight", vec![3]), ("a.bias", vec![2])]);
        Self {
            values: vec![1.0; layout.len()],
            inner: kind.build_for(&layout),
            layout,
        }
    }
}

impl Trainer for Idle {
    bare_trainer!(values);

    fn steps(&mut self, control: &mut dyn StepControl) -> Result<TrainReport, TrainError> {
        let mut report = TrainReport::default();
        while control.before(InnerStep(report.steps)) == Proceed::Go {
            self.inner.set_rule(control.rule(InnerStep(report.steps)));
            self.inner.begin_step();
            self.inner.apply(0..5, &mut self.values, &[0.0; 5]);
            control.after(InnerStep(report.steps), 1);
            report.steps += 1;
        }
        Ok(report)
    }

    fn gradients(&mut self, _: Visit<'_>) -> Result<TrainReport, TrainError> {
        Ok(TrainReport::default())
    }
}

#[test]
fn the_average_follows_the_anchor_and_comes_back_from_a_checkpoint() {
    let text = "preset = \"none\"\n[synchronization]\ninner_steps = 4\n[inner]\nlr = 0.05";
    let averaged = || averaged(text, Some(0.5));
    let ema = |executor: &mut Executor| {
        let state = orders::saved(executor);
        let mut values = vec![0.0; DIM];
        StateSource::tensor(&state, "ema", &mut values).unwrap();
        (state, values)
    };
    let mut first = averaged();
    let mut expected = first.anchor().to_vec();
    for at in 0..20 {
        let anchor = round(&mut first, at, 4);
        let keep = 0.5f64.min((1.0 + at as f64) / (10.0 + at as f64)) as f32;
        for (e, a) in expected.iter_mut().zip(anchor) {
            *e = keep * *e + (1.0 - keep) * a;
        }
    }
    let (state, found) = ema(&mut first);
    assert_eq!(found, expected);
    assert_ne!(found, first.anchor());
    let mut again = averaged();
    again.restore(&state).unwrap();
    assert_eq!(ema(&mut again).1, expected);
    // A checkpoint without it: the average begins at the anchor.
    let mut plain = executor(text);
    let anchor = round(&mut plain, 0, 4);
    let state = orders::saved(&mut plain);
    let mut later = averaged();
    later.restore(&state).unwrap();
    assert_eq!(ema(&mut later).1, anchor);
}
