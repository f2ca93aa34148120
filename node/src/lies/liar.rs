//! Between the peer of a lying daemon and the network: changes, drops and adds outputs.

use super::forged;
use super::forger::Forger;
use super::lie::{Lie, LieMode};
use super::noise::Noise;
use crate::depot::Depot;
use murmurate_protocol::wire::{FormingMessage, Message, Proposed};
use murmurate_protocol::{
    Digest, Done, Event, FragmentId, GroupTag, Input, Output, Part, Peer, PeerId, Phase,
    PushOutcome, Round, SliceId, SliceMeta, SortedMap, SortedSet, Time, TrainSummary,
};
use murmurate_strategies::slices::SliceStore;
use std::sync::Arc;

const GROUPS_MAX: usize = 64;

/// What a liar does in place of one output.
#[derive(Debug, Default)]
pub(crate) struct Acts {
    /// What the driver performs.
    pub outputs: Vec<Output>,
    /// What the peer is told, so that it does not notice.
    pub inputs: Vec<Input>,
}

/// The lies of one daemon, as far as they concern its messages and pushes.
#[derive(Debug)]
pub(crate) struct Liar {
    me: PeerId,
    lies: Vec<Lie>,
    forger: Arc<Forger>,
    depot: Arc<Depot>,
    /// The last group that this peer was a member of.
    group: Vec<PeerId>,
    /// The names of the last groups whose members sign.
    groups: SortedMap<GroupTag, Digest>,
    /// The fragment for which a decision was made up last.
    decided: Option<(Round, FragmentId)>,
    /// Slices that were pushed in another peer's name.
    slots: SortedSet<SliceId>,
    noise: Noise,
}

impl Liar {
    pub(crate) fn new(me: PeerId, lies: Vec<Lie>, forger: Arc<Forger>, depot: Arc<Depot>) -> Self {
        Self {
            me,
            lies,
            forger,
            depot,
            group: Vec::new(),
            groups: SortedMap::new(),
            decided: None,
            slots: SortedSet::new(),
            noise: Noise::new(me),
        }
    }

    pub(crate) fn outputs(&mut self, output: Output, peer: &Peer) -> Acts {
        if let Output::Emit(Event::Group { members, .. }) = &output {
            self.group.clone_from(members);
        }
        if let Output::Send { message, .. } = &output {
            self.note_group(message, peer);
        }
        let mut acts = Acts {
            outputs: vec![output],
            inputs: Vec::new(),
        };
        for mode in self.told(peer) {
            for output in std::mem::take(&mut acts.outputs) {
                self.tell(mode, output, peer, &mut acts);
            }
        }
        acts
    }

    /// Outputs without a reason: the noise of the modes `flood` and `random`.
    pub(crate) fn tick(&mut self, now: Time, peer: &Peer) -> Vec<Output> {
        let mut outputs = Vec::new();
        for mode in self.told(peer) {
            match mode {
                LieMode::Flood => outputs.extend(self.noise.flood(now, peer)),
                LieMode::Random => outputs.extend(self.noise.random(peer)),
                _ => {}
            }
        }
        outputs
    }

    /// What the peer sees of an input; `None` for one that answers something the peer knows nothing of.
    pub(crate) fn input(&mut self, input: Input, peer: &Peer) -> Option<Input> {
        if let Input::Received { message, .. } = &input {
            self.note_group(message, peer);
        }
        match input {
            Input::Pushed { slice, .. } if self.slots.remove(&slice) => {
                SliceStore::remove(self.depot.as_ref(), &slice);
                None
            }
            // The peer believes the claim itself, so that it takes the others' proposals for right.
            Input::Done {
                order,
                done: Done::Trained(summary),
            } if self.told(peer).contains(&LieMode::Weight) => {
                let samples = forged::SAMPLES;
                let done = Done::Trained(TrainSummary { samples, ..summary });
                Some(Input::Done { order, done })
            }
            input => Some(input),
        }
    }

    fn note_group(&mut self, message: &Message, peer: &Peer) {
        if let Some(group) = forged::signed_group(&peer.plan().run, message) {
            if self.groups.len() >= GROUPS_MAX {
                self.groups.pop_first();
            }
            self.groups.insert(GroupTag::of_digest(&group), group);
        }
    }

