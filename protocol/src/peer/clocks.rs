//! Wrong clocks. A peer signs its record with an expiry by its own clock, so a record says what time
//! it is there, give or take its age.

use crate::PeerId;
use crate::Time;
use crate::core::Event;
use crate::limits::{CLOCK_SKEW_MAX, RECORD_LIFETIME};
use crate::peer::Peer;
use crate::wire::PeerRecord;

/// By how many seconds the clock that signed a record is ahead of this peer's, if that cannot be the
/// record's age: a record is passed on for as long as it is believed.
fn ahead(record: &PeerRecord, now: Time) -> Option<i64> {
    let seconds = |time: Time| i64::try_from(time.since(Time::ZERO).as_secs()).unwrap_or(i64::MAX);
    let signed = seconds(record.expires).saturating_sub(RECORD_LIFETIME.as_secs() as i64);
    let ahead = signed.saturating_sub(seconds(now));
    let (most, least) = (
        CLOCK_SKEW_MAX.as_secs() as i64,
        RECORD_LIFETIME.as_secs() as i64,
    );
    (ahead > most || ahead < -(least + most)).then_some(ahead)
}

impl Peer {
    /// Notes what the record of a linked peer, from itself, says about its clock.
    pub(super) fn note_clock(&mut self, from: PeerId, record: &PeerRecord) {
        let now = self.cx.now;
        if record.peer != from {
            return;
        }
        let ahead = ahead(record, now);
        let Some(remote) = self.cx.view.get_mut(from) else {
            return;
        };
        let before = remote.contact.clock.replace(ahead.unwrap_or(0));
        if before != Some(ahead.unwrap_or(0)) && (ahead.is_some() || self.life.once.clock_off) {
            self.judge_clocks(from);
        }
    }

    /// Whose clock is wrong: this peer's, if more than half of all, itself among them, agree on another
    /// time.
    fn judge_clocks(&mut self, from: PeerId) {
        let told = self.cx.view.greeted();
        let mut clocks: Vec<i64> = told.filter_map(|(_, r)| r.contact.clock).collect();
        clocks.sort_unstable();
        let median = clocks.get(clocks.len() / 2).copied().unwrap_or(0);
        let skew = CLOCK_SKEW_MAX.as_secs();
        let agreeing = clocks.iter().filter(|c| c.abs_diff(median) <= skew).count();
        let mine = median != 0 && agreeing > self.liars() && 2 * agreeing > clocks.len() + 1;
        if mine {
            if !self.life.once.clock_off {
                self.life.once.clock_off = true;
                self.cx.emit(Event::ClockOff {
                    peer: None,
                    ahead: median,
                });
            }
            return;
        }
        let Some(remote) = self.cx.view.get_mut(from) else {
            return;
        };
        let ahead = remote.contact.clock.unwrap_or(0);
        if ahead != 0 && !remote.contact.clock_told {
            remote.contact.clock_told = true;
            let peer = Some(from);
            self.cx.emit(Event::ClockOff { peer, ahead });
        }
    }
}
