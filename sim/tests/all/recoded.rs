//! An all-reduce whose members choose the codec by how long exchanges hold training up: a line gets slow in
//! mid-run and recovers, and the codec goes down and back up. The invariant `same_steps` checks in each of these
//! runs that all peers with one anchor take the same codec.
//!
//! `MURMURATE_SEED` sets the first seed and `MURMURATE_SEEDS` the number of seeds.

use crate::common::{crash_for_at, cut_off, learned, noisy_lines, one_state};
use murmurate_protocol::{Recoding, Round};
use murmurate_sim::Report;
use murmurate_strategies::compress::CodecKind;
use murmurate_strategies::grid::rung_words;
use std::collections::BTreeSet;

const PEERS: u64 = 6;
const PARAMETERS: u64 = 1_000_000;

/// Rounds of an interval in these runs.
const EVERY: u64 = 4;

/// Six machines with a model of 4 MB and lines of 10 Gbit/s. `trace` is the rest of the network.
fn timing(rounds: u64, pace: &str, compression: &str, trace: &str) -> Report {
    crate::common::run(
        &format!(
            "seed = 5\npeers = {PEERS}\nrounds = {rounds}\nevaluate_every = 1000\n\
             [task]\nkind = \"timing\"\nparameters = {PARAMETERS}\n\
             [strategy]\npreset = \"local-sgd\"\n\
             [strategy.synchronization]\n{pace}\n\
             [strategy.compression]\n{compression}\n\
             [strategy.deadlines]\nfloor_ms = 20000\ninitial_ms = 20000\nceiling_ms = 60000\n\
             [compute]\nstep_ms = 10.0\n\
             [network]\nuplink_mbit = 10000.0\ndownlink_mbit = 10000.0\nbootstrap = 32\n{trace}"
        ),
        None,
    )
}

/// Half a second.
const STEPS: &str = "inner_steps = 50";

fn measured() -> String {
    format!("codec = \"f32\"\nchoose = \"measured\"\nchoose_every = {EVERY}")
}

/// The line of machine 3 carries 220 Mbit/s for half a minute.
const FALL: &str = "latency_ms = 0.5\n[[network.trace]]\npeer = 3\nat_s = [10.0, 40.0]\n\
                    uplink_mbit = [220.0, 10000.0]\ndownlink_mbit = [220.0, 10000.0]\n";

/// The changes, each with its round; all members have made each of them.
fn changes(report: &Report) -> Vec<(u64, Recoding)> {
    let all = &report.counters.recoded;
    let rounds: BTreeSet<Round> = all.iter().map(|(_, round, _)| *round).collect();
    let of = |round: Round| {
        let mut here = all.iter().filter(|(_, other, _)| *other == round);
        let (_, _, first) = *here.clone().next().expect("a change");
        assert_eq!(here.clone().count() as u64, PEERS, "{round}: {all:?}");
        assert!(
            here.all(|(_, _, other)| *other == first),
            "{round}: {all:?}"
        );
        (round.0, first)
    };
    rounds.into_iter().map(of).collect()
}

/// The codecs that a run had, in their order.
fn path(changes: &[(u64, Recoding)]) -> Vec<String> {
    let first = changes
        .iter()
        .take(1)
        .map(|(_, change)| rung_words(&change.before));
    first
        .chain(changes.iter().map(|(_, change)| rung_words(&change.codec)))
        .collect()
}

/// Bytes of slices that all members send in a round of this codec: every one sends a shard of its contribution
/// to each other one, and what it reduced.
fn bytes(codec: &str) -> u64 {
    let codec = CodecKind::new(codec, &[]).expect("it has defaults").build();
    let shard = PARAMETERS.div_ceil(PEERS);
    let both = codec.bytes_bound().of(shard) + codec.aggregate().bytes_bound().of(shard);
    PEERS * (PEERS - 1) * both
}

