//! Builds machines. No other file constructs a Peer or an Executor.

use crate::data::Feed;
use crate::error::SimError;
use crate::host::{Checkpoint, Host, Kept, Worker};
use crate::scenario::{DataSpec, Labels, Scenario, TaskSpec};
use crate::task::{TrainerFactory, TrainerRequest};
use crate::timing::{self, Timing};
use core::time::Duration;
use murmurate_protocol::limits::{ACTIVE_LINKS_MAX, GROUP_MEMBERS_MAX, RECORD_LIFETIME};
use murmurate_protocol::wire::{PeerRecord, RecordFields, canonical};
use murmurate_protocol::{
    Base, Combination, Digest, Ending, FragmentId, Input, Locality, Order, Part, Peer, PeerConfig,
    PeerId, Piece, Plan, RunId, SharedRolls, Site, SiteFinder, SliceId, SliceMeta, Source, Time,
};
use murmurate_strategies::executor::{Executor, Parts, Secrets, Stopwatch};
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::state::StateError;
use murmurate_strategies::{Layout, Trainer};

/// How long a peer waits at its start for the other peers of the scenario.
const START_WAIT: Duration = Duration::from_secs(30);

/// Most peers that a fresh run waits for: those of one group. In a larger swarm no peer is linked
/// with all others.
const fn start_with(peers: usize) -> usize {
    match peers {
        0 => 1,
        1..=GROUP_MEMBERS_MAX => peers,
        _ => ACTIVE_LINKS_MAX,
    }
}

/// A clock that stands still for the Executor: the lanes know how long training takes.
struct Stopped;

impl Stopwatch for Stopped {
    fn start(&mut self) {}

    fn elapsed(&mut self, _steps: u64) -> Duration {
        Duration::ZERO
    }
}

/// The secret of two machines: here it must repeat, and hides nothing.
fn secret(one: PeerId, other: PeerId) -> [u8; 32] {
    *Digest::of(&canonical(&("pair", one, other))).as_bytes()
}

/// Everything that machines have in common: the strategy, its plan, and the task.
pub(crate) struct Recipe<'a> {
    scenario: &'a Scenario,
    factory: &'a dyn TrainerFactory,
    strategy: Strategy,
    plan: Plan,
    ids: Vec<PeerId>,
    /// The machines of a grid or of cells hold the same roll.
    rolls: SharedRolls,
    start_with: usize,
}

