//! Contributions of which the owner of a shard can read the sum alone.
//!
//! ```text
//! context = hash(plan, round, fragment, shard, shards, members, weights)
//! seed_ij = hash keyed by the secret of i and j (context)
//! ```
//!
//! Layout of a masked contribution: the context's first 16 bytes, then 4 bytes for each value. Masks of another
//! round, group or shard have another context, and are refused instead of summed to noise.

use super::codecs;
use super::host::WorkResult;
use crate::aggregate::{self, Pairs, RMS_MAX, quarantine};
use crate::slices::SliceStore;
use murmurate_protocol::{
    BytesBound, Digest, FragmentId, PeerId, PlanHash, Round, SliceId, WorkError,
};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a context in an encoding.
const NAMED: usize = 16;

/// The bound of an encoded contribution.
pub(crate) const BYTES: BytesBound = BytesBound {
    fixed: NAMED as u64,
    per_1024: 4096,
};

/// Secrets of one peer, or of two.
pub struct Secrets {
    /// The key of the noise, of the system's randomness.
    pub noise: [u8; 32],
    /// The secrets of pairs.
    pub pairs: PairSecrets,
    /// The last round whose deltas were masked in an earlier life.
    pub masked: Option<Round>,
}

/// The secret that this peer and another one know, and no third; `None` for a peer whose id is no key.
pub type PairSecrets = Box<dyn Fn(PeerId) -> Option<[u8; 32]> + Send>;

/// Masks this peer's contributions, and opens sums.
pub(super) struct Masks {
    plan: PlanHash,
    secrets: PairSecrets,
    /// Secrets of the members of the last group.
    known: BTreeMap<PeerId, [u8; 32]>,
    /// The last round that was masked in an earlier life.
    before: Option<Round>,
    /// The last masked delta of each fragment. One round's deltas are masked for one group only: two sums that
    /// differ in a member would show what that one contributed.
    given: BTreeMap<FragmentId, Given>,
}

struct Given {
    round: Round,
    group: Digest,
    shards: BTreeSet<u16>,
}

impl Masks {
    pub(super) fn new(plan: PlanHash, secrets: Secrets) -> Self {
        Self {
            plan,
            secrets: secrets.pairs,
            known: BTreeMap::new(),
            before: secrets.masked,
            given: BTreeMap::new(),
        }
    }

    /// Appends this peer's masked contribution to one of `of` shards for these members.
    ///
    /// # Errors
    /// If a value is beyond the range, a member has no key, or the deltas were masked for another group.
    pub(super) fn encode(
        &mut self,
        values: &[f32],
        slice: &SliceId,
        of: u16,
        members: &[(PeerId, f64)],
        out: &mut Vec<u8>,
    ) -> WorkResult {
        let (me, refused) = (slice.origin, |reason| Err(WorkError::Training { reason }));
        self.give(slice, &members_digest(members, of))?;
        let context = self.context(slice, of, members);
        let others = || {
            members
                .iter()
                .map(|(peer, _)| *peer)
                .filter(|peer| *peer != me)
        };
        self.known
            .retain(|peer, _| others().any(|other| other == *peer));
        for peer in others() {
            if !self.known.contains_key(&peer) {
                let Some(secret) = (self.secrets)(peer) else {
                    return refused(format!(
                        "no masks for peer {peer}: its id is no Ed25519 key"
                    ));
                };
                self.known.insert(peer, secret);
            }
        }
        let seeds = self.known.iter().map(|(peer, secret)| {
            let seed = blake3::keyed_hash(secret, context.as_bytes());
            (*seed.as_bytes(), me < *peer)
        });
        let total: f64 = members.iter().map(|(_, weight)| weight).sum();
        let own = members.iter().find(|(peer, _)| *peer == me);
        let share = own.map_or(0.0, |(_, weight)| weight / total);
        out.extend_from_slice(&context.as_bytes()[..NAMED]);
        let (seed, _) = super::codecs::seeds(&self.plan, slice);
        let masked = Pairs::new(seeds).mask(values, share, seed, out);
        masked.or_else(|most| {
            refused(format!(
                "a value of the contribution is {most:.3e}, and masked ones are at most {}: if training does not \
                 diverge, lower `strategy.inner.lr`, or the inner steps of a round",
                aggregate::RANGE
            ))
        })
    }

