//! The daemon: builds all parts, connects them, and ends them in order.

mod alarms;
mod clock;
mod console;
mod contacts;
mod driver;
mod ending;
mod error;
mod judge;
mod mark;
mod news;
mod payload;
mod perform;
mod privacy;
mod recording;
mod relay;
mod setup;
mod shown;
mod start;
mod trace;
mod trainer;

pub use clock::SteadyClock;
pub use error::DaemonError;
pub(crate) use error::RefusedBy;
pub use recording::BINARY;
pub use trainer::built_in;

use crate::config::Config;
use crate::faults::{Fault, Faults};
use crate::lanes::Lanes;
use crate::lies::{Liar, Lie};
use crate::metrics::Metrics;
use crate::progress::LogMode;
use crate::report::NodeReport;
use crate::splits::{Split, Splits};
use crate::store::Store;
use crate::{membership, spans};
use console::Console;
use contacts::Contacts;
use driver::{Driver, OnRequest, Sources};
use ending::SHUTDOWN_WAIT;
use murmurate_attach::Supervisor;
use murmurate_protocol::record::RecordHeader;
use murmurate_protocol::wire::encode_value;
use murmurate_protocol::{Input, Peer};
use murmurate_strategies::Trainer;
use murmurate_tasks::TaskError;
use murmurate_trust::{Invite, Role};
use payload::Payload;
use recording::Recording;
use setup::Setup;
use start::{OBSERVES, dealt_note, ending, first_input, log_start, sealer};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::sync::mpsc;
use trace::Trace;
use tracing::Instrument;
use trainer::Made;

/// Threads for the network. With two, a long decode on one does not stop the other; training has
/// its own threads.
const NETWORK_THREADS: usize = 2;

/// Options for one start of a daemon, in addition to its configuration.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// How the daemon prints its progress.
    pub log: LogMode,
    /// Faults that the daemon inflicts on itself, for tests.
    pub faults: Vec<Fault>,
    /// Splits from other daemons, for tests and `murmurate local`.
    pub splits: Vec<Split>,
    /// Lies that the daemon tells the others, for tests.
    pub lies: Vec<Lie>,
    /// Writes no checkpoint, for measurements.
    pub ephemeral: bool,
    /// The training loop to start and to supervise, where the task's trainer is another process;
    /// empty to wait for one that is started by hand.
    pub command: Vec<OsString>,
    /// Path of the record of the peer's inputs; it must not exist yet.
    pub record: Option<PathBuf>,
    /// The invite with which the daemon enters the run.
    pub invite: Option<Invite>,
}

/// Runs one daemon with a built-in task until it has left, and returns its report.
///
/// # Errors
/// If the daemon cannot start, or ends without having left. The message is one line that says what
/// to do.
pub fn run(config: Config, options: RunOptions) -> Result<NodeReport, DaemonError> {
    let (command, log) = (options.command.clone(), options.log);
    start(
        config,
        options,
        |config, interrupted| match trainer::patience_of(&config.task) {
            Some(patience_s) => trainer::attached(config, patience_s, &command, log, interrupted),
            None => Ok(Made::here(trainer::built_in(config)?)),
        },
    )
}

/// Like [`run`], with your own trainer instead of the configuration's `[task]`. `make` builds the
/// trainer after the daemon has locked its directory; see the example `own_task`.
///
/// A trainer of your own is one trainer: with `[island]` it is for `make` to build an
/// [`Island`](murmurate_strategies::Island).
///
/// All daemons of the run must start from the same bits, so the first parameters must depend on
/// `config.run.seed` only. Otherwise the daemons do not train the same model.
///
/// # Errors
/// As [`run`].
pub fn run_with_trainer(
    config: Config,
    options: RunOptions,
    make: impl FnOnce(&Config) -> Result<Box<dyn Trainer>, TaskError>,
) -> Result<NodeReport, DaemonError> {
    start(config, options, |config, _| Ok(Made::here(make(config)?)))
}

