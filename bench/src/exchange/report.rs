//! The report of a benchmark of exchanges.

use crate::median;
use comfy_table::{Table, presets::UTF8_FULL_CONDENSED};
use murmurate_net::emulate::LinkSpec;
use murmurate_node::progress::bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The results of one peer, as its process prints them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerTimes {
    /// Duration of each round after the first, seconds, from one inner step to the next.
    pub round_s: Vec<f64>,
    /// CPU time of the process in each of these rounds, seconds.
    pub cpu_s: Vec<f64>,
    /// Pages that the process touched for the first time in each of these rounds.
    pub fresh_pages: Vec<u64>,
    /// Root mean square of (anchor - expected mean), divided by that of the expected mean, in the last round.
    pub relative_error: f64,
    /// Digest of the anchor after the last round.
    pub digest: Option<String>,
    /// Bytes sent on the network in all rounds.
    pub wire_bytes_sent: u64,
    /// Bytes received on the network in all rounds.
    pub wire_bytes_received: u64,
    /// Peak resident bytes.
    pub peak_rss_bytes: Option<u64>,
    /// Number of exchanges without an agreed result.
    pub voids: u64,
    /// Transport of slices at the end, for each peer to which they were sent.
    pub bulk: Vec<String>,
}

/// The combined results of all peers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ExchangeReport {
    /// Version of the program.
    pub version: String,
    /// Number of peers.
    pub nodes: usize,
    /// Number of parameters of the averaged model.
    pub params: u64,
    /// The codec.
    pub codec: String,
    /// Number of measured rounds. One more round was run before them.
    pub rounds: u64,
    /// The emulated link of every peer, in the form of `--link`.
    pub link: Option<String>,
    /// Duration of a round in seconds: of each round the slowest peer's, of these the median.
    pub round_s: f64,
    /// Mean CPU seconds of a peer in a round.
    pub cpu_s_per_peer: f64,
    /// Mean bytes that a peer sent on the network in a round.
    pub wire_bytes_per_peer: u64,
    /// Transports of slices at the end (`quic`, `tls`), each with its number of links.
    pub bulk: BTreeMap<String, usize>,
    /// Largest peak of resident bytes of a peer.
    pub peak_rss_bytes: Option<u64>,
    /// 4 bytes x parameters, divided by the duration of a round, in MB/s.
    pub payload_mb_s: f64,
    /// All peers ended with the same bits.
    pub digests_equal: bool,
    /// The largest relative error of a peer.
    pub relative_error: f64,
    /// The results of each peer.
    pub peers: Vec<PeerTimes>,
}

impl ExchangeReport {
    /// Combines the results of the peers.
    pub fn new(
        nodes: usize,
        params: u64,
        codec: &str,
        rounds: u64,
        link: Option<LinkSpec>,
        peers: Vec<PeerTimes>,
    ) -> Self {
        let slowest = (0..rounds as usize).map(|round| {
            let of_round = peers.iter().filter_map(|p| p.round_s.get(round));
            of_round.copied().fold(0.0, f64::max)
        });
        let round_s = median(slowest.collect()).unwrap_or(0.0);
        let cpu: f64 = peers.iter().flat_map(|p| &p.cpu_s).sum();
        let mut bulk = BTreeMap::new();
        for way in peers.iter().flat_map(|p| &p.bulk) {
            *bulk.entry(way.clone()).or_default() += 1;
        }
        let all = (nodes as f64 * rounds as f64).max(1.0);
        let sent: u64 = peers.iter().map(|p| p.wire_bytes_sent).sum();
        let first = peers.first().and_then(|p| p.digest.clone());
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            nodes,
            params,
            codec: codec.to_owned(),
            rounds,
            link: link.map(|link| link.to_string()),
            round_s,
            cpu_s_per_peer: cpu / all,
            bulk,
            wire_bytes_per_peer: (sent as f64 / (nodes as f64 * (rounds + 2) as f64)) as u64,
            peak_rss_bytes: peers.iter().filter_map(|p| p.peak_rss_bytes).max(),
            payload_mb_s: 4e-6 * params as f64 / round_s.max(f64::MIN_POSITIVE),
            digests_equal: first.is_some() && peers.iter().all(|p| p.digest == first),
            relative_error: peers.iter().map(|p| p.relative_error).fold(0.0, f64::max),
            peers,
        }
    }
}

/// Mean pages that a peer touched for the first time in a round: memory that it did not use again.
fn fresh_pages(peers: &[PeerTimes]) -> u64 {
    let rounds = peers.iter().flat_map(|peer| &peer.fresh_pages);
    rounds.clone().sum::<u64>() / rounds.count().max(1) as u64
}

/// The ways of slices, the most used one first: `tls`, or `quic 8, tls 4`.
fn over(bulk: &BTreeMap<String, usize>) -> String {
    match bulk.len() {
        0 => "-".to_owned(),
        1 => bulk.keys().cloned().collect(),
        _ => {
            let mut all: Vec<_> = bulk.iter().collect();
            all.sort_by_key(|(_, links)| std::cmp::Reverse(**links));
            let words = all.iter().map(|(way, links)| format!("{way} {links}"));
            words.collect::<Vec<_>>().join(", ")
        }
    }
}

/// The report as a table for people.
pub fn table(report: &ExchangeReport) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header([
        "codec",
        "params",
        "peers",
        "s/round",
        "payload MB/s",
        "CPU s/peer",
        "fresh pages",
        "wire/peer",
        "over",
        "peak RSS",
        "rel. error",
        "same bits",
    ]);
    table.add_row([
        report.codec.clone(),
        report.params.to_string(),
        report.nodes.to_string(),
        format!("{:.3}", report.round_s),
        format!("{:.0}", report.payload_mb_s),
        format!("{:.3}", report.cpu_s_per_peer),
        fresh_pages(&report.peers).to_string(),
        bytes(report.wire_bytes_per_peer),
        over(&report.bulk),
        report.peak_rss_bytes.map_or_else(|| "-".to_owned(), bytes),
        format!("{:.1e}", report.relative_error),
        report.digests_equal.to_string(),
    ]);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_lasts_as_long_as_its_slowest_peer() {
        let peer = |round_s: [f64; 3], digest: &str| PeerTimes {
            round_s: round_s.to_vec(),
            cpu_s: vec![1.0; 3],
            fresh_pages: vec![30, 0, 0],
            wire_bytes_sent: 400,
            digest: Some(digest.to_owned()),
            bulk: vec![
                "tls".to_owned(),
                digest.replace('a', "tls").replace('b', "quic"),
            ],
            ..PeerTimes::default()
        };
        let peers = vec![peer([1.0, 5.0, 2.0], "a"), peer([3.0, 1.0, 1.0], "a")];
        let report = ExchangeReport::new(2, 1_000_000, "f32", 3, None, peers.clone());
        assert_eq!((report.round_s, report.cpu_s_per_peer), (3.0, 1.0));
        assert_eq!(fresh_pages(&report.peers), 10);
        assert_eq!(report.wire_bytes_per_peer, 80);
        assert!(report.digests_equal);
        assert_eq!(over(&report.bulk), "tls");
        let apart = vec![peers[0].clone(), peer([1.0; 3], "b")];
        let apart = ExchangeReport::new(2, 1, "f32", 3, None, apart);
        assert!(!apart.digests_equal);
        assert_eq!(over(&apart.bulk), "tls 3, quic 1");
    }
}
