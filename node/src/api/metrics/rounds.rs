//! The cost of a round, as predicted and as measured.

use super::values::Described;
use crate::api::RoundStatus;

/// Names and descriptions of the metrics of [`of_round`], in its order.
pub(super) type RoundNames = [(&'static str, &'static str); 5];

pub(super) const PREDICTED: RoundNames = [
    (
        "predicted_utilization",
        "Fraction of a round in training, predicted",
    ),
    ("predicted_round_seconds", "Duration of a round, predicted"),
    (
        "predicted_sent_bytes_per_round",
        "Encoded bytes sent in a round, predicted",
    ),
    (
        "predicted_received_bytes_per_round",
        "Encoded bytes received in a round, predicted",
    ),
    (
        "predicted_memory_bytes",
        "Memory of the model and its method, predicted",
    ),
];

pub(super) const MEASURED: RoundNames = [
    (
        "measured_utilization",
        "Fraction of the last rounds in training",
    ),
    ("measured_round_seconds", "Mean duration of the last rounds"),
    (
        "measured_sent_bytes_per_round",
        "Mean encoded bytes sent in a round, over the last rounds",
    ),
    (
        "measured_received_bytes_per_round",
        "Mean encoded bytes received in a round, over the last rounds",
    ),
    ("measured_memory_bytes", "Resident memory"),
];

/// The metrics of a round under these names.
pub(super) fn of_round(
    names: RoundNames,
    round: Option<RoundStatus>,
) -> impl Iterator<Item = Described> {
    let values = round.map(|round| {
        [
            Some(round.utilization),
            Some(round.round_s),
            Some(round.bytes_sent),
            Some(round.bytes_received),
            round.memory_bytes,
        ]
    });
    let described = move |values: [Option<f64>; 5]| names.into_iter().zip(values);
    let all = values.into_iter().flat_map(described);
    all.map(|((name, help), value)| (name, help, value))
}