    fn told(&self, peer: &Peer) -> Vec<LieMode> {
        // A daemon that lied before it has joined would never be a member.
        let joined = !matches!(peer.phase(), Phase::New | Phase::Join);
        let told = |lie: &&Lie| joined && lie.is_told_in(peer.round().0);
        self.lies.iter().filter(told).map(|lie| lie.mode).collect()
    }

    fn tell(&mut self, mode: LieMode, output: Output, peer: &Peer, acts: &mut Acts) {
        let forge = (self.forger.as_ref(), self.depot.as_ref());
        match (mode, &output) {
            (LieMode::Weight, _) => {
                acts.outputs.push(forged::weighed(output));
                return;
            }
            (LieMode::Equivocate, Output::Send { .. }) => {
                let gathered = peer.plan().exchange.facts().shows_contributions;
                let told = forged::vote_for(forge, self.me, (gathered, &self.groups), output);
                acts.outputs.push(told);
                return;
            }
            (LieMode::Rare, Output::Push { .. }) if peer.round().0 % 7 == 6 => {}
            (
                LieMode::Withhold | LieMode::Silent | LieMode::Rare,
                Output::Push { to, slice, .. },
            ) => {
                acts.inputs.push(Input::Pushed {
                    to: *to,
                    slice: *slice,
                    outcome: PushOutcome::Delivered,
                });
                return;
            }
            (LieMode::Silent, Output::Send { message, .. })
                if !matches!(message, Message::Membership(_)) =>
            {
                return;
            }
            (LieMode::Ballot | LieMode::Void, Output::Send { .. }) => {
                let said = match mode {
                    LieMode::Ballot => forged::last_ballot(&output),
                    _ => forged::no_majority(self.me, &output),
                };
                acts.outputs.push(said.unwrap_or(output));
                return;
            }
            (LieMode::Decided, Output::Push { slice, meta, .. }) => {
                acts.outputs.extend(self.decide(*slice, *meta));
            }
            (LieMode::Slot, Output::Push { .. }) => acts.outputs.extend(self.slot(&output)),
            (LieMode::Propose | LieMode::Behind, _) => {
                acts.outputs.extend(self.form(mode, &output, peer));
                let own_proposal = forged::forming(&output)
                    .is_some_and(|(_, m)| matches!(m, FormingMessage::Propose(_)));
                if mode == LieMode::Propose && own_proposal {
                    return;
                }
            }
            _ => {}
        }
        acts.outputs.push(output);
    }

    /// What goes out before a message about the forming of a group.
    fn form(&self, mode: LieMode, output: &Output, peer: &Peer) -> Option<Output> {
        let (to, forming) = forged::forming(output)?;
        match (mode, forming) {
            (LieMode::Behind, FormingMessage::Ready { round, .. }) => {
                Some(forged::behind(to, *round))
            }
            (
                LieMode::Propose,
                FormingMessage::Ready { round, .. }
                | FormingMessage::Propose(Proposed { round, .. }),
            ) => Some(forged::propose(self.me, to, *round, peer)),
            _ => None,
        }
    }

    /// A made-up decision, once for each fragment and round.
    fn decide(&mut self, slice: SliceId, meta: SliceMeta) -> Vec<Output> {
        let about = Some((slice.round, slice.fragment));
        if slice.part != Part::Contribution || self.decided == about {
            return Vec::new();
        }
        self.decided = about;
        let forge = (self.forger.as_ref(), self.depot.as_ref());
        forged::decided(forge, (self.me, &self.group), slice, meta)
    }

    /// The same push in the name of another member, which arrives before that member's own.
    fn slot(&mut self, output: &Output) -> Option<Output> {
        let Output::Push {
            to,
            slice,
            meta,
            priority,
            deadline,
        } = *output
        else {
            return None;
        };
        let mut others = self.group.iter().filter(|p| **p != self.me && **p != to);
        let slot = SliceId {
            origin: *others.next()?,
            ..slice
        };
        let bytes = SliceStore::get(self.depot.as_ref(), &slice)?;
        if slice.origin != self.me || SliceStore::get(self.depot.as_ref(), &slot).is_some() {
            return None;
        }
        SliceStore::put(self.depot.as_ref(), slot, bytes);
        self.slots.insert(slot);
        Some(Output::Push {
            to,
            slice: slot,
            meta,
            priority,
            deadline,
        })
    }
}
