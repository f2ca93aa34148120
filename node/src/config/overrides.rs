//! What overrides keys of the configuration file: variables of the environment, for containers and job schedulers
//! (`MURMURATE_RUN_ROUNDS=500` is `run.rounds = 500`), and over them the flags of the command line.

use super::error::Place;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use toml::{Table, Value};

/// Where a daemon's trainer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TrainerArg {
    /// From a training loop that attaches to the daemon
    Attach,
}

/// Values of the flags. `None`, `false` and an empty list keep the file's value.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct Overrides {
    /// The daemon's directory: identity, lock, checkpoint. The same directory means the same peer
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Address of a daemon of the run, as printed by it; may be given several times
    #[arg(long, value_name = "MULTIADDR")]
    pub join: Vec<String>,
    /// Address to listen on; may be given several times
    #[arg(long, value_name = "MULTIADDR")]
    pub listen: Vec<String>,
    /// The name of a run that this daemon founds, or of an open run
    #[arg(long)]
    pub name: Option<String>,
    /// Strategy preset, such as diloco; `murmurate strategies` lists all
    #[arg(long)]
    pub preset: Option<String>,
    /// Enter a run with its key, as the owner; `murmurate run-key` makes one
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Let everyone in who knows the run's name and an address: for public experiments
    #[arg(long)]
    pub open: bool,
    /// Seed for everything that is equal on all daemons
    #[arg(long)]
    pub seed: Option<u64>,
    /// Number of rounds; 0 means until told to stop
    #[arg(long)]
    pub rounds: Option<u64>,
    /// Number of daemons, including this one, that a fresh run waits for
    #[arg(long, value_name = "COUNT")]
    pub start_with: Option<u32>,
    /// Data: a path, or `bundled`
    #[arg(long, value_name = "PATH")]
    pub data: Option<String>,
    /// Model to start from, the same for all daemons: a file or folder as `murmurate export` writes
    #[arg(long, value_name = "PATH")]
    pub init: Option<PathBuf>,
    /// Device that trains: flex (CPU), wgpu, wgpu:N, cuda, cuda:N
    #[arg(long)]
    pub device: Option<String>,
    /// Leave when an evaluation reaches this accuracy; exit with an error if none does
    #[arg(long, value_name = "SHARE")]
    pub until_accuracy: Option<f64>,
    /// Leave when an evaluation reaches this loss, in nats; exit with an error if none does
    #[arg(long, value_name = "LOSS")]
    pub until_loss: Option<f64>,
    /// Wait for a training loop in another process instead of training here: PyTorch, JAX, NumPy
    #[arg(long, value_enum, value_name = "KIND")]
    pub trainer: Option<TrainerArg>,
    /// Do not look for peers on the local network
    #[arg(long)]
    pub no_mdns: bool,
    /// Relay for daemons of this run that cannot be dialled
    #[arg(long)]
    pub relay: bool,
    /// A name that others show beside this daemon's id
    #[arg(long, value_name = "NAME")]
    pub daemon_name: Option<String>,
    /// Address of the HTTP server with /status and /metrics
    #[arg(long, value_name = "IP:PORT")]
    pub http: Option<String>,
    /// Allow an --http address that is reachable from other machines
    #[arg(long)]
    pub http_public: bool,
    /// Keys that variables of the environment set. Flags override them
    #[arg(skip)]
    pub environment: Vec<Variable>,
}

impl Overrides {
    /// What overrides the file, in this order: each with where it comes from, the section and key that
    /// it sets, and the value.
    pub(super) fn all(&self) -> Vec<(Place, [String; 2], Value)> {
        let variables = self.environment.iter().map(|variable| {
            let place = Place::Variable(variable.name.clone());
            (place, variable.key.clone(), variable.value.clone())
        });
        let flags = self.entries().into_iter();
        let flags =
            flags.map(|(flag, key, value)| (Place::Flag(flag), key.map(str::to_owned), value));
        variables.chain(flags).collect()
    }

    /// The flags that were given, each with the section and key that it sets and the value.
    fn entries(&self) -> Vec<(&'static str, [&'static str; 2], Value)> {
        let text = |v: &Option<String>| v.clone().map(Value::String);
        let count = |v: Option<u64>| v.map(|v| Value::Integer(v.try_into().unwrap_or(i64::MAX)));
        let list = |v: &[String]| {
            (!v.is_empty()).then(|| Value::Array(v.iter().cloned().map(Value::String).collect()))
        };
        let path = |v: &Option<PathBuf>| {
            v.as_ref()
                .map(|v| Value::String(v.to_string_lossy().into_owned()))
        };
        let set = |given: bool, to: bool| given.then_some(Value::Boolean(to));
        let number = |v: Option<f64>| v.map(Value::Float);
        let start_with = self.start_with.map(u64::from);
        let kind = self.trainer.map(|_| Value::from("attached"));
        let all = [
            ("--name", ["run", "name"], text(&self.name)),
            ("--preset", ["strategy", "preset"], text(&self.preset)),
            ("--seed", ["run", "seed"], count(self.seed)),
            ("--rounds", ["run", "rounds"], count(self.rounds)),
            ("--start-with", ["run", "start_with"], count(start_with)),
            ("--trainer", ["task", "kind"], kind),
            ("--data", ["task", "data"], text(&self.data)),
            ("--init", ["run", "init"], path(&self.init)),
            ("--open", ["run", "open"], set(self.open, true)),
            ("--key", ["run", "key"], path(&self.key)),
            ("--listen", ["network", "listen"], list(&self.listen)),
            ("--join", ["network", "join"], list(&self.join)),
            ("--no-mdns", ["network", "mdns"], set(self.no_mdns, false)),
            ("--relay", ["network", "relay"], set(self.relay, true)),
            ("--dir", ["daemon", "dir"], path(&self.dir)),
            ("--daemon-name", ["daemon", "name"], text(&self.daemon_name)),
            (
                "--http-public",
                ["daemon", "http_public"],
                set(self.http_public, true),
            ),
            ("--http", ["daemon", "http"], text(&self.http)),
            ("--device", ["daemon", "device"], text(&self.device)),
            (
                "--until-accuracy",
                ["daemon", "until_accuracy"],
                number(self.until_accuracy),
            ),
            (
                "--until-loss",
                ["daemon", "until_loss"],
                number(self.until_loss),
            ),
        ];
        all.into_iter()
            .filter_map(|(flag, key, value)| Some((flag, key, value?)))
            .collect()
    }
}

