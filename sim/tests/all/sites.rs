//! Grids whose machines know their sites: rows within sites, and little between them. The simulator
//! checks after every event that all peers hold the same bits.

use crate::common::{cut_off, intact, joins_at};
use murmurate_sim::Report;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of the model of a timing run, as f32.
const MODEL: f64 = 4e6;

/// Sites of equally many machines, 40 ms apart, that share 200 Mbit/s to the others.
#[derive(Clone, Copy)]
struct Swarm {
    peers: usize,
    row: usize,
    sites: usize,
    labels: &'static str,
}

impl Swarm {
    fn new(peers: usize, row: usize, sites: usize) -> Self {
        let labels = "measured";
        Self {
            peers,
            row,
            sites,
            labels,
        }
    }

    fn of(&self, peer: usize) -> usize {
        peer / (self.peers / self.sites)
    }

    fn text(&self, rounds: u64, more: &str) -> String {
        let Self {
            peers,
            row,
            sites,
            labels,
        } = self;
        let each = peers / sites;
        let site = |index: usize| {
            let (first, last) = (index * each, (index + 1) * each - 1);
            format!(
                "[[network.site]]\nname = \"site-{index}\"\nfirst = {first}\nlast = {last}\n\
                 latency_ms = 0.5\nwan_uplink_mbit = 200.0\nwan_downlink_mbit = 200.0\n"
            )
        };
        let all: String = (0..*sites).map(site).collect();
        format!(
            "seed = 3\npeers = {peers}\nrounds = {rounds}\nevaluate_every = 1000\n[task]\n\
             kind = \"timing\"\nparameters = 1_000_000\n\
             [strategy]\npreset = \"diloco\"\n[strategy.compression]\ncodec = \"f32\"\n\
             [strategy.agreement]\ngrouping = \"grid\"\nrow = {row}\n\
             [strategy.deadlines]\nfloor_ms = 500\ninitial_ms = 5000\nceiling_ms = 10000\n\
             [network]\nlatency_ms = 20.0\nuplink_mbit = 1000.0\ndownlink_mbit = 1000.0\n\
             detection_ms = 300.0\nlabels = \"{labels}\"\n[compute]\nstep_ms = 5.0\n{all}{more}"
        )
    }

    fn run(&self, rounds: u64, more: &str) -> Report {
        crate::common::run(&self.text(rounds, more), None)
    }

    /// The last row of each machine, and its place in it.
    fn seats(&self, report: &Report) -> BTreeMap<usize, (u32, u32)> {
        let index = |id: &[u8; 32]| u32::from_le_bytes([id[28], id[29], id[30], id[31]]) as usize;
        let seats = report.counters.seats.iter();
        seats
            .map(|(peer, seat)| (index(peer.as_bytes()), *seat))
            .collect()
    }

    /// How many of the rows of some machines hold several sites.
    fn mixed(&self, report: &Report, except: &[usize]) -> usize {
        let mut rows: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
        for (peer, (row, _)) in self.seats(report) {
            if !except.contains(&peer) {
                rows.entry(row).or_default().insert(self.of(peer));
            }
        }
        rows.values().filter(|sites| sites.len() > 1).count()
    }
}

/// Models between sites per row and round, and seconds of a round.
fn cost(swarm: Swarm) -> (f64, f64, Report) {
    let [first, last] = [2, 6].map(|rounds| swarm.run(rounds, ""));
    let bytes = (last.counters.bytes_wan - first.counters.bytes_wan) as f64 / 4.0;
    let rows = swarm.peers.div_ceil(swarm.row) as f64;
    let seconds = (last.virtual_s - first.virtual_s) / 4.0;
    (bytes / MODEL / rows, seconds, last)
}

#[test]
fn two_models_per_row_and_round_leave_a_site_and_not_two_per_peer() {
    for (peers, row, sites) in [(8, 4, 2), (8, 2, 2), (8, 2, 4), (16, 4, 4), (32, 8, 4)] {
        let swarm = Swarm::new(peers, row, sites);
        let costs = ["none", "configured", "measured"].map(|labels| {
            let (models, seconds, report) = cost(Swarm { labels, ..swarm });
            println!(
                "{peers} machines, rows of {row}, {sites} sites {labels}: {models:.2} models per row \
                 and round between sites, {seconds:.2} s a round"
            );
            (models, seconds, swarm.mixed(&report, &[]))
        });
        let [(apart, slow, _), known @ ..] = costs;
        let rows = peers as f64 / row as f64;
        for (models, seconds, mixed) in known {
            assert_eq!(mixed, 0);
            // A row pushes its mean to the owners of parts, and its own part to the others.
            let law = 2.0 * (rows - 1.0) / rows;
            assert!(models <= 1.05 * law, "{models} instead of {law}");
            assert!(apart > 1.7 * models, "{apart} without sites, {models} with");
            assert!(seconds < 0.9 * slow, "{seconds} s instead of {slow} s");
        }
    }
}

#[test]
fn what_is_left_of_sites_shares_few_rows() {
    // Six of each site, in rows of four: one row is shared.
    let swarm = Swarm::new(12, 4, 2);
    let (models, _, report) = cost(swarm);
    let (apart, _, without) = cost(Swarm {
        labels: "none",
        ..swarm
    });
    assert_eq!(swarm.mixed(&report, &[]), 1);
    assert_eq!(swarm.mixed(&without, &[]), 2);
    assert!(models < 0.8 * apart, "{models} with sites, {apart} without");
}

