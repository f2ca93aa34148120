//! One peer's own blocks: what it is told to train in a round, and what it says of that.

use super::ledger::Ledger;
use super::runs::{Run, count, split};
use super::stream::Turn;
use super::{Pool, Taken};
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
}

impl Mine {
    /// The blocks to train in a round: the one that the ledger opens, or the next one where rounds
    /// overlap. They stay the same within a round. A trainer that has finished them goes on with the blocks
    /// behind the last one.
    pub(crate) fn tell(
        &mut self,
        ledger: &Ledger,
        me: &Me,
        turn: Turn<'_>,
        round: Round,
    ) -> Vec<Run> {
        if self.round == Some(round) {
            return self.list.clone();
        }
        let follows = self.round == Some(turn.round) && round > turn.round;
        let (dealt, own_start) = match round > turn.round {
            false => (ledger.list(me.pool.name, me.id, turn), None),
            true => {
                let next = ledger.next_list(me.pool.name, me.id, turn);
                let own = self.own.map(|start| start.saturating_add(self.finished));
                // The block that it is in the middle of stays with it.
                let (_, rest) = split(&self.list, self.finished);
                let middle = match own.filter(|_| follows) {
                    Some(block) => vec![Run::new(block, 1)],
                    None => split(&rest, u64::from(follows)).0,
                };
                let next = next.map(|next| middle.into_iter().chain(next).collect());
                (next, own.filter(|_| follows))
            }
        };
        self.round = Some(round);
        self.finished = 0;
        self.own = None;
        self.list = dealt.filter(|list| !list.is_empty()).unwrap_or_else(|| {
            let start = own_start.unwrap_or_else(|| ledger.own_start(me.pool, me.place));
            self.own = Some(start);
            let share = me.pool.blocks / me.place.1.max(1);
            vec![Run::new(start, u64::from(share.max(1)))]
        });
        self.list.clone()
    }

    /// Whether a round's blocks are told already.
    #[cfg(test)]
    pub(crate) fn is_told(&self, round: Round) -> bool {
        self.round == Some(round)
    }

    /// So many blocks of a round are finished.
    pub(crate) fn finish(&mut self, round: Round, blocks: u64) {
        if self.round == Some(round) {
            self.finished = blocks;
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
        if self.round != Some(turn.round) {
            return said(0, None);
        }
        if self.own.is_some() {
            return said(self.finished, self.own);
        }
        // Where rounds overlap, the blocks were told before it was known whether this peer would count.
        let dealt = ledger.list(pool, me.id, turn).unwrap_or_default();
        let finished = split(&self.list, self.finished).0;
        let has = |runs: &[Run], block| runs.iter().any(|r| r.first <= block && block < r.end());
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