    /// Notes that a shard of a round's deltas is masked for a group.
    fn give(&mut self, slice: &SliceId, group: &Digest) -> WorkResult {
        let fresh = || Given {
            round: slice.round,
            group: *group,
            shards: BTreeSet::new(),
        };
        let given = self.given.entry(slice.fragment).or_insert_with(fresh);
        if given.round < slice.round {
            *given = fresh();
        }
        let same = given.round == slice.round && given.group == *group;
        let next = match self.before.filter(|before| slice.round <= *before) {
            Some(before) => before.0 + 1,
            None if !same || !given.shards.insert(slice.shard) => given.round.next().0,
            None => return Ok(()),
        };
        Err(WorkError::Training {
            reason: format!(
                "the deltas of round {} were masked before, and a second sum could show what this peer contributed: \
                 it contributes from round {next} on",
                slice.round.0
            ),
        })
    }

    /// `acc` becomes the mean of masked contributions with these weights: `len` values of one of `of` shards.
    ///
    /// # Errors
    /// If a contribution is too short or too long, which is its sender's fault, or they are not all masked for this sum.
    pub(super) fn open(
        &self,
        acc: &mut Vec<f32>,
        len: usize,
        of: u16,
        inputs: &[(SliceId, f64)],
        slices: &dyn SliceStore,
    ) -> WorkResult {
        acc.resize(len, 0.0);
        let Some((first, _)) = inputs.first() else {
            return Ok(());
        };
        let members: Vec<(PeerId, f64)> = inputs.iter().map(|(s, w)| (s.origin, *w)).collect();
        let context = self.context(first, of, &members);
        let mut held = Vec::with_capacity(inputs.len());
        for (slice, _) in inputs {
            let bytes = slices.get(slice).unwrap_or_default();
            if bytes.len() != NAMED + 4 * len {
                let reason = format!("{} bytes for {len} masked values", bytes.len());
                return Err(codecs::bad_slice(*slice, reason));
            }
            if bytes[..NAMED] != context.as_bytes()[..NAMED] {
                // Whose it is cannot be told: this peer's may be the odd one.
                let reason = "contributions are not all masked for this group, round and shard";
                return Err(WorkError::Training {
                    reason: reason.to_owned(),
                });
            }
            held.push(bytes);
        }
        let bodies: Vec<&[u8]> = held.iter().map(|bytes| &bytes[NAMED..]).collect();
        aggregate::open(&bodies, acc);
        quarantine(acc, RMS_MAX)
            .map(|_| ())
            .map_err(|error| WorkError::Training {
                reason: format!("the sum of masked contributions: {error}"),
            })
    }

    /// Names a sum: whose contributions, in which round, to which values.
    fn context(&self, slice: &SliceId, of: u16, members: &[(PeerId, f64)]) -> Digest {
        let mut named = Vec::with_capacity(96);
        named.extend_from_slice(self.plan.as_bytes());
        named.extend_from_slice(&slice.round.0.to_le_bytes());
        named.extend_from_slice(&slice.fragment.0.to_le_bytes());
        named.extend_from_slice(&slice.shard.to_le_bytes());
        named.extend_from_slice(members_digest(members, of).as_bytes());
        Digest::of(&named)
    }
}

