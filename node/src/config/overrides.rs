//! Flags of the command line that override keys of the configuration file.

use super::environment::Variable;
use super::error::Place;
use std::path::PathBuf;
use toml::Value;

/// Values of the flags. `None`, `false` and an empty list keep the file's value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// `--name`.
    pub name: Option<String>,
    /// `--preset`.
    pub preset: Option<String>,
    /// `--seed`.
    pub seed: Option<u64>,
    /// `--rounds`.
    pub rounds: Option<u64>,
    /// `--start-with`.
    pub start_with: Option<u32>,
    /// `--data`.
    pub data: Option<String>,
    /// `--init`.
    pub init: Option<PathBuf>,
    /// `--open`.
    pub open: bool,
    /// `--key`.
    pub key: Option<PathBuf>,
    /// `--listen`, may be repeated.
    pub listen: Vec<String>,
    /// `--join`, may be repeated.
    pub join: Vec<String>,
    /// `--no-mdns`.
    pub no_mdns: bool,
    /// `--relay`.
    pub relay: bool,
    /// `--dir`.
    pub dir: Option<PathBuf>,
    /// `--daemon-name`.
    pub daemon_name: Option<String>,
    /// `--http`.
    pub http: Option<String>,
    /// `--http-public`.
    pub http_public: bool,
    /// Keys that variables of the environment set. Flags override them.
    pub environment: Vec<Variable>,
    /// `--trainer attach`, or a command to supervise.
    pub attached: bool,
    /// `--device`.
    pub device: Option<String>,
    /// `--until-accuracy`.
    pub until_accuracy: Option<f64>,
    /// `--until-loss`.
    pub until_loss: Option<f64>,
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
        let all = [
            ("--name", ["run", "name"], text(&self.name)),
            ("--preset", ["strategy", "preset"], text(&self.preset)),
            ("--seed", ["run", "seed"], count(self.seed)),
            ("--rounds", ["run", "rounds"], count(self.rounds)),
            (
                "--start-with",
                ["run", "start_with"],
                count(self.start_with.map(u64::from)),
            ),
            (
                "--trainer",
                ["task", "kind"],
                self.attached.then(|| Value::String("attached".to_owned())),
            ),
            ("--data", ["task", "data"], text(&self.data)),
            ("--init", ["run", "init"], path(&self.init)),
            (
                "--open",
                ["run", "open"],
                self.open.then_some(Value::Boolean(true)),
            ),
            ("--key", ["run", "key"], path(&self.key)),
            ("--listen", ["network", "listen"], list(&self.listen)),
            ("--join", ["network", "join"], list(&self.join)),
            (
                "--no-mdns",
                ["network", "mdns"],
                self.no_mdns.then_some(Value::Boolean(false)),
            ),
            (
                "--relay",
                ["network", "relay"],
                self.relay.then_some(Value::Boolean(true)),
            ),
            ("--dir", ["daemon", "dir"], path(&self.dir)),
            ("--daemon-name", ["daemon", "name"], text(&self.daemon_name)),
            (
                "--http-public",
                ["daemon", "http_public"],
                self.http_public.then_some(Value::Boolean(true)),
            ),
            ("--http", ["daemon", "http"], text(&self.http)),
            ("--device", ["daemon", "device"], text(&self.device)),
            (
                "--until-accuracy",
                ["daemon", "until_accuracy"],
                self.until_accuracy.map(Value::Float),
            ),
            (
                "--until-loss",
                ["daemon", "until_loss"],
                self.until_loss.map(Value::Float),
            ),
        ];
        all.into_iter()
            .filter_map(|(flag, key, value)| Some((flag, key, value?)))
            .collect()
    }
}
