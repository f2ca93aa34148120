//! Builds a checked [`Config`] from a file and flags. Flags override the file, and every error
//! names the line or the flag.

use super::address::{Use, addresses};
use super::error::{Wrong, explain};
use super::overrides::Overrides;
use super::raw::{RawConfig, RawRate};
use super::trainers::{check_attached, island};
use super::watch::watch;
use super::{Config, ConfigError, DaemonConfig, NetworkConfig, RunConfig};
use crate::net::Proxy;
use murmurate_net::congestion::Limits;
use murmurate_protocol::Site;
use murmurate_protocol::limits::SITE_BYTES_MAX;
use murmurate_protocol::vitals::DaemonName;
use murmurate_protocol::wire::WireVersions;
use murmurate_strategies::grid::Strategy;
use murmurate_tasks::TaskConfig;
use murmurate_tasks::data::Shards;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use toml::{Table, Value};

/// The longest duration that the file may contain, in seconds: one year.
const SECONDS_MAX: f64 = 365.0 * 86_400.0;

impl Config {
    /// Reads `path`, or takes the defaults if it is `None`, and applies the flags.
    ///
    /// # Errors
    /// The first problem, with its line in the file or its flag.
    pub fn load(path: Option<&Path>, overrides: &Overrides) -> Result<Self, ConfigError> {
        let Some(path) = path else {
            return Self::from_text(Path::new("the default configuration"), "", overrides);
        };
        let text = std::fs::read_to_string(path).map_err(|e| ConfigError::Unreadable {
            path: path.to_owned(),
            reason: e.to_string(),
        })?;
        Self::from_text(path, &text, overrides)
    }

    /// Like [`Config::load`], but parses `text`. Errors name `path` as the file.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn from_text(path: &Path, text: &str, overrides: &Overrides) -> Result<Self, ConfigError> {
        let in_file = |e: &toml::de::Error| ConfigError::from_toml(path, text, e);
        // First the file alone, so that an error names a line of the file.
        toml::from_str::<RawConfig>(text).map_err(|e| in_file(&e))?;
        let mut table: Table = toml::from_str(text).map_err(|e| in_file(&e))?;
        let mut config = checked(&table).map_err(|wrong| wrong.in_file(path, text))?;
        // Then each variable and flag alone, so that an error names it.
        for (place, [section, key], value) in overrides.all() {
            if key == "kind" && kind_of(&table) != value.as_str() {
                // The keys of the file's own task say nothing of this one.
                table.remove(&section);
            }
            if let Some(inner) = section_of(&mut table, &section) {
                inner.insert(key, value);
            }
            config = checked(&table).map_err(|wrong| ConfigError::Invalid {
                place,
                message: wrong.message,
            })?;
        }
        Ok(config)
    }
}

/// The task's kind, where the file says it.
fn kind_of(table: &Table) -> Option<&str> {
    table.get("task")?.get("kind")?.as_str()
}

/// The table `name`, created if it is missing. The first pass has checked that it is a table.
fn section_of<'a>(table: &'a mut Table, name: &str) -> Option<&'a mut Table> {
    let fresh = || {
        let mut inner = Table::new();
        if name == "task" {
            inner.insert(
                "kind".to_owned(),
                Value::String("image-classifier".to_owned()),
            );
        }
        Value::Table(inner)
    };
    table.entry(name).or_insert_with(fresh).as_table_mut()
}

fn checked(table: &Table) -> Result<Config, Wrong> {
    let mut raw: RawConfig = Value::Table(table.clone())
        .try_into()
        .map_err(|e: toml::de::Error| Wrong::new("", explain(e.message())))?;
    let run = run(&raw)?;
    let task = task(&raw)?;
    let shards = shards(&mut raw, run.seed)?;
    murmurate_tasks::config::validate(&task, &shards).map_err(|e| Wrong::named("shards", &e))?;
    let mut table = raw.strategy.clone().unwrap_or_default();
    let usual = || Value::String(task.usual_preset().to_owned());
    table.entry("preset").or_insert_with(usual);
    let strategy = Strategy::from_table(table, None).map_err(|e| Wrong::named("strategy", &e))?;
    check_attached(&task, &strategy)?;
    let island = island(&raw.island, &strategy)?;
    let network = network(&raw)?;
    let daemon = daemon(&raw)?;
    raw.task = Some(as_table(&task)?);
    raw.strategy =
        Some(toml::from_str(&strategy.to_toml()).map_err(|e| Wrong::new("strategy", e.message()))?);
    // Without the password.
    raw.network.proxy = network.proxy.as_ref().map(Proxy::to_string);
    let effective = toml::to_string(&raw)
        .map_err(|e| Wrong::new("", format!("cannot be written as TOML: {e}")))?;
    Ok(Config {
        run,
        task,
        shards,
        strategy,
        island,
        network,
        daemon,
        effective,
    })
}

