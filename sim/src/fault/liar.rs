//! A machine that lies in its control messages: what its honest peer says is the material of which it
//! makes other messages, another one for every receiver. It signs whatever it likes as itself.
//!
//! It votes and locks for other values, promises what is not so, proposes repairs that nothing
//! justifies and groups that lack a member, claims that rounds are decided or over, and is silent.

use super::forger::Value;
use super::lie::Lie;
use crate::due::Due;
use crate::error::SimError;
use crate::sign;
use crate::swarm::Swarm;
use murmurate_protocol::wire::{
    AgreedMessage, ExchangeMessage, FormingMessage, FragmentMessage, Message, Pledge, Scoped,
    Seated, ShardVersion, SignedGroup, SignedMessage, value_of,
};
use murmurate_protocol::{GroupTag, PeerId, Proof, Signature};

impl Swarm<'_> {
    /// A machine has received a message.
    pub(crate) fn overheard(&mut self, index: usize, message: &Message) {
        if self.lies_about_everything(index) || self.takes_ballots(index) {
            let run = self.recipe.plan().run;
            self.slots[index].forger.learn(&run, message);
        }
    }

    /// A machine proves that another one lies: only of machines that do.
    pub(crate) fn prove(&mut self, index: usize, proof: &Proof) -> Result<(), SimError> {
        let holds = sign::holds(&self.recipe.plan().run, proof);
        let of = self.recipe.index_of(&proof.by());
        match of.filter(|of| holds && self.slots[*of].forger.has_lied()) {
            Some(liar) => {
                if self.counters.proven.insert(liar) {
                    self.ban(liar);
                }
                Ok(())
            }
            None => {
                let what = format!("{} is proven to lie, but does not: {proof:?}", proof.by());
                Err(self.violation(index, what))
            }
        }
    }

    /// Every machine learns that a machine is banned, and closes its link to it: daemons pass proofs on
    /// at once.
    fn ban(&mut self, liar: usize) {
        self.sides += 1;
        self.net.set_side(liar, self.sides);
        let others: Vec<usize> = self.net.linked(liar).collect();
        for other in others {
            for (host, other) in [(liar, other), (other, liar)] {
                let at = self.now + self.net.latency(host, other);
                if let Some(connection) = self.net.connection(host, other) {
                    let (host, other) = (host as u32, other as u32);
                    self.queue.push(
                        at,
                        Due::Down {
                            host,
                            other,
                            connection,
                        },
                    );
                }
            }
        }
    }

    fn takes_ballots(&self, index: usize) -> bool {
        let lying = self.slots[index].lying;
        lying.is_some_and(|lying| lying.lie == Lie::Ballots && self.now < lying.until)
    }

    /// What a machine says with its vote to take the last ballots of the receiver and of all.
    fn last_ballots(
        &mut self,
        index: usize,
        to: PeerId,
        message: &Message,
    ) -> Vec<(PeerId, Message)> {
        let (run, me) = (self.recipe.plan().run, self.slots[index].id);
        let forger = &mut self.slots[index].forger;
        forger.learn(&run, message);
        let Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Fragment(scoped))) = message
        else {
            return Vec::new();
        };
        if !matches!(
            scoped.body,
            FragmentMessage::Signed(SignedMessage::Vote { .. })
        ) {
            return Vec::new();
        }
        let pledge = Pledge {
            by: me,
            zero: None,
            highest: None,
            signature: Signature::BLANK,
        };
        let asks = forger.last_ballot(&run, scoped, me);
        let asks = asks.map(|ballot| SignedMessage::Prepare { ballot });
        let promises = forger
            .last_ballot(&run, scoped, to)
            .map(|ballot| SignedMessage::Promise {
                ballot,
                pledge: Box::new(pledge),
                certificate: None,
                versions: Vec::new(),
                held: Vec::new(),
            });
        let said = asks.into_iter().chain(promises).map(|body| {
            let body = FragmentMessage::Signed(body);
            let said = AgreedMessage::Fragment(Scoped {
                body,
                ..scoped.clone()
            });
            (to, Message::from(ExchangeMessage::Agreed(said)))
        });
        let said: Vec<_> = said.collect();
        self.counters.lies += said.len() as u64;
        said
    }

    fn lies_about_everything(&self, index: usize) -> bool {
        let lying = self.slots[index].lying;
        lying.is_some_and(|lying| lying.lie == Lie::Anything && self.now < lying.until)
    }

    /// What a machine says where its peer says this, signed.
    pub(crate) fn says(
        &mut self,
        index: usize,
        to: PeerId,
        mut message: Message,
    ) -> Vec<(PeerId, Message)> {
        let (run, me) = (self.recipe.plan().run, self.slots[index].id);
        if self.is_silent(index) && !matches!(message, Message::Membership(_)) {
            self.counters.lies += 1;
            return Vec::new();
        }
        if self.takes_ballots(index) {
            self.slots[index].forger.begin();
            let mut all = self.last_ballots(index, to, &message);
            if all.is_empty() {
                all.push((to, message));
            }
            let memory = &mut self.slots[index].memory;
            for (_, message) in &mut all {
                sign::sign(&run, me, None, message, memory);
            }
            return all;
        }
        if !self.lies_about_everything(index) {
            let slot = &mut self.slots[index];
            slot.signed = slot.signed.max(message.binds());
            let (forgotten, memory) = (slot.forgotten, &mut slot.memory);
            self.counters.signatures_made += sign::sign(&run, me, forgotten, &mut message, memory);
            return vec![(to, message)];
        }
        self.slots[index].forger.learn(&run, &message);
        self.slots[index].forger.begin();
        let mut all = Vec::new();
        if let Message::Exchange(ExchangeMessage::Agreed(honest)) = message {
            let mut said = honest.clone();
            match self.lies.below(8) {
                0 => {}
                1..=4 => {
                    self.twist(index, &mut said);
                    all.push((to, Message::from(ExchangeMessage::Agreed(said))));
                }
                _ => all.push((to, Message::from(ExchangeMessage::Agreed(said)))),
            }
            if self.lies.below(4) == 0 {
                let extra = self.invent(index, &honest);
                all.extend(extra.map(|extra| (to, Message::from(ExchangeMessage::Agreed(extra)))));
            }
            self.counters.lies += 1;
        } else {
            all.push((to, message));
        }
        let memory = &mut self.slots[index].memory;
        for (_, message) in &mut all {
            sign::sign(&run, me, None, message, memory);
        }
        all
    }

    /// Changes what the honest peer says.
    fn twist(&mut self, index: usize, message: &mut AgreedMessage) {
        match message {
            AgreedMessage::Forming(FormingMessage::SignedReady { seat, .. }) => {
                seat.weight *= (1 + self.lies.below(1000)) as f64;
            }
            AgreedMessage::Forming(FormingMessage::SignedPropose { members, seats, .. }) => {
                let me = self.slots[index].id;
                let left_out = self.lies.below(members.len());
                if members.get(left_out).is_some_and(|seat| seat.peer != me) {
                    members.remove(left_out);
                }
                if self.lies.below(4) == 0 {
                    *seats = seats.saturating_sub(1);
                }
            }
            AgreedMessage::Fragment(scoped) => {
                let known = self.slots[index].forger.of(scoped).to_vec();
                let pick = self.lies.below(known.len().max(1));
                let other = known.get(pick).cloned();
                let FragmentMessage::Signed(body) = &mut scoped.body else {
                    return;
                };
                twist_signed(body, other, self.lies.below(3));
            }
            AgreedMessage::Forming(_) => {}
        }
    }

    /// Makes up a message beside what the honest peer says.
    fn invent(&mut self, index: usize, honest: &AgreedMessage) -> Option<AgreedMessage> {
        let scoped = match honest {
            AgreedMessage::Forming(
                FormingMessage::SignedReady { round, .. }
                | FormingMessage::SignedPropose { round, .. },
            ) => {
                let (round, resync) = (round.next(), self.lies.below(2) == 0);
                return Some(AgreedMessage::Forming(FormingMessage::Behind {
                    round,
                    resync,
                }));
            }
            AgreedMessage::Forming(_) => return None,
            AgreedMessage::Fragment(scoped) => scoped.clone(),
        };
        let known = self.slots[index].forger.of(&scoped).to_vec();
        let (value, versions) = known.get(self.lies.below(known.len().max(1)))?.clone();
        let (ballot, signature) = (self.lies.below(4) as u8, Signature::BLANK);
        let body = match self.lies.below(5) {
            0 => SignedMessage::Vote {
                ballot,
                value,
                versions,
                signature,
            },
            1 => SignedMessage::Lock {
                ballot,
                value,
                versions,
                signature,
            },
            2 => return Some(self.decide_alone(index, &scoped, versions)),
            3 => SignedMessage::Prepare { ballot },
            _ => SignedMessage::Repair {
                ballot,
                pledges: Vec::new(),
                certificate: None,
                shards: Vec::new(),
            },
        };
        let body = FragmentMessage::Signed(body);
        Some(AgreedMessage::Fragment(Scoped { body, ..scoped }))
    }
}

