//! Contributions at the owner of a shard: applied one by one or several together, weighted by the
//! age of the center that they were computed from.

use super::shard::{Arrival, Shard};
use super::state::{Center, LEAP_MAX, ShardKey, Task};
use crate::core::context::Context;
use crate::exchange::CenterMessage;
use crate::limits::INBOX_SLICES_MAX;
use crate::{Done, Order, PeerError, WorkError};

/// Contributions of one sender to one shard that may wait beyond a full buffer.
const WAITING_PER_SENDER_MAX: usize = 4;

impl Center {
    /// A contribution to a shard, perhaps this peer's.
    pub(super) fn arrival(
        &mut self,
        cx: &mut Context,
        place: ShardKey,
        arrival: Arrival,
    ) -> Result<(), PeerError> {
        let (me, from) = (cx.me(), arrival.from);
        if from != me && Self::owner(cx, place.1, &[]) != Some(me) {
            cx.order(Order::Release {
                slice: arrival.slice,
            });
            let (fragment, shard) = place;
            let round = arrival.round;
            cx.send(
                from,
                CenterMessage::Moved {
                    round,
                    fragment,
                    shard,
                },
            );
            return Ok(());
        }
        self.own(cx, place);
        let (elastic, at_once) = (self.elastic, usize::from(self.plan.buffer));
        let Some(shard) = self.shards.get_mut(&place) else {
            return Ok(());
        };
        if shard.is_old(&arrival) {
            self.answer_again(cx, place, arrival);
            return Ok(());
        }
        if shard.ahead.iter().any(|a| a.slice == arrival.slice) {
            return Ok(()); // it waits already
        }
        let most = at_once.clamp(WAITING_PER_SENDER_MAX, INBOX_SLICES_MAX);
        if shard.waiting_of(from) >= most {
            return Err(PeerError::Unexpected {
                what: "too many contributions to one shard at once".to_owned(),
            });
        }
        if shard.version > 0 && arrival.base > shard.version.saturating_add(LEAP_MAX) {
            return Err(PeerError::Unexpected {
                what: "a version far beyond the center's".to_owned(),
            });
        }
        if elastic {
            // With elastic averaging no copy of the center can be fetched, so an owner that is
            // behind takes over the number.
            shard.version = shard.version.max(arrival.base);
        } else if arrival.base > shard.version {
            shard.ahead.push(arrival);
            self.ask(cx, place, from);
            return Ok(());
        }
        self.take(cx, place, arrival);
        Ok(())
    }

    /// A contribution that was taken in before is not counted twice: its sender missed the answer.
    fn answer_again(&mut self, cx: &mut Context, place: ShardKey, arrival: Arrival) {
        let under_way = |task: &Task| match task {
            Task::Arrive(_, arrivals) => arrivals.iter().any(|a| a.slice == arrival.slice),
            _ => false,
        };
        let waits = self.shards.get(&place).is_some_and(|shard| {
            let mut buffer = shard.buffer.iter();
            buffer.any(|a| a.slice == arrival.slice)
        });
        if !waits && !self.tasks.values().any(under_way) {
            cx.order(Order::Release {
                slice: arrival.slice,
            });
        }
        self.reply(cx, place, arrival.from, arrival.round);
    }

    /// Takes a contribution in and answers it.
    pub(super) fn take(&mut self, cx: &mut Context, place: ShardKey, arrival: Arrival) {
        // With elastic averaging the worker moves by the center before its contribution; otherwise
        // it gets the center after it.
        if self.elastic {
            self.reply(cx, place, arrival.from, arrival.round);
        }
        let Some(shard) = self.shards.get_mut(&place) else {
            return;
        };
        shard.note_taken(&arrival, |peer| cx.view.get(*peer).is_some());
        shard.buffer.push(arrival);
        if shard.buffer.len() >= usize::from(self.plan.buffer.max(1)) {
            let arrivals = std::mem::take(&mut shard.buffer);
            self.arrive(cx, place, arrivals);
        }
        if !self.elastic {
            self.reply(cx, place, arrival.from, arrival.round);
        }
    }

    /// Orders the move of a shard by these contributions.
    fn arrive(&mut self, cx: &mut Context, place: ShardKey, arrivals: Vec<Arrival>) {
        let Some(shard) = self.shards.get_mut(&place) else {
            return;
        };
        // The version counts the orders given, not those done: the Executor does them in order, so
        // a reply that is encoded after this order holds this move.
        let version = shard.version;
        shard.version = version.saturating_add(1);
        let stale = |a: &Arrival| (a.slice, version.saturating_sub(a.base));
        let order = Order::MoveCenter {
            fragment: place.0,
            shard: place.1,
            of: Self::of(cx, place.0),
            inputs: arrivals.iter().map(stale).collect(),
        };
        let id = cx.order(order);
        self.tasks.insert(id, Task::Arrive(place, arrivals));
    }

    /// Contributions are taken in, or one of them is bad: the others are taken in without it.
    pub(super) fn arrived_done(
        &mut self,
        cx: &mut Context,
        place: ShardKey,
        mut arrivals: Vec<Arrival>,
        done: &Done,
    ) {
        if let Done::Failed(WorkError::BadSlice { slice, reason, .. }) = done {
            let bad = *slice;
            cx.accuse(bad.origin, format!("a contribution that is bad: {reason}"));
            let all = arrivals.len();
            arrivals.retain(|a| a.slice != bad);
            if arrivals.len() < all {
                cx.order(Order::Release { slice: bad });
                if !arrivals.is_empty() {
                    self.arrive(cx, place, arrivals);
                }
                return;
            }
        }
        for arrival in arrivals {
            cx.order(Order::Release {
                slice: arrival.slice,
            });
        }
    }

    /// A newer copy is here: contributions that waited for it are taken in, in order of arrival.
    pub(super) fn take_waiting(&mut self, cx: &mut Context, place: ShardKey) {
        let Some(shard) = self.shards.get_mut(&place) else {
            return;
        };
        let version = shard.version;
        let due: Vec<Arrival> = shard.ahead.extract_if(.., |a| a.base <= version).collect();
        let next = shard.ahead.first().map(|a| a.from);
        for arrival in due {
            self.take(cx, place, arrival);
        }
        if let Some(next) = next {
            self.ask(cx, place, next);
        }
    }

    /// The peer that promised a newer copy did not send it: what waited for it goes unanswered.
    pub(super) fn ask_timeout(&mut self, cx: &mut Context) {
        let now = cx.now;
        let late = |shard: &&mut Shard| shard.asked_until().is_some_and(|until| until <= now);
        let late: Vec<&mut Shard> = self.shards.values_mut().filter(late).collect();
        for shard in late {
            shard.asked = None;
            for arrival in std::mem::take(&mut shard.ahead) {
                cx.order(Order::Release {
                    slice: arrival.slice,
                });
            }
        }
    }
}