#[test]
fn a_line_that_gets_slow_lowers_the_codec_until_it_recovers() {
    let of = |rounds| timing(rounds, STEPS, &measured(), FALL);
    let report = of(110);
    assert_eq!(report.counters.voided, 0, "{report}");
    let changes = changes(&report);
    for (round, change) in &changes {
        println!(
            "{round}: {} for {:.2} of {:.2}",
            rung_words(&change.codec),
            change.wait,
            change.room
        );
        assert_eq!(round % EVERY, 0);
    }
    let names = path(&changes);
    assert_eq!(names, ["f32", "int4", "int8", "bf16", "f32"], "{changes:?}");
    // Half a round of training is 50 inner steps: 5.6 of waiting are a tenth of the time.
    assert!(changes[0].1.wait > changes[0].1.room);
    assert!((5.5..5.6).contains(&changes[0].1.room), "{changes:?}");
    // The line falls in round 19, and a median of seven rounds follows it after four.
    let (down, up) = (changes[0].0, changes[1].0);
    assert!((20..=32).contains(&down), "{changes:?}");
    // Bytes of a round before, between and after.
    let encoded = |rounds| of(rounds).counters.bytes_encoded;
    for (round, codec) in [
        (8, "f32"),
        (down + 2, "int4"),
        (up + 2, "int8"),
        (108, "f32"),
    ] {
        let sent = encoded(round + 1) - encoded(round);
        assert_eq!(sent, bytes(codec), "{round} {codec}");
    }
    assert_eq!(report.trace, of(110).trace, "it repeats to the bit");
}

#[test]
fn bounds_of_the_plan_hold_and_a_shorter_list_ends_sooner() {
    let list = format!("{}\nchoose_from = [\"bf16\"]", measured());
    let found = path(&changes(&timing(110, STEPS, &list, FALL)));
    assert_eq!(found, ["f32", "bf16", "f32"]);
    // A line that is always fast keeps the codec of the configuration, whatever the list is.
    let calm = timing(40, STEPS, &measured(), "latency_ms = 0.5");
    assert!(calm.counters.recoded.is_empty(), "{calm}");
}

#[test]
fn a_sparse_codec_lowers_its_density() {
    let densities = format!(
        "codec = \"top-k\"\ndensity = 0.2\nchoose = \"measured\"\nchoose_every = {EVERY}\n\
         choose_from = [0.1, 0.02]\n[strategy.architecture]\nexchange = \"gathered\""
    );
    let report = timing(110, STEPS, &densities, FALL);
    let found = path(&changes(&report));
    println!("{found:?}");
    let words = |density: &str| format!("top-k with density {density}");
    assert_eq!(
        (found.first(), found.last()),
        (Some(&words("0.2")), Some(&words("0.2")))
    );
    assert!(found.contains(&words("0.02")), "{found:?}");
}

#[test]
fn a_wait_that_is_latency_brings_no_coarser_codec_for_good() {
    // An exchange waits for several messages one way, whatever they carry.
    let report = timing(90, STEPS, &measured(), "latency_ms = 100.0");
    let changes = changes(&report);
    println!("{:?}", path(&changes));
    assert!((1..=6).contains(&changes.len()), "{changes:?}");
    assert!(changes.iter().all(|(round, _)| *round < 60), "{changes:?}");
    let last = changes.last().map(|(_, last)| rung_words(&last.codec));
    assert_eq!(last.as_deref(), Some("f32"));
}

#[test]
fn noise_of_a_tenth_does_not_make_the_codec_flap() {
    // All lines change twice a second; one is slow.
    let lines = noisy_lines(300, |peer| if peer == 3 { 220.0 } else { 2000.0 });
    let trace = format!("latency_ms = 0.5\n{lines}");
    let changes = changes(&timing(120, STEPS, &measured(), &trace));
    println!("{:?}", path(&changes));
    assert!((1..=3).contains(&changes.len()), "{changes:?}");
    assert!(
        changes.iter().all(|(round, _)| *round <= 6 * EVERY),
        "{changes:?}"
    );
}