impl Swarm<'_> {
    /// A decision of a group in which the machine is alone: its proof is as good as one liar can make it.
    fn decide_alone(
        &mut self,
        index: usize,
        scoped: &Scoped,
        versions: Vec<ShardVersion>,
    ) -> AgreedMessage {
        let (run, me) = (self.recipe.plan().run, self.slots[index].id);
        let group = SignedGroup {
            seats: 1 + self.lies.below(3) as u16,
            anchor: self.slots[index].forger.anchor(),
            members: vec![Seated {
                peer: me,
                weight: 1.0,
                life: 1,
            }],
        };
        let digest = group.digest(&run, scoped.round);
        let decided = SignedMessage::Decided {
            ballot: 0,
            value: value_of(&digest, &versions),
            group,
            versions,
            locked: self.lies.below(2) == 0,
            signatures: vec![(me, Signature::BLANK)],
        };
        AgreedMessage::Fragment(Scoped {
            group: GroupTag::of_digest(&digest),
            body: FragmentMessage::Signed(decided),
            ..*scoped
        })
    }
}

/// Changes a signed message so that it still has the form of one.
fn twist_signed(body: &mut SignedMessage, other: Option<Value>, how: usize) {
    match body {
        SignedMessage::Vote {
            value, versions, ..
        }
        | SignedMessage::Lock {
            value, versions, ..
        } => {
            if let Some(other) = other {
                (*value, *versions) = other;
            }
        }
        SignedMessage::Promise {
            pledge,
            certificate,
            held,
            ..
        } => match how {
            0 => pledge.zero = None,
            1 => pledge.zero = other.map(|(value, _)| value),
            _ => {
                (pledge.highest, *certificate) = (None, None);
                held.clear();
            }
        },
        SignedMessage::Repair {
            pledges, shards, ..
        } => match how {
            0 => shards.clear(),
            1 => drop(pledges.pop()),
            _ => shards.reverse(),
        },
        SignedMessage::Decided { ballot, .. } => *ballot ^= 1,
        SignedMessage::Heard { votes, .. } => votes.truncate(how),
        SignedMessage::Prepare { ballot } => *ballot = ballot.saturating_add(1),
    }
}
