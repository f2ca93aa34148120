//! Sets of blocks as runs: ascending, disjoint, and never adjacent.

use serde::{Deserialize, Serialize};

/// Blocks of a stream that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Run {
    /// The number of the first one.
    pub first: u64,
    /// How many.
    pub count: u64,
}

impl Run {
    /// These many blocks from one on.
    pub const fn new(first: u64, count: u64) -> Self {
        Self { first, count }
    }

    /// The number behind the last block.
    pub const fn end(self) -> u64 {
        self.first.saturating_add(self.count)
    }
}

/// A set of blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Runs(Vec<Run>);

impl Runs {
    /// The runs, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Run> + '_ {
        self.0.iter().copied()
    }

    /// Number of runs.
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    /// The lowest block.
    pub(crate) fn first(&self) -> Option<u64> {
        self.0.first().map(|run| run.first)
    }

    /// Returns `true` if a block is in the set.
    #[cfg(test)]
    pub(crate) fn has(&self, block: u64) -> bool {
        let at = self.0.partition_point(|run| run.end() <= block);
        self.0.get(at).is_some_and(|run| run.first <= block)
    }

    /// Adds blocks; those that are there already stay.
    pub(crate) fn insert(&mut self, run: Run) {
        if run.count == 0 {
            return;
        }
        // All runs that touch the new one become one with it.
        let from = self.0.partition_point(|known| known.end() < run.first);
        let to = self.0.partition_point(|known| known.first <= run.end());
        let touched = self.0.get(from..to).unwrap_or_default();
        let first = touched
            .first()
            .map_or(run.first, |t| t.first.min(run.first));
        let end = touched.last().map_or(run.end(), |t| t.end().max(run.end()));
        self.0.splice(from..to, [Run::new(first, end - first)]);
    }

    /// Takes those of these blocks out that are in the set, and gives them back.
    pub(crate) fn remove(&mut self, run: Run) -> Vec<Run> {
        let from = self.0.partition_point(|known| known.end() <= run.first);
        let to = self.0.partition_point(|known| known.first < run.end());
        if run.count == 0 || from >= to {
            return Vec::new();
        }
        let touched: Vec<Run> = self.0[from..to].to_vec();
        let cut = |known: &Run| {
            let first = known.first.max(run.first);
            Run::new(first, known.end().min(run.end()) - first)
        };
        let taken: Vec<Run> = touched.iter().map(cut).collect();
        let (head, tail) = (touched[0], touched[touched.len() - 1]);
        let before = Run::new(head.first, run.first.saturating_sub(head.first));
        let after = Run::new(run.end(), tail.end().saturating_sub(run.end()));
        let rest = [before, after].into_iter().filter(|rest| rest.count > 0);
        self.0.splice(from..to, rest);
        taken
    }

    /// Takes the lowest blocks out, as many as asked for or as there are.
    pub(crate) fn take_first(&mut self, mut count: u64) -> Vec<Run> {
        let mut taken = Vec::new();
        let mut whole = 0;
        for run in &mut self.0 {
            let some = run.count.min(count);
            if some > 0 {
                taken.push(Run::new(run.first, some));
            }
            count -= some;
            if some < run.count {
                *run = Run::new(run.first + some, run.count - some);
                break;
            }
            whole += 1;
        }
        self.0.drain(..whole);
        taken
    }

    /// Fills the smallest gaps until at most this number of runs is left.
    pub(crate) fn fill(&mut self, most: usize) {
        let Some(over) = self.0.len().checked_sub(most).filter(|over| *over > 0) else {
            return;
        };
        let gap = |at: usize| self.0[at + 1].first - self.0[at].end();
        let mut gaps: Vec<(u64, usize)> = (0..self.0.len() - 1).map(|at| (gap(at), at)).collect();
        gaps.sort_unstable();
        let smallest = gaps.iter().take(over);
        let filled: Vec<Run> = smallest
            .map(|(gap, at)| Run::new(self.0[*at].end(), *gap))
            .collect();
        filled.into_iter().for_each(|run| self.insert(run));
    }

    /// Returns `true` if the runs are those of a set: none is empty, and they ascend, disjoint and never adjacent.
    pub(crate) fn is_whole(&self) -> bool {
        let some = |run: &Run| run.count > 0 && run.first.checked_add(run.count).is_some();
        self.0.iter().all(some) && self.0.is_sorted_by(|a, b| a.end() < b.first)
    }
}

pub(crate) fn split(list: &[Run], mut count: u64) -> (Vec<Run>, Vec<Run>) {
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for run in list {
        let some = run.count.min(count);
        count -= some;
        if some > 0 {
            first.push(Run::new(run.first, some));
        }
        if some < run.count {
            rest.push(Run::new(run.first + some, run.count - some));
        }
    }
    (first, rest)
}

pub(crate) fn count(list: &[Run]) -> u64 {
    list.iter().map(|run| run.count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn blocks(runs: impl IntoIterator<Item = Run>) -> Vec<u64> {
        let each = runs.into_iter().flat_map(|run| run.first..run.end());
        each.collect()
    }

    proptest! {
        #[test]
        fn runs_are_a_set_of_blocks(
            steps in vec((0..4u8, 0..60u64, 0..12u64), 0..60),
        ) {
            let (mut runs, mut set) = (Runs::default(), BTreeSet::new());
            for (what, first, count) in steps {
                let run = Run::new(first, count);
                match what {
                    0 | 1 => {
                        runs.insert(run);
                        set.extend(first..first + count);
                    }
                    2 => {
                        let there = (first..first + count).filter(|block| set.contains(block));
                        let there: Vec<u64> = there.collect();
                        prop_assert_eq!(blocks(runs.remove(run)), there);
                        set.retain(|block| !(first..first + count).contains(block));
                    }
                    _ => {
                        let some: Vec<u64> = set.iter().copied().take(count as usize).collect();
                        prop_assert_eq!(blocks(runs.take_first(count)), some.clone());
                        some.iter().for_each(|block| { set.remove(block); });
                    }
                }
                prop_assert!(runs.is_whole(), "{:?}", runs);
                prop_assert_eq!(blocks(runs.iter()), set.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(runs.first(), set.first().copied());
            }
        }

        #[test]
        fn filling_gaps_loses_no_block(all in vec((0..500u64, 1..4u64), 0..80), most in 1..20usize) {
            let mut runs = Runs::default();
            all.iter().for_each(|(first, count)| runs.insert(Run::new(*first, *count)));
            runs.fill(most);
            prop_assert!(runs.len() <= most && runs.is_whole());
            for (first, count) in all {
                prop_assert!((first..first + count).all(|block| runs.has(block)));
            }
        }

        #[test]
        fn a_list_is_cut_where_it_is_asked_to(list in vec((0..90u64, 1..9u64), 0..9), at in 0..90u64) {
            let list: Vec<Run> = list.into_iter().map(|(first, count)| Run::new(first, count)).collect();
            let (first, rest) = split(&list, at);
            prop_assert_eq!(count(&first), at.min(count(&list)));
            prop_assert_eq!(blocks(first.into_iter().chain(rest)), blocks(list));
        }
    }
}
