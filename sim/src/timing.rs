//! Work without tensors: the answers to orders and the sizes of slices, for runs that measure time
//! only.
//!
//! Digests represent contents: peers that applied the same decisions in the same order have the
//! same digests, so peers agree and disagree as they would with tensors.

use crate::stores::Stores;
use bytes::Bytes;
use murmurate_protocol::{
    Digest, Done, Ending, Evaluation, FragmentId, FragmentPlan, Ladder, Order, Part, Plan, Round,
    SliceId, Source, StateId, TrainSummary, Unneeded, wire,
};
use murmurate_strategies::executor::StateStore;
use murmurate_strategies::slices::SliceStore;

/// Represents one machine's tensors.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    fragments: Vec<FragmentPlan>,
    state_bytes: u64,
    /// One for each fragment.
    digests: Vec<Digest>,
    /// Set while a contribution is put aside to be measured.
    staged: bool,
    /// From which codecs members choose, and the place of the present one.
    ladder: (Option<Box<Ladder>>, u8),
}

impl Timing {
    /// The first digests, equal on all machines.
    pub(crate) fn new(plan: &Plan) -> Self {
        let (fragments, state_bytes) = (&plan.fragments, plan.state_bytes);
        let digest = |index: usize| Digest::of(&(index as u64).to_le_bytes());
        Self {
            fragments: fragments.clone(),
            state_bytes,
            digests: (0..fragments.len()).map(digest).collect(),
            staged: false,
            ladder: (plan.agreement.ladder.map(Box::new), 0),
        }
    }

    /// A fragment with the bounds of the codec that the members have chosen.
    fn fragment(&self, id: FragmentId) -> FragmentPlan {
        let own = self.fragments[usize::from(id.0)];
        let rung = self.ladder.0.as_ref().filter(|_| self.ladder.1 > 0);
        let rung = rung.and_then(|ladder| ladder.codecs().get(usize::from(self.ladder.1)));
        rung.map_or(own, |rung| FragmentPlan {
            contribution: rung.contribution,
            aggregate: rung.aggregate,
            ..own
        })
    }

    /// One for each fragment.
    pub(crate) fn digests(&self) -> Vec<Digest> {
        self.digests.clone()
    }

    /// Resumes from a checkpoint.
    pub(crate) fn restore(&mut self, digests: &[Digest]) {
        self.digests = digests.to_vec();
    }

    /// Answers an order. Training took `steps` inner steps.
    pub(crate) fn perform(&mut self, order: &Order, steps: u32, stores: &Stores) -> Option<Done> {
        if let Order::Train { rules, .. } = order {
            self.ladder.1 = rules.rung;
        }
        match order {
            Order::Train { .. } => Some(Done::Trained(TrainSummary {
                steps: u64::from(steps),
                samples: u64::from(steps),
                ..TrainSummary::default()
            })),
            Order::Encode { slice, of, from } => Some(match from {
                Source::Noted(note) => self.append(*slice, *of, note, stores),
                Source::Bundle { parts, noted } => {
                    self.bundle((*slice, *of), parts, *noted, stores)
                }
                Source::Bytes(bytes) => keep(*slice, bytes, stores),
                _ => self.encode(*slice, *of, stores),
            }),
            Order::Combine { .. } => Some(Done::Combined),
            Order::Apply {
                round,
                fragment,
                ending,
                ..
            } => Some(self.end(*round, *fragment, ending, stores)),
            Order::Stage { .. } | Order::Measure { .. } | Order::Read { .. } => {
                self.score(order, stores)
            }
            Order::Settle { .. }
            | Order::Save { .. }
            | Order::Forget(Unneeded::Forward(_) | Unneeded::Replicas(_)) => None,
            Order::Release { slice } => {
                stores.remove(slice);
                None
            }
            Order::Evaluate { .. } => Some(Done::Evaluated(Evaluation::default())),
            Order::Pin { round, note } => Some(self.pin(*round, note, stores)),
            Order::Forget(Unneeded::Pinned(round)) => {
                stores.unpin(*round);
                None
            }
            Order::Load { state } => Some(self.load(state, stores)),
        }
    }

    /// Ends a fragment's round.
    fn end(&mut self, round: Round, of: FragmentId, ending: &Ending, stores: &Stores) -> Done {
        match ending {
            Ending::Apply(aggregates) => self.apply_all(round, of, aggregates, stores),
            Ending::Gather(inputs) if !inputs.is_empty() => {
                self.apply(of, &wire::canonical(&(round, inputs)))
            }
            Ending::Merge(aggregates) => self.merge(of, aggregates),
            Ending::Gather(_) | Ending::Void => self.as_it_was(of),
        }
    }

    /// A fragment whose round changed nothing.
    fn as_it_was(&self, fragment: FragmentId) -> Done {
        Done::Applied {
            digest: self.digests[usize::from(fragment.0)],
            note: Vec::new(),
        }
    }

    /// Answers an order of a contribution's scores. Every contribution halves the loss.
    fn score(&mut self, order: &Order, stores: &Stores) -> Option<Done> {
        match order {
            Order::Stage { slice } => {
                self.staged = slice.is_some();
                Some(Done::Combined)
            }
            Order::Measure { .. } => Some(Done::Measured {
                loss: if self.staged { 0.5 } else { 1.0 },
            }),
            Order::Read { slice } => {
                let bytes = stores.get(slice).map_or(Vec::new(), |bytes| bytes.to_vec());
                Some(Done::Read { bytes })
            }
            _ => None,
        }
    }

