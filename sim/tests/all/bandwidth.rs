//! Gossip in pairs over fast links (`bandwidth-matching`), where the peers measure the rates
//! themselves. The simulator checks the invariants of gossip after every event.

use crate::common::{crash, crash_and_return, loss, run};

const PEERS: usize = 8;

/// Two sites of four machines each, with this rate between them.
fn sites(mbit: f64) -> String {
    let site = |name, first: usize| {
        let last = first + PEERS / 2 - 1;
        format!(
            "[[network.site]]\nname = \"{name}\"\nfirst = {first}\nlast = {last}\n\
             wan_uplink_mbit = {mbit:.1}\nwan_downlink_mbit = {mbit:.1}\n"
        )
    };
    site("a", 0) + &site("b", PEERS / 2)
}

/// 4 MB: 0.03 s within a site, and 0.3 s across, for one at a time.
const TIMING: (&str, f64) = ("kind = \"timing\"\nparameters = 1_000_000", 100.0);

/// 16 KB: 0.005 s within a site, and 0.07 s across.
const TENSORS: (&str, f64) = (
    "kind = \"quadratic\"\ndim = 4096\nnoise = 0.3\nheterogeneity = 0.0",
    2.0,
);

fn text((task, wan): (&str, f64), rounds: u64, architecture: &str, fault: &str) -> String {
    format!(
        "seed = 4\npeers = {PEERS}\nrounds = {rounds}\nevaluate_every = 8\n[task]\n{task}\n\
         [strategy]\npreset = \"d-psgd\"\n[strategy.synchronization]\ninner_steps = 4\n\
         [strategy.architecture]\n{architecture}\n[strategy.inner]\nlr = 0.1\n\
         [strategy.deadlines]\nfloor_ms = 2000\ninitial_ms = 5000\nceiling_ms = 20000\n\
         [compute]\nstep_ms = 50.0\n\
         [network]\nlatency_ms = 2.0\nuplink_mbit = 1000.0\ndownlink_mbit = 1000.0\n\
         {}{fault}",
        sites(wan)
    )
}

const RANDOM: &str = "topology = \"random-matching\"";

const FAST: &str = "topology = \"bandwidth-matching\"\nfast_share = 0.4\nconnect_every = 8";

/// Seconds of a round once the rates are known: measured in rounds 0 to 7, used from 40 on. Pulls
/// wait for no peer to reach their round; gossip over unequal links waits for peers that skip it.
fn round_s(topology: &str) -> f64 {
    let of = |rounds| {
        let architecture = format!("exchange = \"pull\"\n{topology}");
        let report = run(&text(TIMING, rounds, &architecture, ""), None);
        let what = format!("{architecture}: {report}");
        assert_eq!(
            report.counters.rounds_ended,
            rounds * PEERS as u64,
            "{what}"
        );
        assert_eq!(report.counters.waits_expired, 0, "{what}");
        report.virtual_s
    };
    (of(136) - of(72)) / 64.0
}

#[test]
fn rounds_are_shorter_over_links_that_the_peers_found_to_be_fast() {
    let (random, fast) = (round_s(RANDOM), round_s(FAST));
    println!("{random:.3} s a round with random pairs, {fast:.3} s over fast links");
    // Of these 0.2 s are training. One slice in each direction crosses between the sites in eight
    // rounds, instead of two or more in most rounds.
    assert!(fast - 0.2 < 0.2 * (random - 0.2), "{fast} after {random}");
}

#[test]
fn peers_learn_as_one_over_fast_links() {
    let mut losses = [0.0, 0.0];
    for seed in 0..4 {
        for (sum, topology) in losses.iter_mut().zip([RANDOM, FAST]) {
            let report = run(&text(TENSORS, 96, topology, ""), Some(seed));
            assert_eq!(report.live, PEERS, "{report}");
            println!(
                "{topology}, seed {seed}: {:.4}, {:.1} s",
                loss(&report),
                report.virtual_s
            );
            *sum += loss(&report) / 4.0;
        }
    }
    // The sites mix by one pair in eight rounds.
    assert!(losses[1] < 1.4 * losses[0], "{losses:?}");
}

#[test]
fn every_exchange_of_pairs_survives_losses_deaths_and_returns() {
    let lossy =
        "[[fault]]\nkind = \"partition\"\npeers = [3]\nat_s = 14.0\nlasts_s = 1.5\n".to_owned();
    for exchange in ["gossip", "push", "pull", "pairs"] {
        for (fault, live) in [
            (lossy.clone(), PEERS),
            (crash(2, 47, "train", 0.02), PEERS - 1),
            (crash(5, 49, "exchange", 0.005), PEERS - 1),
            (crash_and_return(1, 48, "exchange", 0.01), PEERS),
        ] {
            let mut losses = [0.0, 0.0];
            for seed in 0..2 {
                for (sum, topology) in losses.iter_mut().zip([RANDOM, FAST]) {
                    let architecture = format!("exchange = \"{exchange}\"\n{topology}");
                    let text = text(TENSORS, 72, &architecture, &fault);
                    let report = run(&text, Some(seed));
                    if seed == 0 {
                        let again = run(&text, Some(seed));
                        assert_eq!(report.trace, again.trace, "{exchange} {fault}");
                    }
                    assert_eq!(report.live, live, "{exchange} {fault}: {report}");
                    *sum += loss(&report) / 2.0;
                }
            }
            println!("{exchange}, {:?}: {losses:.4?}", fault.lines().nth(1));
            assert!(
                losses[1] < 1.6 * losses[0],
                "{exchange} {fault}: {losses:?}"
            );
        }
    }
}
