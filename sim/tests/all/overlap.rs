//! Staggered fragments and late results with tensors and time, under the faults of every exchange:
//! none, loss and jitter, deaths before, during and after each kind of message, a stalled peer, a
//! restarted peer, a late peer, a peer that sends nonsense. The simulator checks its invariants
//! after every event. These tests check the final state of the survivors.

use crate::common::{
    crash, crash_and_return, cut_off_in, joins_at, learned, lies, loss, run, stall,
    waits_are_bounded,
};
use murmurate_sim::Report;

const PEERS: usize = 6;
const ROUNDS: u64 = 24;

/// Overlap tables, each with the exchange to test it with.
const OVERLAPS: [(&str, &str); 10] = [
    ("fragments = 3\nstagger = 3", "exchange = \"all-reduce\""),
    (
        "fragments = 5\nstagger = 2",
        "exchange = \"parameter-server\"\nowners = 2",
    ),
    ("stagger = 4", "exchange = \"gathered\""),
    (
        "fragments = 2\nlate_steps = 3",
        "exchange = \"all-reduce\"\nschedule = \"ring\"",
    ),
    ("late_steps = 8\nblend = 0.5", "exchange = \"gathered\""),
    (
        "late_steps = 8\nblend = \"eager\"",
        "exchange = \"all-reduce\"",
    ),
    (
        "stagger = 2\nlate_steps = 3\nblend = \"eager\"",
        "exchange = \"gathered\"",
    ),
    (
        "fragments = 4\nstagger = 2\nlate_steps = 8",
        "exchange = \"all-reduce\"",
    ),
    (
        "stagger = 3\nlate_steps = 2\nblend = 0.25",
        "exchange = \"parameter-server\"\nowners = 2",
    ),
    // Two rounds are a step: twelve of them have to go most of the way.
    (
        "fragments = 2\nlate_steps = \"1/1\"\nblend = \"estimate\"\n\
         [strategy.synchronization]\ninner_steps = 1\n\
         [strategy.inner]\noptimizer = \"sgd\"\nlr = 1.2\n[compute]\nstep_ms = 160.0",
        "exchange = \"all-reduce\"\ncontribution = \"gradient\"",
    ),
];

fn text((overlap, architecture): (&str, &str), network: &str, faults: &str) -> String {
    format!(
        "seed = 2\npeers = {PEERS}\nrounds = {ROUNDS}\n\
         [task]\nkind = \"quadratic\"\ndim = 64\nnoise = 0.0\nheterogeneity = 0.0\n\
         [strategy]\npreset = \"diloco\"\n\
         [strategy.architecture]\n{architecture}\n\
         [strategy.overlap]\n{overlap}\n\
         [strategy.outer]\noptimizer = \"average\"\n\
         [strategy.deadlines]\nfloor_ms = 500\ninitial_ms = 4000\n\
         [network]\nlatency_ms = 20.0\ndetection_ms = 300.0\nbootstrap = 32\n{network}\n{faults}"
    )
}

/// Checks that `peers` machines are up at the end, hold the same bits, and have learned.
fn agreed(report: &Report, peers: usize, what: &str) {
    crate::common::agreed(report, peers, ROUNDS, what);
    // From about 10. Blending with alpha takes longest.
    assert!(loss(report) < 0.1, "{what}: {report}");
}

#[test]
fn without_faults_all_hold_the_same_bits_in_every_round() {
    for overlap in OVERLAPS {
        let report = run(&text(overlap, "", ""), None);
        agreed(&report, PEERS, overlap.0);
        assert_eq!(report.counters.rounds_ended, PEERS as u64 * ROUNDS);
        assert_eq!((report.counters.voided, report.counters.catch_ups), (0, 0));
        assert!(report.samples.iter().all(|s| s.consensus_distance == 0.0));
    }
}

#[test]
fn loss_and_jitter_cost_time_and_leave_the_same_bits() {
    let network = "jitter_ms = 15.0\nloss = 0.03";
    for overlap in OVERLAPS {
        for seed in 0..4 {
            let report = run(&text(overlap, network, ""), Some(seed));
            // Lost messages cost rounds, possibly the last one, but never the agreement: a run ends
            // when all hold the same bits.
            let sound = report.live == PEERS && waits_are_bounded(&report);
            assert!(sound, "{overlap:?} {seed}: {report}");
            learned(&report, &format!("{overlap:?} {seed}"));
        }
    }
}

#[test]
fn a_death_before_during_or_after_any_message_leaves_the_others_with_the_same_bits() {
    let moments = [
        ("train", 0.05),
        ("exchange", 0.0),
        ("exchange", 0.03),
        ("exchange", 0.05),
        ("exchange", 0.07),
        ("exchange", 0.09),
        ("exchange", 0.11),
        ("apply", 0.0),
    ];
    for overlap in OVERLAPS {
        for (phase, delay) in moments {
            for victim in 0..PEERS {
                let fault = crash(victim, 6, phase, delay);
                let report = run(&text(overlap, "", &fault), None);
                agreed(&report, PEERS - 1, &format!("{overlap:?} {fault}"));
            }
        }
    }
}

