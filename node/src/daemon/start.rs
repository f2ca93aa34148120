//! What a daemon says and knows when it starts.

use super::agreed;
use super::ending::{Ending, Join};
use super::refusals::Refusals;
use super::setup::Setup;
use crate::config::Config;
use crate::lanes::Sealer;
use libp2p::Multiaddr;
use murmurate_protocol::{Input, PeerId};
use murmurate_tasks::config::DataSource;
use murmurate_tasks::data::ShardKind;

/// Logs what the daemon begins with.
pub(super) fn log_start(config: &Config, setup: &Setup) {
    tracing::info!(
        preset = config.strategy.name(),
        rounds = config.run.rounds,
        dir = %config.daemon.dir.display(),
        resumes = setup.snapshot.is_some(),
        "daemon started"
    );
}

/// The most daemons that one note names.
const PEERS_NAMED_MAX: usize = 8;

/// What is known of the end of a daemon with this configuration.
pub(super) fn ending(config: &Config) -> Ending {
    let join = &config.network.join;
    Ending {
        join: Join::new(join),
        told: Refusals::new(agreed::settings(config)),
        bootstrap: unanswered(join),
        ..Ending::default()
    }
}

/// Said once at the start: a daemon cannot see yet whether the others hold the same files.
const DEALT_NOTE: &str = "the data is divided among the daemons of this run that hold the same files (if \
                          these files are only here, set shards.kind = \"own\")";

/// What to say of the daemons that turn out to train other data.
pub(super) fn other_data_note(peers: &[PeerId]) -> String {
    let names: Vec<String> = peers
        .iter()
        .take(PEERS_NAMED_MAX)
        .map(PeerId::to_string)
        .collect();
    let more = match peers.len().saturating_sub(names.len()) {
        0 => String::new(),
        more => format!(" and {more} others"),
    };
    format!(
        "this daemon shares no data with {}{more}: their files differ, or `shards.seed`, or how the data is \
         cut (make them the same, or set shards.kind = \"own\")",
        names.join(", ")
    )
}

/// Said once by a daemon whose certificate has the role `observe`.
pub(super) const OBSERVES: &str = "this daemon observes: it follows the others, evaluates and saves, and \
                                   trains nothing";

pub(super) fn dealt_note(config: &Config) -> Option<String> {
    let from_files = matches!(config.task.data(), Some(DataSource::Path(_)));
    let dealt = config.shards.kind == ShardKind::Dealt && from_files;
    dealt.then(|| DEALT_NOTE.to_owned())
}

/// What signs and checks statements, where members of groups do.
pub(super) fn sealer(setup: &Setup) -> Option<Sealer> {
    let identity = setup.store.identity();
    setup.plan.agreement.signs().then(|| {
        let key = identity.keypair().clone();
        Sealer::new(key, identity.peer(), setup.plan.run, setup.store.dir())
    })
}

/// What the peer knows when it starts.
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