/// Runs a daemon with the trainer that `make` returns; its flag says that the operator has interrupted.
fn start(
    config: Config,
    options: RunOptions,
    make: impl FnOnce(&Config, &AtomicBool) -> Result<Made, DaemonError>,
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
    make: impl FnOnce(&Config, &AtomicBool) -> Result<Made, DaemonError>,
) -> Result<NodeReport, DaemonError> {
    if let Some(path) = &options.record {
        Recording::check(path)?;
    }
    let (interrupts, interrupted) = watch_interrupts()?;
    let clock = SteadyClock::new();
    let make = |config: &Config| make(config, &interrupted);
    let mut config = config;
    let opened = tokio::task::block_in_place(|| {
        let store = Store::open(&config.daemon.dir)?;
        let entered = membership::enter(&mut config, &store, options.invite.as_ref())?;
        Ok::<_, DaemonError>((store, entered))
    })?;
    if opened.1.membership.role() == Role::Relay {
        return relay::serve(&config, options.log, opened, interrupts).await;
    }
    let setup = tokio::task::block_in_place(|| Setup::new(&config, opened, clock, make))?;
    let span = spans::run(&config.run.name, setup.peer_config.me);
    drive(config, options, setup, clock, interrupts)
        .instrument(span)
        .await
}

/// Connects the parts and runs them until the peer has left.
async fn drive(
    config: Config,
    options: RunOptions,
    mut setup: Setup,
    clock: SteadyClock,
    interrupts: mpsc::Receiver<()>,
) -> Result<NodeReport, DaemonError> {
    log_start(&config, &setup);
    let sealer = sealer(&setup)?;
    let forger = setup.forger(&config, &options.lies);
    let (network, events) = setup.network(&config, forger.as_ref())?;
    let log = setup::event_log(&config, &setup, clock, options.ephemeral);
    let api = setup::serve(&config, &setup, &network, log.recent()).await?;
    let metrics = metrics(&config, &setup)?;
    let recording = options.record.as_ref();
    let recording = recording.map(|path| record(path, &config, &setup));
    let recording = recording.transpose()?;
    let start = first_input(&mut setup, sealer.as_ref());
    let saver = (!options.ephemeral).then_some(setup.saver);
    let depot = Arc::clone(&setup.depot);
    let computes = config.trains_here();
    let lanes = Lanes::start(
        setup.executor,
        depot,
        saver,
        (forger.clone(), sealer),
        computes,
    );
    let (lanes, answers) = lanes.map_err(DaemonError::Runtime)?;
    let (acquaintances, warning) = setup.acquaintances;
    let (entered, dealt) = (setup.entered, dealt_note(&config, &setup.plan));
    let observes = entered.membership.role() == Role::Observe;
    let follows = observes.then(|| OBSERVES.to_owned());
    let island = config.island.note();
    let notes = [entered.note, setup.resumed, warning, dealt, island, follows];
    let me = setup.peer_config.me;
    let liar = forger.map(|f| Liar::new(me, options.lies, f, Arc::clone(&setup.depot)));
    let peer = Peer::new(setup.peer_config, setup.plan, setup.topology);
    let http = api.address().to_string();
    let mut driver = Driver {
        contacts: Contacts::new(&config, entered.membership, acquaintances),
        trace: Trace::new(peer.round()),
        peer,
        clock,
        net: network,
        depot: setup.depot,
        lanes,
        console: Console::new(&config, setup.status, log, options.log, http)?,
        on_request: OnRequest {
            faults: Faults::new(options.faults),
            splits: Splits::new(options.splits),
            liar,
        },
        ending: ending(&config),
        recording,
        judge: setup.judge,
        metrics,
        payload: Payload::default(),
        pending: VecDeque::new(),
    };
    driver.say_at_the_start(&notes);
    driver.say_what_to_expect(&config);
    if observes {
        driver.feed(Input::Observes(me));
    }
    driver.tell_directives();
    driver.feed(start);
    let sources = Sources {
        answers,
        events,
        interrupts,
    };
    driver.run(sources).await;
    finish(driver, setup.supervisor).await
}

