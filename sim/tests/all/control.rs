//! What the owner of a run directs is in force at all machines from the same round on, whatever happens to
//! them meanwhile.
//!
//! `MURMURATE_SEED` sets the first seed and `MURMURATE_SEEDS` the number of seeds.

use crate::common::{crash_for_at, cut_off, joins_at, learned, loss_of, one_state, run, seeds};
use murmurate_sim::Report;
use std::collections::BTreeSet;

/// 3 to 8 machines that train 40 rounds of about 0.1 s, with any exchange whose peers agree.
fn text(seed: u64, faults: &str) -> String {
    let exchange = match seed / 6 % 4 {
        0 | 3 => "exchange = \"all-reduce\"",
        1 => "exchange = \"gathered\"",
        _ => "exchange = \"parameter-server\"\nowners = 2",
    };
    format!(
        "seed = {seed}\npeers = {peers}\nrounds = 40\nsave_every_s = 1.0\nevaluate_every = 1\n\
         [task]\nkind = \"quadratic\"\ndim = 32\n\
         [strategy]\npreset = \"diloco\"\n[strategy.synchronization]\ninner_steps = 5\n\
         [strategy.inner]\noptimizer = \"sgd\"\nlr = 0.1\n\
         [strategy.architecture]\n{exchange}\n\
         [strategy.deadlines]\nfloor_ms = 300\ninitial_ms = 1000\nceiling_ms = 4000\n\
         [network]\nlatency_ms = 5.0\njitter_ms = 3.0\nbootstrap = 32\ndetection_ms = 300.0\n\
         [compute]\nstep_ms = 10.0\n[limits]\nvirtual_s = 600.0\n{faults}",
        peers = peers(seed),
    )
}

fn peers(seed: u64) -> u64 {
    3 + seed % 6
}

/// The owner directs this at a machine.
fn directs(peer: u64, at_s: f64, directive: &str) -> String {
    format!(
        "[[fault]]\nkind = \"directive\"\npeer = {peer}\nat_s = {at_s}\n\
         directive = {{ {directive} }}\n"
    )
}

fn pause(peer: u64, at_s: f64, from: u64) -> String {
    directs(peer, at_s, &format!("change = \"pause\", from = {from}"))
}

fn resume(peer: u64, at_s: f64) -> String {
    directs(peer, at_s, "change = \"resume\"")
}

/// Virtual seconds between the ends of the rounds before this one and of this one, at the last peer.
fn gap(report: &Report, round: u64) -> f64 {
    let at = |round| {
        report
            .samples
            .iter()
            .find(|s| s.round == round)
            .map(|s| s.at_s)
    };
    match (at(round), at(round + 1)) {
        (Some(before), Some(after)) => after - before,
        other => panic!("no samples of round {round}: {other:?}\n{report}"),
    }
}

/// The rounds in which peers entered a pause.
fn paused_in(report: &Report) -> BTreeSet<u64> {
    report
        .counters
        .pauses
        .iter()
        .map(|(_, round)| round.0)
        .collect()
}

fn agrees(seed: u64, report: &Report, peers: u64) {
    one_state(report, peers as usize, &format!("seed {seed}"));
    assert_eq!(report.counters.rule_breaks, 0, "seed {seed}: {report}");
}

#[test]
fn all_pause_before_the_same_round_and_go_on_together() {
    for seed in seeds(24) {
        let peers = peers(seed);
        let (first, last) = (seed % peers, (seed + 1) % peers);
        let faults = pause(first, 1.2, 20) + &resume(last, 60.0);
        let report = run(&text(seed, &faults), None);
        agrees(seed, &report, peers);
        let counters = &report.counters;
        let machines: BTreeSet<_> = counters.pauses.iter().map(|(peer, _)| *peer).collect();
        assert_eq!(paused_in(&report), BTreeSet::from([20]), "seed {seed}");
        assert_eq!(machines.len() as u64, peers, "seed {seed}: all paused");
        assert_eq!(
            counters.pauses.len() as u64,
            peers,
            "seed {seed}: once each"
        );
        // No one went on, and no one took the silence for a fault.
        assert!(gap(&report, 20) > 50.0, "seed {seed}: {report}");
        let normal = run(&text(seed, ""), None);
        assert_eq!(
            counters.suspicions, normal.counters.suspicions,
            "seed {seed}"
        );
        assert_eq!(
            counters.waits_expired, normal.counters.waits_expired,
            "seed {seed}"
        );
        assert_eq!(counters.rounds_ended, 40 * peers, "seed {seed}: {report}");
        assert_eq!(counters.voided, normal.counters.voided, "seed {seed}");
    }
}

