//! Collects loss and consensus distance of the parameters that open rounds.

use crate::host::Host;
use crate::report::{Sample, consensus_distance};
use murmurate_protocol::{Event, Round, Time};
use std::collections::BTreeMap;

/// Collects the samples of one round.
#[derive(Clone, Debug, Default)]
struct Gathering {
    at: Time,
    bytes: u64,
    parameters: BTreeMap<usize, Vec<f32>>,
    losses: Vec<f64>,
    accuracies: Vec<f64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Samples {
    every: u64,
    rounds: BTreeMap<Round, Gathering>,
}

impl Samples {
    /// Rounds between two samples; zero for none.
    pub(crate) fn new(every: u64) -> Self {
        Self {
            every,
            rounds: BTreeMap::new(),
        }
    }

    /// Notes an event of a peer, with its parameters if a sample is due.
    pub(crate) fn hear(
        &mut self,
        (now, bytes): (Time, u64),
        index: usize,
        host: &Host,
        event: &Event,
    ) {
        match event {
            Event::RoundEnded { round, .. } => {
                let opened = round.next();
                if self.every > 0 && opened.0.is_multiple_of(self.every) {
                    let gathering = self.rounds.entry(opened).or_default();
                    gathering.at = now;
                    gathering.bytes = bytes;
                    gathering.parameters.insert(index, host.parameters());
                }
            }
            Event::Evaluated { round, evaluation } if self.every > 0 => {
                let gathering = self.rounds.entry(*round).or_default();
                gathering.losses.push(evaluation.loss);
                gathering.accuracies.extend(evaluation.accuracy);
            }
            _ => {}
        }
    }

    pub(crate) fn finish(self) -> Vec<Sample> {
        let mean = |values: &[f64]| {
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let sample = |(round, gathering): (Round, Gathering)| Sample {
            round: round.0,
            at_s: gathering.at.as_secs_f64(),
            peers: gathering.parameters.len(),
            bytes: gathering.bytes,
            loss: mean(&gathering.losses),
            loss_max: gathering.losses.iter().copied().reduce(f64::max),
            accuracy: mean(&gathering.accuracies),
            consensus_distance: consensus_distance(
                &gathering
                    .parameters
                    .values()
                    .map(Vec::as_slice)
                    .collect::<Vec<_>>(),
            ),
        };
        self.rounds.into_iter().map(sample).collect()
    }
}