    /// A state is represented by the digests, and the note.
    fn pin(&self, round: Round, note: &[u8], stores: &Stores) -> Done {
        let digests = self.digests.iter().flat_map(|d| *d.as_bytes());
        let bytes: Vec<u8> = digests.chain(note.iter().copied()).collect();
        let state = StateId {
            round,
            root: Digest::of(&bytes),
            bytes: self.state_bytes,
        };
        stores.keep_pinned(state, Bytes::from(bytes));
        Done::Pinned(state)
    }

    fn load(&mut self, state: &StateId, stores: &Stores) -> Done {
        let bytes = stores.take_fetched(state).unwrap_or_default();
        for (digest, bytes) in self.digests.iter_mut().zip(bytes.chunks_exact(32)) {
            let bytes = bytes.try_into().expect("chunks of 32 bytes");
            *digest = Digest::from_bytes(bytes);
        }
        let note = bytes.get(32 * self.digests.len()..).unwrap_or_default();
        Done::Loaded {
            digests: self.digests.clone(),
            note: note.to_vec(),
        }
    }

    /// An empty slice with the largest size of the codec.
    fn encode(&self, slice: SliceId, of: u16, stores: &Stores) -> Done {
        let fragment = self.fragment(slice.fragment);
        let values = fragment.len.div_ceil(u64::from(of.max(1)));
        let bytes = match slice.part {
            Part::Contribution | Part::Basis | Part::Second => fragment.contribution.of(values),
            Part::Aggregate | Part::Partial | Part::Bundle | Part::Scores => {
                fragment.aggregate.of(values)
            }
            Part::RowMean => 4 * values,
        };
        stores.put(slice, Bytes::new());
        Done::Encoded {
            bytes,
            digest: (slice.part == Part::Aggregate).then(|| digest_of(&slice, &[])),
        }
    }

    /// Notes are the only bytes that travel in full.
    fn append(&self, slice: SliceId, of: u16, note: &[u8], stores: &Stores) -> Done {
        let fragment = self.fragment(slice.fragment);
        let values = fragment.len.div_ceil(u64::from(of.max(1)));
        let bytes = fragment.aggregate.of(values) + note.len() as u64;
        let digest = Some(digest_of(&slice, note));
        stores.put(slice, Bytes::copy_from_slice(note));
        Done::Encoded { bytes, digest }
    }

    /// A bundle is represented by the hash of its parts' names, and its note.
    fn bundle(
        &self,
        (slice, of): (SliceId, u16),
        parts: &[SliceId],
        noted: bool,
        stores: &Stores,
    ) -> Done {
        let note = parts.first().filter(|_| noted);
        let note = note.and_then(|first| stores.get(first)).unwrap_or_default();
        let names = Digest::of(&wire::canonical(&parts));
        let bytes = [&names.as_bytes()[..], &note].concat();
        let fragment = self.fragment(slice.fragment);
        let done = Done::Encoded {
            bytes: fragment
                .aggregate
                .of(fragment.len.div_ceil(u64::from(of.max(1))))
                + note.len() as u64,
            digest: Some(digest_of(&slice, &bytes)),
        };
        stores.put(slice, Bytes::from(bytes));
        done
    }

    /// Applies decided aggregates, and gives back the note among them.
    fn apply_all(
        &mut self,
        round: Round,
        fragment: FragmentId,
        aggregates: &[SliceId],
        stores: &Stores,
    ) -> Done {
        let mut decided = wire::canonical(&(round, aggregates));
        let mut found = Vec::new();
        let bundles = aggregates.iter().filter(|slice| slice.part == Part::Bundle);
        for bytes in bundles.filter_map(|slice| stores.get(slice)) {
            decided.extend_from_slice(&bytes);
            found.extend_from_slice(bytes.get(32..).unwrap_or_default());
        }
        match self.apply(fragment, &decided) {
            Done::Applied { digest, .. } => Done::Applied {
                digest,
                note: found,
            },
            other => other,
        }
    }

    /// The merged anchor is the same whatever the anchor was.
    fn merge(&mut self, fragment: FragmentId, aggregates: &[SliceId]) -> Done {
        let digest = Digest::of(&wire::canonical(&aggregates));
        self.digests[usize::from(fragment.0)] = digest;
        Done::Applied {
            digest,
            note: Vec::new(),
        }
    }

    fn apply(&mut self, fragment: FragmentId, decided: &[u8]) -> Done {
        let digest = &mut self.digests[usize::from(fragment.0)];
        let mut material = digest.as_bytes().to_vec();
        material.extend_from_slice(decided);
        *digest = Digest::of(&material);
        Done::Applied {
            digest: *digest,
            note: Vec::new(),
        }
    }
}

/// Keeps bytes that the peer made.
fn keep(slice: SliceId, bytes: &[u8], stores: &Stores) -> Done {
    stores.put(slice, Bytes::copy_from_slice(bytes));
    Done::Encoded {
        bytes: bytes.len() as u64,
        digest: Some(digest_of(&slice, bytes)),
    }
}

/// Represents the hash of a slice's bytes by its name and the bytes that it has in full.
pub(crate) fn digest_of(slice: &SliceId, bytes: &[u8]) -> Digest {
    let mut material = wire::canonical(slice);
    material.extend_from_slice(bytes);
    Digest::of(&material)
}
