//! What the user is told while the daemons run: messages, or the sentences of a narrator.

use super::Swarm;
use crate::api::words::short;
use crate::events::unix_s;
use crate::faults::{Fault, FaultAction};
use crate::local::demo::{Narrator, Told};
use crate::local::member::State;
use murmurate_protocol::SortedSet;

impl Swarm {
    /// A requested fault is about to hit a daemon.
    pub(super) fn fault_hits(&mut self, place: usize, fault: Fault, round: u64) {
        let index = self.members[place].plan.index;
        let (how, state) = match fault.action {
            FaultAction::Kill => ("killed", State::Killed),
            FaultAction::Stop => ("stopped", State::Stopped),
        };
        self.members[place].state = state;
        self.members[place].fault = Some((fault, round));
        let others = self.members.iter().filter(|m| m.state == State::Running);
        let others: SortedSet<usize> = others.map(|m| m.plan.index).collect();
        let phase = fault.phase.to_string();
        self.tell(
            |narrator, now| narrator.killed(now, (index, round, &phase), others),
            || format!("daemon {index}: {fault} hits in round {round}"),
        );
        let how = format!("{how} in round {round}");
        self.display.ended(place, &how);
    }

    /// A daemon has a message. A narrator tells the important part in its own way.
    pub(super) fn notes(&self, place: usize, text: &str) {
        let index = self.members[place].plan.index;
        let text = self.with_numbers(text);
        match self.narrator {
            Some(_) => tracing::debug!("daemon {index}: {text}"),
            None => self.display.say(&format!("daemon {index}: {text}")),
        }
    }

    /// A message with the numbers of the daemons in place of their ids.
    pub(super) fn with_numbers(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for member in &self.members {
            if let Some(id) = member.peer.as_deref().map(short) {
                text = text.replace(&format!("daemon {id}"), &id);
                text = text.replace(&id, &format!("daemon {}", member.plan.index));
            }
        }
        text
    }

    /// A daemon starts when the others are in this round.
    pub(super) fn starts_late(&mut self, place: usize, round: u64) {
        let index = self.members[place].plan.index;
        self.tell(
            |narrator, now| narrator.comes_late(now, index, round),
            || format!("daemon {index} starts late"),
        );
    }

    /// A daemon is cut off from this many others, or with zero no longer.
    pub(super) fn is_split(&mut self, round: u64, away: usize) {
        let Some(text) = self.split.told(round, away) else {
            return;
        };
        self.tell(
            |narrator, now| match away {
                0 => narrator.healed(now, round),
                _ => narrator.split(now, round),
            },
            || text,
        );
    }

    pub(super) fn is_merged(&mut self, round: u64, sides: Vec<(u16, f64)>) {
        let count = sides.len();
        let Some(text) = self.split.merged(round, sides) else {
            return;
        };
        self.tell(|narrator, now| narrator.merged(now, round, count), || text);
    }

    /// Lets the narrator take part of the story, or shows a message where there is none.
    fn tell(&mut self, story: impl FnOnce(&mut Narrator, f64), message: impl FnOnce() -> String) {
        match &mut self.narrator {
            Some(narrator) => story(narrator, unix_s()),
            None => self.display.say(&message()),
        }
        self.narrate();
    }

    pub(in crate::local) fn narrate(&mut self) {
        if let Some(narrator) = &mut self.narrator {
            narrator.look();
            for sentence in narrator.news() {
                self.display.say(&sentence);
            }
        }
    }

    pub(in crate::local) fn story(&self) -> Vec<Told> {
        let narrator = self.narrator.as_ref();
        narrator.map_or_else(Vec::new, |narrator| narrator.story().to_vec())
    }

    /// Lets the narrator end the story of a run that is over.
    pub(in crate::local) fn end_story(&mut self) {
        self.narrate();
        let Some(narrator) = &mut self.narrator else {
            return;
        };
        let finished = self.members.iter().filter_map(|member| {
            let report = member.report.as_ref()?;
            Some((member.plan.index, report))
        });
        narrator.ends(unix_s(), &finished.collect::<Vec<_>>());
        self.narrate();
    }
}
