//! One peer's own blocks: those that it is told to train in a round, and its claim about them.

use super::ledger::Ledger;
use super::runs::{Run, count, split};
use super::stream::Turn;
use super::{Blocks, Pool, Taken};
use crate::{PeerId, Round};

/// Who this peer is in a deal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Me {
    pub(crate) id: PeerId,
    pub(crate) pool: Pool,
    /// Its place among the participants, and their number.
    pub(crate) place: (u32, u32),
}

/// The blocks that this peer was told to train last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mine {
    round: Option<Round>,
    list: Vec<Run>,
    /// Where they begin, if they were not dealt.
    own: Option<u64>,
    /// How many of them are finished, and of those behind the last one.
    finished: u64,
    /// Set if no contribution to come holds their training.
    dropped: bool,
}

impl Mine {
    /// The blocks to train in this round, or in the next where rounds overlap; the same all round.
    pub(crate) fn tell(
        &mut self,
        ledger: &Ledger,
        me: &Me,
        turn: Turn<'_>,
        round: Round,
    ) -> Blocks {
        let kept = !self.dropped;
        if self.round != Some(round) {
            let before = std::mem::take(self);
            self.round = Some(round);
            (self.list, self.own) = if round > turn.round {
                before.next_list(ledger, me, turn)
            } else {
                before.this_list(ledger, me, turn)
            };
            // What it had finished of them and was not counted for is in its parameters still. A life that
            // begins knows only how many that are; its trainer knows where it was.
            self.finished = match before.done() {
                _ if !kept => 0,
                None => before.finished,
                Some(finished) => {
                    let blocks = self.list.iter().flat_map(|run| run.first..run.end());
                    let most = count(&finished) as usize;
                    let done = blocks.take(most).take_while(|block| has(&finished, *block));
                    done.count() as u64
                }
            };
        }
        self.dropped = false;
        let runs = self.list.clone();
        Blocks {
            runs,
            done: kept.then_some(self.finished),
        }
    }

    /// The blocks that are finished, if their round is known.
    fn done(&self) -> Option<Vec<Run>> {
        self.round?;
        Some(match self.own {
            Some(start) => vec![Run::new(start, self.finished)],
            None => split(&self.list, self.finished).0,
        })
    }

    /// The blocks of the round that the ledger opens.
    fn this_list(&self, ledger: &Ledger, me: &Me, turn: Turn<'_>) -> (Vec<Run>, Option<u64>) {
        let dealt = ledger.list(me.pool.name, me.id, turn);
        match dealt.filter(|list| !list.is_empty()) {
            Some(list) => (list, None),
            None => own_list(ledger, me, self.own),
        }
    }

    /// The blocks of the round after the one that the ledger opens.
    fn next_list(&self, ledger: &Ledger, me: &Me, turn: Turn<'_>) -> (Vec<Run>, Option<u64>) {
        let follows = self.round == Some(turn.round);
        let own = self.own.filter(|_| follows);
        let goes_on = own.map(|start| start.saturating_add(self.finished));
        // The block that it is in the middle of stays with it.
        let middle = match goes_on {
            Some(block) => vec![Run::new(block, 1)],
            None => split(&split(&self.list, self.finished).1, u64::from(follows)).0,
        };
        match ledger.next_list(me.pool.name, me.id, turn) {
            Some(next) => (middle.into_iter().chain(next).collect(), None),
            None => own_list(ledger, me, goes_on),
        }
    }

    pub(crate) fn finish(&mut self, round: Round, blocks: u64) {
        if self.round == Some(round) {
            self.finished = blocks;
        }
    }

    /// A life begins from a checkpoint, in which this many of the blocks to come are finished.
    pub(crate) const fn resume(&mut self, finished: u64) {
        self.finished = finished;
    }

    /// The training of rounds up to this one is in no contribution to come.
    pub(crate) fn drop_training(&mut self, round: Round) {
        match self.round {
            Some(mine) => self.dropped |= mine <= round,
            // The place in the middle of a block stays: others have counted what came before it.
            None => self.finished = 0,
        }
    }

    /// What to say with the contribution to the round that the ledger opens.
    pub(crate) fn claim(&self, ledger: &Ledger, me: &Me, turn: Turn<'_>) -> Taken {
        let pool = me.pool.name;
        let said = |blocks: u64, from| Taken {
            pool,
            blocks: u16::try_from(blocks).unwrap_or(u16::MAX),
            from,
        };
        let Some(finished) = self.done().filter(|_| self.round == Some(turn.round)) else {
            return said(0, None);
        };
        if self.own.is_some() {
            return said(self.finished, self.own);
        }
        // Where rounds overlap, the blocks were told before it was known whether this peer would count.
        let dealt = ledger.list(pool, me.id, turn).unwrap_or_default();
        let first = dealt.first().map(|run| run.first);
        if first.is_some_and(|block| !has(&self.list, block)) {
            // It was told other blocks than it has now, and says which ones it took.
            let run = finished.first().copied().unwrap_or(Run::new(0, 0));
            return said(run.count, Some(run.first));
        }
        let each = dealt.iter().flat_map(|run| run.first..run.end());
        let most = count(&finished) as usize;
        let done = each.take(most).take_while(|block| has(&finished, *block));
        said(done.count() as u64, None)
    }
}

fn has(runs: &[Run], block: u64) -> bool {
    runs.iter()
        .any(|run| run.first <= block && block < run.end())
}

/// Blocks that were not dealt: from there on, or at this peer's place behind those that are dealt.
fn own_list(ledger: &Ledger, me: &Me, start: Option<u64>) -> (Vec<Run>, Option<u64>) {
    let start = start.unwrap_or_else(|| ledger.own_start(me.pool, me.place));
    let share = me.pool.blocks / me.place.1.max(1);
    (vec![Run::new(start, u64::from(share.max(1)))], Some(start))
}
