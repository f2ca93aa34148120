//! Leaving: the peers are told, the inner step ends, a last checkpoint is written.

use crate::core::timers::Timer;
use crate::core::{Event, Output, Phase};
use crate::exchange::Ending;
use crate::peer::Peer;
use crate::wire::{MembershipMessage, Reason};
use crate::{Done, PeerId};

impl Peer {
    /// Leaves: tells the peers, ends the inner step, writes a checkpoint.
    pub(super) fn leave(&mut self) {
        match self.phase {
            Phase::Leaving | Phase::Left => return,
            Phase::New => {
                self.enter(Phase::Leaving);
                self.left();
                return;
            }
            _ => {}
        }
        let was = self.phase;
        self.enter(Phase::Leaving);
        for timer in [Timer::Exchange, Timer::Join, Timer::CatchUp, Timer::Linger] {
            self.cx.timers.stop(timer);
        }
        if was == Phase::Exchange {
            self.exchange.finish(&mut self.cx);
        }
        // Before the checkpoint, which can take longer than the others' deadlines on a slow disk.
        self.say_goodbye();
        self.life.broken_off = matches!(was, Phase::Exchange | Phase::Join);
        if self.life.train.is_some() || self.life.ahead.order.is_some() {
            self.cx.put(Output::Interrupt);
        } else if self.life.applies.is_empty() && self.life.save.is_none() {
            self.save_unless_saved();
        }
    }

    pub(super) fn save_unless_saved(&mut self) {
        if self.life.saved_round == Some(self.cx.round) {
            self.left();
        } else {
            self.save();
        }
    }

    /// The interrupted training ended. Its progress counts where no agreement would decide on it.
    pub(super) fn leave_after_training(&mut self) {
        if self.cx.plan.exchange.moves_the_anchor() {
            self.save_unless_saved();
        } else {
            for fragment in self.cx.plan.fragment_ids() {
                self.apply(fragment, Ending::Apply(Vec::new()));
            }
        }
    }

    /// Without a trainer this peer cannot contribute: it leaves with what it has.
    pub(super) fn stop(&mut self, done: &Done) {
        if let Done::Failed(error) = done {
            let what = format!("{error}");
            self.cx.emit(Event::TrainerFailed { what });
        }
        match self.phase {
            // The interrupted training has ended, and has nothing to apply.
            Phase::Leaving if self.life.applies.is_empty() => self.save_unless_saved(),
            _ => self.leave(),
        }
    }

    /// Tells the peers that this one takes part in nothing more.
    fn say_goodbye(&mut self) {
        let peers: Vec<PeerId> = self.cx.view.audience().map(|(id, _)| id).collect();
        for peer in peers {
            self.cx
                .send(peer, MembershipMessage::Goodbye(Reason::Leaving));
        }
    }

    /// Stops: the last checkpoint is written.
    pub(super) fn left(&mut self) {
        self.enter(Phase::Left);
        self.cx.put(Output::Left);
    }
}
