//! The daemon: builds all parts, joins them, and ends them in order.

mod acquaintances;
mod clock;
mod console;
mod driver;
mod ending;
mod error;
mod news;
mod payload;
mod perform;
mod recording;
mod setup;
mod shown;
mod story;
mod trace;

pub use clock::SteadyClock;
pub use error::{DaemonError, RefusedBy};
pub use recording::BINARY;

use crate::api::ApiServer;
use crate::config::Config;
use crate::faults::{Fault, Faults};
use crate::progress::{LogMode, Printer};
use crate::report::NodeReport;
use crate::spans;
use acquaintances::Acquaintances;
use console::Console;
use driver::{Driver, Sources};
use ending::Ending;
use libp2p::Multiaddr;
use murmurate_protocol::record::RecordHeader;
use murmurate_protocol::wire::encode_value;
use murmurate_protocol::{Input, Peer, PeerConfig, Plan};
use murmurate_strategies::Trainer;
use murmurate_tasks::TaskError;
use payload::Payload;
use recording::Recording;
use setup::Setup;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use trace::Trace;
use tracing::Instrument;

/// How long the network may take to say its last words.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(1);

/// Threads that carry the network. Two, so that a long decode on one does not stop the other;
/// training has threads of its own.
const NETWORK_THREADS: usize = 2;

/// What one start of a daemon is told beside its configuration.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// How it tells what it does.
    pub log: LogMode,
    /// Harm to do to itself.
    pub faults: Vec<Fault>,
    /// Write no checkpoint: for measurements whose model is not worth one.
    pub ephemeral: bool,
    /// Where to record what goes into its peer; there must be nothing yet.
    pub record: Option<PathBuf>,
}

/// Runs one daemon of a built-in task until it has left, and gives its report.
///
/// # Errors
/// When it cannot start, or ends other than by leaving; one line that says what to do.
pub fn run(config: Config, options: RunOptions) -> Result<NodeReport, DaemonError> {
    run_with_trainer(config, options, |config| {
        let mut trainer = murmurate_tasks::build(
            &config.task,
            config.strategy.inner_kind(),
            &config.daemon.device,
            config.run.seed,
            &config.shards,
        )?;
        if let Some(model) = &config.run.init {
            murmurate_tasks::load_model(trainer.as_mut(), model)?;
        }
        Ok(trainer)
    })
}

/// As [`run`], with a trainer of one's own in the place of the configuration's `[task]`. It is
/// made once the daemon's directory is held; see the example `own_task`.
///
/// The trainer must start from the same bits on every daemon of the run (a function of
/// `config.run.seed`), or their exchanges come to nothing.
///
/// # Errors
/// As [`run`].
pub fn run_with_trainer(
    config: Config,
    options: RunOptions,
    make: impl FnOnce(&Config) -> Result<Box<dyn Trainer>, TaskError>,
) -> Result<NodeReport, DaemonError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(NETWORK_THREADS)
        .thread_name("net")
        .enable_all()
        .build()
        .map_err(DaemonError::Runtime)?;
    let result = runtime.block_on(run_async(config, options, make));
    runtime.shutdown_timeout(SHUTDOWN_WAIT);
    result
}

async fn run_async(
    config: Config,
    options: RunOptions,
    make: impl FnOnce(&Config) -> Result<Box<dyn Trainer>, TaskError>,
) -> Result<NodeReport, DaemonError> {
    if let Some(path) = &options.record {
        Recording::check(path)?;
    }
    let interrupts = watch_interrupts()?;
    let clock = SteadyClock::new();
    let setup = tokio::task::block_in_place(|| Setup::new(&config, clock, make))?;
    let span = spans::run(&config.run.name, setup.peer_config.me);
    drive(config, options, setup, clock, interrupts)
        .instrument(span)
        .await
}