/// Names a group and the number of its shards.
fn members_digest(members: &[(PeerId, f64)], of: u16) -> Digest {
    let mut named = Vec::with_capacity(2 + 40 * members.len());
    named.extend_from_slice(&of.to_le_bytes());
    for (peer, weight) in members {
        named.extend_from_slice(peer.as_bytes());
        named.extend_from_slice(&weight.to_le_bytes());
    }
    Digest::of(&named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slices::LocalSlices;
    use murmurate_protocol::{Attempt, Part};

    fn peer(index: u8) -> PeerId {
        PeerId::from_bytes([index; 32])
    }

    fn masks(me: u8, masked: Option<Round>) -> Masks {
        let secret = move |other: PeerId| {
            let other = other.as_bytes()[0];
            (other < 9).then(|| [me.min(other) * 16 + me.max(other); 32])
        };
        let secrets = Secrets {
            noise: [0; 32],
            pairs: Box::new(secret),
            masked,
        };
        Masks::new(PlanHash::from_bytes([5; 32]), secrets)
    }

    fn slice(origin: u8, round: u64, shard: u16) -> SliceId {
        SliceId {
            round: Round(round),
            fragment: FragmentId(0),
            shard,
            part: Part::Contribution,
            origin: peer(origin),
            attempt: Attempt::FIRST,
        }
    }

    fn group(members: &[u8]) -> Vec<(PeerId, f64)> {
        members.iter().map(|index| (peer(*index), 2.0)).collect()
    }

    #[test]
    fn only_a_whole_group_opens_its_sum() {
        let (slices, members) = (LocalSlices::default(), group(&[1, 2, 3]));
        let values = [[1.0, -2.0], [3.0, 0.5], [-1.0, 0.0]];
        for (index, values) in (1..).zip(values) {
            let (slice, mut out) = (slice(index, 4, 0), Vec::new());
            let encoded = masks(index, None).encode(&values, &slice, 1, &members, &mut out);
            assert_eq!(encoded, Ok(()));
            slices.put(slice, out.into());
        }
        let open = |members: &[u8], round, len| {
            let inputs = members.iter().map(|index| (slice(*index, round, 0), 2.0));
            let (inputs, mut acc) = (inputs.collect::<Vec<_>>(), Vec::new());
            let opened = masks(1, None).open(&mut acc, len, 1, &inputs, &slices);
            opened.map(|()| acc)
        };
        let mean = open(&[1, 2, 3], 4, 2).unwrap();
        assert!(
            (mean[0] - 1.0).abs() < 1e-6 && (mean[1] + 0.5).abs() < 1e-6,
            "{mean:?}"
        );
        let fewer = open(&[1, 2], 4, 2).unwrap_err().to_string();
        assert!(fewer.contains("not all masked for this group"), "{fewer}");
        let bad = |opened| matches!(opened, Err(WorkError::BadSlice { .. }));
        assert!(bad(open(&[1, 2, 3], 4, 3)), "another length");
        assert!(bad(open(&[1, 2, 3], 5, 2)), "bytes that are gone");
        for index in 1..4 {
            let earlier = slices.get(&slice(index, 4, 0)).unwrap();
            slices.put(slice(index, 5, 0), earlier);
        }
        let stale = open(&[1, 2, 3], 5, 2).unwrap_err().to_string();
        assert!(stale.contains("group, round and shard"), "{stale}");
    }

    #[test]
    fn a_delta_is_masked_for_one_group_and_never_again() {
        let mut masks = masks(1, Some(Round(3)));
        let mut encode = |round, shard, members: &[u8]| {
            let (slice, members) = (slice(1, round, shard), group(members));
            let encoded = masks.encode(&[0.5], &slice, 2, &members, &mut Vec::new());
            encoded.is_ok()
        };
        assert!(!encode(2, 0, &[1, 2, 3]), "an earlier life masked round 3");
        assert!(!encode(3, 0, &[1, 2, 3]));
        assert!(encode(4, 0, &[1, 2, 3]));
        assert!(encode(4, 1, &[1, 2, 3]));
        assert!(!encode(4, 1, &[1, 2, 3]), "the same shard again");
        assert!(!encode(4, 0, &[1, 2]), "another group");
        assert!(encode(5, 0, &[1, 2, 4]));
        assert!(!encode(4, 0, &[1, 2, 3]), "an earlier round");
        assert!(!encode(6, 0, &[1, 2, 9]), "a peer whose id is no key");
    }
}
