//! Builds the parts from the configuration: directory, trainer, Executor, checkpoint, network; and the HTTP server
//! and the event log, which show the daemon.

use super::clock::WallStopwatch;
use super::contacts::{Acquaintances, finder};
use super::judge::Judge;
use super::mark::Mark;
use super::privacy::Account;
use super::trainer::{self, Made};
use super::{DaemonError, SteadyClock};
use crate::api::{
    About, Altered, ApiServer, Clock, Forecaster, Observer, Served, StatusHandle, TOKEN_FILE, Token,
};
use crate::bulk::{BulkLimits, BulkStore};
use crate::config::{Config, Overrides};
use crate::depot::Depot;
use crate::events::{EventLog, Kind, Recent};
use crate::lanes::Saver;
use crate::lies::{Forger, Lie, LyingStore};
use crate::membership::Entered;
use crate::metrics::RateFact;
use crate::net::{self, Net, NetConfig, NetEvent};
use crate::store::{Best, Checkpoint, Expected, Manifest, Store, random_bytes};
use crate::unit::Unit;
use murmurate_attach::Supervisor;
use murmurate_net::tcp::BulkChoice;
use murmurate_protocol::{
    Digest, EVALUATE_NEVER, LayoutHash, PeerConfig, PeerId, Plan, Pool, Round, Snapshot, Topology,
};
use murmurate_strategies::Layout;
use murmurate_strategies::executor::{Executor, Parts, Secrets};
use murmurate_strategies::grid::StrategyError;
use murmurate_strategies::plan::stores;
use murmurate_tasks::TaskConfig;
use murmurate_tasks::data::ShardKind;
use murmurate_trust::pair_secret;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;

pub(super) struct Setup {
    pub(super) store: Store,
    pub(super) entered: Entered,
    pub(super) plan: Plan,
    pub(super) topology: Option<Box<dyn Topology>>,
    pub(super) peer_config: PeerConfig,
    pub(super) executor: Executor,
    pub(super) depot: Arc<Depot>,
    pub(super) saver: Arc<Saver>,
    pub(super) status: StatusHandle,
    pub(super) snapshot: Option<Snapshot>,
    /// Keeps the trainer's process running, if it has one.
    pub(super) supervisor: Option<Supervisor>,
    /// Judges evaluations, and counts contributions where the run promises privacy.
    pub(super) judge: Judge,
    pub(super) unit: Unit,
    /// The peers of an earlier life, with a warning if they cannot be read.
    pub(super) acquaintances: (Acquaintances, Option<String>),
    pub(super) resumed: Option<String>,
}

