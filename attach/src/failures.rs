//! When a training loop that fails again and again is given up.

/// How often it may fail in the same way, with no round trained between.
const ALIKE_MAX: u32 = 3;

/// How often it may fail in any way, likewise.
const FAILURES_MAX: u32 = 10;

/// Failures of a training loop since it trained a round.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    count: u32,
    /// Those at the end that are like the last one.
    alike: u32,
    last: (String, u64),
}

impl Failures {
    /// A life ended with these words, this many inner steps after its last round; `trained` says whether it
    /// trained one. Returns whether to give it up.
    pub(crate) fn note(&mut self, words: &str, steps: u64, trained: bool) -> bool {
        // Numbers of processes and addresses in memory differ between failures that are the same.
        let stays = |c: &char| !c.is_ascii_hexdigit();
        let failure = (words.chars().filter(stays).collect(), steps);
        if trained {
            *self = Self::default();
        }
        self.alike = if self.last == failure {
            self.alike + 1
        } else {
            1
        };
        self.count += 1;
        self.last = failure;
        self.alike >= ALIKE_MAX || self.count >= FAILURES_MAX
    }

    /// How often it has failed.
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_equal_failure_without_a_round_between_is_the_last() {
        let mut failures = Failures::default();
        let at = |address: &str| format!("TypeError: <object at 0x{address}>");
        assert!(!failures.note(&at("7f01"), 0, false));
        assert!(!failures.note(&at("7f02"), 0, false));
        assert!(failures.note(&at("81"), 0, false));
        let mut failures = Failures::default();
        for _ in 0..5 {
            assert!(
                !failures.note("killed", 25, true),
                "rounds were trained between"
            );
        }
        // At other steps, so not because of a sample that is always the same.
        for steps in 0..8 {
            assert!(!failures.note("killed", steps, false));
        }
        assert!(failures.note("killed", 9, false), "the tenth");
        assert_eq!(failures.count(), 10);
    }
}
