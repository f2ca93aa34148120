//! A machine that lies in its slices, in its losses and in its control messages. What its honest peer says is the
//! material of which it makes other messages, another one for every receiver. It signs whatever it likes as itself.
//!
//! It votes and locks for other values, makes false promises, proposes repairs that nothing
//! justifies and groups that lack a member, claims that rounds are decided or over, and is silent.

use super::Lie;
use super::forger::Value;
use crate::host::{Host, Slot};
use crate::random::Random;
use crate::report::Counters;
use crate::sign;
use bytes::Bytes;
use murmurate_protocol::wire::{
    AgreedMessage, ExchangeMessage, FormingMessage, FragmentMessage, Message, Pledge, Proposal,
    Scoped, Seated, ShardVersion, SignedGroup, SignedMessage, Stated, value_of,
};
use murmurate_protocol::{GroupTag, PeerId, RunId, Signature, Time};

/// A machine that speaks, as its honest peer would, or as its lie wants it.
pub(crate) struct Speaker<'a> {
    /// The run that it signs for.
    pub(crate) run: RunId,
    pub(crate) now: Time,
    pub(crate) slot: &'a mut Slot,
    /// Draws of all liars.
    pub(crate) lies: &'a mut Random,
    /// Counts of lies and signatures.
    pub(crate) counters: &'a mut Counters,
}