impl Setup {
    pub(super) fn new(
        config: &Config,
        (store, entered): (Store, Entered),
        clock: SteadyClock,
        make: impl FnOnce(&Config) -> Result<Made, DaemonError>,
    ) -> Result<Self, DaemonError> {
        let (run, strategy) = (&config.run, &config.strategy);
        let made = make(config)?;
        let (supervisor, evaluates) = (made.supervisor, made.evaluates);
        let trainer = strategy.trainer(made.trainer)?;
        let layout = Arc::new(trainer.layout().clone());
        keep_pages(config, layout.len());
        let (frozen, pool, named) = (trainer.frozen(), trainer.pool(), trainer.named_scores());
        let plan_of = |rounds| plan(config, &layout, frozen, rounds);
        let plan = plan_of(run.rounds)?;
        let expected = Expected {
            run: run.id,
            plan: plan.hash(),
            layout: plan.layout,
        };
        let checkpoint = store.resume(&expected, &|rounds| Some(plan_of(rounds).ok()?.hash()))?;
        let mark = mark(config, store.dir(), checkpoint.as_ref())?;
        let parts = parts(config, &plan, layout.len(), (&store, mark.as_ref()));
        let mut executor = Executor::new(trainer, parts, Box::new(WallStopwatch::new()));
        let restored = |checkpoint| restore(config, checkpoint, &mut executor);
        let mut snapshot = checkpoint.as_ref().map(restored).transpose()?;
        // The plan of the checkpoint may have another number of rounds.
        if let Some(snapshot) = &mut snapshot {
            snapshot.plan = expected.plan;
        }
        let peer = store.identity().peer();
        let manifest = checkpoint.as_ref().map(Checkpoint::manifest);
        let acquaintances = Acquaintances::load(store.dir().to_owned(), run.id, peer);
        let companions = acquaintances.0.companions().len();
        // Members without a state of the run take it from others: they never begin one of their own.
        let joins = !config.network.join.is_empty()
            || (entered.invited && companions == 0 && snapshot.is_none());
        let about = About {
            expects_others: joins || entered.invited || companions > 0,
            ..about(config, &plan, &layout, &executor, &peer.to_hex())?
        };
        let (unit, best) = (about.unit, Best::read(store.dir(), &expected));
        let mut observer = Observer::new(about, manifest.map(|it| it.progress).unwrap_or_default());
        observer.trouble = supervisor.as_ref().map(Supervisor::trouble);
        observer.named = named;
        let signed = snapshot.iter().filter(|_| plan.agreement.signs());
        signed.for_each(|it| misses(&mut observer, clock, peer, &it.seats));
        let other = other_identity(&store, checkpoint.as_ref());
        other.into_iter().for_each(|it| observer.altered(it));
        let judge = judge(config, (best, mark), store.dir(), &mut observer)?;
        let status = StatusHandle::new(observer, Arc::new(clock));
        let saver = Saver {
            dir: store.dir().to_owned(),
            expected,
            run_name: run.name.clone(),
            peer: peer.to_hex(),
            config: config.portable(),
            layout,
            status: status.clone(),
        };
        Ok(Self {
            resumed: manifest.map(|from| resumes(config, from, &store)),
            depot: Arc::new(Depot::in_dir(plan.clone(), store.dir())),
            topology: strategy.topology(run.seed),
            peer_config: peer_config(config, (peer, &judge), companions, pool, joins, evaluates),
            acquaintances,
            judge,
            unit,
            supervisor,
            saver: Arc::new(saver),
            store,
            entered,
            plan,
            executor,
            status,
            snapshot,
        })
    }

    /// What changes this daemon's bytes, if it was told to lie.
    pub(super) fn forger(&self, config: &Config, lies: &[Lie]) -> Option<Arc<Forger>> {
        let codec = || config.strategy.codec();
        (!lies.is_empty()).then(|| Forger::new(lies.to_vec(), self.plan.clone(), codec()))
    }

    pub(super) fn network(
        &self,
        config: &Config,
        forger: Option<&Arc<Forger>>,
    ) -> Result<(Net, mpsc::Receiver<NetEvent>), DaemonError> {
        let net = network_config(config, &self.store, &self.entered, &self.acquaintances.0);
        let (depot, me) = (Arc::clone(&self.depot), self.peer_config.me);
        let depot: Arc<dyn BulkStore> = match forger {
            Some(forger) => Arc::new(LyingStore::new(depot, Arc::clone(forger), me)),
            None => depot,
        };
        let fragments = self.plan.fragments.iter();
        let largest = fragments.map(|f| self.plan.slice_bytes_max(f)).max();
        let limits = BulkLimits {
            slice_bytes_max: largest.unwrap_or(0).max(1 << 20) * 2,
            ..BulkLimits::default()
        };
        Ok(net::start(net, depot, limits)?)
    }
}

fn parts(
    config: &Config,
    plan: &Plan,
    len: usize,
    (store, mark): (&Store, Option<&Mark>),
) -> Parts {
    let mut parts = Parts::new(&config.strategy, plan, len);
    let seed = store.identity().seed();
    parts.hidden.secrets = Some(Secrets {
        noise: random_bytes(),
        pairs: Box::new(move |other| pair_secret(&seed, other)),
        masked: mark.and_then(Mark::reached),
    });
    parts.ema = config.daemon.watch.ema;
    parts
}