fn task(raw: &RawConfig) -> Result<TaskConfig, Wrong> {
    match &raw.task {
        None => Ok(TaskConfig::default()),
        Some(table) => Value::Table(table.clone())
            .try_into()
            .map_err(|e| Wrong::of_table("task", &e)),
    }
}

fn as_table(task: &TaskConfig) -> Result<Table, Wrong> {
    Table::try_from(task).map_err(|e| Wrong::new("task", format!("cannot be written: {e}")))
}

fn run(raw: &RawConfig) -> Result<RunConfig, Wrong> {
    let raw = &raw.run;
    if raw.name.is_empty() || raw.name.len() > 128 || raw.name.contains(char::is_control) {
        return Err(Wrong::of(
            "run.name",
            "must have 1 to 128 printable characters",
        ));
    }
    if raw.start_with == 0 {
        return Err(Wrong::of(
            "run.start_with",
            "counts this daemon: at least 1",
        ));
    }
    let start_wait = seconds("run.start_wait_s", raw.start_wait_s)?
        .ok_or_else(|| Wrong::of("run.start_wait_s", "must be above 0"))?;
    Ok(RunConfig {
        id: RunConfig::id_of(&raw.name),
        name: raw.name.clone(),
        seed: raw.seed,
        rounds: raw.rounds,
        start_with: raw.start_with as usize,
        start_wait,
        init: raw.init.clone(),
        open: raw.open,
        key: raw.key.clone(),
    })
}

/// Fills in the default seed and the kind, so that the effective configuration contains them.
fn shards(raw: &mut RawConfig, run_seed: u64) -> Result<Shards, Wrong> {
    raw.shards.seed.get_or_insert(run_seed);
    let wrong = |e: toml::de::Error| match explain(e.message()) {
        message if message.contains("`shards.") => Wrong::named("shards", &message),
        message => Wrong::new("shards.kind", message),
    };
    let table = Table::try_from(&raw.shards).map_err(|e| Wrong::new("shards", e.to_string()))?;
    let shards: Shards = Value::Table(table).try_into().map_err(wrong)?;
    shards.validate().map_err(|e| Wrong::named("shards", &e))?;
    raw.shards.kind = Some(shards.kind.name().to_owned());
    Ok(shards)
}

fn network(raw: &RawConfig) -> Result<NetworkConfig, Wrong> {
    let listen = addresses("network.listen", Use::Listen, &raw.network.listen)?;
    if listen.is_empty() {
        return Err(Wrong::of(
            "network.listen",
            "needs at least one multiaddress",
        ));
    }
    if raw.network.proxy.is_some() && raw.network.bulk == "tls" {
        let message =
            "is `tls`, which dials others directly, and `network.proxy` is set: use \"auto\"";
        return Err(Wrong::of("network.bulk", message));
    }
    let announce = raw.network.announce.as_deref();
    let announce = announce.map(|list| addresses("network.announce", Use::Announce, list));
    Ok(NetworkConfig {
        listen,
        announce: announce.transpose()?,
        join: addresses("network.join", Use::Join, &raw.network.join)?,
        mdns: raw.network.mdns,
        relay: raw.network.relay,
        carry_links: raw.network.carry_links,
        congestion: parsed("network.congestion", &raw.network.congestion)?,
        bulk: parsed("network.bulk", &raw.network.bulk)?,
        bulk_port: raw.network.bulk_port,
        proxy: raw.network.proxy.as_deref().map(proxy).transpose()?,
        payload_max: payload_max(raw.network.payload_max)?,
        wire: wire(raw.network.wire_versions)?,
        site: raw.network.site.as_deref().map(site).transpose()?,
        max_rate: Limits {
            peer: rate("network.max_rate_per_peer", &raw.network.max_rate_per_peer)?,
            daemon: rate("network.max_rate", &raw.network.max_rate)?,
        },
    })
}

/// The value that a text of the file stands for.
fn parsed<T: FromStr<Err: Display>>(key: &str, text: &str) -> Result<T, Wrong> {
    let wrong = |e| Wrong::new(key, format!("`{key}`: {e}"));
    text.parse().map_err(wrong)
}

fn payload_max(bytes: Option<u16>) -> Result<Option<u16>, Wrong> {
    match bytes {
        Some(bytes) if !(1200..=65_487).contains(&bytes) => {
            let message = format!(
                "is {bytes}: give 1200 to 65487 bytes of a UDP packet, or leave it out for what the route carries"
            );
            Err(Wrong::of("network.payload_max", message))
        }
        fits => Ok(fits),
    }
}

