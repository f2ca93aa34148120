//! The plan that this daemon and its peers must agree on.

use crate::config::Config;
use murmurate_protocol::limits::SETTINGS_MAX;
use murmurate_protocol::wire::Setting;
use murmurate_protocol::{Digest, LayoutHash, Plan};
use murmurate_strategies::Layout;
use murmurate_strategies::grid::StrategyError;
use toml::{Table, Value};

/// The plan of a configuration with this number of rounds. Beside the strategy, peers agree on the seed,
/// from which they draw initial parameters and deal the data, and on the values of the model that are
/// not trained.
///
/// # Errors
/// As [`Strategy::plan`](murmurate_strategies::grid::Strategy::plan).
pub(super) fn plan(
    config: &Config,
    layout: &Layout,
    frozen: Option<Digest>,
    rounds: u64,
) -> Result<Plan, StrategyError> {
    let strategy = config.strategy.clone().for_peers(config.run.start_with);
    let mut plan = strategy.plan(config.run.id, layout, rounds)?;
    let seed = config.run.seed.to_le_bytes();
    plan.recipe = Digest::of(&[&plan.recipe.as_bytes()[..], &seed].concat());
    if let Some(frozen) = frozen {
        let both = [&plan.layout.as_bytes()[..], frozen.as_bytes()].concat();
        plan.layout = LayoutHash::from_bytes(*Digest::of(&both).as_bytes());
    }
    Ok(plan)
}

/// Keys of `[task]` that may differ between the daemons of a run.
const OWN_TASK_KEYS: [&str; 13] = [
    "accumulate",
    "augmentation",
    "batch",
    "clip_norm",
    "column",
    "data",
    "held_out",
    "ignore",
    "label_smoothing",
    "missing",
    "on_bad_record",
    "patience_s",
    "tokenizer",
];

/// The keys of the configuration on which model and plan depend. Two daemons that refuse each other tell
/// each other these, to find out which of them differ.
pub(super) fn settings(config: &Config) -> Vec<Setting> {
    let strategy = config.strategy.clone().for_peers(config.run.start_with);
    let mut table: Table = toml::from_str(&config.portable()).unwrap_or_default();
    let strategy: Table = toml::from_str(&strategy.to_toml()).unwrap_or_default();
    table.insert("strategy".to_owned(), Value::Table(strategy));
    let mut found = Vec::new();
    for (section, own) in [
        ("run", &["name"][..]),
        ("task", &OWN_TASK_KEYS),
        ("strategy", &[]),
    ] {
        let Some(Value::Table(inner)) = table.get(section) else {
            continue;
        };
        for (key, value) in inner.iter().filter(|(key, _)| !own.contains(&key.as_str())) {
            flatten(&format!("{section}.{key}"), value, &mut found);
        }
    }
    found.truncate(SETTINGS_MAX);
    found
}

/// A file or a folder is not the same on all machines.
fn is_path(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains('/'))
}

fn flatten(key: &str, value: &Value, into: &mut Vec<Setting>) {
    match value {
        Value::Table(inner) => {
            for (name, value) in inner {
                flatten(&format!("{key}.{name}"), value, into);
            }
        }
        value if is_path(value) => {}
        value => into.extend(Setting::new(key, &value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Overrides;
    use std::path::Path;

    fn of(text: &str) -> Vec<Setting> {
        let config = Config::from_text(Path::new("node.toml"), text, &Overrides::default());
        settings(&config.unwrap())
    }

    fn differing(one: &str, other: &str) -> Vec<String> {
        let (one, other) = (of(one), of(other));
        let keys = Setting::differing(&one, &other);
        keys.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn settings_differ_where_plans_do_and_nowhere_else() {
        assert!(of("").len() > 10, "{:?}", of(""));
        let own = "[run]\nname = \"b\"\nstart_with = 3\n[task]\nkind = \"image-classifier\"\nbatch = 7\n[shards]\nindex = 1\nof = 2\n\
                   [daemon]\nsave_every_s = 9.0\n[network]\nmdns = false\n";
        assert_eq!(differing("", own), [] as [&str; 0]);
        assert_eq!(
            differing("", "[run]\nseed = 2\nrounds = 9\n"),
            ["run.rounds", "run.seed"]
        );
        assert_eq!(
            differing("", "[task]\nkind = \"image-classifier\"\nhidden = 64\n"),
            ["task.hidden"]
        );
        let lr = "[strategy.outer]\nlr = 0.5\n";
        assert_eq!(differing("", lr), ["strategy.outer.lr"]);
        let presets = differing("", "[strategy]\npreset = \"local-sgd\"\n");
        assert!(
            presets.contains(&"strategy.preset".to_owned()),
            "{presets:?}"
        );
    }
}