/// The mark of masked rounds, where contributions are masked.
fn mark(
    config: &Config,
    dir: &Path,
    checkpoint: Option<&Checkpoint>,
) -> Result<Option<Mark>, DaemonError> {
    let saved = checkpoint.map(|it| Round(it.manifest().round));
    let masked = config.strategy.aggregation().is_masked();
    let mark = masked.then(|| Mark::open(dir, config.run.id, saved));
    Ok(mark.transpose()?)
}

/// The judge, with what the run keeps of hidden contributions.
///
/// # Errors
/// If the account cannot be read, or is spent, or the data is not this daemon's own.
fn judge(
    config: &Config,
    (best, mark): (Option<Best>, Option<Mark>),
    dir: &Path,
    observer: &mut Observer,
) -> Result<Judge, DaemonError> {
    let rule = config.strategy.aggregation();
    let mut judge = Judge::new(&config.daemon.watch, best);
    judge.mark = mark;
    let Some(privacy) = rule.privacy() else {
        Account::close(dir)?;
        return Ok(judge);
    };
    if config.shards.kind == ShardKind::Dealt {
        return Err(DaemonError::PrivacyDealt);
    }
    let account = Account::open(dir, privacy)?;
    if account.is_spent() {
        let status = account.status().sentence();
        return Err(DaemonError::PrivacySpent { status });
    }
    observer.privacy(account.status());
    judge.account = Some(account);
    Ok(judge)
}

/// Keeps pages for the next inner step where this process takes it.
fn keep_pages(config: &Config, parameters: usize) {
    if config.trains_here() {
        murmurate_tasks::keep_pages_for(parameters);
    }
}

