//! Paces, quorums and samples of peers, with tensors and time and under faults. The invariants hold
//! after every event (otherwise the run fails). These tests check the final state of the survivors.

use crate::common::{crash, crash_for, cut_off_in, learned, lies, run, waits_are_bounded};
use murmurate_sim::Report;

const PEERS: usize = 6;
const ROUNDS: u64 = 16;

const POST_LOCAL: &str =
    "inner_steps = 1\npace = \"switch\"\nswitch_round = 9\nswitch_inner_steps = 5\n";
const DECAY: &str = "inner_steps = 12\npace = \"decay\"\ndecay_every = 3\n";
const LOSS: &str = "inner_steps = 12\npace = \"loss\"\nloss_every = 3\n";
const MEASURED: &str =
    "inner_steps = 12\npace = \"measured\"\nmeasure_every = 3\ninner_steps_most = 40\n";
const PARTIAL: &str = "inner_steps = 8\nenough = 4\ngrace_ms = 20\n";
const BALANCED: &str = "inner_steps = 8\npace = \"balanced\"\n";
const SAMPLED: &str = "inner_steps = 8\nfraction = 0.5\n";
const ADAPTIVE: &str = "inner_steps = 8\nenough = 4\ngrace = \"adaptive\"\n";

fn text(synchronization: &str, more: &str) -> String {
    format!(
        "seed = 2\npeers = {PEERS}\nrounds = {ROUNDS}\n\
         [task]\nkind = \"quadratic\"\ndim = 64\nnoise = 0.0\nheterogeneity = 0.0\n\
         [strategy]\npreset = \"local-sgd\"\n\
         [strategy.synchronization]\n{synchronization}\n\
         [strategy.deadlines]\nfloor_ms = 300\ninitial_ms = 1500\nceiling_ms = 5000\n\
         {more}"
    )
}

const CALM: &str = "[network]\nlatency_ms = 20.0\ndetection_ms = 300.0\nbootstrap = 32\n";

/// Checks that `peers` machines are up at the end, hold the same bits, and have learned.
fn agreed(report: &Report, peers: usize, what: &str) {
    crate::common::agreed(report, peers, ROUNDS, what);
    learned(report, what);
}

#[test]
fn a_round_trains_what_its_pace_says() {
    let all = PEERS as u64;
    let report = run(&text(POST_LOCAL, CALM), None);
    agreed(&report, PEERS, POST_LOCAL);
    assert_eq!(report.counters.inner_steps, all * (9 + 7 * 5));
    let report = run(&text(DECAY, CALM), None);
    agreed(&report, PEERS, DECAY);
    // ceil(12 / sqrt(1 + l)): three rounds of each and one of the last.
    assert_eq!(
        report.counters.inner_steps,
        all * (3 * (12 + 9 + 7 + 6 + 6) + 5)
    );
}

/// A loss that falls slowly: otherwise one interval is enough to end at one inner step.
const SLOWLY: &str = "[strategy.inner]\nlr = 0.002\n";

/// The invariant `same_steps` checks in each of these runs that all peers take the same number of inner
/// steps in a round.
#[test]
fn inner_steps_fall_with_the_loss_that_all_agree_on() {
    let all = PEERS as u64;
    let steps = |synchronization: &str, more: &str| {
        let report = run(
            &text(synchronization, &format!("{CALM}{SLOWLY}{more}")),
            None,
        );
        agreed(&report, PEERS, synchronization);
        report.counters.inner_steps
    };
    let follows = steps(LOSS, "");
    assert_eq!(follows % all, 0, "all take the same");
    // Without the factor, fewer only where the loss has fallen.
    let only_falling = steps(&format!("{LOSS}stagnation_factor = 1.0\n"), "");
    println!("{follows} and {only_falling} of {}", all * ROUNDS * 12);
    assert!(follows < only_falling && only_falling < all * ROUNDS * 12);
    // One of six claims what it likes from the beginning, and moves nothing: the others measure one loss.
    assert_eq!(steps(LOSS, &lies(4, 0.0, 1000.0, "loss")), follows);
}