impl<'a> Recipe<'a> {
    /// Checks that the scenario's strategy fits its task.
    pub(crate) fn new(
        scenario: &'a Scenario,
        factory: &'a dyn TrainerFactory,
    ) -> Result<Self, SimError> {
        let strategy = Strategy::from_table(scenario.strategy.clone(), None)?;
        let strategy = strategy.for_peers(scenario.peers);
        let layout = match &scenario.task {
            TaskSpec::Timing { parameters } => Layout::new([("parameters", vec![*parameters])]),
            _ => trainer(scenario, factory, &strategy, 0)?.layout().clone(),
        };
        let run = Digest::of(&scenario.seed.to_le_bytes());
        let run = RunId::from_bytes(*run.as_bytes());
        let plan = strategy.plan(run, &layout, scenario.rounds)?;
        let late = scenario.late_peers();
        let has_roll = plan.agreement.grouping.has_roll();
        let ids = (0..scenario.peers)
            .map(|index| peer_id(scenario.seed, index))
            .collect();
        Ok(Self {
            scenario,
            factory,
            strategy,
            plan,
            ids,
            rolls: SharedRolls::default(),
            start_with: if has_roll {
                scenario.peers - late
            } else {
                start_with(scenario.peers - late)
            },
        })
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn id(&self, index: usize) -> PeerId {
        self.ids[index]
    }

    pub(crate) fn index_of(&self, peer: &PeerId) -> Option<usize> {
        let index = index_in(peer);
        (self.ids.get(index) == Some(peer)).then_some(index)
    }

    /// The peer record that a daemon would sign.
    pub(crate) fn record(
        &self,
        index: usize,
        now: Time,
        sequence: u64,
        locality: Locality,
    ) -> PeerRecord {
        PeerRecord::from(RecordFields {
            peer: self.ids[index],
            run: self.plan.run,
            sequence,
            expires: now + RECORD_LIFETIME,
            addresses: vec![(index as u32).to_le_bytes().to_vec()],
            locality,
            signature: Vec::new(),
        })
    }

    /// A new machine and the first input of its peer.
    pub(crate) fn boot(
        &self,
        index: usize,
        join: bool,
        checkpoint: Option<&Checkpoint>,
        opened: Vec<Base>,
    ) -> Result<(Host, Input), SimError> {
        let config = PeerConfig {
            me: self.ids[index],
            seed: self.scenario.seed,
            start_with: self.start_with,
            companions: 0,
            start_wait: START_WAIT,
            join,
            save_every: self.scenario.save_every,
            evaluate_every: self.scenario.evaluate_every,
            evaluate_percent: 0,
            leave_when_finished: false,
            pool: self.scenario.data.map(DataSpec::pool),
            // Machines that restart take over a newer state than the one that they masked deltas in.
            masked: None,
        };
        let (worker, digests) = self.worker(index, checkpoint)?;
        let start = Input::Start {
            snapshot: checkpoint.map(|checkpoint| (*checkpoint.snapshot).clone()),
            digests,
            opened,
        };
        let topology = self.strategy.topology(self.scenario.seed);
        let peer = Peer::new(config, self.plan.clone(), topology).sharing(self.rolls.clone());
        let mut host = Host::new(peer, worker);
        let fed = checkpoint.and_then(|checkpoint| checkpoint.feed.clone());
        host.finder = site_finder(self.scenario, index, self.ids[index]).map(Box::new);
        host.feed = fed.or_else(|| self.scenario.data.map(Feed::new));
        Ok((host, start))
    }

    /// The performer of a machine's orders, and its first digests.
    fn worker(
        &self,
        index: usize,
        checkpoint: Option<&Checkpoint>,
    ) -> Result<(Worker, Vec<Digest>), SimError> {
        let kept = checkpoint.map(|checkpoint| &checkpoint.kept);
        if self.scenario.is_timing_only() {
            let mut timing = Timing::new(&self.plan);
            if let Some(Kept::Digests(digests)) = kept {
                timing.restore(digests);
            }
            let digests = timing.digests();
            return Ok((Worker::Timing(timing), digests));
        }
        let trainer = trainer(self.scenario, self.factory, &self.strategy, index)?;
        let mut executor = Executor::new(trainer, self.parts(index), Box::new(Stopped));
        if let Some(Kept::Tensors(state)) = kept {
            let refused = |error: StateError| SimError::Checkpoint {
                peer: index,
                reason: error.to_string(),
            };
            executor.restore(state).map_err(refused)?;
        }
        let digests = executor.digests();
        Ok((Worker::Executor(Box::new(executor)), digests))
    }

    fn parts(&self, index: usize) -> Parts {
        let exchanged = self.plan.fragments.iter().map(|f| f.len).sum::<u64>() as usize;
        // A companion has the length of the parameters.
        let len = exchanged / (1 + self.strategy.companion().len(1));
        let mut parts = Parts::new(&self.strategy, &self.plan, len);
        // Here noise must repeat for a seed, and hides nothing.
        let named = canonical(&("noise", self.scenario.seed, index as u64));
        let (me, noise) = (self.ids[index], *Digest::of(&named).as_bytes());
        parts.hidden.secrets = Some(Secrets {
            noise,
            pairs: Box::new(move |other| Some(secret(me.min(other), me.max(other)))),
            masked: None,
        });
        parts
    }

    pub(crate) fn digest_of(&self, slice: &SliceId, bytes: &[u8]) -> Digest {
        if self.scenario.is_timing_only() {
            timing::digest_of(slice, bytes)
        } else {
            Digest::of(bytes)
        }
    }

    /// Bytes of a slice's values as f32.
    pub(crate) fn payload_bytes(&self, slice: SliceId, meta: &SliceMeta) -> u64 {
        if slice.part == Part::Scores {
            return meta.bytes;
        }
        let values = self
            .plan
            .fragment(slice.fragment)
            .map_or(0, |fragment| fragment.len);
        4 * values.div_ceil(u64::from(meta.of.max(1)))
    }

    /// Values that are read to encode a slice.
    fn encoded_of(&self, slice: &SliceId, of: u16, from: &Source) -> u64 {
        let fragment = self.plan.fragment(slice.fragment).map_or(0, |f| f.len);
        let shard = fragment / u64::from(of.max(1));
        match from {
            Source::Store(_) | Source::Second { .. } => shard,
            // A mask for each other member.
            Source::Masked(members) => shard * members.len() as u64,
            Source::Basis(inputs) | Source::Joined { inputs, .. } => shard * inputs.len() as u64,
            Source::Relayed(inputs) => fragment * (inputs.len() as u64 + 1),
            // Bytes are copied.
            Source::Noted(_) | Source::Bundle { .. } | Source::Bytes(_) => 0,
        }
    }

    /// Values that are read or written to combine slices.
    fn combined_of(&self, piece: Piece, how: &Combination) -> u64 {
        let fragment = self.plan.fragment(piece.fragment).map_or(0, |f| f.len);
        let shard = fragment / u64::from(piece.of.max(1));
        let slices = how.slices().len() as u64;
        match how {
            Combination::Reduce(_) | Combination::SumRow(_) | Combination::Average(_) => {
                shard * slices
            }
            Combination::Mix { .. } | Combination::MixReplicas { .. } => fragment * slices,
            Combination::ResetCenter(_) => shard * slices,
            Combination::MoveCenter(_) => shard * (slices + 1),
        }
    }

    /// Values that the mix lane reads or writes for an order.
    pub(crate) fn values_of(&self, order: &Order) -> u64 {
        let fragment = |id: &FragmentId| self.plan.fragment(*id).map_or(0, |f| f.len);
        let whole: u64 = self.plan.fragments.iter().map(|f| f.len).sum();
        match order {
            Order::Encode { slice, of, from } => self.encoded_of(slice, *of, from),
            Order::Combine { piece, how } => self.combined_of(*piece, how),
            Order::Apply {
                fragment: id,
                ending: Ending::Gather(inputs),
                ..
            } => fragment(id) * (inputs.len() as u64 + 1),
            Order::Apply { fragment: id, .. } => fragment(id),
            Order::Save { .. } | Order::Pin { .. } | Order::Load { .. } => whole,
            Order::Stage { slice } => whole * (1 + u64::from(slice.is_some())),
            // Bytes are copied, or nothing is.
            Order::Read { .. }
            | Order::Measure { .. }
            | Order::Settle { .. }
            | Order::Release { .. }
            | Order::Forget(_)
            | Order::Train { .. }
            | Order::Evaluate { .. } => 0,
        }
    }
}

pub(crate) fn trainer(
    scenario: &Scenario,
    factory: &dyn TrainerFactory,
    strategy: &Strategy,
    index: usize,
) -> Result<Box<dyn Trainer>, SimError> {
    let trainer = match &scenario.task {
        TaskSpec::Toy(task) => {
            let task = task.with_inner(*strategy.inner_kind());
            task.build(index, scenario.peers, scenario.seed)
        }
        TaskSpec::Timing { .. } => {
            return Err(SimError::Task("timing has no trainer".to_owned()));
        }
        TaskSpec::Factory { kind, options } => {
            let (peers, seed) = (scenario.peers, scenario.seed);
            let request = TrainerRequest {
                kind,
                options,
                peer: index,
                peers,
                inner: strategy.inner_kind(),
                seed,
            };
            factory.trainer(&request).map_err(SimError::Task)?
        }
    };
    let kept = strategy.trainer(trainer);
    kept.map_err(|error| SimError::Task(error.to_string()))
}

/// What a machine knows of its site at its start; none where records name no sites.
fn site_finder(scenario: &Scenario, index: usize, id: PeerId) -> Option<SiteFinder> {
    let network = &scenario.network;
    let site = network
        .sites
        .iter()
        .find(|site| site.peers.contains(&index));
    let fixed = match network.labels {
        Labels::None => return None,
        Labels::Configured => site.and_then(|site| Site::new(&site.name).ok()),
        Labels::Measured => None,
    };
    let uplink = site.and_then(|site| site.uplink).or(network.uplink);
    let finder = SiteFinder::new(Site::measured(id.as_bytes()));
    Some(finder.fixed(fixed).sending(uplink.map(|rate| rate as u64)))
}

/// A peer id with the index in its last four bytes. So finding a machine needs no search, and the
/// order of peer ids is independent of the order of indices.
fn peer_id(seed: u64, index: usize) -> PeerId {
    let mut material = [0; 12];
    material[..8].copy_from_slice(&seed.to_le_bytes());
    material[8..].copy_from_slice(&(index as u32).to_le_bytes());
    let mut bytes = *Digest::of(&material).as_bytes();
    bytes[28..].copy_from_slice(&(index as u32).to_le_bytes());
    PeerId::from_bytes(bytes)
}

fn index_in(peer: &PeerId) -> usize {
    let bytes = peer.as_bytes();
    u32::from_le_bytes([bytes[28], bytes[29], bytes[30], bytes[31]]) as usize
}
