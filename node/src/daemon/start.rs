//! What a daemon says and knows when it starts.

use super::agreed;
use super::ending::{Ending, Join, Refusals};
use super::setup::Setup;
use crate::api::Altered;
use crate::config::Config;
use crate::lanes::Sealer;
use crate::store::StoreError;
use libp2p::Multiaddr;
use murmurate_protocol::{Input, Plan};
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
