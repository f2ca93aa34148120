//! Exchanges between neighbours in the simulator: each kind of fault by itself, and the guarantees of each method.
//! The invariants are checked after every event.

use crate::common::{LOSSY, QUIET, crash, crash_for, loss, nonsense, slow, waits_are_bounded};
use murmurate_sim::Report;

/// Whether the losses above the optimum are those of a method.
type Found = fn(&Report) -> bool;

/// A method on different data.
struct Method {
    strategy: String,
    peers: usize,
    evaluate_every: u64,
    /// Rounds until it must have found the optimum, without faults and with a restart.
    rounds: [u64; 2],
    found: Found,
    /// Peers that die, in as many runs.
    victims: Vec<usize>,
}

impl Method {
    fn run(&self, rounds: u64, more: &str) -> Report {
        let evaluate_every = self.evaluate_every.min(rounds);
        let text = format!(
            "seed = 5\npeers = {}\nrounds = {rounds}\nsave_every_s = 0.5\nevaluate_every = {evaluate_every}\n\
             [task]\nkind = \"quadratic\"\ndim = 32\nheterogeneity = 0.3\n[strategy]\n{}\
             [strategy.deadlines]\nfloor_ms = 100\ninitial_ms = 500\nceiling_ms = 2000\n\
             [compute]\nstep_ms = 20.0\n[limits]\nvirtual_s = 3600.0\nevents = 3_000_000\n{more}",
            self.peers, self.strategy
        );
        crate::common::run(&text, None)
    }
}

/// Exchanges in pairs, and differences to copies. Exact diffusion leaves only what is in flight, the others what
/// one or two neighbours per round cannot remove. Alone a peer stays above 0.5.
fn presets() -> Vec<Method> {
    let method = |(name, found): (&str, Found)| {
        let copies = ["dcd-psgd", "ecd-psgd"].contains(&name);
        let overlap = ["", "[strategy.overlap]\nfragments = 2\n"][usize::from(copies)];
        Method {
            strategy: format!("preset = \"{name}\"\n{overlap}"),
            peers: 6,
            evaluate_every: u64::MAX,
            rounds: [300, 300],
            found,
            victims: if copies { (0..6).collect() } else { vec![2] },
        }
    };
    let methods: [(&str, Found); 9] = [
        ("dcd-psgd", |report| loss(report) < 0.1),
        ("ecd-psgd", |report| loss(report) < 0.1),
        ("choco", |report| loss(report) < 0.1),
        ("deepsqueeze", |report| loss(report) < 0.3),
        ("d2", |report| loss(report) < 0.01),
        ("ad-psgd", |report| loss(report) < 0.3),
        ("osgp", |report| loss(report) < 0.3),
        ("gradient-tracking", |report| loss(report) < 0.01),
        ("beer", |report| loss(report) < 0.3),
    ];
    methods.map(method).into()
}

/// Sums along trees. What is left is the noise alone, without a bias from different data, while all are up: a peer
/// that began alone is ahead, finishes earlier, and is missing in the last rounds of the others.
fn relays() -> Vec<Method> {
    let method = |topology| Method {
        strategy: format!(
            "preset = \"relaysgd\"\n[strategy.architecture]\ntopology = \"{topology}\"\n"
        ),
        peers: 7,
        evaluate_every: 20,
        rounds: [300, 400],
        found: |report| {
            let all = report.samples.iter().filter(|sample| sample.peers == 7);
            all.filter_map(|sample| sample.loss).any(|loss| loss < 0.01)
        },
        victims: (0..7).collect(),
    };
    ["binary-tree", "ring", "exponential"].map(method).into()
}

fn all() -> impl Iterator<Item = Method> {
    presets().into_iter().chain(relays())
}

#[track_caller]
fn intact(method: &Method, report: &Report) {
    let state = (report.live, report.counters.rule_breaks);
    assert_eq!(state, (method.peers, 0), "{}{report}", method.strategy);
}

#[track_caller]
fn found(method: &Method, report: &Report) {
    assert!((method.found)(report), "{}{report}", method.strategy);
}

