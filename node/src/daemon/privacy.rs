//! Counts what this daemon's contributions cost of the privacy of its data, over restarts and over runs with the
//! same directory. A contribution is counted, on disk, before training for it begins, so a crash can only make the
//! count too high.

use crate::api::PromiseStatus;
use crate::store::{MANIFEST, StoreError, write_atomically};
use murmurate_strategies::aggregate::Privacy;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The count, in a daemon's directory.
pub(crate) const FILE: &str = "privacy.json";

/// Noise that is this many times as long as the signal leaves little to learn: simulated peers came to an accuracy of
/// 0.72 on the bundled images with 2.1, of 0.61 with 3.8 and of 0.26 with 8.5 (docs/privacy.md).
const DROWNS: f64 = 4.0;

/// What contributions of this directory have cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spent {
    /// Their number.
    contributions: u64,
    /// The sum of `1 / noise^2` over them; none once one had no noise.
    cost: Option<f64>,
    /// The most members whose noise protected together.
    members: u64,
}

/// The answer to a contribution that is to be made.
#[derive(Debug, PartialEq)]
pub(super) enum Payment {
    /// It is counted.
    Made,
    /// It would pass the budget.
    Refused,
}

/// Counts contributions.
#[derive(Debug)]
pub(super) struct Account {
    privacy: Privacy,
    path: PathBuf,
    spent: Spent,
}

impl Account {
    /// Reads the account of a directory. Without one, a directory that has trained has contributed without noise.
    ///
    /// # Errors
    /// If the file cannot be read, or is something else.
    pub(super) fn open(dir: &Path, privacy: Privacy) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        let trained = dir.join(MANIFEST).exists();
        let spent = read(&path)?.unwrap_or(Spent {
            contributions: 0,
            cost: (!trained).then_some(0.0),
            members: 0,
        });
        Ok(Self {
            privacy,
            path,
            spent,
        })
    }

    /// A run without noise begins in a directory with an account, which no longer holds: later runs say so.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub(super) fn close(dir: &Path) -> Result<(), StoreError> {
        let path = dir.join(FILE);
        match read(&path)? {
            None => Ok(()),
            Some(spent) => write(
                &path,
                Spent {
                    cost: None,
                    ..spent
                },
            ),
        }
    }

    /// Counts the next contribution, and returns once the count is on the disk.
    ///
    /// # Errors
    /// If it cannot be written; then it is not counted, and must not be made.
    pub(super) fn pay(&mut self) -> Result<Payment, StoreError> {
        if self.is_spent() {
            return Ok(Payment::Refused);
        }
        let cost = self.spent.cost.map(|cost| cost + self.privacy.cost());
        let next = Spent {
            contributions: self.spent.contributions + 1,
            cost: cost.filter(|cost| cost.is_finite()),
            members: self.members(),
        };
        write(&self.path, next)?;
        self.spent = next;
        Ok(Payment::Made)
    }

    /// The budget allows no further contribution.
    pub(super) fn is_spent(&self) -> bool {
        self.left() == Some(0)
    }

    fn members(&self) -> u64 {
        self.spent.members.max(self.privacy.members as u64)
    }

    fn left(&self) -> Option<u64> {
        let cost = self.spent.cost.unwrap_or(f64::INFINITY);
        self.privacy.allowed(cost)
    }

    /// A warning as a run of this many peers and parameters begins, if its noise drowns the deltas; zero rounds have
    /// no end.
    pub(super) fn note(&self, peers: usize, parameters: u64, rounds: u64) -> Option<String> {
        let ends = [self.left(), Some(rounds).filter(|rounds| *rounds > 0)];
        let rounds = ends.into_iter().flatten().min().unwrap_or(1).max(1);
        let mean_of = (peers * self.privacy.members) as f64 * rounds as f64;
        let over = self.privacy.noise * (parameters as f64 / mean_of).sqrt();
        (over >= DROWNS).then(|| {
            format!(
                "The noise in the model of {peers} daemons will be {over:.0} times as long as their deltas together: \
                 expect it to learn little. Train fewer parameters, with more daemons, or set \
                 `strategy.aggregation.members` (docs/privacy.md)."
            )
        })
    }

    pub(super) fn status(&self) -> PromiseStatus {
        let epsilon = self.spent.cost.map(|cost| self.privacy.epsilon(cost));
        PromiseStatus {
            epsilon,
            delta: self.privacy.delta,
            budget: Some(self.privacy.budget).filter(|budget| *budget > 0.0),
            contributions: self.spent.contributions,
            left: self.left(),
            members: self.members(),
        }
    }
}

/// The account in a file, if that is there.
fn read(path: &Path) -> Result<Option<Spent>, StoreError> {
    let bytes = match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(StoreError::io("read", path, source)),
        Ok(bytes) => bytes,
    };
    let spent = parsed(&bytes).map_err(|reason| StoreError::Privacy {
        path: path.to_owned(),
        reason,
    })?;
    Ok(Some(spent))
}

