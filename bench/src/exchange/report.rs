//! What a benchmark of exchanges reports.

use comfy_table::{Table, presets::UTF8_FULL_CONDENSED};
use murmurate_net::emulate::LinkSpec;
use murmurate_node::progress::bytes;
use serde::{Deserialize, Serialize};

/// One peer's figures, as its process prints them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerTimes {
    /// Seconds of every round after the first, from one inner step to the next.
    pub round_s: Vec<f64>,
    /// CPU seconds of the process in each of them.
    pub cpu_s: Vec<f64>,
    /// Root mean square of (anchor - expected mean) over that of the mean, in the last round.
    pub relative_error: f64,
    /// Digest of the anchor after the last round.
    pub digest: Option<String>,
    /// Bytes sent on the wire, all rounds.
    pub wire_bytes_sent: u64,
    /// Bytes received on the wire, all rounds.
    pub wire_bytes_received: u64,
    /// Resident bytes at the most.
    pub peak_rss_bytes: Option<u64>,
    /// Exchanges that were given up.
    pub voids: u64,
}

/// All peers' figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ExchangeReport {
    /// Version of the program.
    pub version: String,
    /// Peers.
    pub nodes: usize,
    /// Parameters of the model that was averaged.
    pub params: u64,
    /// The codec.
    pub codec: String,
    /// Rounds that count: one more came first, and is left out.
    pub rounds: u64,
    /// The emulated link before every peer, as `--link` says it.
    pub link: Option<String>,
    /// Seconds of a round: the median over rounds of the slowest peer's.
    pub round_s: f64,
    /// CPU seconds of one peer in one round: the mean.
    pub cpu_s_per_peer: f64,
    /// Bytes that one peer sent on the wire in one round: the mean.
    pub wire_bytes_per_peer: u64,
    /// Resident bytes at the most: the largest.
    pub peak_rss_bytes: Option<u64>,
    /// 4 bytes x parameters over the seconds of a round, in MB/s.
    pub payload_mb_s: f64,
    /// Whether all peers ended with the same bits.
    pub digests_equal: bool,
    /// The largest distance from the mean that was due, relative.
    pub relative_error: f64,
    /// Peer by peer.
    pub peers: Vec<PeerTimes>,
}

impl ExchangeReport {
    /// Sums peers up.
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
        let round_s = median(slowest.collect());
        let cpu: f64 = peers.iter().flat_map(|p| &p.cpu_s).sum();
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
            wire_bytes_per_peer: (sent as f64 / (nodes as f64 * (rounds + 2) as f64)) as u64,
            peak_rss_bytes: peers.iter().filter_map(|p| p.peak_rss_bytes).max(),
            payload_mb_s: 4e-6 * params as f64 / round_s.max(f64::MIN_POSITIVE),
            digests_equal: first.is_some() && peers.iter().all(|p| p.digest == first),
            relative_error: peers.iter().map(|p| p.relative_error).fold(0.0, f64::max),
            peers,
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// For people.
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
        "wire/peer",
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
        bytes(report.wire_bytes_per_peer),
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
            wire_bytes_sent: 400,
            digest: Some(digest.to_owned()),
            ..PeerTimes::default()
        };
        let peers = vec![peer([1.0, 5.0, 2.0], "a"), peer([3.0, 1.0, 1.0], "a")];
        let report = ExchangeReport::new(2, 1_000_000, "f32", 3, None, peers.clone());
        assert_eq!((report.round_s, report.cpu_s_per_peer), (3.0, 1.0));
        assert_eq!(report.wire_bytes_per_peer, 80);
        assert!(report.digests_equal);
        let apart = vec![peers[0].clone(), peer([1.0; 3], "b")];
        assert!(!ExchangeReport::new(2, 1, "f32", 3, None, apart).digests_equal);
    }
}
