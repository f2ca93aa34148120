//! Contributions of which the owner of a shard can read the sum alone.
//!
//! ```text
//! context = hash(plan, round, fragment, shard, shards, members, weights)
//! seed_ij = hash keyed by the secret of i and j (context)
//! ```
//!
//! Layout of a masked contribution: the context's first 16 bytes, then 4 bytes for each value. Masks of another
//! round, group or shard have another context, and are refused instead of summed to noise.

use super::host::{Host, WorkResult};
use super::{PairSecrets, codecs};
use crate::aggregate::{self, Pairs, RMS_MAX, quarantine};
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

/// Masks this peer's contributions, and opens sums.
pub(super) struct Masks {
    plan: PlanHash,
    secrets: PairSecrets,
    /// What was masked last of each fragment. One round's deltas are masked for one group only: two sums that
    /// differ in a member would show what that one contributed.
    given: BTreeMap<FragmentId, Given>,
}

struct Given {
    round: Round,
    group: Digest,
    shards: BTreeSet<u16>,
}

impl Masks {
    pub(super) fn new(plan: PlanHash, secrets: PairSecrets) -> Self {
        Self {
            plan,
            secrets,
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
        let most = values.iter().fold(0.0_f32, |most, v| most.max(v.abs()));
        if most > aggregate::RANGE {
            return refused(format!(
                "a value of the contribution is {most:.3e}, and masked ones are at most {}: training diverges, or \
                 lower `strategy.inner.lr`, or the inner steps of a round",
                aggregate::RANGE
            ));
        }
        self.give(slice, &members_digest(members, of))?;
        let context = self.context(slice, of, members);
        let mut seeds = Vec::with_capacity(members.len());
        for (peer, _) in members.iter().filter(|(peer, _)| *peer != me) {
            let Some(secret) = (self.secrets)(*peer) else {
                return refused(format!(
                    "no masks for peer {peer}: its id is no Ed25519 key"
                ));
            };
            let seed = blake3::keyed_hash(&secret, context.as_bytes());
            seeds.push((*seed.as_bytes(), me < *peer));
        }
        let total: f64 = members.iter().map(|(_, weight)| weight).sum();
        let own = members.iter().find(|(peer, _)| *peer == me);
        let share = own.map_or(0.0, |(_, weight)| weight / total);
        out.extend_from_slice(&context.as_bytes()[..NAMED]);
        let (seed, _) = super::codec_state::seeds(&self.plan, slice);
        Pairs::new(seeds.into_iter()).mask(values, share, seed, out);
        Ok(())
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
        if !same || !given.shards.insert(slice.shard) {
            return Err(WorkError::Training {
                reason: format!(
                    "the deltas of round {} were masked already: a second sum would show a member's contribution",
                    given.round.0
                ),
            });
        }
        Ok(())
    }

    /// `acc` becomes the mean of masked contributions with these weights: `len` values of one of `of` shards.
    ///
    /// # Errors
    /// Which contribution does not belong to this sum.
    pub(super) fn open(
        &self,
        acc: &mut Vec<f32>,
        len: usize,
        of: u16,
        inputs: &[(SliceId, f64)],
        host: &dyn Host,
    ) -> WorkResult {
        acc.resize(len, 0.0);
        let Some((first, _)) = inputs.first() else {
            return Ok(());
        };
        let members: Vec<(PeerId, f64)> = inputs.iter().map(|(s, w)| (s.origin, *w)).collect();
        let context = self.context(first, of, &members);
        let mut held = Vec::with_capacity(inputs.len());
        for (slice, _) in inputs {
            let bytes = codecs::bytes_of(*slice, host)?;
            let fits = bytes.len() == NAMED + 4 * len;
            if !fits || bytes[..NAMED] != context.as_bytes()[..NAMED] {
                let reason = "it is masked for another group, round or shard".to_owned();
                return Err(codecs::bad_slice(*slice, reason));
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
