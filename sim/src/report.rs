//! The result of a simulation as a table and as JSON.

use crate::data::DataReport;
use murmurate_protocol::{
    Certificate, Event, PeerId, Phase, Recoding, Round, SortedMap, SortedSet, Wait,
};
use serde::Serialize;
use std::fmt;

/// A fault that struck.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FaultNote {
    /// Virtual seconds.
    pub at_s: f64,
    /// Its name.
    pub what: &'static str,
    /// The machine.
    pub peer: usize,
}

/// Loss and consensus distance of the parameters at the start of a round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// The round.
    pub round: u64,
    /// Virtual seconds when the last peer began it.
    pub at_s: f64,
    /// Peers that began it.
    pub peers: usize,
    /// Bytes that all peers together had sent by then: control messages, slices as encoded, fetches.
    pub bytes: u64,
    /// Mean over peers of the loss on held-out data, in nats.
    pub loss: Option<f64>,
    /// The largest loss of a peer.
    pub loss_max: Option<f64>,
    /// Mean accuracy, where the task has one.
    pub accuracy: Option<f64>,
    /// Mean ||theta_i - mean theta||.
    pub consensus_distance: f64,
}

/// Counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counters {
    /// Events of the calendar.
    pub events: u64,
    /// Inner steps taken.
    pub inner_steps: u64,
    /// Seconds of training, over all peers.
    pub trained_s: f64,
    /// Links that came up, each counted at both ends.
    pub links: u64,
    /// Most links that one machine has at the end.
    pub links_most: u64,
    /// Control messages sent.
    pub messages: u64,
    /// Control messages that the network lost.
    pub messages_lost: u64,
    /// Bytes of control messages.
    pub bytes_control: u64,
    /// The same by the name of the message.
    pub bytes_by_message: SortedMap<&'static str, u64>,
    /// How many groups each peer was in, where groups are formed.
    #[serde(skip)]
    pub places: SortedMap<PeerId, u64>,
    /// The row of each peer, and the place in it, where they are in a grid.
    #[serde(skip)]
    pub seats: SortedMap<PeerId, (u32, u32)>,
    /// In how many decisions each machine's contribution was, over all peers that reported them.
    #[serde(skip)]
    pub merged: SortedMap<usize, u64>,
    /// Slices pushed.
    pub pushes: u64,
    /// Slices that the network lost.
    pub pushes_lost: u64,
    /// Slices that a Byzantine machine replaced.
    pub lies: u64,
    /// Bytes of the pushed slices' values as f32.
    pub bytes_payload: u64,
    /// Bytes of the pushed slices as encoded.
    pub bytes_encoded: u64,
    /// Bytes of fetched slices and states.
    pub bytes_fetched: u64,
    /// Of all these, the bytes that left a site.
    pub bytes_wan: u64,
    /// Rounds ended, over all peers.
    pub rounds_ended: u64,
    /// Fragments whose exchange had no result, over all peers.
    pub voided: u64,
    /// Waits that ended at their deadline.
    pub waits_expired: u64,
    /// The longest wait, in seconds.
    pub longest_wait_s: f64,
    /// The deadline of the longest wait, in seconds.
    pub longest_wait_allowed_s: f64,
    /// Seconds that peers waited because of the bound of their lead, over all peers.
    pub lead_waited_s: f64,
    /// Catch-ups begun.
    pub catch_ups: u64,
    /// Peers that did not do their part in time, as the others saw it.
    pub suspicions: u64,
    /// In which round each peer entered a pause, in the order of time.
    #[serde(skip)]
    pub pauses: Vec<(PeerId, Round)>,
    /// From which round on each peer went by other links, and what its schedule then costs by the model, in the
    /// order of time.
    #[serde(skip)]
    pub rescheduled: Vec<(PeerId, Round, Certificate)>,
    /// From which round on each peer had another codec that the members chose, in the order of time.
    #[serde(skip)]
    pub recoded: Vec<(PeerId, Round, Recoding)>,
    /// Merges of branches, over all peers.
    pub merges: u64,
    /// Merges of branches that did not come about, over all peers.
    pub not_merged: u64,
    /// Branches that were saved because another state took their place.
    pub branches_saved: u64,
    /// Push-sum weight of transfers with an unknown fate.
    pub mass_uncertain: f64,
    /// Signatures that machines made. A machine signs a statement once, however many it tells.
    pub signatures_made: u64,
    /// Signatures that machines checked.
    pub signatures_checked: u64,
    /// Inputs that a peer judged as misbehaviour of another peer.
    pub rule_breaks: u64,
    /// Machines that some other cut off, each once.
    pub cut_off: Vec<usize>,
    /// Machines of which others have proven that they lie.
    pub proven: SortedSet<usize>,
    /// Errors of failed orders.
    pub failures: Vec<String>,
    /// Training of data that the machines divide.
    pub data: Option<DataReport>,
    /// Faults in the order of their times.
    pub faults: Vec<FaultNote>,
}