#[test]
fn peers_that_join_late_restart_or_catch_up_take_the_steps_of_the_others() {
    let restarts = [
        crash_for(2, 5, "exchange", 0.0, 0.5),
        crash_for(2, 8, "apply", 0.0, 0.1),
    ];
    let faults = [
        "[[fault]]\nkind = \"join\"\npeer = 5\nround = 8\nphase = \"train\"\ndelay_s = 0.05\n",
        &restarts[0],
        &restarts[1],
        "[[fault]]\nkind = \"straggler\"\npeer = 1\nround = 4\nphase = \"train\"\nfactor = 40.0\nlasts_s = 1.0\n",
        "[[fault]]\nkind = \"directive\"\npeer = 1\nat_s = 0.4\ndirective = { change = \"inner-steps\", value = 3, from = 5 }\n",
    ];
    let mut caught_up = 0;
    for architecture in ["all-reduce", "gathered", "parameter-server"] {
        let architecture = format!("[strategy.architecture]\nexchange = \"{architecture}\"\n");
        for fault in faults {
            for (seed, pace) in [(1, LOSS), (2, MEASURED), (3, LOSS), (4, MEASURED)] {
                let more = format!("{CALM}{SLOWLY}{architecture}{fault}");
                let report = run(&text(pace, &more), Some(seed));
                agreed(&report, PEERS, &format!("{fault} {seed}"));
                caught_up += report.counters.catch_ups;
            }
        }
    }
    assert!(caught_up > 9, "{caught_up}");
}

const UNEQUAL: &str = "speeds = [1.0, 1.0, 1.0, 1.0, 1.0, 0.2]";

/// Share of their time in which peers train, of inner steps of 50 ms on these links, after the first 30
/// rounds; and the inner steps of a round then.
fn busy(pace: &str, network: &str, speeds: &str) -> (f64, u64) {
    let of = |rounds: u64| {
        let text = format!(
            "seed = 3\npeers = {PEERS}\nrounds = {rounds}\nevaluate_every = 1000\n\
             [task]\nkind = \"timing\"\nparameters = 1_000_000\n[strategy]\npreset = \"local-sgd\"\n\
             [strategy.synchronization]\ninner_steps = 4\n{pace}\n[network]\nbootstrap = 32\n{network}\n\
             [compute]\nstep_ms = 50.0\n{speeds}\n"
        );
        let report = run(&text, None);
        assert_eq!(
            (report.live, report.counters.voided),
            (PEERS, 0),
            "{report}"
        );
        (
            report.counters.trained_s,
            report.virtual_s,
            report.counters.inner_steps,
        )
    };
    let (short, long) = (of(30), of(50));
    let all = PEERS as f64 * (long.1 - short.1);
    (
        (long.0 - short.0) / all,
        (long.2 - short.2) / (20 * PEERS as u64),
    )
}

#[test]
fn measured_rounds_are_as_long_as_it_takes_to_train_nine_tenths_of_the_time() {
    // A model of 4 MB crosses 20 Mbit/s twice: some 3 s, or 60 inner steps.
    let slow = "latency_ms = 20.0\nuplink_mbit = 20.0\ndownlink_mbit = 20.0";
    let fast = "latency_ms = 1.0\nuplink_mbit = 2000.0\ndownlink_mbit = 2000.0";
    let measured = "pace = \"measured\"\ninner_steps_most = 2000";
    let (steady, four) = busy("", slow, "");
    let (follows, many) = busy(measured, slow, "");
    println!("steady {steady:.3} with {four}, measured {follows:.3} with {many}");
    assert!(steady < 0.15 && four == 4);
    assert!(
        (0.88..0.93).contains(&follows) && (400..700).contains(&many),
        "{follows} {many}"
    );
    // On fast links fewer are enough.
    let (follows, few) = busy(measured, fast, "");
    println!("fast: measured {follows:.3} with {few}");
    assert!(
        (0.85..0.97).contains(&follows) && (1..=12).contains(&few),
        "{follows} {few}"
    );
    // Bounds hold.
    let (_, most) = busy("pace = \"measured\"\ninner_steps_most = 50", slow, "");
    assert_eq!(most, 50);
}

#[test]
fn a_slow_machine_is_no_reason_to_train_longer() {
    // The others wait for it in every round for four times as long as they train.
    let fast = "latency_ms = 1.0\nuplink_mbit = 2000.0\ndownlink_mbit = 2000.0";
    let (_, few) = busy(
        "pace = \"measured\"\ninner_steps_most = 2000",
        fast,
        UNEQUAL,
    );
    assert!((1..=12).contains(&few), "{few}");
}

#[test]
fn a_restarted_peer_trains_at_the_pace_of_the_others() {
    let faults = crash_for(2, 5, "exchange", 0.0, 0.5);
    for seed in 1..4 {
        let report = run(&text(POST_LOCAL, &format!("{CALM}{faults}")), Some(seed));
        agreed(&report, PEERS, &format!("seed {seed}"));
    }
}

/// All options of this file, for faults that each must tolerate.
const ALL: [&str; 8] = [
    POST_LOCAL, DECAY, LOSS, MEASURED, PARTIAL, ADAPTIVE, SAMPLED, BALANCED,
];

#[test]
fn loss_and_jitter_do_no_harm() {
    for what in ALL {
        for seed in 1..5 {
            let network = format!("{CALM}jitter_ms = 15.0\nloss = 0.02\n");
            let report = run(&text(what, &network), Some(seed));
            assert!(report.counters.pushes_lost > 0, "{what}: {report}");
            // Lost messages cost rounds, but never the agreement.
            assert_eq!(report.live, PEERS, "{what} {seed}: {report}");
            assert!(waits_are_bounded(&report), "{what} {seed}: {report}");
        }
    }
}