/// The plan of a configuration with this number of rounds. Beside the strategy, peers agree on the seed, from which
/// they draw initial parameters and deal the data, and on the values of the model that are not trained.
///
/// # Errors
/// As [`Strategy::plan`](murmurate_strategies::grid::Strategy::plan).
fn plan(
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

pub(super) fn network_config(
    config: &Config,
    store: &Store,
    entered: &Entered,
    acquaintances: &Acquaintances,
) -> NetConfig {
    let keys = store.identity().keypair().clone();
    let mut net = NetConfig::new(keys, Arc::clone(&entered.membership));
    net.listen.clone_from(&config.network.listen);
    net.ports.clone_from(acquaintances.ports());
    net.announce.clone_from(&config.network.announce);
    net.join.clone_from(&config.network.join);
    net.mdns = config.network.mdns;
    net.relay = config.network.relay;
    net.carry_links = config.network.carry_links;
    net.congestion = config.network.congestion;
    net.bulk = (config.network.bulk, config.network.bulk_port);
    net.proxy.clone_from(&config.network.proxy);
    if net.proxy.is_some() {
        // TLS would dial directly.
        net.bulk.0 = BulkChoice::Quic;
    }
    net.payload_max = config.network.payload_max;
    net.wire = config.network.wire;
    net.max_rate.set(config.network.max_rate);
    net.locality = finder(store.identity().peer(), &config.network).locality();
    net
}

fn peer_config(
    config: &Config,
    (me, judge): (PeerId, &Judge),
    companions: usize,
    pool: Option<Pool>,
    join: bool,
    evaluates: bool,
) -> PeerConfig {
    PeerConfig {
        me,
        seed: config.run.seed,
        start_with: config.run.start_with,
        companions,
        start_wait: config.run.start_wait,
        join,
        save_every: config.daemon.save_every,
        evaluate_every: if evaluates {
            config.daemon.evaluate_every.unwrap_or(1)
        } else {
            EVALUATE_NEVER
        },
        evaluate_percent: match config.daemon.evaluate_every {
            None if !config.daemon.watch.judges() => EVALUATE_PERCENT,
            _ => 0,
        },
        leave_when_finished: !config.daemon.stay,
        pool,
        masked: judge.mark.as_ref().and_then(Mark::reached),
    }
}

/// The most of the time that evaluations take where the configuration does not say how often they are due.
const EVALUATE_PERCENT: u8 = 5;

/// What to say about a checkpoint.
fn resumes(config: &Config, from: &Manifest, store: &Store) -> String {
    let (round, dir) = (from.round, store.dir());
    let resuming = format!(
        "resuming from the checkpoint of round {round} in {}",
        dir.display()
    );
    if (1..=round).contains(&config.run.rounds) {
        return format!("{resuming}, beyond which there is none to train (give more --rounds)");
    }
    match rate_jump(config, from) {
        Some(jump) => format!("{resuming}; {jump}"),
        None => resuming,
    }
}

/// What to say where the files of the directory are another peer's, because its key was lost or replaced.
fn other_identity(store: &Store, checkpoint: Option<&Checkpoint>) -> Option<Altered> {
    let (dir, me) = (store.dir().display(), store.identity().peer());
    let action = "To be the one that wrote them, stop this daemon, put the old identity.key back and start again.";
    if let Some(files) = store.left_by_another() {
        let text = format!(
            "{dir} held {files} and no identity.key, so this daemon is a new peer, {me}, and the others wait for the \
             old one in vain"
        );
        return Some(Altered::for_good(text, action));
    }
    let writer = PeerId::from_hex(&checkpoint?.manifest().peer)?;
    let text = format!(
        "{dir} holds the checkpoint of daemon {writer}, and by its identity.key this is daemon {me}: the two are \
         different peers"
    );
    (writer != me).then(|| Altered::for_good(text, action))
}

/// The schedule of the learning rate follows the number of rounds: what another number changes at once.
fn rate_jump(config: &Config, from: &Manifest) -> Option<String> {
    let before =
        Config::from_text(Path::new("config"), &from.config, &Overrides::default()).ok()?;
    let (rounds, earlier) = (config.run.rounds, before.run.rounds);
    let middle = from.round as f64 + 0.5;
    let at = |rounds| Some(config.strategy.learning_rate(rounds).ok()?.at(middle));
    let (was, is) = (at(earlier)?, at(rounds)?);
    ((was - is).abs() > 0.01 * is).then(|| {
        format!(
            "the run had {earlier} rounds and now has {rounds}, and the learning rate follows their number: its \
             factor is {is:.3} from here on, not {was:.3} (`inner.schedule_rounds` fixes its \
             end)"
        )
    })
}

fn restore(
    config: &Config,
    checkpoint: &Checkpoint,
    executor: &mut Executor,
) -> Result<Snapshot, DaemonError> {
    let dir = || config.daemon.dir.display().to_string();
    let bytes = checkpoint.manifest().snapshot();
    let snapshot = bytes.and_then(|bytes| Snapshot::from_bytes(&bytes).ok());
    let snapshot = snapshot.ok_or_else(|| DaemonError::Snapshot(dir()))?;
    executor
        .restore(checkpoint)
        .map_err(|source| DaemonError::Restore { dir: dir(), source })?;
    Ok(snapshot)
}

/// Where members sign, those of the last results count, whether they are here or not.
fn misses(observer: &mut Observer, clock: SteadyClock, me: PeerId, seats: &[PeerId]) {
    let others = seats.iter().filter(|seat| **seat != me);
    others.for_each(|seat| observer.took_part(clock.now(), *seat));
}

/// The learning rate of a run's rounds.
pub(super) fn rate_fact(config: &Config) -> Result<RateFact, DaemonError> {
    let own = trainer::patience_of(&config.task).is_some();
    Ok(RateFact {
        lr: (!own).then(|| config.strategy.inner_kind().lr()),
        factor: config.strategy.learning_rate(config.run.rounds)?,
    })
}

/// The codecs that the owner of a run may choose. In an open run no one directs.
fn codecs(config: &Config) -> Vec<String> {
    if config.run.open {
        return Vec::new();
    }
    let all = config.strategy.codecs();
    all.iter().map(|spec| spec.name.to_owned()).collect()
}

/// The task in words: its kind, its model and its data.
fn task_words(task: &TaskConfig) -> String {
    let fields = serde_json::to_value(task).unwrap_or_default();
    let words = ["kind", "model", "data"].map(|key| fields[key].as_str().unwrap_or_default());
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(", ")
}

fn about(
    config: &Config,
    plan: &Plan,
    layout: &Layout,
    executor: &Executor,
    peer: &str,
) -> Result<About, DaemonError> {
    let mut multiples = stores(&config.strategy, plan, layout.len() as u64);
    if executor.copies_what_is_trained() {
        multiples.entry("local".to_owned()).or_insert(1.0);
    }
    if config.daemon.watch.ema.is_some() {
        multiples.insert("moving average".to_owned(), 1.0);
    }
    // Those of the first rank are among the stores.
    let others = config.island.ranks - 1;
    if others > 0 {
        let of_trainer = ["parameters", "gradients", "inner optimizer"];
        let each: f64 = of_trainer.iter().filter_map(|s| multiples.get(*s)).sum();
        multiples.insert("other ranks".to_owned(), f64::from(others) * each);
    }
    Ok(About {
        ranks: config.island.ranks,
        rate: Some(rate_fact(config)?),
        codec: config.strategy.codec_kind().name().to_owned(),
        codecs: codecs(config),
        agrees: config.strategy.exchange().agrees(),
        agreement: plan.agreement,
        expects_others: false,
        run: config.run.name.clone(),
        name: config.daemon.name.as_ref().map(ToString::to_string),
        goal: config.daemon.watch.target,
        peer: peer.to_owned(),
        plan: plan.hash().to_hex(),
        preset: config.strategy.name().to_owned(),
        rounds: config.run.rounds,
        task: task_words(&config.task),
        parameters: layout.len() as u64,
        multiples,
        forecaster: Some(Forecaster::new(
            config.strategy.clone(),
            plan.clone(),
            layout.len() as u64,
        )),
        unit: Unit {
            bytes_per_token: murmurate_tasks::bytes_per_token(&config.task)?,
        },
    })
}

/// Opens the event log. A daemon whose log cannot be written runs without a file.
pub(super) fn event_log(
    config: &Config,
    setup: &Setup,
    clock: SteadyClock,
    ephemeral: bool,
) -> EventLog {
    let me = setup.peer_config.me.to_hex();
    let opened = if ephemeral {
        Ok(EventLog::in_memory(&me))
    } else {
        EventLog::open(&config.daemon.dir, &me)
    };
    let mut log = opened.unwrap_or_else(|error| {
        tracing::warn!(%error, "the event log cannot be opened");
        EventLog::in_memory(&me)
    });
    let started = Kind::Started {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        run: config.run.name.clone(),
        name: config.daemon.name.as_ref().map(ToString::to_string),
    };
    log.add(clock.now(), 0, started);
    log
}

/// Starts the HTTP server, and notes in the directory where it is and what changes need.
pub(super) async fn serve(
    config: &Config,
    setup: &Setup,
    net: &Net,
    recent: Recent,
) -> Result<ApiServer, DaemonError> {
    let token = Token::new(random_bytes());
    let served = Served {
        status: setup.status.clone(),
        recent,
        rate: net.max_rate(),
        token: token.clone(),
        names: config.daemon.http_names.clone(),
    };
    let api = ApiServer::start(config.daemon.http, served).await?;
    setup.store.note_secret(TOKEN_FILE, &token.text())?;
    setup.store.note_http(api.address())?;
    Ok(api)
}
