//! The report of a benchmark of joins.

use super::options::JoinOptions;
use super::watch::{Ended, Joined};
use crate::median;
use comfy_table::{Table, presets::UTF8_FULL_CONDENSED};
use murmurate_node::progress::bytes;
use serde::Serialize;

/// How long a newcomer took, and what that cost the donors.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JoinReport {
    /// Version of the program.
    pub version: String,
    /// Number of peers that were in rounds.
    pub peers: usize,
    /// Number of parameters of the model.
    pub params: u64,
    /// The preset whose state was taken over.
    pub preset: String,
    /// Donors from which the state came at once.
    pub donors: u32,
    /// States that were fetched; more than one if the first was too old in the end.
    pub states: u32,
    /// The share of the state that an earlier life of the newcomer had fetched when it was killed.
    pub killed_at: Option<f64>,
    /// Seconds from the first question to a donor until a state was offered: it is written while
    /// the donors train, or when their round has ended.
    pub offer_s: f64,
    /// Seconds of the fetch; `None` below the 0.05 s from which the event log has waits.
    pub fetch_s: Option<f64>,
    /// Seconds from the last chunk until the newcomer trained: the state is loaded, and the rounds
    /// that ended meanwhile are replayed. `None` where the end of the fetch is not known.
    pub ready_s: Option<f64>,
    /// The sum of these.
    pub total_s: f64,
    /// Median duration of a donor's round before the newcomer came, seconds.
    pub round_s_before: f64,
    /// Median duration of a donor's rounds from then on, until one ended after the newcomer trained, seconds.
    pub round_s_beside: f64,
    /// Largest peak of resident bytes of a donor.
    pub donor_peak_rss_bytes: Option<u64>,
    /// Peak of resident bytes of the newcomer.
    pub newcomer_peak_rss_bytes: Option<u64>,
}

impl JoinReport {
    pub(super) fn new(
        options: &JoinOptions,
        joined: Joined,
        (before, after): (&[Ended], &[Ended]),
        peaks: &[Option<u64>],
        killed_at: Option<f64>,
    ) -> Self {
        let seconds = |rounds: &[Ended]| {
            let seconds = rounds.iter().map(|(_, s)| *s);
            median(seconds.collect()).unwrap_or(0.0)
        };
        let beside = after.get(before.len()..).unwrap_or_default();
        let (donors, newcomer) = peaks.split_at(options.donors.min(peaks.len()));
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            peers: options.donors,
            params: options.params,
            preset: options.preset.clone(),
            donors: joined.donors,
            states: joined.states,
            killed_at,
            offer_s: joined.offered - joined.asked,
            fetch_s: joined.fetched.map(|at| at - joined.offered),
            ready_s: joined.fetched.map(|at| joined.trains - at),
            total_s: joined.trains - joined.asked,
            // The first round warms up.
            round_s_before: seconds(before.get(1..).unwrap_or_default()),
            round_s_beside: seconds(beside),
            donor_peak_rss_bytes: donors.iter().copied().flatten().max(),
            newcomer_peak_rss_bytes: newcomer.first().copied().flatten(),
        }
    }
}

/// The report as a table for people.
pub fn join_table(report: &JoinReport) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header([
        "params",
        "donors",
        "states",
        "offer s",
        "fetch s",
        "ready s",
        "total s",
        "round s",
        "beside s",
        "donor RSS",
        "newcomer RSS",
    ]);
    let seconds = |s: Option<f64>| s.map_or_else(|| "-".to_owned(), |s| format!("{s:.2}"));
    let peak = |peak: Option<u64>| peak.map_or_else(|| "-".to_owned(), bytes);
    table.add_row([
        report.params.to_string(),
        format!("{} of {}", report.donors, report.peers),
        report.states.to_string(),
        format!("{:.2}", report.offer_s),
        seconds(report.fetch_s),
        seconds(report.ready_s),
        format!("{:.2}", report.total_s),
        format!("{:.2}", report.round_s_before),
        format!("{:.2}", report.round_s_beside),
        peak(report.donor_peak_rss_bytes),
        peak(report.newcomer_peak_rss_bytes),
    ]);
    table
}
