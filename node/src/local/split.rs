//! The division of the data in a local swarm without `--shards`.

use super::options::LocalOptions;
use super::shards::ShardsArg;
use murmurate_tasks::TaskConfig;
use std::path::Path;

/// The note for a default that a fault changes.
const IID_NOTE: &str = "a killed, stopped or lying daemon takes its classes with it: the images \
                        are sharded iid, not by label (--shards by-label: all the same by label)";

/// The division of the data for a swarm; `None` keeps that of the configuration. Returns a note if
/// the usual default is not used. The usual default is `by-label`, because then daemons must
/// cooperate to succeed.
pub(super) fn choose(
    options: &LocalOptions,
    task: &TaskConfig,
) -> (Option<ShardsArg>, Option<&'static str>) {
    let labelled = matches!(task, TaskConfig::ImageClassifier(_));
    let killed = !options.kills.is_empty() || options.kill_every.is_some();
    let loses = killed || !options.stops.is_empty() || !options.liars.is_empty();
    match &options.shards {
        Some(shards) => (Some(shards.clone()), None),
        // A configuration file decides, if it says anything about shards.
        None if says_shards(options.config.as_deref()) => (None, None),
        // Not the default of `run`: the identities of daemons are random, so a division by them
        // would be another one in each run.
        None if options.config.is_some() => (Some(ShardsArg::Iid), None),
        None if labelled && loses => (Some(ShardsArg::Iid), Some(IID_NOTE)),
        None if labelled => (Some(ShardsArg::ByLabel), None),
        None => (Some(ShardsArg::Iid), None),
    }
}

/// Whether the configuration file sets `shards.kind`.
fn says_shards(file: Option<&Path>) -> bool {
    let text = file.and_then(|file| std::fs::read_to_string(file).ok());
    let table = text.and_then(|text| text.parse::<toml::Table>().ok());
    let shards = table.as_ref().and_then(|table| table.get("shards"));
    shards.is_some_and(|shards| shards.get("kind").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_split_unless_a_daemon_would_take_its_own_away() {
        let task = TaskConfig::default();
        let plain = LocalOptions::default();
        assert_eq!(choose(&plain, &task), (Some(ShardsArg::ByLabel), None));
        for flag in ["kill", "kill-every", "stop"] {
            let mut options = plain.clone();
            match flag {
                "kill" => options.kills.push("1@round:4".parse().unwrap()),
                "kill-every" => options.kill_every = Some("5s".parse().unwrap()),
                _ => options.stops.push("1@round:4".parse().unwrap()),
            }
            let (shards, note) = choose(&options, &task);
            assert_eq!(shards, Some(ShardsArg::Iid), "{flag}");
            assert!(note.unwrap().contains("--shards by-label"), "{flag}");
            options.shards = Some(ShardsArg::ByLabel);
            assert_eq!(choose(&options, &task), (Some(ShardsArg::ByLabel), None));
        }
    }
}
