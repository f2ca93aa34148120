//! Which records of peers are checked. A signature costs far more to check than to make up, so a sender
//! has a budget of checks, and a record that was checked before costs none.

use blake3::Hash;
use murmurate_protocol::limits::ROLL_PEERS_MAX;
use murmurate_protocol::wire::PeerRecord;
use murmurate_protocol::{PeerId, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Records of one sender that are checked at once: eight full messages, more than an honest peer has
/// to tell when links open.
const CHECKS_MAX: f64 = 256.0;

/// Checks that a sender gains in a second. Every peer signs a new record four times an hour, so a swarm
/// of 256 peers makes fewer than one in three seconds.
const CHECKS_PER_S: f64 = 8.0;

/// Records over the budget that count as one broken rule.
const UNREAD_PER_BLAME: u32 = 256;

/// Checked records that are remembered: two of each peer of a full view.
const REMEMBERED_MAX: usize = 512;

/// What is left of a sender's budget.
#[derive(Debug)]
struct Budget {
    checks: f64,
    at: Time,
    unread: u32,
}

/// Budgets of the senders, and what was checked.
#[derive(Debug)]
pub(super) struct RecordChecks {
    /// Records of one sender that are checked at once.
    most: f64,
    /// Checked records that are remembered.
    remembered: usize,
    budgets: BTreeMap<PeerId, Budget>,
    good: BTreeSet<[u8; 32]>,
    oldest: VecDeque<[u8; 32]>,
}

/// What came of a message with records.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Checked {
    /// The records with good signatures.
    pub(super) good: Vec<PeerRecord>,
    /// Whether a signature was wrong.
    pub(super) forged: bool,
    /// Whether the sender has gone far over its budget.
    pub(super) floods: bool,
}

impl Default for RecordChecks {
    fn default() -> Self {
        Self::up_to(CHECKS_MAX, REMEMBERED_MAX)
    }
}

impl RecordChecks {
    const fn up_to(most: f64, remembered: usize) -> Self {
        Self {
            most,
            remembered,
            budgets: BTreeMap::new(),
            good: BTreeSet::new(),
            oldest: VecDeque::new(),
        }
    }

    /// For messages about a roll, which may name every peer of it.
    pub(super) const fn of_rolls() -> Self {
        Self::up_to(ROLL_PEERS_MAX as f64, ROLL_PEERS_MAX)
    }

    /// Checks the records of one message. What is over the sender's budget is dropped unread.
    pub(super) fn check(
        &mut self,
        from: PeerId,
        now: Time,
        records: Vec<PeerRecord>,
        verify: impl Fn(&PeerRecord) -> bool,
    ) -> Checked {
        let mut checked = Checked::default();
        let budget = self.budgets.entry(from).or_insert(Budget {
            checks: self.most,
            at: now,
            unread: 0,
        });
        let gained = now.since(budget.at).as_secs_f64() * CHECKS_PER_S;
        budget.checks = (budget.checks + gained).min(self.most);
        budget.at = now;
        for record in records {
            let name = name_of(&record);
            if self.good.contains(&name) {
                checked.good.push(record);
            } else if budget.checks < 1.0 {
                budget.unread += 1;
                if budget.unread >= UNREAD_PER_BLAME {
                    budget.unread = 0;
                    checked.floods = true;
                }
            } else {
                budget.checks -= 1.0;
                if verify(&record) {
                    self.good.insert(name);
                    self.oldest.push_back(name);
                    checked.good.push(record);
                } else {
                    checked.forged = true;
                }
            }
        }
        while self.oldest.len() > self.remembered {
            if let Some(oldest) = self.oldest.pop_front() {
                self.good.remove(&oldest);
            }
        }
        checked
    }

    /// A peer is gone. It comes back with a full budget, but only after a new link.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.budgets.remove(&peer);
    }
}

/// A hash of all of a record, its signature included.
fn name_of(record: &PeerRecord) -> [u8; 32] {
    let mut bytes = record.signed_bytes();
    bytes.extend_from_slice(&record.signature);
    *Hash::as_bytes(&blake3::hash(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::RunId;
    use murmurate_protocol::wire::RecordFields;
    use std::cell::Cell;
    use std::time::Duration;

    fn record(sequence: u64) -> PeerRecord {
        PeerRecord::from(RecordFields {
            peer: PeerId::from_bytes([1; 32]),
            run: RunId::from_bytes([2; 32]),
            sequence,
            expires: Time::NEVER,
            addresses: Vec::new(),
            locality: murmurate_protocol::Locality::default(),
            signature: vec![3; 64],
        })
    }

    #[test]
    fn a_record_is_verified_once() {
        let (mut checks, verified) = (RecordChecks::default(), Cell::new(0));
        let verify = |_: &PeerRecord| {
            verified.set(verified.get() + 1);
            true
        };
        for sender in 0..50 {
            let from = PeerId::from_bytes([sender; 32]);
            let records: Vec<_> = (0..32).map(record).collect();
            let checked = checks.check(from, Time::ZERO, records.clone(), verify);
            assert_eq!(checked.good, records);
        }
        assert_eq!(verified.get(), 32);
        // Another signature is another record.
        let mut other = record(0);
        other.signature[0] ^= 1;
        let from = PeerId::from_bytes([0; 32]);
        checks.check(from, Time::ZERO, vec![other], verify);
        assert_eq!(verified.get(), 33);
    }

    #[test]
    fn a_flood_is_dropped_unread_and_blamed() {
        let (mut checks, verified) = (RecordChecks::default(), Cell::new(0));
        let verify = |_: &PeerRecord| {
            verified.set(verified.get() + 1);
            false
        };
        let (from, other) = (PeerId::from_bytes([5; 32]), PeerId::from_bytes([6; 32]));
        let mut blamed = 0;
        for message in 0..1000u64 {
            let records = (0..32).map(|at| record(32 * message + at)).collect();
            let checked = checks.check(from, Time::ZERO, records, verify);
            assert!(checked.good.is_empty());
            assert_eq!(checked.forged, message < 8, "message {message}");
            blamed += u32::from(checked.floods);
        }
        assert_eq!(verified.get(), 256, "of 32,000 records");
        assert_eq!(blamed, (32_000 - 256) / UNREAD_PER_BLAME);
        // Others are read as before, and the sender too when its budget has refilled.
        assert!(
            checks
                .check(other, Time::ZERO, vec![record(1)], verify)
                .forged
        );
        let later = Time::ZERO + Duration::from_secs(1);
        let records = (0..32).map(record).collect();
        checks.check(from, later, records, verify);
        assert_eq!(verified.get(), 256 + 1 + 8);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut checks = RecordChecks::default();
        for at in 0..4000u64 {
            let from = PeerId::from_bytes([(at / 200) as u8; 32]);
            checks.check(from, Time::ZERO, vec![record(at)], |_| true);
        }
        assert_eq!((checks.good.len(), checks.oldest.len()), (512, 512));
    }
}
