//! A parameter server whose peers proceed at their own pace, under faults. The simulator checks the
//! invariants after every event, among them the bound of the lead. These tests check the result.

use crate::common::{crash, crash_for, last, lies, run, slow, waits_are_bounded};
use murmurate_sim::Report;

const PEERS: usize = 6;
const ROUNDS: u64 = 60;

/// Presets of the center, with the largest loss after [`ROUNDS`] rounds.
const PRESETS: [(&str, f64); 5] = [
    ("asp", 0.6),
    ("ssp", 0.6),
    ("fedbuff", 2.0),
    ("async-local-sgd", 0.6),
    ("easgd", 0.6),
];

fn text(preset: &str, more: &str) -> String {
    format!(
        "seed = 2\npeers = {PEERS}\nrounds = {ROUNDS}\nevaluate_every = {ROUNDS}\n\
         [task]\nkind = \"quadratic\"\ndim = 64\nnoise = 0.0\nheterogeneity = 0.1\n\
         [strategy]\npreset = \"{preset}\"\n\
         [strategy.deadlines]\nfloor_ms = 500\ninitial_ms = 3000\n\
         [network]\nlatency_ms = 20.0\ndetection_ms = 300.0\nbootstrap = 32\n{more}"
    )
}

/// Checks that `peers` machines are up at the end and that the largest loss, about 13 at first, is
/// at most `loss`.
fn learned(report: &Report, peers: usize, loss: f64, what: &str) {
    assert_eq!(report.live, peers, "{what}: {report}");
    let last = last(report);
    // A straggler that skips the last round is not sampled.
    assert_eq!(last.round, ROUNDS, "{what}: {report}");
    assert!(last.peers + 1 >= peers, "{what}: {report}");
    assert!(last.loss_max < Some(loss), "{what}: {report}");
    assert!(waits_are_bounded(report), "{what}: {report}");
}

#[test]
fn without_faults_all_learn_and_nothing_is_void() {
    for (preset, loss) in PRESETS {
        let report = run(&text(preset, ""), None);
        learned(&report, PEERS, loss, preset);
        assert_eq!(report.counters.rounds_ended, PEERS as u64 * ROUNDS);
        assert_eq!(report.counters.voided, 0, "{preset}: {report}");
    }
}

#[test]
fn loss_and_jitter_cost_time() {
    for (preset, loss) in PRESETS {
        for seed in 0..2 {
            let network = "jitter_ms = 15.0\nloss = 0.03";
            let report = run(&text(preset, network), Some(seed));
            learned(&report, PEERS, 2.0 * loss, preset);
        }
    }
}

#[test]
fn after_a_death_at_any_moment_a_successor_continues_the_shards() {
    let moments = [
        ("train", 0.005),
        ("exchange", 0.0),
        ("exchange", 0.01),
        ("exchange", 0.025),
        ("exchange", 0.035),
        ("apply", 0.0),
    ];
    for preset in ["asp", "ssp"] {
        for (phase, delay) in moments {
            // The owners are among them.
            for victim in 0..PEERS {
                let fault = crash(victim, 30, phase, delay);
                let report = run(&text(preset, &fault), None);
                learned(&report, PEERS - 1, 1.0, &format!("{preset} {fault}"));
            }
        }
    }
}

#[test]
fn an_owner_that_comes_back_takes_the_newest_copy_over() {
    for (preset, loss) in PRESETS {
        for victim in 0..PEERS {
            let fault = crash_for(victim, 20, "exchange", 0.01, 1.0);
            let report = run(&text(preset, &fault), None);
            learned(&report, PEERS, 3.0 * loss, &format!("{preset} {fault}"));
        }
    }
}

#[test]
fn one_that_stalls_is_not_waited_for_longer_than_a_deadline() {
    for preset in ["asp", "ssp"] {
        for victim in 0..PEERS {
            let fault = slow(victim, 1.0, 10000.0, 8.0);
            let report = run(&text(preset, &fault), None);
            // An owner that fell behind keeps its old center until a peer pushes to it again, and
            // here the others have ended.
            learned(&report, PEERS, 4.0, &format!("{preset} {fault}"));
            // Only this owner may be worse: the others must reach the loss without it.
            let last = last(&report);
            let (peers, worst) = (last.peers as f64, last.loss_max.unwrap_or(f64::NAN));
            let others = (last.loss.unwrap_or(f64::NAN) * peers - worst) / (peers - 1.0);
            assert!(others < 1.0, "{preset} {fault}: {others} {report}");
            // With a bounded lead the others wait for it once, then continue without it.
            let expired = report.counters.waits_expired;
            assert_eq!(expired > 0, preset == "ssp", "{fault} {report}");
        }
    }
}

#[test]
fn nonsense_moves_nothing() {
    for preset in ["asp", "ssp"] {
        for lie in ["garbage", "truncated"] {
            for victim in 0..3 {
                let fault = lies(victim, 1.0, 0.06, lie);
                let report = run(&text(preset, &fault), None);
                assert!(report.counters.lies > 0, "{report}");
                learned(&report, PEERS, 1.0, &format!("{preset} {fault}"));
            }
        }
    }
}

