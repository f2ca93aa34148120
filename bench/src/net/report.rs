//! The report of a session, with one entry for each way.

use crate::median;
use crate::net::{Figures, Way};
use serde::Serialize;

/// One transfer of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// The way.
    pub way: Way,
    /// Number of the round, from zero.
    pub round: u32,
    /// The result, if the transfer succeeded.
    pub figures: Option<Figures>,
    /// The error, if the transfer failed.
    pub error: Option<String>,
    /// Bytes that the near end's UDP sockets sent into the emulated link.
    pub link_offered_bytes: Option<u64>,
    /// Bytes of these that the link lost or dropped at its queue.
    pub link_dropped_bytes: Option<u64>,
}

/// All transfers over one way. Values are medians over rounds, `best` is the best round, and
/// round-trip times are taken over all rounds together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WayReport {
    /// Name of the way.
    pub way: String,
    /// Received payload, Mbit/s, without headers.
    pub goodput_mbit_s: f64,
    /// The same in the fastest round.
    pub goodput_best_mbit_s: f64,
    /// CPU seconds of both ends for 1e9 received bytes.
    pub cpu_s_per_gb: f64,
    /// The same in the cheapest round.
    pub cpu_best_s_per_gb: f64,
    /// The part of the near end, which sends.
    pub near_cpu_s_per_gb: f64,
    /// The part of the far end.
    pub far_cpu_s_per_gb: f64,
    /// Time until the connection was usable, milliseconds.
    pub connect_ms: f64,
    /// Median round-trip time of small messages before the transfer, milliseconds.
    pub rtt_idle_ms: Option<f64>,
    /// Their 99th percentile, milliseconds.
    pub rtt_idle_p99_ms: Option<f64>,
    /// Median round-trip time of small messages during the transfer, milliseconds; `None` where none came back
    /// before its end.
    pub rtt_loaded_ms: Option<f64>,
    /// Their 99th percentile, milliseconds.
    pub rtt_loaded_p99_ms: Option<f64>,
    /// Bytes declared lost and sent again, divided by the bytes sent; `None` if the way does not count them.
    pub retransmitted_share: Option<f64>,
    /// Bytes dropped by the emulated link, divided by the bytes sent into it. `None` without a
    /// link, and for TCP, whose bytes the link never drops.
    pub link_dropped_share: Option<f64>,
    /// `goodput_mbit_s` divided by that of raw quinn.
    pub speed_to_quinn: Option<f64>,
    /// `goodput_best_mbit_s` divided by that of raw quinn.
    pub best_speed_to_quinn: Option<f64>,
    /// `cpu_s_per_gb` divided by that of raw quinn.
    pub cpu_to_quinn: Option<f64>,
    /// `cpu_best_s_per_gb` divided by that of raw quinn.
    pub best_cpu_to_quinn: Option<f64>,
    /// Number of transfers that ended without an error.
    pub transfers: usize,
    /// Number of these that the time limit ended before all bytes had arrived.
    pub cut: usize,
    /// The last error of the failed transfers.
    pub error: Option<String>,
}

/// The report of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetReport {
    /// Version of the program.
    pub version: String,
    /// Bytes of each transfer.
    pub bytes: u64,
    /// Time limit of a transfer, seconds.
    pub limit_s: u64,
    /// Number of transfers for each way.
    pub rounds: u32,
    /// The emulated link, in the form of `--link`.
    pub link: Option<String>,
    /// Address of the far end, if it is on another machine.
    pub joined: Option<String>,
    /// The congestion control of `bulk` and `control`. The other ways use their defaults.
    pub congestion: String,
    /// The cipher of `quinn`, `bulk` and `control`.
    pub cipher: String,
    /// Conditions that make the results less reliable.
    pub warnings: Vec<String>,
    /// One entry for each way.
    pub ways: Vec<WayReport>,
    /// One entry for each transfer.
    pub runs: Vec<Run>,
}

impl WayReport {
    /// Combines the transfers over one way.
    #[must_use]
    pub fn new(way: Way, bytes: u64, runs: &[Run]) -> Self {
        let of_way = || runs.iter().filter(|run| run.way == way);
        let all: Vec<&Figures> = of_way().filter_map(|run| run.figures.as_ref()).collect();
        let each = |value: fn(&Figures) -> f64| all.iter().map(|f| value(f)).collect::<Vec<_>>();
        let speeds = each(|f| 8e-6 * f.bytes as f64 / f.seconds.max(1e-9));
        let cpu = each(|f| (f.near_cpu_s + f.far_cpu_s) / gigabytes(f));
        let trips = |of: fn(&Figures) -> &Vec<u32>| {
            let mut all: Vec<f64> = all
                .iter()
                .flat_map(|f| of(f))
                .map(|us| f64::from(*us) / 1e3)
                .collect();
            all.sort_by(f64::total_cmp);
            (quantile(&all, 0.5), quantile(&all, 0.99))
        };
        let (rtt_idle_ms, rtt_idle_p99_ms) = trips(|f| &f.rtt_idle_us);
        let (rtt_loaded_ms, rtt_loaded_p99_ms) = trips(|f| &f.rtt_loaded_us);
        let paths = all.iter().filter_map(|f| f.path);
        let shares = paths
            .map(|path| share(path.lost_bytes, path.sent_bytes))
            .collect();
        let dropped = of_way().filter(|_| way.is_udp());
        let dropped =
            dropped.filter_map(|r| Some(share(r.link_dropped_bytes?, r.link_offered_bytes?)));
        Self {
            way: way.to_string(),
            goodput_best_mbit_s: speeds.iter().copied().fold(0.0, f64::max),
            goodput_mbit_s: median(speeds).unwrap_or(0.0),
            cpu_best_s_per_gb: cpu.iter().copied().reduce(f64::min).unwrap_or(0.0),
            cpu_s_per_gb: median(cpu).unwrap_or(0.0),
            near_cpu_s_per_gb: median(each(|f| f.near_cpu_s / gigabytes(f))).unwrap_or(0.0),
            far_cpu_s_per_gb: median(each(|f| f.far_cpu_s / gigabytes(f))).unwrap_or(0.0),
            connect_ms: median(each(|f| f.connect_s * 1e3)).unwrap_or(0.0),
            rtt_idle_ms,
            rtt_idle_p99_ms,
            rtt_loaded_ms,
            rtt_loaded_p99_ms,
            retransmitted_share: median(shares),
            link_dropped_share: median(dropped.collect()),
            transfers: all.len(),
            cut: all.iter().filter(|f| f.bytes < bytes).count(),
            error: of_way().filter_map(|run| run.error.clone()).next_back(),
            ..Self::default()
        }
    }