/// The proxy that is written down, or that of the variable which other programs go by. The value may hold a password,
/// so a message does not repeat it.
fn proxy(text: &str) -> Result<Proxy, Wrong> {
    let wrong = |what: &str, needed: &str| {
        Wrong::new("network.proxy", format!("{what} cannot be read: {needed}"))
    };
    if text != "env" {
        return text
            .parse()
            .map_err(|needed| wrong("`network.proxy`", needed));
    }
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let value = set("HTTPS_PROXY").or_else(|| set("https_proxy"));
    let value = value.ok_or_else(|| wrong("HTTPS_PROXY", "the variable is not set"))?;
    value.parse().map_err(|needed| wrong("HTTPS_PROXY", needed))
}

fn wire(versions: Option<[u8; 2]>) -> Result<WireVersions, Wrong> {
    let ours = WireVersions::OURS;
    let Some([oldest, newest]) = versions else {
        return Ok(ours);
    };
    WireVersions::of_ours(oldest, newest).ok_or_else(|| {
        let message = format!(
            "is [{oldest}, {newest}]: give the oldest and the newest of {ours}, which this program speaks, or leave \
             it out for all of them"
        );
        Wrong::of("network.wire_versions", message)
    })
}

fn site(label: &str) -> Result<Site, Wrong> {
    let wrong = |_| {
        let message = format!(
            "is `{label}`: give 1 to {SITE_BYTES_MAX} letters, digits, `.`, `_` and `-`, or leave it out to have it \
             measured"
        );
        Wrong::of("network.site", message)
    };
    Site::new(label).map_err(wrong)
}

fn rate(key: &'static str, raw: &Option<RawRate>) -> Result<Option<u64>, Wrong> {
    let Some(raw) = raw else {
        return Ok(None);
    };
    let wrong = || {
        let message = "must be bytes a second above 0, or a number with a unit such as \"10 MB/s\" or \
                       \"80 Mbit/s\"; leave it out for no limit";
        Wrong::of(key, message)
    };
    raw.bytes().map(Some).ok_or_else(wrong)
}

fn daemon(raw: &RawConfig) -> Result<DaemonConfig, Wrong> {
    let (raw, rounds) = (&raw.daemon, raw.run.rounds);
    let http: SocketAddr = raw.http.parse().map_err(|_| {
        let message = format!(
            "`{}` is not an address and port such as 127.0.0.1:9100",
            raw.http
        );
        Wrong::new("daemon.http", message)
    })?;
    if !http.ip().is_loopback() && !raw.http_public {
        return Err(Wrong::new(
            "daemon.http",
            format!(
                "{http} can be reached from outside, and anyone may read it; \
                 say so with --http-public (or http_public = true), or use 127.0.0.1"
            ),
        ));
    }
    let is_name = |name: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        !name.is_empty() && name.chars().all(plain)
    };
    if let Some(name) = raw.http_names.iter().find(|name| !is_name(name)) {
        return Err(Wrong::new(
            "daemon.http_names",
            format!("`{name}` is no host name; write it as a browser asks for it, without a port"),
        ));
    }
    if raw.dir.is_empty() {
        return Err(Wrong::of("daemon.dir", "must name a directory"));
    }
    Ok(DaemonConfig {
        dir: PathBuf::from(&raw.dir),
        name: raw.name.as_deref().map(name).transpose()?,
        share_vitals: raw.share_vitals,
        http,
        http_names: raw.http_names.clone(),
        save_every: seconds("daemon.save_every_s", raw.save_every_s)?,
        evaluate_every: raw.evaluate_every,
        stay: raw.stay,
        device: raw
            .device
            .parse()
            .map_err(|e| Wrong::named("daemon.device", &e))?,
        watch: watch(raw, rounds)?,
    })
}

fn name(text: &str) -> Result<DaemonName, Wrong> {
    // A terminal would obey some of the characters that a name may not have.
    let shown = text.escape_debug();
    let wrong = |e| Wrong::of("daemon.name", format!("is `{shown}`: {e}"));
    DaemonName::new(text).map_err(wrong)
}

/// A duration in seconds; `None` for zero.
fn seconds(key: &str, value: f64) -> Result<Option<Duration>, Wrong> {
    if !(0.0..=SECONDS_MAX).contains(&value) {
        return Err(Wrong::of(
            key,
            format!("must be 0 to {SECONDS_MAX} seconds"),
        ));
    }
    Ok((value > 0.0).then(|| Duration::from_secs_f64(value)))
}

#[cfg(test)]
mod tests;