/// A swarm of which one peer is four times slower.
fn uneven(preset: &str, more: &str) -> Report {
    let speeds = "[compute]\nstep_ms = 100.0\nspeeds = [1.0, 1.0, 1.0, 1.0, 1.0, 0.25]\n";
    run(&text(preset, &format!("{speeds}{more}")), None)
}

#[test]
fn the_fast_wait_for_the_slow_only_when_their_lead_is_bounded() {
    let (asp, ssp) = (uneven("asp", ""), uneven("ssp", ""));
    // With a bounded lead the fast ones wait for the slowest; without one they do not.
    assert!(asp.counters.waits_expired == 0 && ssp.counters.waits_expired == 0);
    let bsp = "[strategy.architecture]\nexchange = \"parameter-server\"\nowners = 2\n\
               contribution = \"gradient\"\n";
    let bsp = uneven("bsp", bsp);
    let time_of = |report: &Report| report.virtual_s;
    assert!(time_of(&ssp) <= time_of(&bsp) * 1.05, "{ssp}\n{bsp}");
    // Without a bound the fast ones finish their 60 rounds long before the slow one.
    assert!(time_of(&asp) <= time_of(&ssp) * 1.05, "{asp}\n{ssp}");
}

/// Seconds that peers wait because of the bound, in an SSP run with rounds of 100 ms in which peers
/// stall one after another, each for two seconds.
fn bursts(mode: &str) -> f64 {
    let stall = |(peer, at_s)| slow(peer, at_s, 20.0, 0.5);
    let stalls: String = [(0, 1.0), (3, 3.0), (5, 5.0)].map(stall).concat();
    let point = format!("[strategy.synchronization]\n{mode}\n[compute]\nstep_ms = 100.0\n{stalls}");
    let report = run(&text("ssp", &point), None);
    learned(&report, PEERS, 1.0, mode);
    assert_eq!(report.counters.rounds_ended, PEERS as u64 * ROUNDS);
    assert_eq!(report.counters.waits_expired, 0, "{report}");
    report.counters.lead_waited_s
}

#[test]
fn a_lead_that_is_chosen_waits_less_in_bursts_than_its_least_and_never_passes_its_most() {
    // An invariant checks after every event that the upper bound holds.
    let least = bursts("mode = \"ssp\"\nlead = 2");
    let most = bursts("mode = \"ssp\"\nlead = 12");
    let between = bursts("inner_steps = 1\nmode = \"dynamic-ssp\"\nlead = 2\nlead_most = 12");
    assert!(least > 5.0, "{least}");
    assert!(2.0 * between < least, "{most} {between} {least}");
    // The chosen leads wait hardly longer than the largest.
    assert!(between < most + 0.25 * least, "{most} {between} {least}");
}

#[test]
fn with_a_chosen_lead_deaths_and_stalls_are_survived() {
    let lead = "[strategy.synchronization]\ninner_steps = 1\nmode = \"dynamic-ssp\"\nlead = 1\nlead_most = 5\n";
    for victim in 0..PEERS {
        let crash = crash(victim, 30, "exchange", 0.0);
        let report = run(&text("ssp", &format!("{lead}{crash}")), None);
        learned(&report, PEERS - 1, 1.0, &crash);
        let stall = slow(victim, 1.0, 10000.0, 8.0);
        let report = run(&text("ssp", &format!("{lead}{stall}")), None);
        learned(&report, PEERS, 4.0, &stall);
        assert!(report.counters.waits_expired > 0, "{report}");
    }
}

/// Pushes and bytes of a run with this number of peers, with contributions and replies in f32.
fn traffic(owners: u64, peers: usize) -> (u64, u64) {
    // Inner steps are long enough for all peers to meet before the first one ends.
    let center =
        format!("[strategy.architecture]\nowners = {owners}\n[compute]\nstep_ms = 500.0\n");
    let text = text("asp", &center)
        .replace(&format!("peers = {PEERS}"), &format!("peers = {peers}"))
        .replace(&format!("rounds = {ROUNDS}"), "rounds = 3");
    let report = run(&text, None);
    assert_eq!(report.counters.rounds_ended, 3 * peers as u64);
    (report.counters.pushes, report.counters.bytes_encoded)
}

#[test]
fn pushes_and_bytes_are_those_of_the_formula() {
    for peers in 2..=33u64 {
        for owners in [1u64, 3] {
            let (pushes, bytes) = traffic(owners, peers as usize);
            // Each of k shards travels from n - 1 peers to its owner, and back.
            assert_eq!(pushes, 3 * 2 * owners * (peers - 1), "{peers} {owners}");
            let expected = 3 * 2 * (peers - 1) * (owners + 4 * 64);
            assert_eq!(bytes, expected, "{peers} {owners}");
        }
    }
}
