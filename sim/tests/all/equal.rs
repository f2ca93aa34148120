//! Strategies at equal samples, bytes and seconds, on a toy task.

use murmurate_sim::equal::{EqualOutcome, EqualReport, EqualTrial};
use murmurate_sim::{Report, ToyTasksOnly};

const TRIAL: &str = r#"
baseline = "bsp"
budget = "rare"
points = 8
step_ms = 20.0
[task]
kind = "logistic"
dim = 32
batch = 4
[[size]]
peers = 4
inner_steps = 64
seeds = [1, 2]
[[data]]
name = "alike"
scenario = { task = { heterogeneity = 0.0 } }
[[data]]
name = "unlike"
scenario = { task = { heterogeneity = 1.0 } }
[[network]]
name = "near"
scenario.network = { latency_ms = 0.1, uplink_mbit = 1000.0, downlink_mbit = 1000.0 }
[[network]]
name = "far"
scenario.network = { latency_ms = 50.0, uplink_mbit = 0.1, downlink_mbit = 0.1 }
[[entrant]]
name = "bsp"
strategy = { preset = "bsp" }
[[entrant]]
name = "rare"
strategy = { preset = "local-sgd", synchronization = { inner_steps = 8 } }
[[entrant]]
name = "late"
strategy = { preset = "streaming-diloco" }
"#;

fn trial() -> EqualTrial {
    EqualTrial::from_toml(TRIAL, "trial.toml").expect("a trial")
}

fn play(trial: &EqualTrial) -> Vec<EqualOutcome> {
    trial.check(&ToyTasksOnly).expect("a task for each peer");
    let cells = trial.cells();
    let outcomes = cells.iter().map(|cell| trial.play(cell, &ToyTasksOnly));
    outcomes.collect::<Result<_, _>>().expect("every run ends")
}

#[test]
fn all_train_on_equal_samples_and_pay_for_what_they_exchange() {
    let trial = trial();
    let report = EqualReport::new(&trial, play(&trial));
    assert_eq!(report.outcomes.len(), 3 * 2 * 2);
    assert_eq!(report.rows.len(), 3 * 2);
    for run in &report.outcomes {
        assert_eq!((run.inner_steps, run.batch, run.parameters), (64, 4, 33));
        assert_eq!(
            run.points.last().expect("a curve").inner_steps,
            64.0,
            "{run:?}"
        );
        assert!(run.last() < run.points[0].loss, "{run:?}");
    }
    for rows in report.rows.chunks(3) {
        let [bsp, rare, late] = rows else {
            panic!("three entrants");
        };
        assert_eq!((bsp.period, rare.period, late.period), (1.0, 8.0, 8.0));
        assert!(bsp.bytes > 4.0 * rare.bytes, "{bsp:?} {rare:?}");
        assert_eq!(bsp.penalty.expect("a baseline").mean, 0.0);
        // The budget is rare's own: at its end it is where it is with equal samples.
        // The budget is a mean over seeds, whose control messages differ a little.
        let gap = rare.at_bytes.expect("a loss").mean - rare.loss.expect("a loss").mean;
        assert!(gap.abs() < 1e-2, "{rare:?}");
        let far = |row: &murmurate_sim::equal::EqualRow| row.networks[1].seconds;
        assert!(far(bsp) > 4.0 * far(rare), "{bsp:?} {rare:?}");
        let at = bsp.networks[1].at_seconds.expect("a loss").mean;
        assert!(at > bsp.loss.expect("a loss").mean, "{bsp:?}");
        assert!(!bsp.networks[1].done, "{bsp:?}");
    }
    let penalties: murmurate_sim::equal::Penalties =
        toml::from_str(&report.penalties("a command")).expect("TOML");
    assert_eq!((penalties.row.len(), penalties.parameters), (6, 33));
    assert_eq!(penalties.row[1].preset, "local-sgd");
}

#[test]
fn a_trial_repeats_to_the_bit() {
    let trial = trial();
    assert_eq!(play(&trial), play(&trial));
    let recipes: std::collections::BTreeSet<String> = trial
        .cells()
        .iter()
        .map(|cell| trial.recipe(cell))
        .collect();
    assert_eq!(recipes.len(), trial.cells().len());
}

/// The scenario of a trial's run, with tensors, on one of its networks.
fn with_tensors(preset: &str, steps: u64, rounds: u64, network: &str) -> Report {
    let text = format!(
        "seed = 1\npeers = 4\nrounds = {rounds}\nevaluate_every = {rounds}\n\
         [task]\nkind = \"logistic\"\ndim = 32\nbatch = 4\nheterogeneity = 1.0\n\
         [strategy]\npreset = \"{preset}\"\n[strategy.synchronization]\ninner_steps = {steps}\n\
         [compute]\nstep_ms = 20.0\n[network]\n{network}\n"
    );
    crate::common::run(&text, None)
}

/// A trial trains on a network without limits, and times rounds without tensors.
#[test]
fn what_is_learned_does_not_depend_on_the_network_and_rounds_last_as_long_without_tensors() {
    let far = "latency_ms = 50.0\nuplink_mbit = 0.1\ndownlink_mbit = 0.1";
    let trial = trial();
    for (entrant, preset, steps) in [("rare", "local-sgd", 8), ("late", "streaming-diloco", 2)] {
        let cells = trial.cells();
        let cell = cells
            .iter()
            .find(|cell| cell.entrant.name == entrant && cell.data.name == "unlike")
            .expect("the run");
        let run = trial.play(cell, &ToyTasksOnly).expect("a run");
        let report = |rounds, network| with_tensors(preset, steps, rounds, network);
        let slow = report(64 / steps, far);
        let last = slow.samples.last().expect("a sample");
        assert_eq!(run.last(), last.loss, "{entrant}");
        let grown = report(48, far).virtual_s - report(16, far).virtual_s;
        let step_s = run.step_s("far").expect("a pace");
        let ratio = grown / (32 * steps) as f64 / step_s;
        // Sizes of slices are bounds without tensors, and exact with them: far apart for 33 values in 4 bits.
        assert!(
            entrant == "late" || (ratio - 1.0).abs() < 0.1,
            "{entrant}: {ratio}"
        );
    }
}