#[test]
fn one_that_stalls_or_falls_silent_catches_up_with_every_fragment() {
    for overlap in OVERLAPS {
        for victim in [0, 3, 5] {
            let stall = stall(victim, 1.0, 10000.0);
            let report = run(&text(overlap, "", &stall), None);
            agreed(&report, PEERS, &format!("{overlap:?} {stall}"));
            for lasts in [0.8, 4.0] {
                let silence = cut_off_in(victim, 5, 0.03, lasts);
                let report = run(&text(overlap, "", &silence), None);
                if overlap.0.contains("eager") {
                    // A silent peer continues alone, and the size of an eager update depends on the
                    // number of peers. So up to three parts may hold different bits after the last
                    // round. The run succeeds only if they settle on one.
                    assert_eq!(report.live, PEERS, "{silence}: {report}");
                } else {
                    agreed(&report, PEERS, &format!("{overlap:?} {silence}"));
                }
            }
        }
    }
}

#[test]
fn the_dead_that_come_back_and_the_late_hold_what_the_others_hold() {
    for overlap in OVERLAPS {
        for delay in [0.0, 0.05, 0.1] {
            let back = crash_and_return(3, 5, "exchange", delay);
            let report = run(&text(overlap, "", &back), None);
            agreed(&report, PEERS, &format!("{overlap:?} {back}"));
        }
        let late = joins_at(4, 2.0);
        let report = run(&text(overlap, "", &late), None);
        agreed(&report, PEERS, &format!("{overlap:?} {late}"));
    }
}

#[test]
fn nonsense_is_found_and_left_out() {
    for overlap in OVERLAPS {
        for lie in ["garbage", "truncated"] {
            let fault = lies(1, 1.0, 0.5, lie);
            let report = run(&text(overlap, "", &fault), None);
            assert!(report.counters.lies > 0, "{fault} {report}");
            agreed(&report, PEERS, &format!("{overlap:?} {fault}"));
        }
    }
}

#[test]
fn a_round_moves_its_share_of_the_bytes() {
    let bytes = |stagger: usize| {
        let overlap = format!("fragments = 4\nstagger = {stagger}");
        let report = run(&text((&overlap, "exchange = \"gathered\""), "", ""), None);
        (report.counters.pushes, report.counters.bytes_encoded)
    };
    let (pushes, encoded) = bytes(1);
    for stagger in [2, 4] {
        let share = stagger as u64;
        assert_eq!(bytes(stagger), (pushes / share, encoded / share));
    }
}

/// Share of virtual time spent training, for a preset with these keys: a model of 834 thousand
/// parameters on four machines behind 50 Mbit/s, 40 ms and 1 % loss.
fn utilization(preset: &str, overlap: &str) -> f64 {
    let text = format!(
        "seed = 3\npeers = 4\nrounds = 120\n\
         [task]\nkind = \"timing\"\nparameters = 834000\n\
         [strategy]\npreset = \"{preset}\"\n{overlap}\n\
         [compute]\nstep_ms = 100.0\n\
         [network]\nlatency_ms = 40.0\ntransport = \"quic\"\npacket_loss = 0.01\n\
         uplink_mbit = 50.0\ndownlink_mbit = 50.0\n"
    );
    let report = run(&text, None);
    assert_eq!(report.live, 4, "{report}");
    0.1 * report.counters.inner_steps as f64 / (4.0 * report.virtual_s)
}

#[test]
fn training_goes_on_under_a_transfer_that_holds_up_bsp() {
    let coded = |keys: &str| {
        let codec = "[strategy.compression]\ncodec = \"fp4-e3m0\"";
        let rounds = "[strategy.synchronization]\ninner_steps = 16";
        format!("{rounds}\n{codec}\n[strategy.overlap]\n{keys}")
    };
    let bsp = utilization("bsp", "");
    let between = utilization("diloco", &coded("stagger = 4"));
    let late = utilization(
        "diloco",
        &coded("stagger = 4\nlate_steps = 12\nblend = 0.5"),
    );
    assert!(bsp < 0.3 && between < 0.8, "{bsp} {between}");
    assert!(late > 0.95, "{late}");
}

/// The share of its time that a machine trains on 50 Mbit/s, 40 ms there and back, with 1 % of the packets
/// lost, an inner step of 363 ms and 868 thousand parameters. The last round is left out: nothing is
/// trained while its result travels.
fn trained_share(preset: &str, inner_steps: u64) -> f64 {
    const STEP_S: f64 = 0.363;
    let of = |rounds| {
        let text = format!(
            "seed = 1\npeers = 4\nrounds = {rounds}\nevaluate_every = 1000\n\
             [task]\nkind = \"timing\"\nparameters = 868_000\n\
             [strategy]\npreset = \"{preset}\"\n\
             [strategy.synchronization]\ninner_steps = {inner_steps}\n\
             [compute]\nstep_ms = {}\n\
             [network]\nlatency_ms = 20.0\nuplink_mbit = 48.4\ndownlink_mbit = 48.4\n\
             transport = \"quic\"\npacket_loss = 0.01\n",
            1000.0 * STEP_S
        );
        run(&text, None).virtual_s
    };
    // A round behind the first ones, whose connections are still slow.
    8.0 * inner_steps as f64 * STEP_S / (of(16) - of(8))
}

#[test]
fn long_rounds_hide_the_exchange_of_a_wide_area() {
    for (preset, inner_steps) in [
        ("eager-diloco", 30),
        ("co2", 12),
        ("decoupled-diloco", 25),
        ("streaming-diloco", 25),
    ] {
        let share = trained_share(preset, inner_steps);
        println!("{preset} with {inner_steps} inner steps: {share:.3}");
        assert!(share >= 0.97, "{preset}: {share}");
    }
}
