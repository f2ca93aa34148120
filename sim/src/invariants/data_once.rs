//! Data that the machines divide: how often the result of the rounds holds each sample.
//!
//! It follows the work orders alone: the training, the contributions in the sum of each row and shard, and the
//! decided sums. What peers say of their data plays no part in it.

use crate::data::DataReport;
use crate::host::Host;
use crate::scenario::DataSpec;
use murmurate_protocol::{
    Combination, Digest, Ending, FragmentId, Order, Part, PeerId, Piece, Plan, Round, SliceId,
    SortedMap, SortedSet, Source, StoreId,
};

/// Samples of blocks.
type Samples = SortedMap<u64, u64>;

/// A shard of a fragment at one machine.
type ShardAt = (PeerId, FragmentId, u16);

/// The training, sums and results of all machines.
#[derive(Debug)]
pub(super) struct DataOnce {
    spec: DataSpec,
    /// What each machine has trained that is in none of its contributions yet, or may be in the next.
    pending: SortedMap<PeerId, Samples>,
    /// What each contribution holds.
    brought: SortedMap<(Round, PeerId), Samples>,
    /// Of whose contributions the mean of a row is.
    rows: SortedMap<(Round, ShardAt), Vec<PeerId>>,
    /// Of whose slices a shard is.
    sums: SortedMap<ShardAt, Vec<PeerId>>,
    made: SortedMap<SliceId, Vec<PeerId>>,
    /// Whose contributions a round's result holds.
    applied: SortedMap<Round, SortedSet<PeerId>>,
    /// The ledger of the peers that opened a round with the same anchor.
    ledgers: SortedMap<(Round, Digest), Digest>,
    epochs: u64,
}

impl DataOnce {
    pub(super) fn new(spec: DataSpec) -> Self {
        Self {
            spec,
            pending: SortedMap::new(),
            brought: SortedMap::new(),
            rows: SortedMap::new(),
            sums: SortedMap::new(),
            made: SortedMap::new(),
            applied: SortedMap::new(),
            ledgers: SortedMap::new(),
            epochs: 0,
        }
    }

    /// A machine lost everything that it held.
    pub(super) fn gone(&mut self, peer: PeerId) {
        self.pending.remove(&peer);
    }

    pub(super) fn worked(&mut self, plan: &Plan, me: PeerId, host: &mut Host, order: &Order) {
        let first = |round: Round, fragment| plan.fragments_of(round).next() == Some(fragment);
        match order {
            Order::Train { .. } => {
                let trained = host.feed.as_mut().map(|feed| feed.trained());
                let pending = self.pending.entry(me).or_default();
                for block in trained.into_iter().flatten() {
                    *pending.entry(block).or_default() += 1;
                }
            }
            Order::Encode { slice, from, .. } => match from {
                Source::Store(StoreId::Local) | Source::Masked(_)
                    if first(slice.round, slice.fragment) =>
                {
                    let pending = self.pending.get(&me).cloned().unwrap_or_default();
                    self.brought.insert((slice.round, me), pending);
                }
                Source::Store(StoreId::Shard(shard)) => {
                    let sum = self.sums.get(&(me, slice.fragment, *shard)).cloned();
                    self.made.insert(*slice, sum.unwrap_or_default());
                }
                Source::Joined { inputs, .. } => {
                    let of = inputs.iter().map(|(slice, _)| slice.origin).collect();
                    self.made.insert(*slice, of);
                }
                Source::Bundle { parts, noted: true } => self.bundled(slice, parts),
                _ => {}
            },
            Order::Combine {
                piece: Piece {
                    fragment, shard, ..
                },
                how: Combination::SumRow(inputs),
            } => {
                let round = inputs.first().map(|(slice, _)| slice.round);
                let of = inputs.iter().map(|(slice, _)| slice.origin).collect();
                let at = (me, *fragment, *shard);
                self.rows.extend(round.map(|round| ((round, at), of)));
            }
            Order::Combine {
                piece: Piece {
                    fragment, shard, ..
                },
                how: Combination::Reduce(inputs),
            } => {
                let of = inputs.iter().map(|(slice, _)| slice.origin).collect();
                self.sums.insert((me, *fragment, *shard), of);
            }
            Order::Apply {
                round,
                fragment,
                ending: Ending::Apply(aggregates),
                keep_local,
                ..
            } if first(*round, *fragment) => {
                self.decided(*round, aggregates);
                if !keep_local {
                    self.settle(*round, me);
                }
            }
            Order::Load { .. } => self.gone(me),
            _ => {}
        }
    }

    /// In a grid: the first part of the column that decides the note tells whose contributions count.
    fn bundled(&mut self, slice: &SliceId, parts: &[SliceId]) {
        let made = parts.first().and_then(|part| self.made.get(part));
        let rows = made.into_iter().flatten();
        let row = |owner: &PeerId| {
            let at = (*owner, slice.fragment, slice.shard);
            self.rows.get(&(slice.round, at)).cloned()
        };
        let of: SortedSet<PeerId> = rows.filter_map(row).flatten().collect();
        self.applied.entry(slice.round).or_insert(of);
    }

    /// Elsewhere: the contributions that are in every shard.
    fn decided(&mut self, round: Round, aggregates: &[SliceId]) {
        if self.applied.contains_key(&round) || aggregates.iter().any(|s| s.part == Part::Bundle) {
            return;
        }
        let sums = aggregates.iter().map(|slice| self.made.get(slice));
        let sums: Option<Vec<SortedSet<PeerId>>> = sums
            .map(|sum| Some(sum?.iter().copied().collect()))
            .collect();
        let all = sums.and_then(|sums| {
            sums.into_iter()
                .reduce(|all, sum| all.intersection(&sum).copied().collect())
        });
        self.applied.extend(all.map(|all| (round, all)));
    }

    /// A machine has taken over a round's result: none of its contribution is pending any more.
    fn settle(&mut self, round: Round, me: PeerId) {
        let Some(pending) = self.pending.get_mut(&me) else {
            return;
        };
        for (block, samples) in self.brought.get(&(round, me)).into_iter().flatten() {
            if let Some(left) = pending.get_mut(block) {
                *left = left.saturating_sub(*samples);
            }
        }
    }

    /// A machine begins a round.
    pub(super) fn opens(&mut self, host: &Host) -> Result<(), String> {
        let ledger = host.peer.ledger();
        let at = (host.peer.round(), host.peer.digest());
        self.epochs = self.epochs.max(ledger.epochs(self.spec.pool()));
        let digest = ledger.digest();
        if *self.ledgers.entry(at).or_insert(digest) == digest {
            Ok(())
        } else {
            Err(format!("another ledger than others have at {}", at.0))
        }
    }

    /// How often the parameters hold the samples of the epochs that are done.
    pub(super) fn report(&self) -> DataReport {
        let mut held: Samples = SortedMap::new();
        for (round, peers) in &self.applied {
            for peer in peers {
                let brought = self.brought.get(&(*round, *peer)).into_iter().flatten();
                for (block, samples) in brought {
                    *held.entry(*block).or_default() += samples;
                }
            }
        }
        let blocks = 0..self.epochs * u64::from(self.spec.blocks);
        let each = blocks.map(|block| held.get(&block).copied().unwrap_or(0));
        let once = self.spec.samples;
        DataReport {
            epochs: self.epochs,
            samples: self.epochs * u64::from(self.spec.blocks) * once,
            unseen: each.clone().map(|held| once.saturating_sub(held)).sum(),
            twice: each.map(|held| held.saturating_sub(once)).sum(),
        }
    }
}