#[test]
fn without_faults_all_find_the_common_optimum() {
    for method in all() {
        let report = method.run(method.rounds[0], QUIET);
        intact(&method, &report);
        found(&method, &report);
        let (pushes, uncertain) = (report.counters.pushes, report.counters.mass_uncertain);
        // Two fragments to two neighbours, or along six edges in both directions; fewer only before views were
        // complete.
        let expected = 300 * 2 * 12;
        let more = match &method.strategy {
            relayed if relayed.contains("relaysgd") => 0,
            copied if copied.contains("fragments") => 100,
            _ => {
                assert_eq!(uncertain, 0.0, "{}{report}", method.strategy);
                continue;
            }
        };
        let fits = pushes > expected - 100 && pushes <= expected + more;
        assert!(fits, "{}{report}", method.strategy);
    }
}

#[test]
fn loss_and_jitter_cost_time_and_nothing_else() {
    for method in all() {
        let report = method.run(method.rounds[0], LOSSY);
        assert!(report.counters.pushes_lost > 100, "{report}");
        intact(&method, &report);
        found(&method, &report);
        // The pairs wait for what is on its way.
        let pairs = method.victims.len() == 1;
        assert!(pairs || waits_are_bounded(&report), "{report}");
    }
}

#[test]
fn a_death_in_any_phase_leaves_others_that_finish() {
    for method in all() {
        for phase in ["train", "exchange", "apply"] {
            for delay in [0.0, 0.003, 0.006, 0.012] {
                for victim in &method.victims {
                    let fault = crash(*victim, 9, phase, delay);
                    let report = method.run(30, &format!("{QUIET}{fault}"));
                    let what = format!("{}{fault}{report}", method.strategy);
                    assert_eq!(report.live, method.peers - 1, "{what}");
                    assert!(waits_are_bounded(&report), "{what}");
                    assert_eq!(report.counters.rule_breaks, 0, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_restarted_peer_takes_part_again() {
    for method in all() {
        for victim in &method.victims {
            let fault = crash_for(*victim, 9, "exchange", 0.003, 1.5);
            let report = method.run(method.rounds[1], &format!("{LOSSY}{fault}"));
            intact(&method, &report);
            found(&method, &report);
        }
    }
}

#[test]
fn a_stalled_peer_delays_the_others_by_at_most_a_deadline() {
    for method in all() {
        for victim in &method.victims {
            let fault = slow(*victim, 0.5, 1000.0, 60.0);
            let report = method.run(60, &format!("{QUIET}{fault}"));
            // The others finished long before it woke up.
            intact(&method, &report);
            assert!(waits_are_bounded(&report), "{}{report}", method.strategy);
        }
    }
}

/// A peer that is one or two rounds ahead waits for the others. They need not wait for it, because
/// its sums have already arrived.
#[test]
fn rounds_that_differ_by_one_or_two_are_caught_up_and_not_waited_for_on_both_ends() {
    for method in relays() {
        let undisturbed = method.run(300, QUIET).virtual_s;
        for peer in 0..7 {
            for factor in [8.0, 12.0, 16.0] {
                let fault = slow(peer, 1.0, factor, 0.02);
                let report = method.run(300, &format!("{QUIET}{fault}"));
                let lost = report.virtual_s - undisturbed;
                let what = format!("{}{fault}", method.strategy);
                assert!(lost < 2.0, "{what}: {lost} s: {report}");
            }
        }
    }
}

/// Of copies: a difference that is nonsense moves no copy. It is dropped, and the copy told whole.
#[test]
fn nonsense_is_refused_and_the_others_go_on() {
    for method in all() {
        for lie in ["garbage", "truncated", "flipped-bit"] {
            let report = method.run(30, &format!("{QUIET}{}", nonsense(lie)));
            assert!(report.counters.lies > 0, "{}{report}", method.strategy);
            assert!(
                report.live >= method.peers - 1,
                "{}{report}",
                method.strategy
            );
        }
    }
}