#[test]
fn a_death_at_any_moment_leaves_five_that_hold_the_same_bits() {
    for what in ALL {
        for phase in ["train", "exchange", "apply"] {
            for delay in [0.0, 0.02, 0.045, 0.07, 0.12] {
                let fault = crash(3, 6, phase, delay);
                let report = run(&text(what, &format!("{CALM}{fault}")), None);
                agreed(&report, PEERS - 1, &format!("{what} {phase} {delay}"));
            }
        }
    }
}

#[test]
fn one_that_stalls_for_ever_is_gone_without() {
    for what in ALL {
        for peer in 0..PEERS {
            // To the others its links appear to be up.
            let network = CALM.replace("detection_ms = 300.0", "detection_ms = 100000.0");
            let fault = network + &cut_off_in(peer, 4, 0.01, 6.0);
            let report = run(&text(what, &fault), None);
            agreed(&report, PEERS, &format!("{what}, {peer}"));
        }
    }
}

#[test]
fn a_sample_of_the_peers_trains_and_all_hold_the_same_bits() {
    for architecture in ["all-reduce", "parameter-server"] {
        let architecture = format!("[strategy.architecture]\nexchange = \"{architecture}\"\n");
        let (mut trained, mut pushes) = (Vec::new(), Vec::new());
        for (fraction, seeds) in [(1.0, 1..2), (0.5, 1..9)] {
            for seed in seeds {
                let synchronization = format!("inner_steps = 8\nfraction = {fraction}\n");
                let report = run(
                    &text(&synchronization, &format!("{CALM}{architecture}")),
                    Some(seed),
                );
                agreed(&report, PEERS, &synchronization);
                assert_eq!(report.counters.catch_ups, 0, "{report}");
                assert_eq!(report.counters.rounds_ended, PEERS as u64 * ROUNDS);
                let apart = report.samples.iter().find(|s| s.consensus_distance != 0.0);
                assert!(apart.is_none(), "{report}");
                trained.push(report.counters.inner_steps as f64);
                pushes.push(report.counters.pushes);
            }
        }
        // Half of 96 peers' rounds, eight times: 384 with a standard deviation of 14.
        let share = trained[1..].iter().sum::<f64>() / (8.0 * trained[0]);
        assert!((0.43..0.57).contains(&share), "{share}");
        assert!(
            pushes[1..].iter().all(|count| *count < pushes[0]),
            "{pushes:?}"
        );
    }
}

/// One peer has four tenths of the others' speed: its rounds take 0.2 s, theirs 0.08 s.
const SLOW: &str = "[compute]\nstep_ms = 10.0\nspeeds = [1.0, 1.0, 1.0, 1.0, 1.0, 0.4]\n";

#[test]
fn enough_of_an_all_reduce_go_on_without_the_slowest() {
    let of = |synchronization: &str| {
        let report = run(&text(synchronization, &format!("{CALM}{SLOW}")), None);
        agreed(&report, PEERS, synchronization);
        report
    };
    let waits = of("inner_steps = 8\n");
    let goes_on = of("inner_steps = 8\nenough = 5\n");
    assert!(
        goes_on.virtual_s < 0.8 * waits.virtual_s,
        "{goes_on}\n{waits}"
    );
    assert!(goes_on.counters.catch_ups > 0, "{goes_on}");
    // An adaptive grace is at least the floor of the deadlines, so it waits for this peer.
    let adapts = of("inner_steps = 8\nenough = 5\ngrace = \"adaptive\"\n");
    assert_eq!(adapts.counters.catch_ups, 0, "{adapts}");
}

#[test]
fn an_adaptive_grace_learns_how_late_the_late_are() {
    // The slowest is later than the floor of the deadlines.
    let slow = "[compute]\nstep_ms = 10.0\nspeeds = [1.0, 1.0, 1.0, 1.0, 1.0, 0.12]\n";
    let of = |grace: &str| {
        let synchronization = format!("inner_steps = 8\nenough = 5\n{grace}\n");
        let network = "[network]\nlatency_ms = 20.0\njitter_ms = 15.0\ndetection_ms = 300.0\nbootstrap = 32\n";
        let report = run(&text(&synchronization, &format!("{network}{slow}")), None);
        agreed(&report, PEERS, grace);
        report.counters.catch_ups
    };
    // 0.3 s are not enough for a peer that is 0.59 s late; twice the measured lateness is.
    let (fixed, adapts) = (of("grace_ms = 300"), of("grace = \"adaptive\""));
    assert!(2 * adapts < fixed, "{adapts} {fixed}");
}
