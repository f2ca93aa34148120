//! Grids whose machines know their sites: rows within sites, and little between them.

mod common;

use murmurate_protocol::limits;
use murmurate_sim::Report;
use std::collections::BTreeMap;

/// Values of the model of a timing run, as f32.
const MODEL: u64 = 4 * 1_000_000;

/// Sites of equally many machines, 40 ms apart, with 100 Mbit/s to the others. Neighbours by number are
/// at different sites: machine i is at site i mod `sites` through `interleaved`.
fn text(
    peers: usize,
    row: usize,
    rounds: u64,
    (sites, labels): (usize, &str),
    more: &str,
) -> String {
    let each = peers / sites;
    let site = |index: usize| {
        let (first, last) = (index * each, (index + 1) * each - 1);
        format!(
            "[[network.site]]\nname = \"site-{index}\"\nfirst = {first}\nlast = {last}\n\
             latency_ms = 0.5\nwan_uplink_mbit = 200.0\nwan_downlink_mbit = 200.0\n"
        )
    };
    let all: String = (0..sites).map(site).collect();
    format!(
        "seed = 3\npeers = {peers}\nrounds = {rounds}\nevaluate_every = 1000\n[task]\n\
         kind = \"timing\"\nparameters = 1_000_000\n\
         [strategy]\npreset = \"diloco\"\n[strategy.compression]\ncodec = \"none\"\n\
         [strategy.agreement]\ngrouping = \"grid\"\nrow = {row}\n\
         [strategy.deadlines]\nfloor_ms = 200\ninitial_ms = 20000\nceiling_ms = 30000\n\
         [network]\nlatency_ms = 20.0\nuplink_mbit = 1000.0\ndownlink_mbit = 1000.0\n\
         detection_ms = 300.0\nlabels = \"{labels}\"\n[compute]\nstep_ms = 5.0\n{all}{more}"
    )
}

fn run(text: &str) -> Report {
    common::run(text, None)
}

#[test]
fn between_sites_a_row_sends_two_models_a_round() {
    for (peers, row, sites) in [(8, 4, 2), (8, 2, 2), (8, 2, 4), (16, 4, 4), (12, 4, 2)] {
        let runs = ["none", "configured", "measured"].map(|labels| {
            let [first, last] = [2, 6].map(|rounds| run(&text(peers, row, rounds, (sites, labels), "")));
            let bytes = (last.counters.bytes_wan - first.counters.bytes_wan) as f64 / 4.0;
            let models = bytes / MODEL as f64 / (peers as f64 / row as f64);
            println!("{peers} peers, rows of {row}, {sites} sites, {labels}: {models:.2} models per row and round, {:.2} s, {:.2} s a round, seats {:?}", last.virtual_s, (last.virtual_s - first.virtual_s) / 4.0, seats(&last));
            (models, last)
        });
        let _ = limits::GROUP_MEMBERS_MAX;
        let _ = runs;
    }
}

fn seats(report: &Report) -> BTreeMap<u32, Vec<u32>> {
    let mut rows: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (peer, (row, _)) in &report.counters.seats {
        let bytes = peer.as_bytes();
        let index = u32::from_le_bytes([bytes[28], bytes[29], bytes[30], bytes[31]]);
        rows.entry(*row).or_default().push(index);
    }
    rows
}
