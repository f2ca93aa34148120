//! What a daemon says and knows when it starts, and the settings on which it and its peers must agree.

use super::ending::{Ending, Join, Refusals};
use super::setup::Setup;
use crate::api::Altered;
use crate::config::Config;
use crate::lanes::Sealer;
use crate::store::StoreError;
use libp2p::Multiaddr;
use murmurate_protocol::limits::SETTINGS_MAX;
use murmurate_protocol::wire::Setting;
use murmurate_protocol::{Input, Plan};
use murmurate_tasks::config::DataSource;
use murmurate_tasks::data::ShardKind;
use toml::{Table, Value};

pub(super) fn log_start(config: &Config, setup: &Setup) {
    tracing::info!(
        preset = config.strategy.name(),
        rounds = config.run.rounds,
        dir = %config.daemon.dir.display(),
        resumes = setup.snapshot.is_some(),
        "daemon started"
    );
}

/// The `Ending` of a daemon with this configuration that has met no other yet.
pub(super) fn ending(config: &Config) -> Ending {
    let join = &config.network.join;
    Ending {
        join: Join::new(join),
        told: Refusals::new(settings(config)),
        bootstrap: unanswered(join),
        ..Ending::default()
    }
}

/// Said once at the start, where peers tell each other the fingerprint of their data.
const DEALT_NOTE: &str = "the data is divided among the daemons of this run with data of the same fingerprint; those with \
                          other data are named when they take part (if these files are only here, set \
                          shards.kind = \"own\")";

/// Said once at the start, where they do not.
const UNCOMPARED_NOTE: &str = "the data is divided among all daemons of this run, and none finds out whether the others \
                               have the same files: see to it (if these files are only here, set \
                               shards.kind = \"own\")";

/// Said once by a daemon whose certificate has the role `observe`.
pub(super) const OBSERVES: &str = "this daemon observes: it follows the others, evaluates and saves, and \
                                   trains nothing";

/// How the data is divided, and what of that is compared.
pub(super) fn dealt_note(config: &Config, plan: &Plan) -> Option<String> {
    let from_files = matches!(config.task.data(), Some(DataSource::Path(_)));
    let dealt = config.shards.kind == ShardKind::Dealt && from_files;
    let note = if plan.settles_data() {
        DEALT_NOTE
    } else {
        UNCOMPARED_NOTE
    };
    dealt.then(|| note.to_owned())
}

/// What signs and checks statements, where members of groups do.
///
/// # Errors
/// If no file says in which rounds this daemon may have voted.
pub(super) fn sealer(setup: &Setup) -> Result<Option<Sealer>, StoreError> {
    let (identity, dir) = (setup.store.identity(), setup.store.dir());
    if !setup.plan.agreement.signs() {
        return Ok(None);
    }
    let key = identity.keypair().clone();
    let sealer = Sealer::new(key, identity.peer(), setup.plan.run, dir)?;
    if let Some(round) = sealer.repaired() {
        let text = format!(
            "{} was gone or damaged, and is written again from the rounds in `openings`: this daemon votes in no \
             round up to {round}",
            dir.join("votes").display()
        );
        let action =
            "Find out what changed the file; from the next round on this daemon counts as ever.";
        let altered = Altered::until(round.0, text, action);
        setup.status.with(|observer| observer.altered(altered));
    }
    Ok(Some(sealer))
}

pub(super) fn first_input(setup: &mut Setup, sealer: Option<&Sealer>) -> Input {
    Input::Start {
        snapshot: setup.snapshot.take(),
        digests: setup.executor.digests(),
        opened: sealer.map(Sealer::opened).unwrap_or_default(),
    }
}

/// The addresses to join, as text for an error before any of them has answered or failed.
fn unanswered(join: &[Multiaddr]) -> Option<String> {
    let addresses: Vec<String> = join.iter().map(Multiaddr::to_string).collect();
    (!addresses.is_empty()).then(|| format!("{} (no answer)", addresses.join(", ")))
}

/// Keys of `[task]` that may differ between the daemons of a run.
const OWN_TASK_KEYS: [&str; 14] = [
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
    "recompute",
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