#[test]
fn longer_rounds_come_before_a_coarser_codec() {
    let pace = "inner_steps = 50\npace = \"measured\"\nmeasure_every = 4\ninner_steps_most";
    let slow = FALL.replace("[10.0, 40.0]", "[0.5, 4000.0]");
    // 25 inner steps of waiting are a tenth of 250: rounds of at most 400 need no other codec.
    let long = timing(40, &format!("{pace} = 400"), &measured(), &slow);
    assert!(long.counters.recoded.is_empty(), "{long}");
    assert!(long.counters.inner_steps > 40 * PEERS * 150, "{long}");
    // Rounds of 100 are not long enough.
    let short = timing(40, &format!("{pace} = 100"), &measured(), &slow);
    let changes = changes(&short);
    println!("{:?} {short}", path(&changes));
    assert!(
        !changes.is_empty() && (11.0..11.2).contains(&changes[0].1.room),
        "{changes:?}"
    );
    // Waits under the codec before are no reason for a number of inner steps. Those after it are.
    assert!(short.counters.inner_steps < 40 * PEERS * 100, "{short}");
}

/// Machines with tensors, a line that is slow for some seconds, and a fault by seed meanwhile.
fn tensors(seed: u64) -> String {
    let exchange = match seed % 3 {
        0 => "exchange = \"all-reduce\"",
        1 => "exchange = \"gathered\"",
        _ => "exchange = \"parameter-server\"\nowners = 2",
    };
    let codec = match seed / 3 % 3 {
        0 => "codec = \"f32\"\nchoose_from = [\"int8\", \"int4\"]",
        1 => "codec = \"f32\"\nerror_feedback = true",
        _ => "codec = \"top-k\"\ndensity = 0.5\nchoose_from = [0.1, 0.02]",
    };
    let at = 2.0 + 0.07 * (seed % 40) as f64;
    let [one, two] = [seed, seed + 2].map(|peer| (peer % PEERS) as usize);
    let fault = match seed % 5 {
        0 => crash_for_at(one, at, 0.7),
        1 => cut_off(&[one, two], at, 2.0),
        2 => cut_off(&[one], at, 1.0),
        3 => {
            "[[fault]]\nkind = \"join\"\npeer = 5\nround = 24\nphase = \"train\"\ndelay_s = 0.02\n"
                .to_owned()
        }
        _ => crash_for_at(one, at, 3.0),
    };
    format!(
        "seed = {seed}\npeers = {PEERS}\nrounds = 80\nsave_every_s = 1.0\nevaluate_every = 1\n\
         [task]\nkind = \"quadratic\"\ndim = 2048\nheterogeneity = 0.5\n\
         [strategy]\npreset = \"local-sgd\"\n[strategy.synchronization]\ninner_steps = 20\n\
         [strategy.inner]\noptimizer = \"sgd\"\nlr = 0.02\n\
         [strategy.architecture]\n{exchange}\n\
         [strategy.compression]\nchoose = \"measured\"\nchoose_every = 3\ntrain_share = 0.6\n{codec}\n\
         [strategy.deadlines]\nfloor_ms = 1000\ninitial_ms = 2000\nceiling_ms = 6000\n\
         [network]\nlatency_ms = 1.0\njitter_ms = 1.0\nuplink_mbit = 100.0\ndownlink_mbit = 100.0\n\
         bootstrap = 32\ndetection_ms = 300.0\n\
         [[network.trace]]\npeer = 4\nat_s = [1.5, 7.0]\nuplink_mbit = [0.5, 100.0]\n\
         downlink_mbit = [0.5, 100.0]\n\
         [compute]\nstep_ms = 5.0\n[limits]\nvirtual_s = 600.0\n{fault}"
    )
}

#[test]
fn all_take_the_same_codec_whatever_happens_meanwhile() {
    let (mut down, mut up, mut count) = (0, 0, 0);
    for seed in crate::common::seeds(30) {
        let report = crate::common::run(&tensors(seed), None);
        let what = format!("seed {seed}");
        one_state(&report, PEERS as usize, &what);
        assert_eq!(report.counters.rule_breaks, 0, "{what}: {report}");
        learned(&report, &what);
        let all = &report.counters.recoded;
        let falls = |change: &Recoding| change.codec.per_1024 < change.before.per_1024;
        down += u64::from(all.iter().any(|(_, _, change)| falls(change)));
        up += u64::from(all.iter().any(|(_, _, change)| !falls(change)));
        count += 1;
    }
    println!("{down} of {count} went down, {up} back up");
    assert!(
        4 * down >= 3 * count && 2 * up >= count,
        "{down} and {up} of {count}"
    );
}