    pub(super) fn compare(&mut self, quinn: &Self) {
        let ratio = |ours: f64, theirs: f64| (ours > 0.0 && theirs > 0.0).then_some(ours / theirs);
        self.speed_to_quinn = ratio(self.goodput_mbit_s, quinn.goodput_mbit_s);
        self.best_speed_to_quinn = ratio(self.goodput_best_mbit_s, quinn.goodput_best_mbit_s);
        self.cpu_to_quinn = ratio(self.cpu_s_per_gb, quinn.cpu_s_per_gb);
        self.best_cpu_to_quinn = ratio(self.cpu_best_s_per_gb, quinn.cpu_best_s_per_gb);
    }
}

impl NetReport {
    /// The entry of a way.
    #[must_use]
    pub fn of(&self, way: Way) -> Option<&WayReport> {
        self.ways.iter().find(|report| report.way == way.word())
    }
}

/// One entry for each way, with ratios if raw quinn was measured.
pub(super) fn sum_up(ways: &[Way], bytes: u64, runs: &[Run]) -> Vec<WayReport> {
    let mut reports: Vec<WayReport> = ways
        .iter()
        .map(|way| WayReport::new(*way, bytes, runs))
        .collect();
    let quinn = reports
        .iter()
        .find(|report| report.way == Way::Quinn.word())
        .cloned();
    if let Some(quinn) = quinn {
        reports.iter_mut().for_each(|report| report.compare(&quinn));
    }
    reports
}

fn gigabytes(figures: &Figures) -> f64 {
    (figures.bytes as f64 / 1e9).max(1e-9)
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// The smallest of the sorted values that is at least as large as the fraction `q` of them; `None` if there are none.
fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::PathFigures;

    fn run(way: Way, seconds: f64, bytes: u64) -> Run {
        Run {
            way,
            round: 0,
            figures: Some(Figures {
                bytes,
                seconds,
                near_cpu_s: 0.25,
                far_cpu_s: 0.75,
                rtt_idle_us: vec![100],
                rtt_loaded_us: (1..=100).map(|ms| ms * 1_000).collect(),
                path: Some(PathFigures {
                    sent_bytes: 1000,
                    lost_bytes: 50,
                    ..PathFigures::default()
                }),
                ..Figures::default()
            }),
            error: None,
            link_offered_bytes: Some(200),
            link_dropped_bytes: Some(4),
        }
    }

    #[test]
    fn a_way_is_summed_up_over_its_own_transfers() {
        let mut failed = run(Way::Bulk, 1.0, 1);
        failed.figures = None;
        failed.error = Some("no".into());
        let runs = [
            run(Way::Bulk, 2.0, 1_000_000_000),
            run(Way::Quinn, 1.0, 1_000_000_000),
            run(Way::Bulk, 4.0, 1_000_000_000),
            run(Way::Bulk, 8.0, 500_000_000),
            failed,
        ];
        let reports = sum_up(&[Way::Quinn, Way::Bulk], 1_000_000_000, &runs);
        let bulk = &reports[1];
        assert_eq!(
            (bulk.transfers, bulk.cut, bulk.error.as_deref()),
            (3, 1, Some("no"))
        );
        assert!((bulk.goodput_mbit_s - 2_000.0).abs() < 1e-6);
        assert!((bulk.goodput_best_mbit_s - 4_000.0).abs() < 1e-6);
        assert!((bulk.cpu_s_per_gb - 1.0).abs() < 1e-9);
        assert_eq!(
            (bulk.rtt_idle_ms, bulk.rtt_loaded_ms, bulk.rtt_loaded_p99_ms),
            (Some(0.1), Some(50.0), Some(99.0))
        );
        assert_eq!(
            (bulk.retransmitted_share, bulk.link_dropped_share),
            (Some(0.05), Some(0.02))
        );
        assert!((bulk.speed_to_quinn.unwrap() - 0.25).abs() < 1e-9);
        assert!((bulk.best_speed_to_quinn.unwrap() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn what_was_not_measured_has_no_ratio_and_tcp_no_dropped_share() {
        let runs = [run(Way::Tcp, 1.0, 10)];
        let reports = sum_up(&[Way::Tcp], 10, &runs);
        assert_eq!(
            (reports[0].speed_to_quinn, reports[0].link_dropped_share),
            (None, None)
        );
    }
}
