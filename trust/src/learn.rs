//! A member learns from the news of another one.

use crate::chain::Chain;
use crate::limits::{CLOCK_SKEW_S, NEWS_ITEMS_MAX};
use crate::news::{Learned, News, Overused};
use crate::register::Register;
use crate::roles::Role;
use crate::seats::Seats;
use murmurate_protocol::PeerId;
use murmurate_protocol::limits::DIRECTIVES_MAX;

impl Register {
    /// Learns what the member `from` says: whom it let in, and of which revocations, bans and directives it
    /// heard. It stops at the first thing that no honest member says.
    pub fn learn(&mut self, news: News, from: &PeerId, now_s: u64) -> Learned {
        let mut learned = Learned::default();
        if self.run.open {
            return learned;
        }
        for revocation in news.revocations.into_iter().take(NEWS_ITEMS_MAX) {
            match self.revoke(revocation.clone()) {
                Some(true) => learned.fresh.revocations.push(revocation),
                Some(false) => {}
                None => return slander(learned),
            }
        }
        // One that may let others in needs no help of an invite for that.
        let vouches = self.may_admit(from, now_s);
        for chain in news.members.into_iter().take(NEWS_ITEMS_MAX) {
            if !self.learn_member(chain, vouches, now_s, &mut learned) {
                return slander(learned);
            }
        }
        for directive in news.directives.into_iter().take(DIRECTIVES_MAX) {
            match self.direct(directive.clone()) {
                Some(true) => learned.fresh.directives.push(directive),
                Some(false) => {}
                None => return slander(learned),
            }
        }
        let fresh = &mut learned.fresh;
        for proof in news.bans.into_iter().take(NEWS_ITEMS_MAX) {
            let by = proof.by();
            match self.ban(proof) {
                // Those who hear of it next may not know the member.
                Some(true) => {
                    let chain = self.seats.of(&by).next().cloned();
                    fresh
                        .members
                        .extend(chain.filter(|c| !fresh.members.contains(c)));
                    fresh.bans.push(proof);
                }
                Some(false) => {}
                None => return slander(learned),
            }
        }
        learned
    }

    /// The news would change nothing.
    pub fn knows(&self, news: &News, from: &PeerId, now_s: u64) -> bool {
        let learned = self.clone().learn(news.clone(), from, now_s);
        learned.fresh.is_empty()
    }

    /// Learns that a member was let in. Returns false if its certificates are forged.
    fn learn_member(
        &mut self,
        chain: Chain,
        vouched: bool,
        now_s: u64,
        learned: &mut Learned,
    ) -> bool {
        let Some(seat) = Seats::seat_of(&chain, &self.run) else {
            return false;
        };
        let known = self.seats.get(&seat);
        // Most news is known, and signatures are dear.
        if known.is_some_and(|known| known.until_s() > now_s && !chain.supersedes(known)) {
            return true;
        }
        let fresh = known.is_none();
        if let Err(flaw) = chain.check(&self.run, &seat.0, now_s) {
            return !flaw.is_forged();
        }
        if self.is_void(&chain) {
            return true;
        }
        if fresh && let Some((invite, uses, until_s)) = chain.invite() {
            // A peer may date its certificate back, and a member may help it to enter with an ended invite.
            if now_s >= until_s.saturating_add(CLOCK_SKEW_S) && !vouched {
                return true;
            }
            let used_up = self.seats.by(invite).count() >= uses as usize;
            let last = self.seats.last_by(invite).filter(|_| used_up);
            let last = last.map(|(seat, last)| (seat, last.turn() < chain.turn()));
            if let Some((last, later)) = last {
                let out = if later { seat.0 } else { last.0 };
                learned.overused.push(Overused { invite, uses, out });
                if later {
                    return true;
                }
                self.seats.remove(&last);
            } else if used_up {
                return true;
            }
        }
        if self.enter(seat, &chain, now_s) == Ok(true) {
            learned.fresh.members.push(chain);
        }
        true
    }

    fn may_admit(&self, peer: &PeerId, now_s: u64) -> bool {
        let admits = |chain: &Chain| chain.roles().is_some_and(|roles| roles.has(Role::Admit));
        let mut chains = self.seats.of(peer);
        chains.any(|chain| admits(chain) && self.stays(chain, now_s).is_ok())
    }
}

fn slander(learned: Learned) -> Learned {
    Learned {
        slanders: true,
        ..learned
    }
}