impl Speaker<'_> {
    fn lie(&self) -> Option<Lie> {
        let lying = self.slot.lying.filter(|lying| self.now < lying.until);
        lying.map(|lying| lying.lie)
    }

    /// It has received a message.
    pub(crate) fn overhears(&mut self, message: &Message) {
        if matches!(self.lie(), Some(Lie::Anything | Lie::Ballots)) {
            self.slot.forger.learn(&self.run, message);
        }
    }

    /// Set while it sends no slices.
    pub(crate) fn withholds(&self) -> bool {
        let comes = |host: &Host| host.peer.round().0 % 7 == 6;
        match self.lie() {
            Some(Lie::Withhold | Lie::Silent) => true,
            Some(Lie::Rare) => !self.slot.host.as_deref().is_some_and(comes),
            _ => false,
        }
    }

    /// The loss that it says it has, in place of a measured one.
    pub(crate) fn loss(&mut self, measured: f64) -> f64 {
        if self.lie() != Some(Lie::Loss) {
            return measured;
        }
        self.counters.lies += 1;
        let absurd = [f64::NAN, f64::INFINITY, f64::MAX, -1.0, 0.0];
        absurd[self.lies.below(absurd.len())]
    }

    /// The loss of a contribution that it says it has measured: the other way round, so that what helps
    /// seems to harm.
    pub(crate) fn score(&mut self, measured: f64) -> f64 {
        if self.lie() != Some(Lie::Scores) {
            return measured;
        }
        self.counters.lies += 1;
        -measured
    }

    /// The bytes that it sends instead of these.
    pub(crate) fn slice(&mut self, honest: Bytes) -> Bytes {
        let lie = match self.lie() {
            // One that lies about everything sends true slices too, or it would be left out at once.
            Some(Lie::Anything) if self.lies.below(4) > 0 => return honest,
            None | Some(Lie::Loss | Lie::Scores | Lie::Ballots | Lie::Rare) => return honest,
            Some(lie) => lie,
        };
        self.counters.lies += 1;
        let mut bytes = honest.to_vec();
        match lie {
            Lie::Garbage => {
                for byte in &mut bytes {
                    *byte = self.lies.below(256) as u8;
                }
            }
            Lie::Truncated => bytes.truncate(honest.len() / 2),
            Lie::FlippedBit | Lie::Anything => {
                if let Some(last) = bytes.last_mut() {
                    *last ^= 1 << self.lies.below(8);
                }
            }
            // Its pushes are not sent at all.
            Lie::Withhold | Lie::Silent | Lie::Loss | Lie::Scores | Lie::Ballots | Lie::Rare => {}
        }
        Bytes::from(bytes)
    }

    /// The messages in place of its vote, by which it takes the last ballots: of all, and of the receiver.
    fn last_ballots(&mut self, to: PeerId, message: &Message) -> Vec<(PeerId, Message)> {
        let (run, me) = (self.run, self.slot.id);
        let forger = &mut self.slot.forger;
        forger.learn(&run, message);
        let Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Fragment(scoped))) = message
        else {
            return Vec::new();
        };
        if !matches!(scoped.body, FragmentMessage::Signed(SignedMessage::Vote(_))) {
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

    /// Its messages where its peer sends this one, signed.
    pub(crate) fn says(&mut self, to: PeerId, mut message: Message) -> Vec<(PeerId, Message)> {
        let (run, me, lie) = (self.run, self.slot.id, self.lie());
        if lie == Some(Lie::Silent) && !matches!(message, Message::Membership(_)) {
            self.counters.lies += 1;
            return Vec::new();
        }
        if lie == Some(Lie::Ballots) {
            self.slot.forger.begin();
            let mut all = self.last_ballots(to, &message);
            if all.is_empty() {
                all.push((to, message));
            }
            let memory = &mut self.slot.memory;
            for (_, message) in &mut all {
                sign::sign(&run, me, None, message, memory);
            }
            return all;
        }
        if lie != Some(Lie::Anything) {
            let slot = &mut *self.slot;
            slot.signed = slot.signed.max(message.binds());
            let (forgotten, memory) = (slot.forgotten, &mut slot.memory);
            self.counters.signatures_made += sign::sign(&run, me, forgotten, &mut message, memory);
            return vec![(to, message)];
        }
        self.slot.forger.learn(&run, &message);
        self.slot.forger.begin();
        let mut all = Vec::new();
        if let Message::Exchange(ExchangeMessage::Agreed(honest)) = message {
            let mut said = honest.clone();
            match self.lies.below(8) {
                0 => {}
                1..=4 => {
                    self.twist(&mut said);
                    all.push((to, Message::from(ExchangeMessage::Agreed(said))));
                }
                _ => all.push((to, Message::from(ExchangeMessage::Agreed(said)))),
            }
            if self.lies.below(4) == 0 {
                let extra = self.invent(&honest);
                all.extend(extra.map(|extra| (to, Message::from(ExchangeMessage::Agreed(extra)))));
            }
            self.counters.lies += 1;
        } else {
            all.push((to, message));
        }
        let memory = &mut self.slot.memory;
        for (_, message) in &mut all {
            sign::sign(&run, me, None, message, memory);
        }
        all
    }

    /// Changes what the honest peer says.
    fn twist(&mut self, message: &mut AgreedMessage) {
        match message {
            AgreedMessage::Forming(FormingMessage::SignedReady { seat, .. }) => {
                seat.weight *= (1 + self.lies.below(1000)) as f64;
            }
            AgreedMessage::Forming(FormingMessage::SignedPropose(proposal)) => {
                let (me, members) = (self.slot.id, &mut proposal.members);
                let left_out = self.lies.below(members.len());
                if members.get(left_out).is_some_and(|seat| seat.peer != me) {
                    members.remove(left_out);
                }
                if self.lies.below(4) == 0 {
                    proposal.seats = proposal.seats.saturating_sub(1);
                }
            }
            AgreedMessage::Fragment(scoped) => {
                let known = self.slot.forger.of(scoped).to_vec();
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
    fn invent(&mut self, honest: &AgreedMessage) -> Option<AgreedMessage> {
        let scoped = match honest {
            AgreedMessage::Forming(
                FormingMessage::SignedReady { round, .. }
                | FormingMessage::SignedPropose(Proposal { round, .. }),
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
        let known = self.slot.forger.of(&scoped).to_vec();
        let (value, versions) = known.get(self.lies.below(known.len().max(1)))?.clone();
        let (ballot, signature) = (self.lies.below(4) as u8, Signature::BLANK);
        let body = match self.lies.below(5) {
            how @ (0 | 1) => {
                let said = Stated {
                    ballot,
                    value,
                    versions,
                    signature,
                };
                match how {
                    0 => SignedMessage::Vote(said),
                    _ => SignedMessage::Lock(said),
                }
            }
            2 => return Some(self.decide_alone(&scoped, versions)),
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

    /// A decision of a group in which the machine is alone: its proof is as good as one liar can make it.
    fn decide_alone(&mut self, scoped: &Scoped, versions: Vec<ShardVersion>) -> AgreedMessage {
        let (run, me) = (self.run, self.slot.id);
        let group = SignedGroup {
            seats: 1 + self.lies.below(3) as u16,
            anchor: self.slot.forger.anchor(),
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
        SignedMessage::Vote(said) | SignedMessage::Lock(said) => {
            if let Some(other) = other {
                (said.value, said.versions) = other;
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
