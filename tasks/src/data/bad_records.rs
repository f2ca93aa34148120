//! Treatment of a record of the data that cannot be read: a line, a row or an image.

use crate::config::OnBadRecord;
use murmurate_strategies::DataReport;
use std::fmt::Display;
use std::sync::Arc;

/// Decides it for all readers of one task.
#[derive(Clone, Debug)]
pub(crate) struct BadRecords {
    policy: OnBadRecord,
    report: Arc<DataReport>,
}

impl Default for BadRecords {
    fn default() -> Self {
        Self::new(OnBadRecord::Stop)
    }
}

impl BadRecords {
    /// As the configuration says.
    pub(crate) fn new(policy: OnBadRecord) -> Self {
        let report = Arc::default();
        Self { policy, report }
    }

    /// Leaves the record of an error out.
    ///
    /// # Errors
    /// Gives the error back if no record may be left out, or too many were.
    pub(super) fn judge<E: Display>(&self, error: E) -> Result<(), E> {
        match self.policy {
            OnBadRecord::Skip if self.report.skip(&error.to_string()) => Ok(()),
            _ => Err(error),
        }
    }

    /// As [`BadRecords::judge`], of what may be an error: none is a record that is left out.
    ///
    /// # Errors
    /// As [`BadRecords::judge`].
    pub(super) fn checked<T, E: Display>(&self, record: Result<T, E>) -> Result<Option<T>, E> {
        match record {
            Ok(record) => Ok(Some(record)),
            Err(error) => self.judge(error).map(|()| None),
        }
    }

    /// Records that are left out, and other findings in the data.
    pub(crate) fn report(&self) -> Arc<DataReport> {
        Arc::clone(&self.report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_left_out_only_if_that_is_asked_for() {
        let (stop, skip) = (OnBadRecord::Stop, OnBadRecord::Skip);
        assert_eq!(BadRecords::new(stop).judge("line 1"), Err("line 1"));
        let bad = BadRecords::new(skip);
        assert_eq!(bad.judge("line 1"), Ok(()));
        assert_eq!(bad.clone().checked::<u8, _>(Err("line 2")), Ok(None));
        assert_eq!(bad.checked::<_, &str>(Ok(3)), Ok(Some(3)));
        assert_eq!(bad.report().skipped(), 2);
    }
}
