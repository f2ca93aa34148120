//! Members that lie for the whole run, and links that are missing for the whole run: the others go on, at
//! nearly the pace of the run without them.
//!
//! `MURMURATE_SEED` sets the first seed and `MURMURATE_SEEDS` the number of seeds.

use murmurate_sim::Report;
use rayon::prelude::*;

/// Rounds of a run.
const ROUNDS: u64 = 100;

/// Seconds that the rounds may take in which members that lie still have their seats.
const UNTIL_THEN_S: f64 = 20.0;

/// A swarm of a seed with this preset and more tables.
fn text(seed: u64, peers: usize, preset: &str, more: &str) -> String {
    format!(
        "seed = {seed}\npeers = {peers}\nrounds = {ROUNDS}\n\
         [task]\nkind = \"quadratic\"\ndim = 64\n\
         [strategy]\npreset = \"{preset}\"\n[strategy.synchronization]\ninner_steps = 4\n\
         [strategy.deadlines]\nfloor_ms = 300\ninitial_ms = 1000\nceiling_ms = 4000\n\
         [limits]\nvirtual_s = 300.0\nevents = 20_000_000\n\
         [compute]\nstep_ms = 25.0\n\
         [network]\nlatency_ms = 10.0\njitter_ms = 3.0\nbootstrap = 64\n{more}"
    )
}

fn run(text: &str) -> Report {
    let report = crate::common::run(text, None);
    assert_eq!(report.consensus_distance, 0.0, "{report}\n{text}");
    report
}

/// A member that lies in a way until the end of the run: without it the others would not have finished.
fn liar(peer: usize, lie: &str, until_s: f64) -> String {
    let lies = crate::common::lies(peer, 0.5, until_s, lie);
    format!("{lies}[[fault]]\nkind = \"crash\"\npeer = {peer}\nat_s = {until_s}\n")
}

#[test]
fn a_liar_that_stays_costs_a_fifth_at_most_once_its_seat_is_lost() {
    let lies = [
        "ballots", "rare", "anything", "withhold", "silent", "garbage",
    ];
    let cases: Vec<(u64, usize, &str)> = crate::common::seeds(3)
        .flat_map(|seed| [4, 7].map(|peers| (seed, peers)))
        .flat_map(|(seed, peers)| lies.map(|lie| (seed, peers, lie)))
        .collect();
    let broken: Vec<String> = cases
        .into_par_iter()
        .filter_map(|(seed, peers, lie)| {
            let alone = run(&text(seed, peers - 1, "guarded", "")).virtual_s;
            let most = alone / 0.8 + UNTIL_THEN_S;
            let more = liar((seed as usize + 1) % peers, lie, most);
            let took = run(&text(seed, peers, "guarded", &more)).virtual_s;
            println!("seed {seed}: {peers} members, {lie}: {took:.1} s, {alone:.1} s without it");
            (took > most + 1.0)
                .then(|| format!("seed {seed}, {peers} members, {lie}: {took:.1} s, {alone:.1} s"))
        })
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn missing_links_cost_a_fifth_at_most() {
    let mut cases = Vec::new();
    for preset in ["guarded", "diloco"] {
        for (peers, share) in [(4, 0.1), (4, 0.2), (8, 0.2), (16, 0.4), (64, 0.4)] {
            // Minutes in a build for tests.
            if peers < 64 || std::env::var("MURMURATE_SEEDS").is_ok() {
                cases.extend(crate::common::seeds(5).map(|seed| (seed, preset, peers, share)));
            }
        }
    }
    let broken: Vec<String> = cases
        .into_par_iter()
        .filter_map(|(seed, preset, peers, share)| {
            let whole = run(&text(seed, peers, preset, "")).virtual_s;
            let missing = run(&text(seed, peers, preset, &format!("[[fault]]\nkind = \"missing-links\"\nat_s = 1.0\nshare = {share}\n")));
            let (took, live) = (missing.virtual_s, missing.live);
            println!("seed {seed}: {preset}, {peers} members, {share} missing: {took:.1} s of {whole:.1} s");
            let slow = took > whole / 0.8 + UNTIL_THEN_S || live < peers;
            slow.then(|| format!("seed {seed}, {preset}, {peers}, {share}: {took:.1} s of {whole:.1} s"))
        })
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// One link is missing and nothing replaces it: the two ends still count each other, and the rounds of the
/// others have results.
#[test]
fn two_honest_members_without_a_link_do_not_stop_the_others() {
    for seed in crate::common::seeds(4) {
        for peers in [4, 5, 7] {
            let whole = run(&text(seed, peers, "guarded", "")).virtual_s;
            let more =
                "relays = false\n[[fault]]\nkind = \"missing-links\"\nat_s = 1.0\npeers = [2, 3]\n";
            let report = run(&text(seed, peers, "guarded", more));
            println!(
                "seed {seed}: {peers} members: {:.1} s of {whole:.1} s, {} voided",
                report.virtual_s, report.counters.voided
            );
            assert!(
                report.virtual_s <= whole * 2.0 + UNTIL_THEN_S,
                "seed {seed}, {peers}: {report}"
            );
        }
    }
}