/// Machines die at the same time.
fn die(peers: impl IntoIterator<Item = usize>, at_s: f64) -> String {
    let crash = |peer| crate::common::crash_at(peer, at_s);
    peers.into_iter().map(crash).collect()
}

#[test]
fn when_a_whole_site_is_gone_the_others_go_on() {
    let swarm = Swarm::new(16, 4, 4);
    for at_s in [3.0, 3.2, 3.4] {
        for site in 0..4 {
            let report = swarm.run(12, &die(4 * site..4 * site + 4, at_s));
            let counters = &report.counters;
            assert_eq!(report.live, 12, "{report}");
            assert_eq!((counters.voided, counters.rule_breaks), (0, 0), "{report}");
            assert!(counters.rounds_ended >= 12 * 12, "{report}");
            // No place of theirs is taken by a peer of another site: the last row moves as a whole.
            let gone: Vec<usize> = (4 * site..4 * site + 4).collect();
            assert_eq!(swarm.mixed(&report, &gone), 0, "{report}");
        }
    }
}

#[test]
fn a_quarter_of_all_machines_dies_at_once() {
    // One of each of nine sites, so that every row misses another column's result.
    let swarm = Swarm::new(36, 4, 9);
    let seats = swarm.seats(&swarm.run(2, ""));
    for (shift, at_s) in [(0, 3.3), (1, 3.6), (2, 3.9), (3, 4.2)] {
        let dead = (0..9).map(|site| 4 * site + (site + shift) % 4);
        let dead: Vec<usize> = dead.collect();
        let report = swarm.run(12, &die(dead.clone(), at_s));
        let counters = &report.counters;
        assert_eq!((report.live, counters.rule_breaks), (27, 0), "{report}");
        assert!(counters.rounds_ended >= 27 * 12, "{report}");
        // A column of nine that keeps five may leave its shard as it was in one round; one that keeps four
        // does until its dead have left the roll.
        let lost = |column| dead.iter().filter(|peer| seats[*peer].1 == column).count() > 4;
        let rounds = if (0..4).any(lost) { 6 } else { 1 };
        assert!(counters.voided <= 27 * rounds, "{report}");
    }
}

#[test]
fn sites_that_are_cut_off_wait_and_catch_up() {
    // Two of seven sites, which is less than a third.
    let swarm = Swarm::new(28, 4, 7);
    for (cut, lasts_s) in [([0, 1], 2), ([2, 5], 4), ([4, 6], 8)] {
        let peers = cut.into_iter().flat_map(|site| 4 * site..4 * site + 4);
        let split = cut_off(&peers.collect::<Vec<_>>(), 3.3, lasts_s as f64);
        let report = swarm.run(40, &split);
        let counters = &report.counters;
        println!(
            "{cut:?} cut off for {lasts_s} s: {} catch-ups, {:.1} s",
            counters.catch_ups, report.virtual_s
        );
        // All end with the same bits. The eight that are cut off decide nothing: about one round a second.
        assert_eq!((report.live, counters.rule_breaks), (28, 0), "{report}");
        assert!(counters.voided <= 8 * 2 * lasts_s, "{report}");
        assert!(counters.catch_ups >= 8, "{report}");
        assert!(counters.rounds_ended >= 20 * 40, "{report}");
        assert_eq!(swarm.mixed(&report, &[]), 0, "{report}");
    }
}

#[test]
fn newcomers_take_places_beside_their_sites() {
    // Two of each site enter at once, which makes two rows.
    let swarm = Swarm::new(12, 2, 2);
    for at_s in [4.0, 4.3, 4.6] {
        let join = |peer| joins_at(peer, at_s);
        let joins: String = [4, 10, 5, 11].into_iter().map(join).collect();
        let new_rows = ["none", "measured"].map(|labels| {
            let swarm = Swarm { labels, ..swarm };
            let report = swarm.run(40, &joins);
            intact(&report, 12);
            let old: Vec<usize> = (0..4).chain(6..10).collect();
            assert!(swarm.seats(&report).len() == 12, "{report}");
            swarm.mixed(&report, &old)
        });
        assert_eq!(new_rows, [2, 0]);
    }
}

#[test]
fn slow_machines_own_no_parts() {
    // One column of eight sites, of which two send with a twentieth of the others' rate.
    let swarm = Swarm::new(8, 1, 8);
    let round = |labels| {
        let text = Swarm { labels, ..swarm }.text(6, "");
        let text = text.replace("wan_uplink_mbit = 200.0\nwan_downlink_mbit = 200.0\n", "");
        let slow = |text: String, site: &str| {
            let name = format!("name = \"{site}\"\n");
            text.replace(&name, &format!("{name}uplink_mbit = 50.0\n"))
        };
        let text = slow(slow(text, "site-2"), "site-5");
        let text_of = |rounds: u64| text.replace("rounds = 6", &format!("rounds = {rounds}"));
        let [first, last] = [2, 6].map(|rounds| crate::common::run(&text_of(rounds), None));
        assert_eq!(last.counters.voided, 0, "{last}");
        (last.virtual_s - first.virtual_s) / 4.0
    };
    let (apart, known) = (round("none"), round("configured"));
    println!("{apart:.2} s a round, {known:.2} s where the slow own no parts");
    assert!(known < 0.75 * apart, "{known} s instead of {apart} s");
}