impl Counters {
    /// Bytes that all peers together have sent.
    pub fn bytes(&self) -> u64 {
        self.bytes_control + self.bytes_encoded + self.bytes_fetched
    }

    pub(crate) fn pushed(&mut self, encoded: u64, payload: u64) {
        self.pushes += 1;
        self.bytes_encoded += encoded;
        self.bytes_payload += payload;
    }

    pub(crate) fn hear(&mut self, peer: PeerId, event: &Event) {
        match event {
            Event::Group { .. } => *self.places.entry(peer).or_default() += 1,
            Event::Seated { place, columns, .. } => {
                self.seats.insert(peer, (place / columns, place % columns));
            }
            Event::RoundEnded { .. } => self.rounds_ended += 1,
            Event::Suspected { .. } => self.suspicions += 1,
            Event::Phase {
                round,
                phase: Phase::Paused,
            } => self.pauses.push((peer, *round)),
            Event::Rescheduled { round, certificate } => {
                self.rescheduled.push((peer, *round, *certificate));
            }
            Event::Recoded { round, change } => self.recoded.push((peer, *round, *change)),
            Event::Voided { .. } => self.voided += 1,
            Event::CatchUp { .. } | Event::Replayed { .. } => self.catch_ups += 1,
            Event::Merged { .. } => self.merges += 1,
            Event::NotMerged { .. } => self.not_merged += 1,
            Event::MassUncertain { weight, .. } => self.mass_uncertain += weight,
            Event::Waited {
                wait,
                waited,
                allowed,
                expired,
            } => {
                if *wait == Wait::Lead {
                    self.lead_waited_s += waited.as_secs_f64();
                }
                self.waits_expired += u64::from(*expired);
                if waited.as_secs_f64() > self.longest_wait_s {
                    self.longest_wait_s = waited.as_secs_f64();
                    self.longest_wait_allowed_s = allowed.as_secs_f64();
                }
            }
            _ => {}
        }
    }
}