/// Joins the parts and runs them until the peer has left.
async fn drive(
    config: Config,
    options: RunOptions,
    setup: Setup,
    clock: SteadyClock,
    interrupts: mpsc::Receiver<()>,
) -> Result<NodeReport, DaemonError> {
    tracing::info!(
        preset = config.strategy.name(),
        rounds = config.run.rounds,
        dir = %config.daemon.dir.display(),
        resumes = setup.snapshot.is_some(),
        "daemon started"
    );
    let (network, events) = setup.network(&config)?;
    let api =
        ApiServer::start(config.daemon.http, setup.status.clone(), network.max_rate()).await?;
    setup.store.note_http(api.address())?;
    let digests = setup.executor.digests();
    let saver = (!options.ephemeral).then_some(setup.saver);
    let (lanes, answers) =
        crate::lanes::Lanes::start(setup.executor, Arc::clone(&setup.depot), saver)
            .map_err(DaemonError::Runtime)?;
    let joining = setup.peer_config.join;
    let recording = match &options.record {
        Some(path) => Some(record(path, &config, &setup.peer_config, &setup.plan)?),
        None => None,
    };
    let dir = config.daemon.dir.clone();
    let (acquaintances, warning) = Acquaintances::load(dir, config.run.id);
    let peer = Peer::new(setup.peer_config, setup.plan, setup.topology);
    let mut driver = Driver {
        acquaintances,
        trace: Trace::new(peer.round()),
        peer,
        clock,
        net: network,
        depot: setup.depot,
        lanes,
        console: Console::new(
            setup.status,
            Printer::new(options.log),
            Some(api.address().to_string()),
        ),
        faults: Faults::new(options.faults),
        ending: Ending {
            joining,
            bootstrap: unanswered(&config.network.join),
            ..Ending::default()
        },
        recording,
        payload: Payload::default(),
        pending: VecDeque::new(),
    };
    for line in setup.resumed.iter().chain(&warning) {
        driver.console.printer.note(line);
    }
    driver.feed(Input::Start {
        snapshot: setup.snapshot,
        digests,
    });
    driver
        .run(Sources {
            answers,
            events,
            interrupts,
        })
        .await;
    finish(driver).await
}

/// Begins the record of a peer that is made from these.
fn record(
    path: &Path,
    config: &Config,
    peer: &PeerConfig,
    plan: &Plan,
) -> Result<Recording, DaemonError> {
    let topology = config.strategy.topology_kind();
    let header = RecordHeader {
        plan: plan.clone(),
        config: peer.clone(),
        topology: topology.map(|kind| encode_value(&kind)),
    };
    Recording::start(path, &header)
}

/// Says the last words, ends the lanes, and reports.
async fn finish(driver: Driver) -> Result<NodeReport, DaemonError> {
    let Driver {
        net,
        lanes,
        console,
        ending,
        recording,
        acquaintances,
        peer,
        ..
    } = driver;
    acquaintances.finish(peer.view()).await;
    if let Some(mut recording) = recording
        && let Some(line) = tokio::task::block_in_place(|| recording.finish())
    {
        console.printer.note(&line);
    }
    net.shutdown(Instant::now() + SHUTDOWN_WAIT).await;
    if let Some(error) = ending.error {
        return Err(error);
    }
    tokio::task::block_in_place(|| lanes.join());
    let report = NodeReport::from(&console.status.status());
    let (rounds, inner_steps) = (report.rounds, report.inner_steps);
    tracing::info!(rounds, inner_steps, "daemon left");
    console.printer.report(&report);
    match ending.unsaved {
        Some(reason) => Err(DaemonError::Unsaved { reason }),
        None => Ok(report),
    }
}

/// What is known of the addresses to join before any of them has answered or failed.
fn unanswered(join: &[Multiaddr]) -> Option<String> {
    let addresses: Vec<String> = join.iter().map(Multiaddr::to_string).collect();
    (!addresses.is_empty()).then(|| format!("{} (no answer)", addresses.join(", ")))
}

/// Every Ctrl+C (and SIGTERM, which service managers send) as one message.
fn watch_interrupts() -> Result<mpsc::Receiver<()>, DaemonError> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt()).map_err(DaemonError::Runtime)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(DaemonError::Runtime)?;
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                Some(()) = interrupt.recv() => {}
                Some(()) = terminate.recv() => {}
                else => return,
            }
            if sender.send(()).await.is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}
