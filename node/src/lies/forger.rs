//! Changes what the Executor of a lying daemon has encoded, before the network can take it.

use super::lie::{Lie, LieMode};
use crate::bulk::BulkStore;
use crate::depot::Depot;
use bytes::Bytes;
use murmurate_protocol::{
    Digest, Done, Order, Part, PeerId, Plan, SliceId, SliceMeta, Source, StateId, StoreId,
};
use murmurate_strategies::compress::{Codec, EncodeContext};
use murmurate_strategies::executor::{STATE_HEADER_BYTES, StateStore};
use murmurate_strategies::slices::SliceStore;
use std::sync::{Arc, Mutex, PoisonError};

/// What a poisoned contribution is multiplied by. The quarantine allows far more.
const POISON: f32 = 10.0;

/// What the owner of a shard makes of the true sum.
const FALSE_SUM: f32 = -4.0;

/// What receivers get of the same slice, in the order in which they ask for it.
const VARIANTS: [f32; 4] = [1.0, -1.0, 0.5, 2.0];

/// Changes encoded slices and states. Shared by the mix lane, the driver and the network.
pub(crate) struct Forger {
    lies: Vec<Lie>,
    plan: Plan,
    codecs: Mutex<Codecs>,
    told: Mutex<Vec<PeerId>>,
}

/// The codecs of the run, as the Executor has them.
struct Codecs {
    contribution: Box<dyn Codec>,
    aggregate: Box<dyn Codec>,
}

impl std::fmt::Debug for Forger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forger")
            .field("lies", &self.lies)
            .finish_non_exhaustive()
    }
}

impl Forger {
    pub(crate) fn new(lies: Vec<Lie>, plan: Plan, contribution: Box<dyn Codec>) -> Arc<Self> {
        let aggregate = contribution.aggregate();
        let codecs = Mutex::new(Codecs {
            contribution,
            aggregate,
        });
        Arc::new(Self {
            lies,
            plan,
            codecs,
            told: Mutex::default(),
        })
    }

    pub(crate) fn tells(&self, mode: LieMode, round: u64) -> bool {
        let mut lies = self.lies.iter();
        lies.any(|lie| lie.mode == mode && lie.is_told_in(round))
    }

    /// Changes what an order left in the depot, and the answer with it.
    pub(crate) fn done(&self, order: &Order, done: Done, depot: &Depot) -> Done {
        match (order, done) {
            (Order::Encode { slice, of, from }, Done::Encoded { bytes, digest }) => {
                let store = match from {
                    Source::Store(store) => Some(*store),
                    Source::Relayed(_) => Some(StoreId::Local),
                    _ => None,
                };
                let forged = store.and_then(|store| {
                    let factor = self.factor(store, slice.round.0);
                    self.replace(depot, slice, *of, factor)
                });
                forged.unwrap_or(Done::Encoded { bytes, digest })
            }
            (_, Done::Pinned(state)) if self.tells(LieMode::State, state.round.0) => {
                self.pinned(depot, state).unwrap_or(Done::Pinned(state))
            }
            (_, done) => done,
        }
    }

    fn factor(&self, store: StoreId, round: u64) -> f32 {
        let told = |mode, factor| if self.tells(mode, round) { factor } else { 1.0 };
        match store {
            StoreId::Shard(_) | StoreId::Row | StoreId::Merged(_) | StoreId::Center => {
                told(LieMode::OwnerLie, FALSE_SUM)
            }
            StoreId::Local | StoreId::Anchor | StoreId::Branch | StoreId::Replica(_) => {
                told(LieMode::Poison, POISON) * told(LieMode::SignFlip, -1.0)
            }
        }
    }

    fn replace(&self, depot: &Depot, slice: &SliceId, of: u16, factor: f32) -> Option<Done> {
        let bytes = SliceStore::get(depot, slice).filter(|_| factor != 1.0)?;
        let bytes = self.scaled(slice, of, &bytes, factor)?;
        let digest = (slice.part == Part::Aggregate).then(|| Digest::of(&bytes));
        let len = bytes.len() as u64;
        SliceStore::put(depot, *slice, bytes);
        Some(Done::Encoded { bytes: len, digest })
    }

