//! Machines that say that they take part and contribute nothing: the others soon go on without them.
//! One that was away returns once it contributes.

use murmurate_sim::Report;

/// The rounds of a run: far more than the others wait.
const ROUNDS: u64 = 400;

/// Seconds that the rounds may take in which the others still wait.
const UNTIL_THEN_S: f64 = 10.0;

/// Machines of which the last ones lie in a way until they crash.
fn text(more: &str, peers: usize, liars: usize, (lie, until_s): (&str, f64)) -> String {
    let mut text = format!(
        "seed = 3\npeers = {peers}\nrounds = {ROUNDS}\n\
         [task]\nkind = \"quadratic\"\ndim = 64\n\
         [strategy]\npreset = \"local-sgd\"\n{more}\
         [strategy.deadlines]\nfloor_ms = 300\ninitial_ms = 1000\nceiling_ms = 60000\n\
         [network]\nlatency_ms = 10.0\njitter_ms = 3.0\nbootstrap = 32\n"
    );
    for liar in peers - liars..peers {
        text += &crate::common::lies(liar, 0.05, until_s, lie);
        // A machine that never takes part never finishes.
        text += &format!("[[fault]]\nkind = \"crash\"\npeer = {liar}\nat_s = {until_s}\n");
    }
    text
}

/// Seconds of virtual time until the honest ones have finished, or until the liars crash.
fn seconds(text: &str) -> f64 {
    let report: Report = crate::common::run(text, None);
    assert_eq!(report.consensus_distance, 0.0, "{report}");
    report.virtual_s
}

const SIGNED: &str = "[strategy.agreement]\nliars = \"max\"\n";
const GATHERED: &str = "[strategy.architecture]\nexchange = \"gathered\"\n";
const SERVER: &str = "[strategy.architecture]\nexchange = \"parameter-server\"\nowners = 2\n";
const RING: &str = "[strategy.architecture]\nexchange = \"all-reduce\"\nschedule = \"ring\"\n";

#[test]
fn rounds_go_on_without_members_that_contribute_nothing() {
    for more in [
        "",
        SIGNED,
        GATHERED,
        &format!("{GATHERED}{SIGNED}"),
        SERVER,
        RING,
    ] {
        for liars in [1, 2] {
            let alone = seconds(&text(more, 8 - liars, 0, ("silent", 0.0)));
            for lie in ["silent", "withhold"] {
                let most = alone / 0.8 + UNTIL_THEN_S;
                let took = seconds(&text(more, 8, liars, (lie, most)));
                println!("{more:?} {liars} {lie}: {took:.1} s of {most:.1} s");
                assert!(took <= most + 1.0, "{more} {liars} {lie}: {took} {most}");
            }
        }
    }
}

#[test]
fn a_machine_that_was_away_contributes_again() {
    let away = text("", 8, 0, ("silent", 0.0)) + &crate::common::lies(7, 0.05, 20.0, "silent");
    let report = crate::common::run(&away, None);
    assert_eq!(report.consensus_distance, 0.0, "{report}");
    assert_eq!(report.live, 8, "{report}");
}

/// A machine that leaves says so, also in the middle of an exchange: none of the others waits for it until a
/// deadline.
#[test]
fn no_wait_expires_for_a_machine_that_leaves() {
    for attempt in 0..100 {
        let at_s = 1.0 + f64::from(attempt) * 0.037;
        let text = format!(
            "seed = {attempt}\npeers = 3\nrounds = 20\n\
             [task]\nkind = \"quadratic\"\ndim = 64\n\
             [strategy]\npreset = \"diloco\"\n\
             [strategy.synchronization]\ninner_steps = 24\n\
             [network]\nlatency_ms = 5.0\njitter_ms = 8.0\nbootstrap = 32\n\
             [[fault]]\nkind = \"leave\"\npeer = 2\nat_s = {at_s}\n"
        );
        let report = crate::common::run(&text, None);
        assert_eq!(report.counters.waits_expired, 0, "{report}");
    }
}
