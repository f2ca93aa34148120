//! What a trainer measures beside its loss and its accuracy, such as an F1 score: numbers with names of its own.
//! The daemon shows those of its last evaluation, and sends them to no other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Named numbers of one evaluation: each is a line of the page and a series of metrics.
const NAMED_MAX: usize = 16;

/// Characters of the name of such a number: a label of metrics, and a line of the page.
const SCORE_NAME_MAX: usize = 64;

/// Named numbers, as a trainer says them: `None` where one is not finite.
pub type Said = BTreeMap<String, Option<f64>>;

/// The named numbers of a trainer's last evaluation. Clones are handles to the same numbers.
#[derive(Clone, Debug, Default)]
pub struct NamedScores(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    scores: BTreeMap<String, f64>,
    /// The operator knows that some are left out.
    told: bool,
}

impl NamedScores {
    /// The numbers of the last evaluation.
    pub fn last(&self) -> BTreeMap<String, f64> {
        self.lock().scores.clone()
    }

    /// Takes the numbers of an evaluation in place of those before. Returns a line for the operator when it leaves
    /// one out for the first time.
    pub fn take(&self, said: Said) -> Option<String> {
        let count = said.len();
        let good = said.into_iter().filter_map(|(name, value)| {
            let value = value.filter(|value| value.is_finite() && is_name(&name))?;
            Some((name, value))
        });
        let mut kept = self.lock();
        kept.scores = good.take(NAMED_MAX).collect();
        let left_out = count - kept.scores.len();
        if left_out == 0 || std::mem::replace(&mut kept.told, true) {
            return None;
        }
        Some(format!(
            "{left_out} of {count} named numbers of an evaluation are left out: give at most {NAMED_MAX}, finite \
             ones, with names of 1 to {SCORE_NAME_MAX} printable characters"
        ))
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_name(name: &str) -> bool {
    let plain = !name.chars().any(char::is_control);
    plain && !name.trim().is_empty() && name.chars().count() <= SCORE_NAME_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_replace_those_before_and_bad_ones_are_left_out_with_one_line() {
        let (scores, long) = (NamedScores::default(), "n".repeat(SCORE_NAME_MAX + 1));
        let said = |all: &[(&str, Option<f64>)]| -> Said {
            let all = all.iter().map(|(name, value)| ((*name).to_owned(), *value));
            all.collect()
        };
        assert_eq!(scores.take(said(&[("auc", Some(0.9))])), None);
        let bad = [
            ("f1", Some(0.8)),
            ("auc", None),
            ("inf", Some(f64::INFINITY)),
            ("a\nb", Some(1.0)),
            (" ", Some(1.0)),
            (&long, Some(1.0)),
        ];
        let line = scores.clone().take(said(&bad)).unwrap();
        assert!(line.starts_with("5 of 6 named numbers"), "{line}");
        assert_eq!(scores.last(), BTreeMap::from([("f1".to_owned(), 0.8)]));
        assert_eq!(scores.take(said(&bad)), None);
        let many: Vec<String> = (0..=NAMED_MAX).map(|n| n.to_string()).collect();
        let many = many.into_iter().map(|name| (name, Some(1.0)));
        scores.take(many.collect());
        assert_eq!(scores.last().len(), NAMED_MAX);
    }
}
