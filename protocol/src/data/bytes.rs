//! A ledger as bytes, for states and checkpoints.

use super::ledger::Ledger;
use super::runs::Run;
use super::stream::Stream;
use crate::limits::{
    DATA_LEDGER_BYTES_MAX, DATA_MEMBERS_MAX, DATA_POOLS_MAX, DATA_QUOTA_MAX, DATA_RUNS_MAX,
};
use crate::wire::{WireError, canonical, decode_limited};
use std::collections::BTreeMap;

impl Stream {
    fn check(&self) -> Result<(), WireError> {
        let wrong = |field: &str| {
            Err(WireError::OutOfRange {
                field: field.to_owned(),
            })
        };
        let last = self.redo.iter().last();
        let below = last.is_none_or(|run| run.end() <= self.next);
        if !self.redo.is_whole() || !below || self.redo.len() > DATA_RUNS_MAX {
            return wrong("ledger.redo");
        }
        let fits = |quota: u16| (1..=DATA_QUOTA_MAX).contains(&quota);
        let known = |run: &Run| {
            let end = run.first.checked_add(run.count);
            end.is_some_and(|end| end <= self.next)
        };
        let mut members = self.members.values();
        if !members.all(|entry| fits(entry.quota) && entry.held.iter().all(known)) {
            return wrong("ledger.members");
        }
        let mut ahead = self.ahead.iter().flatten().flat_map(|(_, runs)| runs);
        match ahead.all(known) {
            true => Ok(()),
            false => wrong("ledger.ahead"),
        }
    }

    fn peers(&self) -> usize {
        self.members.len() + self.ahead.as_ref().map_or(0, BTreeMap::len)
    }
}

impl Ledger {
    /// As bytes; none where no contribution has named a pool yet.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self.is_empty() {
            true => Vec::new(),
            false => canonical(&self.pools),
        }
    }

    /// From bytes.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let pools: BTreeMap<u64, Stream> = decode_limited::<_, DATA_LEDGER_BYTES_MAX>(bytes)?;
        let peers: usize = pools.values().map(Stream::peers).sum();
        if pools.is_empty() || pools.len() > DATA_POOLS_MAX || peers > 2 * DATA_MEMBERS_MAX {
            return Err(WireError::OutOfRange {
                field: "ledger.pools".to_owned(),
            });
        }
        pools.values().try_for_each(Stream::check)?;
        Ok(Self { pools })
    }
}