/// How the variables begin.
const PREFIX: &str = "MURMURATE_";

/// The sections of the configuration. Variables with other words, such as `MURMURATE_LOG`, are none of
/// these.
const SECTIONS: [&str; 7] = [
    "run", "task", "shards", "strategy", "island", "network", "daemon",
];

/// Keys whose value is a list. It may be written with commas alone.
const LISTS: [&str; 4] = ["listen", "join", "announce", "http_names"];

/// A key that a variable sets.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    pub(super) name: String,
    pub(super) key: [String; 2],
    pub(super) value: Value,
}

/// The keys that these variables set, in the order of their names.
pub fn environment(all: impl IntoIterator<Item = (String, String)>) -> Vec<Variable> {
    let mut found: Vec<Variable> = all.into_iter().filter_map(variable).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn variable((name, text): (String, String)) -> Option<Variable> {
    let (section, key) = name.strip_prefix(PREFIX)?.split_once('_')?;
    let (section, key) = (section.to_lowercase(), key.to_lowercase());
    let known = SECTIONS.contains(&section.as_str()) && !key.is_empty() && !text.is_empty();
    known.then(|| Variable {
        value: value(&key, &text),
        key: [section, key],
        name,
    })
}

/// The value as TOML, or else as text: quotes around text may be left out.
fn value(key: &str, text: &str) -> Value {
    let line: Option<Table> = toml::from_str(&format!("value = {text}")).ok();
    let value = line.and_then(|mut line| line.remove("value"));
    match value {
        Some(value) => value,
        None if LISTS.contains(&key) => {
            let parts = text
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty());
            Value::Array(parts.map(Value::from).collect())
        }
        None => Value::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    fn overrides(all: &[(&str, &str)]) -> Overrides {
        let all = all
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        Overrides {
            environment: environment(all),
            ..Overrides::default()
        }
    }

    fn config(file: &str, overrides: &Overrides) -> Result<Config, String> {
        Config::from_text(Path::new("node.toml"), file, overrides).map_err(|e| e.to_string())
    }

    #[test]
    fn variables_override_the_file_and_flags_override_them() {
        let mut overrides = overrides(&[
            ("MURMURATE_RUN_ROUNDS", "500"),
            ("MURMURATE_RUN_NAME", "birds of the sea"),
            ("MURMURATE_STRATEGY_PRESET", "local-sgd"),
            (
                "MURMURATE_NETWORK_JOIN",
                "/ip4/10.0.0.1/tcp/1, /dns4/a/tcp/2",
            ),
            ("MURMURATE_DAEMON_HTTP_NAMES", "[\"gpu1.lan\"]"),
            ("MURMURATE_NETWORK_MDNS", "false"),
            ("MURMURATE_DAEMON_DIR", ""),
            ("MURMURATE_LOG", "debug"),
            ("MURMURATE_SOCKET_PATH", "x"),
            ("HOME", "/root"),
        ]);
        overrides.seed = Some(7);
        let found = config("[run]\nrounds = 3\nseed = 1\n", &overrides).unwrap();
        assert_eq!((found.run.rounds, found.run.seed), (500, 7));
        assert_eq!(found.run.name, "birds of the sea");
        assert_eq!(found.strategy.name(), "local-sgd");
        assert_eq!(found.network.join.len(), 2);
        assert_eq!(found.daemon.http_names, ["gpu1.lan"]);
        assert!(!found.network.mdns);
        overrides.rounds = Some(9);
        assert_eq!(config("", &overrides).unwrap().run.rounds, 9);
    }

    #[test]
    fn a_wrong_variable_is_named() {
        let cases = [
            (
                "MURMURATE_RUN_ROUNS",
                "3",
                "unknown key `rouns`; did you mean `rounds`?",
            ),
            (
                "MURMURATE_RUN_ROUNDS",
                "many",
                "give a whole number from 0 on in place of \"many\"",
            ),
            (
                "MURMURATE_NETWORK_JOIN",
                "10.0.0.1:4001",
                "`10.0.0.1:4001` is not a multiaddress",
            ),
        ];
        for (name, text, part) in cases {
            let message = config("", &overrides(&[(name, text)])).unwrap_err();
            let start = format!("{name}: {part}");
            assert!(message.starts_with(&start), "{message}");
        }
    }
}
