//! The `[network]` table: links of machines, sites, and changes over time.

use super::check::Checker;
use super::{Change, Distance, Labels, NetworkSpec, ScenarioError, SiteSpec};
use crate::net::Transport;
use murmurate_protocol::{Site, Time};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawNetwork {
    latency_ms: f64,
    jitter_ms: f64,
    uplink_mbit: Option<f64>,
    downlink_mbit: Option<f64>,
    loss: f64,
    packet_loss: f64,
    transport: RawTransport,
    retry_ms: f64,
    detection_ms: f64,
    bootstrap: usize,
    relays: bool,
    labels: Labels,
    site: Vec<RawSite>,
    between: Vec<RawBetween>,
    pair: Vec<RawPair>,
    trace: Vec<RawTrace>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawTransport {
    #[default]
    Ideal,
    Tcp,
    Quic,
}

/// Machines that are close to each other and share their links to others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSite {
    name: String,
    first: usize,
    last: usize,
    latency_ms: Option<f64>,
    uplink_mbit: Option<f64>,
    downlink_mbit: Option<f64>,
    wan_uplink_mbit: Option<f64>,
    wan_downlink_mbit: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBetween {
    sites: [String; 2],
    latency_ms: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPair {
    peers: [usize; 2],
    latency_ms: f64,
}

/// Capacities of a machine's links over time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTrace {
    peer: usize,
    at_s: Vec<f64>,
    uplink_mbit: Option<Vec<f64>>,
    downlink_mbit: Option<Vec<f64>>,
}

impl Default for RawNetwork {
    fn default() -> Self {
        Self {
            latency_ms: 10.0,
            jitter_ms: 0.0,
            uplink_mbit: None,
            downlink_mbit: None,
            loss: 0.0,
            packet_loss: 0.0,
            transport: RawTransport::Ideal,
            retry_ms: 200.0,
            detection_ms: 500.0,
            bootstrap: 3,
            relays: true,
            labels: Labels::None,
            site: Vec::new(),
            between: Vec::new(),
            pair: Vec::new(),
            trace: Vec::new(),
        }
    }
}

fn rate(check: &Checker<'_>, key: &str, mbit: Option<f64>) -> Result<Option<f64>, ScenarioError> {
    mbit.map(|mbit| check.rate(key, mbit)).transpose()
}

pub(super) fn network(
    raw: &RawNetwork,
    peers: usize,
    check: &Checker<'_>,
) -> Result<NetworkSpec, ScenarioError> {
    // Beyond 0.9 hardly any link completes its handshake.
    let loss = check.within("network.loss", raw.loss, (0.0, 0.9))?;
    if raw.bootstrap == 0 {
        return Err(check.refuse("network.bootstrap", "is 0: no machine would know another"));
    }
    Ok(NetworkSpec {
        latency: check.milliseconds("network.latency_ms", raw.latency_ms)?,
        jitter: check.milliseconds("network.jitter_ms", raw.jitter_ms)?,
        uplink: rate(check, "network.uplink_mbit", raw.uplink_mbit)?,
        downlink: rate(check, "network.downlink_mbit", raw.downlink_mbit)?,
        loss,
        // Beyond this a transport makes almost no progress.
        packet_loss: check.within("network.packet_loss", raw.packet_loss, (0.0, 0.5))?,
        transport: match raw.transport {
            RawTransport::Ideal => Transport::Ideal,
            RawTransport::Tcp => Transport::Tcp,
            RawTransport::Quic => Transport::Quic,
        },
        retry: check.milliseconds("network.retry_ms", raw.retry_ms)?,
        detection: check.milliseconds("network.detection_ms", raw.detection_ms)?,
        bootstrap: raw.bootstrap,
        relays: raw.relays,
        sites: sites(raw, peers, check)?,
        labels: raw.labels,
        between: between(raw, check)?,
        pairs: pairs(&raw.pair, peers, check)?,
        changes: changes(&raw.trace, peers, check)?,
    })
}

fn sites(
    network: &RawNetwork,
    peers: usize,
    check: &Checker<'_>,
) -> Result<Vec<SiteSpec>, ScenarioError> {
    let raw = &network.site;
    let mut sites: Vec<SiteSpec> = Vec::with_capacity(raw.len());
    for (index, site) in raw.iter().enumerate() {
        let key = |leaf: &str| format!("network.site[{index}].{leaf}");
        check.peer(&key("first"), site.first, peers)?;
        check.peer(&key("last"), site.last, peers)?;
        if site.first > site.last {
            let reason = format!("is {}: before `first`, {}", site.last, site.first);
            return Err(check.refuse(&key("last"), reason));
        }
        let range = site.first..site.last + 1;
        let shares =
            |other: &SiteSpec| other.peers.start < range.end && range.start < other.peers.end;
        if sites.iter().any(shares) {
            return Err(check.refuse(&key("first"), "is in another site already"));
        }
        if raw[..index].iter().any(|other| other.name == site.name) {
            let reason = format!("is `{}`: another site's name", site.name);
            return Err(check.refuse(&key("name"), reason));
        }
        if network.labels == Labels::Configured && Site::new(&site.name).is_err() {
            let reason = format!(
                "is `{}`: a label has 1 to 32 of a-z, 0-9, `.`, `_`, `-`",
                site.name
            );
            return Err(check.refuse(&key("name"), reason));
        }
        let latency = site.latency_ms;
        sites.push(SiteSpec {
            name: site.name.clone(),
            peers: range,
            latency: latency
                .map(|ms| check.milliseconds(&key("latency_ms"), ms))
                .transpose()?,
            uplink: rate(check, &key("uplink_mbit"), site.uplink_mbit)?,
            downlink: rate(check, &key("downlink_mbit"), site.downlink_mbit)?,
            wan_uplink: rate(check, &key("wan_uplink_mbit"), site.wan_uplink_mbit)?,
            wan_downlink: rate(check, &key("wan_downlink_mbit"), site.wan_downlink_mbit)?,
        });
    }
    Ok(sites)
}

fn between(raw: &RawNetwork, check: &Checker<'_>) -> Result<Vec<Distance>, ScenarioError> {
    let entry = |(index, between): (usize, &RawBetween)| {
        let key = |leaf: &str| format!("network.between[{index}].{leaf}");
        let site = |name: &String| {
            let found = raw.site.iter().position(|site| site.name == *name);
            found.ok_or_else(|| {
                check.refuse(
                    &key("sites"),
                    format!("names `{name}`: there is no such site"),
                )
            })
        };
        let [a, b] = &between.sites;
        let latency = check.milliseconds(&key("latency_ms"), between.latency_ms)?;
        Ok(((site(a)?, site(b)?), latency))
    };
    raw.between.iter().enumerate().map(entry).collect()
}

fn pairs(
    raw: &[RawPair],
    peers: usize,
    check: &Checker<'_>,
) -> Result<Vec<Distance>, ScenarioError> {
    let entry = |(index, pair): (usize, &RawPair)| {
        let key = |leaf: &str| format!("network.pair[{index}].{leaf}");
        let [a, b] = pair.peers;
        check.peer(&key("peers"), a, peers)?;
        check.peer(&key("peers"), b, peers)?;
        if a == b {
            return Err(check.refuse(&key("peers"), "are the same machine"));
        }
        let latency = check.milliseconds(&key("latency_ms"), pair.latency_ms)?;
        Ok(((a, b), latency))
    };
    raw.iter().enumerate().map(entry).collect()
}

fn changes(
    raw: &[RawTrace],
    peers: usize,
    check: &Checker<'_>,
) -> Result<Vec<Change>, ScenarioError> {
    let mut changes = Vec::new();
    for (index, trace) in raw.iter().enumerate() {
        let key = |leaf: &str| format!("network.trace[{index}].{leaf}");
        let peer = check.peer(&key("peer"), trace.peer, peers)?;
        let column = |leaf: &str, rates: &Option<Vec<f64>>| match rates {
            None => Ok(vec![None; trace.at_s.len()]),
            Some(rates) if rates.len() == trace.at_s.len() => rates
                .iter()
                .map(|mbit| check.rate(&key(leaf), *mbit).map(Some))
                .collect(),
            Some(rates) => {
                let reason = format!("has {} values for {} times", rates.len(), trace.at_s.len());
                Err(check.refuse(&key(leaf), reason))
            }
        };
        let up = column("uplink_mbit", &trace.uplink_mbit)?;
        let down = column("downlink_mbit", &trace.downlink_mbit)?;
        if !trace.at_s.is_sorted() {
            return Err(check.refuse(&key("at_s"), "goes back in time"));
        }
        for ((at, uplink), downlink) in trace.at_s.iter().zip(up).zip(down) {
            changes.push(Change {
                peer,
                at: Time::ZERO + check.seconds(&key("at_s"), *at)?,
                uplink,
                downlink,
            });
        }
    }
    Ok(changes)
}