/// Mean over peers of ||theta_i - mean theta||, summed in f64; zero for none.
///
/// Shapes: `parameters: [N][P], f32`.
///
/// Special cases: one peer has distance zero; two peers each have half their distance.
pub fn consensus_distance(parameters: &[&[f32]]) -> f64 {
    let Some(first) = parameters.first() else {
        return 0.0;
    };
    let count = parameters.len() as f64;
    let mut mean = vec![0.0f64; first.len()];
    for theta in parameters {
        for (m, value) in mean.iter_mut().zip(*theta) {
            *m += f64::from(*value);
        }
    }
    mean.iter_mut().for_each(|m| *m /= count);
    let distance = |theta: &&[f32]| {
        theta
            .iter()
            .zip(&mean)
            .map(|(v, m)| (f64::from(*v) - m).powi(2))
            .sum::<f64>()
            .sqrt()
    };
    parameters.iter().map(distance).sum::<f64>() / count
}

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The scenario's name.
    pub name: String,
    /// Its seed.
    pub seed: u64,
    /// All machines of the run.
    pub peers: usize,
    /// Machines that were up at the end.
    pub live: usize,
    /// Rounds that each machine trains.
    pub rounds: u64,
    /// Duration in virtual seconds.
    pub virtual_s: f64,
    /// Running hash over all inputs and outputs: equal for equal runs.
    pub trace: String,
    /// Loss and consensus distance over the rounds.
    pub samples: Vec<Sample>,
    /// Mean ||theta_i - mean theta|| at the end.
    pub consensus_distance: f64,
    /// Faults of the scenario whose time or round did not come.
    pub faults_missed: usize,
    /// Counters.
    pub counters: Counters,
    /// Seconds of real time.
    pub wall_s: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = self.counters.events;
        writeln!(
            f,
            "{}: {} of {} peers, {} rounds, seed {}",
            self.name, self.live, self.peers, self.rounds, self.seed
        )?;
        writeln!(
            f,
            "{:>8} {:>10} {:>6} {:>12} {:>12} {:>9} {:>12}",
            "round", "time s", "peers", "loss", "worst", "accuracy", "consensus"
        )?;
        let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.6}"));
        for sample in &self.samples {
            writeln!(
                f,
                "{:>8} {:>10.3} {:>6} {:>12} {:>12} {:>9} {:>12.6}",
                sample.round,
                sample.at_s,
                sample.peers,
                cell(sample.loss),
                cell(sample.loss_max),
                sample
                    .accuracy
                    .map_or_else(|| "-".to_owned(), |a| format!("{a:.4}")),
                sample.consensus_distance
            )?;
        }
        writeln!(
            f,
            "virtual {:.3} s, wall {:.3} s, {events} events",
            self.virtual_s, self.wall_s
        )?;
        self.counters.fmt(f)?;
        if let Some(data) = self.counters.data {
            let (epochs, samples) = (data.epochs, data.samples);
            let (unseen, twice) = (data.unseen, data.twice);
            let of = format!("{samples} samples in {epochs} epochs");
            writeln!(f, "data: {of}, {unseen} missing, {twice} there twice")?;
        }
        if self.faults_missed > 0 {
            writeln!(f, "faults that did not strike: {}", self.faults_missed)?;
        }
        write!(f, "trace {}", self.trace)
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            messages,
            messages_lost,
            pushes,
            pushes_lost,
            ..
        } = self;
        let counters = self;
        writeln!(
            f,
            "control {messages} messages ({messages_lost} lost), {} B; slices {pushes} \
             ({pushes_lost} lost), {} B payload, {} B encoded; {} B fetched; {} B between sites",
            counters.bytes_control,
            counters.bytes_payload,
            counters.bytes_encoded,
            counters.bytes_fetched,
            counters.bytes_wan
        )?;
        writeln!(
            f,
            "{} inner steps, {} rounds ended, {} voided, {} catch-ups, longest wait {:.3} s of \
             {:.3} s",
            counters.inner_steps,
            counters.rounds_ended,
            counters.voided,
            counters.catch_ups,
            counters.longest_wait_s,
            counters.longest_wait_allowed_s
        )?;
        for fault in counters.faults.iter().take(FAULTS_SHOWN) {
            writeln!(
                f,
                "fault at {:.3} s: {} of peer {}",
                fault.at_s, fault.what, fault.peer
            )?;
        }
        if counters.faults.len() > FAULTS_SHOWN {
            writeln!(
                f,
                "and {} more faults",
                counters.faults.len() - FAULTS_SHOWN
            )?;
        }
        Ok(())
    }
}

/// Most faults that the table lists separately.
const FAULTS_SHOWN: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consensus_distance_has_its_special_cases() {
        assert_eq!(consensus_distance(&[]), 0.0);
        assert_eq!(consensus_distance(&[&[1.0, 2.0]]), 0.0);
        assert_eq!(consensus_distance(&[&[0.0, 0.0], &[6.0, 8.0]]), 5.0);
    }
}