/// Starts the record of a peer with this configuration and plan.
fn record(path: &Path, config: &Config, setup: &Setup) -> Result<Recording, DaemonError> {
    let topology = config.strategy.topology_kind();
    let header = RecordHeader {
        plan: setup.plan.clone(),
        config: setup.peer_config.clone(),
        topology: topology.map(|kind| encode_value(&kind)),
    };
    Recording::start(path, &header)
}

/// Starts the files of metrics, if the configuration asks for them.
fn metrics(config: &Config, setup: &Setup) -> Result<Option<Metrics>, DaemonError> {
    let Some(dir) = &config.daemon.watch.metrics_dir else {
        return Ok(None);
    };
    let rate = setup::rate_fact(config)?;
    let figures = setup.status.with(|observer| observer.figures());
    let peer = setup.peer_config.me.to_hex();
    let started = Metrics::start(dir, &peer, setup.unit, rate, figures);
    started.map(Some).map_err(|source| DaemonError::Metrics {
        dir: dir.clone(),
        source,
    })
}

/// Ends the lanes and the network, and builds the report.
async fn finish(driver: Driver, supervisor: Option<Supervisor>) -> Result<NodeReport, DaemonError> {
    let Driver {
        net,
        lanes,
        mut console,
        ending,
        recording,
        contacts,
        peer,
        judge,
        metrics,
        ..
    } = driver;
    contacts.finish(peer.view()).await;
    if let Some(mut recording) = recording
        && let Some(line) = tokio::task::block_in_place(|| recording.finish())
    {
        console.printer.note(&line);
    }
    net.shutdown(Instant::now() + SHUTDOWN_WAIT).await;
    if let Some(telemetry) = console.telemetry.take() {
        tokio::task::block_in_place(|| telemetry.finish());
    }
    if let Some(error) = ending.error {
        return Err(error);
    }
    tokio::task::block_in_place(|| lanes.join());
    if let Some(metrics) = metrics
        && let Some(line) = tokio::task::block_in_place(|| metrics.finish())
    {
        console.printer.note(&line);
    }
    let status = console.status.status();
    let all_done = status.rounds > 0 && status.rounds_ended >= status.rounds;
    let mut report = NodeReport::from(&status);
    let why = report.no_result.why.take();
    report.no_result.why = why.or_else(|| console.void_rounds.why());
    let (rounds, inner_steps) = (report.rounds, report.inner_steps);
    tracing::info!(rounds, inner_steps, "daemon left");
    console.printer.report(&report);
    if let Some(supervisor) = supervisor {
        // The trainer was told when its lane ended.
        tokio::task::block_in_place(|| supervisor.finish());
    }
    if let Some(reason) = ending.unsaved {
        return Err(DaemonError::Unsaved(reason));
    }
    if let Some(reason) = ending.stopped.filter(|_| ending.interrupts == 0) {
        return Err(DaemonError::Stopped(reason));
    }
    let refused = status.troubles.into_iter().find(|it| it.kind.is_refusal());
    if let Some(trouble) = refused.filter(|_| all_done) {
        return Err(DaemonError::NoMember(trouble));
    }
    match judge.missed().filter(|_| all_done) {
        Some(missed) => Err(DaemonError::Missed { missed, rounds }),
        None => Ok(report),
    }
}

/// Sends one message for every Ctrl+C and every SIGTERM, which service managers send, and sets the
/// flag at the first.
fn watch_interrupts() -> Result<(mpsc::Receiver<()>, Arc<AtomicBool>), DaemonError> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt()).map_err(DaemonError::Runtime)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(DaemonError::Runtime)?;
    let (sender, receiver) = mpsc::channel(4);
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                Some(()) = interrupt.recv() => {}
                Some(()) = terminate.recv() => {}
                else => return,
            }
            flag.store(true, Ordering::Relaxed);
            if sender.send(()).await.is_err() {
                return;
            }
        }
    });
    Ok((receiver, interrupted))
}