    /// The bytes of a slice whose values are multiplied; `None` where the codec cannot do that.
    fn scaled(&self, slice: &SliceId, of: u16, bytes: &[u8], factor: f32) -> Option<Bytes> {
        let mut values = vec![0.0; self.len(slice, of)?];
        let mut codecs = self.codecs.lock().unwrap_or_else(PoisonError::into_inner);
        let codec = codecs.of(slice.part, self.gathers());
        codec.decode_add(bytes, factor, &mut values).ok()?;
        Some(encode(codec, slice, &values))
    }

    /// An aggregate with made-up values.
    pub(crate) fn invented(&self, slice: &SliceId, of: u16) -> Option<Bytes> {
        let values: Vec<f32> = (0..self.len(slice, of)?)
            .map(|at| if at % 2 == 0 { 0.5 } else { -0.5 })
            .collect();
        let mut codecs = self.codecs.lock().unwrap_or_else(PoisonError::into_inner);
        let codec = codecs.of(slice.part, self.gathers());
        Some(encode(codec, slice, &values))
    }

    /// What `to` gets of a slice that this peer made, where others get something else.
    pub(crate) fn variant(
        &self,
        to: PeerId,
        slice: &SliceId,
        meta: &SliceMeta,
        bytes: &Bytes,
    ) -> Bytes {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let place = told.iter().position(|peer| *peer == to);
        let place = place.unwrap_or_else(|| {
            told.push(to);
            told.len() - 1
        });
        drop(told);
        let factor = VARIANTS[place % VARIANTS.len()];
        let scaled = self.scaled(slice, meta.of, bytes, factor);
        // The header promises a length, which not every codec keeps for other values.
        let scaled = scaled.filter(|scaled| scaled.len() == bytes.len());
        scaled.unwrap_or_else(|| bytes.clone())
    }

    /// The state with every parameter negated, and with a manifest and a root that fit it.
    fn pinned(&self, depot: &Depot, state: StateId) -> Option<Done> {
        let chunks = (0..).map_while(|index| depot.state_chunk(&state, index));
        let mut bytes: Vec<u8> = chunks.flat_map(|chunk| chunk.to_vec()).collect();
        let parameters: u64 = self.plan.fragments.iter().map(|f| f.len).sum();
        let end = STATE_HEADER_BYTES + 4 * usize::try_from(parameters).ok()?;
        // The sign of a little-endian f32 is the highest bit of its last byte.
        for value in bytes.get_mut(STATE_HEADER_BYTES..end)?.chunks_exact_mut(4) {
            value[3] ^= 0x80;
        }
        let pinned = depot.pin(state.round, &mut |out| out.write_all(&bytes));
        pinned.ok().map(Done::Pinned)
    }

    /// True where members see contributions as they were encoded.
    fn gathers(&self) -> bool {
        self.plan.exchange.facts().shows_contributions
    }

    /// How many values a slice has: shards of a fragment differ by at most one.
    fn len(&self, slice: &SliceId, of: u16) -> Option<usize> {
        let len = usize::try_from(self.plan.fragment(slice.fragment)?.len).ok()?;
        let (shard, of) = (usize::from(slice.shard), usize::from(of.max(1)));
        let at = |i: usize| len * i.min(of) / of;
        Some(at(shard + 1) - at(shard))
    }
}

impl Codecs {
    fn of(&mut self, part: Part, gathered: bool) -> &mut dyn Codec {
        match part {
            Part::Contribution | Part::Basis | Part::Second => self.contribution.as_mut(),
            Part::Aggregate if gathered => self.contribution.as_mut(),
            // Scores are never scaled: they are no values of a codec.
            Part::Aggregate | Part::Partial | Part::RowMean | Part::Bundle | Part::Scores => {
                self.aggregate.as_mut()
            }
        }
    }
}

fn encode(codec: &mut dyn Codec, slice: &SliceId, values: &[f32]) -> Bytes {
    let (mut memory, mut out) = (Vec::new(), Vec::new());
    let kept = codec.properties().planes;
    let mut planes = [vec![0.0; values.len()], vec![0.0; values.len()]];
    for plane in planes.iter_mut().skip(kept) {
        plane.clear();
    }
    let mut context = EncodeContext {
        round: slice.round.0,
        planes: planes.each_mut().map(Vec::as_mut_slice),
        ..EncodeContext::seeded(slice.round.0, &mut memory)
    };
    codec.encode(values, &mut context, &mut out);
    Bytes::from(out)
}
