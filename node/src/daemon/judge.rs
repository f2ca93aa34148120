//! Judges evaluations: which was the best, whether the goal is reached, and whether this daemon has
//! learned nothing for too long. Leaving is this daemon's own decision: the others train on.

use super::mark::Mark;
use super::privacy::Account;
use crate::config::WatchConfig;
use crate::goal::{Missed, Target};
use crate::store::Best;
use murmurate_protocol::Evaluation;

/// What the judge knows.
#[derive(Debug, Default)]
pub(super) struct Judge {
    target: Target,
    /// Rounds without a better loss after which to leave; zero never leaves for that.
    patience: u64,
    /// Set where the best parameters are kept in a file.
    keeps: bool,
    best: Option<Best>,
    last: Option<Evaluation>,
    /// Set once the daemon was told to leave.
    over: bool,
    reached: bool,
    /// Counts contributions where the run promises privacy.
    pub(super) account: Option<Account>,
    /// Marks the rounds of masked contributions, where they are masked.
    pub(super) mark: Option<Mark>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Verdict {
    /// The evaluation of parameters to keep, which have the lowest loss so far.
    pub(super) keep: Option<Best>,
    /// Why to leave, once.
    pub(super) leave: Option<String>,
}

impl Judge {
    /// Begins with the best evaluation of an earlier life, if there is one.
    pub(super) fn new(config: &WatchConfig, best: Option<Best>) -> Self {
        Self {
            target: config.target,
            patience: config.patience_rounds,
            keeps: config.keep_best,
            best,
            ..Self::default()
        }
    }

    pub(super) fn look(&mut self, round: u64, found: &Evaluation) -> Verdict {
        self.last = Some(*found);
        let mut keep = false;
        let is_best = self.best.is_none_or(|best| found.loss < best.loss);
        if is_best && found.loss.is_finite() {
            keep = true;
            self.best = Some(Best {
                round,
                loss: found.loss,
                accuracy: found.accuracy,
            });
        }
        self.reached |= self.target.reached(found.accuracy, Some(found.loss));
        let leave = self.why_leave(round).filter(|_| !self.over);
        self.over |= leave.is_some();
        let keep = self.best.filter(|_| keep && self.keeps);
        Verdict { keep, leave }
    }

    fn why_leave(&self, round: u64) -> Option<String> {
        if self.reached {
            return Some(format!("round {round} has reached the goal: leaving"));
        }
        let best = self.best.filter(|_| self.patience > 0)?;
        let waited = round.saturating_sub(best.round);
        (waited >= self.patience).then(|| {
            format!(
                "no better loss for {waited} rounds; the best is {:.4} of round {}: leaving",
                best.loss, best.round
            )
        })
    }

    /// The goal that was missed at the end of all rounds, if any.
    pub(super) fn missed(&self) -> Option<Missed> {
        if self.reached {
            return None;
        }
        let last = self.last;
        self.target
            .missed(last.and_then(|l| l.accuracy), last.map(|l| l.loss))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(target: Target, patience_rounds: u64, best: Option<Best>) -> Judge {
        let config = WatchConfig {
            target,
            patience_rounds,
            keep_best: true,
            ..WatchConfig::default()
        };
        Judge::new(&config, best)
    }

    fn found(loss: f64) -> Evaluation {
        Evaluation {
            loss,
            ..Evaluation::default()
        }
    }

    #[test]
    fn a_daemon_leaves_once_its_patience_is_over() {
        let mut judge = judge(Target::default(), 3, None);
        let losses = [2.0, 1.0, 1.5, 1.0, 1.1, 0.9];
        let mut leaves = Vec::new();
        for (round, loss) in (1..).zip(losses) {
            let verdict = judge.look(round, &found(loss));
            let kept = verdict.keep.map(|best| best.round);
            assert_eq!(kept, [1, 2, 6].contains(&round).then_some(round));
            leaves.push(verdict.leave);
        }
        let texts: Vec<_> = leaves.iter().flatten().collect();
        assert_eq!(
            texts,
            ["no better loss for 3 rounds; the best is 1.0000 of round 2: leaving"]
        );
        assert!(leaves[4].is_some());
        assert_eq!(judge.missed(), None);
    }

    #[test]
    fn a_loss_that_is_not_finite_is_never_the_best() {
        let mut judge = judge(Target::default(), 0, None);
        assert_eq!(judge.look(0, &found(f64::NAN)).keep, None);
        assert!(judge.look(1, &found(1.0)).keep.is_some());
        assert_eq!(judge.look(2, &found(f64::NAN)).keep, None);
    }

    #[test]
    fn a_daemon_leaves_with_its_goal_and_misses_it_otherwise() {
        let target = Target {
            loss: Some(0.5),
            accuracy: None,
        };
        let mut judge = judge(target, 0, None);
        assert_eq!(judge.look(1, &found(0.7)).leave, None);
        assert_eq!(judge.missed().unwrap().flag, "--until-loss");
        assert!(judge.look(2, &found(0.5)).leave.is_some());
        // The evaluation that may still be under way.
        assert_eq!(judge.look(3, &found(0.6)).leave, None);
        assert_eq!(judge.missed(), None);
    }

    #[test]
    fn the_best_of_an_earlier_life_counts() {
        let best = Best {
            round: 10,
            loss: 0.5,
            accuracy: None,
        };
        let mut judge = judge(Target::default(), 5, Some(best));
        assert_eq!(judge.look(12, &found(0.6)).keep, None);
        assert!(judge.look(15, &found(0.6)).leave.is_some());
    }
}
