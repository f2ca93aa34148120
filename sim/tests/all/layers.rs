//! Gradients that leave during the backward pass, in virtual time: how much time that saves, and
//! that survivors hold the same bits after deaths, loss, stalls and nonsense. The simulator checks
//! its invariants after every event. These tests check the final state.

use crate::common::{
    crash, crash_and_return, last, lies, one_state, run, stall, waits_are_bounded,
};
use murmurate_sim::Report;
use murmurate_sim::plan::{Cluster, Cost};
use murmurate_strategies::grid::Strategy;

const PEERS: usize = 5;
const ROUNDS: u64 = 40;

/// Exchanges and values of `overlap.layers` that are tested with faults.
const LAYERED: [[&str; 2]; 8] = [
    ["all-reduce", "as-ready"],
    ["all-reduce", "by-priority"],
    ["gathered", "as-ready"],
    ["parameter-server", "by-priority"],
    ["all-reduce", "into-forward"],
    ["all-reduce", "decoupled"],
    ["gathered", "into-forward"],
    ["parameter-server", "decoupled"],
];

/// Inner steps of 300 ms, with 200 ms of backward pass.
fn text([exchange, layers]: [&str; 2], network: &str, faults: &str) -> String {
    format!(
        "seed = 2\npeers = {PEERS}\nrounds = {ROUNDS}\n\
         [task]\nkind = \"quadratic\"\ndim = 64\nnoise = 0.0\nheterogeneity = 0.0\n\
         [strategy]\npreset = \"bsp\"\n\
         [strategy.architecture]\nexchange = \"{exchange}\"\ncontribution = \"gradient\"\n\
         [strategy.overlap]\nfragments = 6\nlayers = \"{layers}\"\n\
         [strategy.deadlines]\nfloor_ms = 500\ninitial_ms = 4000\n\
         [compute]\nstep_ms = 300.0\n\
         [network]\nlatency_ms = 20.0\ndetection_ms = 300.0\nbootstrap = 32\n{network}\n{faults}"
    )
}

/// Checks that `peers` machines are up at the end, hold the same bits, and have learned.
fn agreed(report: &Report, peers: usize, what: &str) {
    // A peer whose last round is void takes the others' state over after it.
    one_state(report, peers, what);
    let last = last(report);
    assert_eq!(last.round, ROUNDS, "{what}: {report}");
    assert!(last.loss < Some(1.0), "{what}: {report}");
    assert!(waits_are_bounded(report), "{what}: {report}");
}

#[test]
fn without_faults_and_with_loss_all_hold_the_same_bits() {
    for layered in LAYERED {
        let report = run(&text(layered, "", ""), None);
        agreed(&report, PEERS, layered[1]);
        assert_eq!((report.counters.voided, report.counters.catch_ups), (0, 0));
        for seed in 0..4 {
            let network = "jitter_ms = 15.0\nloss = 0.03";
            agreed(
                &run(&text(layered, network, ""), Some(seed)),
                PEERS,
                layered[1],
            );
        }
    }
}

#[test]
fn a_death_during_the_backward_pass_leaves_the_others_with_the_same_bits() {
    // The backward pass begins after 100 ms, the first fragment leaves 33 ms later.
    let moments = [0.05, 0.17, 0.23, 0.29, 0.38];
    for layered in LAYERED {
        for moment in moments {
            for victim in 0..PEERS {
                let fault = crash(victim, 7, "train", moment);
                let report = run(&text(layered, "", &fault), None);
                agreed(&report, PEERS - 1, &format!("{layered:?} {fault}"));
            }
        }
    }
}

/// The backward pass ends 167 ms after the first fragment has left, and then forward passes wait for the last
/// fragments.
#[test]
fn a_death_while_forward_passes_wait_leaves_the_others_with_the_same_bits() {
    let moments = [0.168, 0.18, 0.2, 0.22, 0.24];
    for layered in LAYERED.into_iter().skip(4) {
        for moment in moments {
            for victim in 0..PEERS {
                let fault = crash(victim, 7, "exchange", moment);
                let report = run(&text(layered, "", &fault), None);
                agreed(&report, PEERS - 1, &format!("{layered:?} {fault}"));
            }
        }
    }
}

/// The same seeds give the same parameters, whether the next forward pass waits for the whole round or not.
#[test]
fn a_forward_pass_under_the_exchange_changes_no_bit() {
    let noisy = |layers| {
        let text = text(["all-reduce", layers], "uplink_mbit = 0.02", "");
        text.replace("noise = 0.0", "noise = 0.3")
    };
    let [priority, forward, decoupled] =
        ["by-priority", "into-forward", "decoupled"].map(|layers| run(&noisy(layers), None));
    let bits = |report: &Report| report.samples.iter().map(|s| s.loss).collect::<Vec<_>>();
    assert_eq!(bits(&forward), bits(&priority));
    assert_eq!(bits(&decoupled), bits(&priority));
    assert!(forward.virtual_s < priority.virtual_s - 0.05 * ROUNDS as f64);
    assert!(decoupled.virtual_s < priority.virtual_s - 0.05 * ROUNDS as f64);
}

#[test]
fn one_that_dies_and_comes_back_and_one_that_stalls_hold_what_the_others_hold() {
    for layered in LAYERED {
        for victim in 0..PEERS {
            let back = crash_and_return(victim, 5, "exchange", 0.05);
            agreed(&run(&text(layered, "", &back), None), PEERS, &back);
            let stall = stall(victim, 2.0, 100.0);
            agreed(&run(&text(layered, "", &stall), None), PEERS, &stall);
        }
    }
}