#[test]
fn a_pause_outlasts_crashes_and_newcomers_wait_in_it() {
    for seed in seeds(24) {
        let peers = peers(seed) + 1;
        let one = crash_for_at(0, 10.0 + 0.1 * (seed % 7) as f64, 2.0);
        // One at a time, or all of them at once.
        let faults = match seed % 3 {
            0 => (0..peers as usize - 1)
                .map(|peer| crash_for_at(peer, 12.0, 1.0))
                .collect(),
            1 => one,
            _ => one + &crash_for_at(1, 14.0, 3.0),
        };
        let join = joins_at(peers as usize - 1, 25.0);
        let faults =
            faults + &join + &pause(seed % (peers - 1), 1.2, 20) + &resume(peers - 1, 60.0);
        let text = text(seed, &faults).replace(
            &format!("peers = {}", peers - 1),
            &format!("peers = {peers}"),
        );
        let report = run(&text, None);
        agrees(seed, &report, peers);
        assert_eq!(
            paused_in(&report),
            BTreeSet::from([20]),
            "seed {seed}: {report}"
        );
        // The newcomer and those that were restarted have paused too.
        let newcomer = report.counters.pauses.iter().map(|(peer, _)| *peer);
        let machines: BTreeSet<_> = newcomer.collect();
        assert_eq!(machines.len() as u64, peers, "seed {seed}: {report}");
        assert!(
            report.counters.pauses.len() as u64 > peers,
            "seed {seed}: {report}"
        );
        assert!(gap(&report, 20) > 50.0, "seed {seed}: {report}");
    }
}

#[test]
fn a_side_that_did_not_hear_of_a_pause_goes_on_and_is_followed() {
    let mut further = 0;
    for seed in seeds(24) {
        let peers = peers(seed);
        let cut = cut_off(&[0], 1.0, 2.0 + (seed % 5) as f64 / 2.0);
        // The owner is on either side of the split.
        let at = if seed % 2 == 0 { 0 } else { 1 };
        let faults = cut + &pause(at, 1.1, 16) + &resume(at, 30.0);
        let report = run(&text(seed, &faults), None);
        agrees(seed, &report, peers);
        let rounds = paused_in(&report);
        further += u64::from(rounds.len() > 1);
        assert_eq!(rounds.first(), Some(&16), "seed {seed}: {report}");
    }
    assert!(further > 0, "no side went on without knowing");
}

#[test]
fn a_run_ends_at_the_round_that_the_owner_names() {
    for seed in seeds(6) {
        let peers = peers(seed);
        let of = |rounds: u64| format!("change = \"rounds\", value = {rounds}");
        let shorter = run(&text(seed, &directs(0, 1.2, &of(25))), None);
        agrees(seed, &shorter, peers);
        assert_eq!(
            shorter.counters.rounds_ended,
            25 * peers,
            "seed {seed}: {shorter}"
        );
        let faults = directs(0, 1.2, &of(25)) + &directs(1, 1.4, &of(60));
        let longer = run(&text(seed, &faults), None);
        agrees(seed, &longer, peers);
        assert_eq!(
            longer.counters.rounds_ended,
            60 * peers,
            "seed {seed}: {longer}"
        );
    }
}