fn write(path: &Path, spent: Spent) -> Result<(), StoreError> {
    let text = serde_json::to_string(&spent).expect("numbers are JSON");
    write_atomically(path, format!("{text}\n").as_bytes())
}

fn parsed(bytes: &[u8]) -> Result<Spent, String> {
    let spent: Spent = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match spent.cost {
        Some(cost) if !(cost >= 0.0 && cost.is_finite()) => Err(format!("a cost of {cost}")),
        _ => Ok(spent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn privacy(noise: f64, budget: f64) -> Privacy {
        Privacy {
            clip: 1.0,
            noise,
            delta: 1e-5,
            budget,
            members: 1,
        }
    }

    #[test]
    fn a_budget_lasts_over_restarts_and_other_runs() {
        let dir = tempfile::tempdir().unwrap();
        let open = |noise| Account::open(dir.path(), privacy(noise, 2.0)).unwrap();
        let mut account = open(10.0);
        let allowed = account.status().left.unwrap();
        assert!(allowed > 10, "{allowed}");
        for _ in 0..5 {
            assert_eq!(account.pay().unwrap(), Payment::Made);
        }
        let after = account.status();
        assert_eq!((after.contributions, after.left), (5, Some(allowed - 5)));
        let mut again = open(10.0);
        assert_eq!(again.status(), after);
        while again.pay().unwrap() == Payment::Made {}
        assert_eq!(again.status().contributions, allowed);
        assert!(again.status().epsilon.unwrap() <= 2.0);
        assert!(again.status().sentence().contains("the budget is spent"));
        // A run with more noise goes on from what was spent, and soon has no room either.
        assert!(open(1000.0).status().epsilon.unwrap() > 1.9);
        assert!(open(5.0).is_spent());
    }

    #[test]
    fn contributions_without_noise_are_never_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let mut bare = Account::open(dir.path(), privacy(0.0, 0.0)).unwrap();
        assert_eq!(bare.pay().unwrap(), Payment::Made);
        assert_eq!(bare.status().epsilon, None);
        let mut later = Account::open(dir.path(), privacy(10.0, 8.0)).unwrap();
        assert_eq!(later.pay().unwrap(), Payment::Refused);
        assert!(later.status().sentence().starts_with("Privacy: none"));
    }

    #[test]
    fn a_run_that_will_learn_little_is_told_so() {
        let dir = tempfile::tempdir().unwrap();
        let with = |members| Privacy {
            members,
            ..privacy(6.0, 8.0)
        };
        let open = |members| Account::open(dir.path(), with(members)).unwrap();
        let note = open(1).note(4, 200_000, 0).unwrap();
        assert!(note.contains("expect it to learn little"), "{note}");
        assert_eq!(open(1).note(1_000, 8_000, 0), None);
    }

    #[test]
    fn what_was_trained_without_noise_leaves_no_promise() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Account::open(dir.path(), privacy(10.0, 8.0)).unwrap();
        Account::close(dir.path()).unwrap();
        let mut account = open();
        assert_eq!(account.pay().unwrap(), Payment::Made);
        std::fs::write(dir.path().join(MANIFEST), "").unwrap();
        assert!(!open().is_spent(), "a checkpoint by this account");
        Account::close(dir.path()).unwrap();
        assert!(open().is_spent());
        assert_eq!(open().status().contributions, 1);
        std::fs::remove_file(dir.path().join(FILE)).unwrap();
        assert!(open().is_spent(), "a checkpoint without an account");
    }

    #[test]
    fn who_is_trusted_once_is_named_from_then_on() {
        let dir = tempfile::tempdir().unwrap();
        let with = |members| Privacy {
            members,
            ..privacy(10.0, 8.0)
        };
        let open = |members| Account::open(dir.path(), with(members)).unwrap();
        open(4).pay().unwrap();
        assert_eq!(open(1).status().members, 4);
        assert!(
            open(1)
                .status()
                .sentence()
                .contains("sums of 4 contributions or more")
        );
    }

    #[test]
    fn a_damaged_count_is_an_error_and_never_zero() {
        let dir = tempfile::tempdir().unwrap();
        for bad in [
            "",
            "{}",
            "{\"contributions\":1,\"cost\":-1}",
            "{\"contributions\":-1,\"cost\":1}",
        ] {
            std::fs::write(dir.path().join(FILE), bad).unwrap();
            let error = Account::open(dir.path(), privacy(1.0, 8.0)).unwrap_err();
            assert!(error.to_string().contains(FILE), "{error}");
        }
    }

    #[test]
    fn a_contribution_that_cannot_be_counted_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let mut account = Account::open(dir.path(), privacy(10.0, 8.0)).unwrap();
        std::fs::remove_dir(dir.path()).unwrap();
        assert!(account.pay().is_err());
        assert_eq!(account.status().contributions, 0);
    }
}