#[test]
fn garbage_under_the_backward_pass_never_reaches_the_model() {
    for layered in LAYERED {
        for lie in ["garbage", "truncated"] {
            let fault = lies(2, 2.0, 1.0, lie);
            let report = run(&text(layered, "", &fault), None);
            assert!(report.counters.lies > 0, "{fault} {report}");
            agreed(&report, PEERS, &format!("{layered:?} {fault}"));
        }
    }
}

/// Seconds of a round of a preset among four machines whose inner steps take 300 ms, over 50
/// Mbit/s.
fn round_s(preset: &str, parameters: usize) -> f64 {
    let text = format!(
        "seed = 2\npeers = 4\nrounds = 20\n[task]\nkind = \"timing\"\nparameters = {parameters}\n\
         [strategy]\npreset = \"{preset}\"\n[compute]\nstep_ms = 300.0\n\
         [network]\nlatency_ms = 5.0\nuplink_mbit = 50.0\ndownlink_mbit = 50.0\nbootstrap = 32\n"
    );
    let report = run(&text, None);
    report.virtual_s / 20.0
}

#[test]
fn what_leaves_under_the_backward_pass_hides_behind_it() {
    // Twice 3/4 of 400 kB through 50 Mbit/s take about 100 ms, half of the backward pass.
    let parameters = 100_000;
    let (together, priority) = (
        round_s("bsp", parameters),
        round_s("bytescheduler-allreduce", parameters),
    );
    let hidden = (together - priority) / (together - 0.3);
    assert!(hidden > 0.3, "{together} {priority}: {hidden}");
}

/// The largest values of eight layers that leave under the backward pass.
fn sparse(density: &str, more: &str) -> String {
    format!(
        "[architecture]\ncontribution = \"gradient\"\n\
         [compression]\ncodec = \"top-k\"\ndensity = {density}\n\
         [overlap]\nfragments = 8\nlayers = \"as-ready\"\n{more}"
    )
}

/// Seconds of a round of four machines whose inner steps take 300 ms, and the bytes that one of them sends in
/// it. The bytes are those that the planner says.
fn round_of(strategy: &str) -> (f64, f64) {
    const PARAMETERS: u64 = 400_000;
    let measured = |rounds: u64| {
        let text = format!(
            "seed = 2\npeers = 4\nrounds = {rounds}\n[task]\nkind = \"timing\"\nparameters = {PARAMETERS}\n\
             [strategy]\npreset = \"bsp\"\n{}[compute]\nstep_ms = 300.0\n\
             [network]\nlatency_ms = 5.0\nuplink_mbit = 50.0\ndownlink_mbit = 50.0\nbootstrap = 32\n",
            strategy.replace('[', "[strategy.")
        );
        let report = run(&text, None);
        (report.virtual_s, report.counters.bytes_encoded)
    };
    let (few, many) = (measured(5), measured(25));
    let (seconds, bytes) = ((many.0 - few.0) / 20.0, (many.1 - few.1) as f64 / 80.0);
    let cluster = Cluster::new(PARAMETERS as f64, 300.0, "50mbit/5ms", 4, 0.8).expect("a cluster");
    let strategy = Strategy::parse(strategy, Some("bsp")).expect("a strategy");
    let planned = Cost::of(&strategy, &cluster).expect("a cost").bytes_up;
    assert!(
        (bytes / planned - 1.0).abs() < 0.01,
        "{bytes} counted, {planned} planned"
    );
    (seconds, bytes)
}

#[test]
fn a_density_for_each_layer_sends_as_much_as_hides_behind_the_backward_pass() {
    let by_layer = "density = \"by-layer\"\nlatency_ms = 10.0\nmbit_s = 50.0\nbackward_ms = 200.0\n\
                    select_ms = 0.0\n";
    let (least, all) = (round_of(&sparse("0.01", "")), round_of(&sparse("1.0", "")));
    let layered = round_of(&sparse("0.01", by_layer));
    println!("least {least:?}, by layer {layered:?}, all {all:?}");
    // Of the least a contribution is 20 kB; the rest are aggregates, which may be dense.
    let (more, most) = (layered.1 - least.1, all.1 - least.1);
    assert!(
        more > 200_000.0 && more < most / 2.0,
        "{layered:?} {least:?}"
    );
    // The times that the rule knows leave out that four machines share what it counts as one exchange.
    assert!(layered.0 < least.0 + 0.06, "{layered:?} {least:?}");
    assert!(all.0 > layered.0 + 0.1, "{layered:?} {all:?}");
}

/// Where the exchange is as long as both passes, all but a sixteenth of each hides it. The planner has the
/// formula, and the simulator plays the messages.
#[test]
fn the_next_forward_pass_hides_what_the_formula_says() {
    let cluster = Cluster::new(400_000.0, 300.0, "50mbit/5ms", 4, 0.8).expect("a cluster");
    let times = |layers: &str| {
        let strategy = format!(
            "[architecture]\ncontribution = \"gradient\"\n\
             [overlap]\nfragments = 16\nlayers = \"{layers}\"\n"
        );
        let (simulated, _) = round_of(&strategy);
        let strategy = Strategy::parse(&strategy, Some("bsp")).expect("a strategy");
        let planned = Cost::of(&strategy, &cluster).expect("a cost").round_s;
        println!("{layers}: {simulated} s simulated, {planned} s planned");
        (simulated, planned)
    };
    let [together, priority, forward, decoupled] =
        ["together", "by-priority", "into-forward", "decoupled"].map(times);
    for (simulated, planned) in [together, priority, forward, decoupled] {
        assert!(
            (simulated / planned - 1.0).abs() < 0.03,
            "{simulated} {planned}"
        );
    }
    assert!(forward.0 < priority.0 - 0.06 && priority.0 < together.0 - 0.1);
    assert!(decoupled.0 < priority.0 - 0.06);
}