/// The owner changes the training in a round that some have begun already, at several machines, while one of
/// them is cut off.
#[test]
fn machines_that_train_by_other_rules_do_not_mix_and_are_together_again() {
    let mut learned = 0.0;
    for seed in seeds(24) {
        let peers = peers(seed);
        let at = 1.2 + 0.007 * (seed % 23) as f64;
        let cut = cut_off(&[0], at, 1.5);
        let rate = |value: f64| format!("change = \"learning-rate\", value = {value}");
        let steps = |from: u64| format!("change = \"inner-steps\", value = 9, from = {from}");
        let faults = match seed % 3 {
            0 => directs(1, at, &rate(0.5)),
            1 => cut + &directs(1, at + 0.1, &rate(0.5)),
            _ => cut + &directs(0, at + 0.1, &rate(2.0)),
        };
        let faults = faults + &directs(2, at + 0.3, &steps(18)) + &directs(0, at + 0.4, &rate(1.5));
        let report = run(&text(seed, &faults), None);
        agrees(seed, &report, peers);
        let last = crate::common::last(&report);
        assert_eq!(last.peers as u64, peers, "seed {seed}: {report}");
        learned += last.loss.unwrap_or_default() - report.samples[0].loss.unwrap_or_default();
        if seed % 3 == 0 {
            // Five inner steps a round at first, and nine from round 18 on.
            let least = (17 * 5 + 20 * 9) * peers;
            let inner_steps = report.counters.inner_steps;
            assert!(inner_steps > least, "seed {seed}: {report}");
        }
    }
    assert!(learned < 0.0, "the machines learn");
}

#[test]
fn the_same_training_changes_alike_at_all_machines() {
    let seed = 0;
    let of = |faults: &str| run(&text(seed, faults), None);
    let usual = of("");
    let half = of(&directs(
        0,
        0.5,
        "change = \"learning-rate\", value = 0.5, from = 20",
    ));

    assert_eq!(loss_of(&usual, 20), loss_of(&half, 20));
    assert_ne!(loss_of(&usual, 21), loss_of(&half, 21));
    assert_eq!(half.consensus_distance, 0.0);
}

/// The codec changes in a round that some have begun already, while one machine is cut off or crashes, and
/// changes back: all decide every round together.
#[test]
fn machines_change_the_codec_together() {
    for seed in seeds(24) {
        let peers = peers(seed);
        let at = 1.2 + 0.007 * (seed % 23) as f64;
        let codec = |name: &str, from: u64| {
            format!("change = \"codec\", codec = \"{name}\", from = {from}")
        };
        let faults = match seed % 3 {
            0 => String::new(),
            1 => cut_off(&[0], at, 1.5),
            _ => crash_for_at(0, at + 0.2, 1.0),
        };
        let faults = faults
            + &directs(1, at, &codec("int8", 0))
            + &directs(2, at + 0.2, &codec("int4", 18))
            + &directs(1, at + 0.4, "change = \"codec\", from = 30");
        let text = text(seed, &faults).replace(
            "[strategy.inner]",
            "[strategy.compression]\ncodec = \"f32\"\n[strategy.inner]",
        );
        let text = text.replace("dim = 32", "dim = 16000");
        let report = run(&text, None);
        agrees(seed, &report, peers);
        let last = crate::common::last(&report);
        assert_eq!(last.peers as u64, peers, "seed {seed}: {report}");
        learned(&report, &format!("seed {seed}"));
    }
}

#[test]
fn another_codec_sends_other_bytes_from_its_round_on() {
    let of = |codec: &str, faults: &str| {
        let text = text(0, faults).replace(
            "[strategy.inner]",
            &format!("[strategy.compression]\ncodec = \"{codec}\"\n[strategy.inner]"),
        );
        let text = text.replace("dim = 32", "dim = 20000");
        run(&text, None)
    };
    let usual = of("f32", "");
    let changed = of(
        "f32",
        &directs(0, 0.5, "change = \"codec\", codec = \"int8\", from = 20"),
    );
    let small = of("int8", "");

    assert_eq!(loss_of(&usual, 20), loss_of(&changed, 20));
    assert_ne!(loss_of(&usual, 21), loss_of(&changed, 21));
    let bytes = |report: &Report| report.counters.bytes_encoded as f64;
    // Half of the rounds by either.
    let expected = 0.5 * (bytes(&usual) + bytes(&small));
    let ratio = bytes(&changed) / expected;
    assert!((0.95..1.05).contains(&ratio), "{ratio}");
    // What cannot take the place of the configured codec is left out by all.
    let refused = of(
        "int8",
        &directs(0, 0.5, "change = \"codec\", codec = \"f32\", from = 20"),
    );
    assert_eq!(bytes(&refused), bytes(&small));
}
