//! What a trainer finds in its data: records that it leaves out, and what its operator should know.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most records that are left out. Data with more of them need mending.
const SKIPPED_MAX: usize = 10_000;

/// Records that are named one by one; the others are only counted.
const NAMED_MAX: usize = 8;

/// What one trainer has found. The readers of its data share it with the daemon, which shows it.
#[derive(Debug, Default)]
pub struct DataReport(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// A hash of the message about each record. It is met again in every pass over the data.
    records: BTreeSet<u64>,
    untold: Vec<String>,
}

impl DataReport {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a record out. `what` names the record and its error. False if it is one too many.
    pub fn skip(&self, what: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        let (record, mut known) = (hasher.finish(), self.known());
        if known.records.contains(&record) {
            return true;
        }
        if known.records.len() == SKIPPED_MAX {
            let said = format!("more than {SKIPPED_MAX} records cannot be read: mend the data");
            known.untold.push(said);
            return false;
        }
        known.records.insert(record);
        match known.records.len() {
            ..=NAMED_MAX => known.untold.push(format!("left out: {what}")),
            count if count == NAMED_MAX + 1 => known.untold.push(
                "more records are left out; they are counted in /status and not named".to_owned(),
            ),
            _ => {}
        }
        true
    }

    /// Tells the operator something else about the data.
    pub fn say(&self, text: String) {
        self.known().untold.push(text);
    }

    /// How many records are left out, each of them counted once.
    pub fn skipped(&self) -> u64 {
        self.known().records.len() as u64
    }

    /// What the operator was not told yet.
    pub fn take_untold(&self) -> Vec<String> {
        std::mem::take(&mut self.known().untold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_is_counted_once_few_are_named_and_too_many_are_refused() {
        let report = DataReport::default();
        for pass in 0..2 {
            for line in 0..SKIPPED_MAX {
                assert!(
                    report.skip(&format!("a.jsonl: line {line} is bad")),
                    "{pass}"
                );
            }
        }
        assert_eq!(report.skipped(), SKIPPED_MAX as u64);
        assert!(!report.skip("a.jsonl: line 10000 is bad"));
        report.say("the images are dark".to_owned());
        let told = report.take_untold();
        assert_eq!(told.len(), NAMED_MAX + 3);
        assert_eq!(told[0], "left out: a.jsonl: line 0 is bad");
        assert!(report.take_untold().is_empty());
    }
}
