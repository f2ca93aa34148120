//! When gradients leave, and how many inner steps late a result is: a number, or a share of the round's inner steps, which grows
//! with the round. A method that is a whole round late (`"1/1"`) stays so if the round becomes longer.

use super::super::StrategyError;
use super::super::tables::Overlap as Table;
use super::super::validate::choose;
use super::rules::LAYERS;
use murmurate_protocol::{Layers, StepBudget};

const KEY: &str = "overlap.late_steps";

const NEEDED: &str =
    "a number of inner steps, or a share of the round's such as \"1/3\", at most \"1/1\"";

/// Reads the key. A share of H inner steps is ceil(H a / b).
///
/// Special case: a round of a time has no inner steps to take a share of. It counts as one, and
/// results that are late are refused there.
pub(super) fn late_steps(
    value: &Option<toml::Value>,
    budget: StepBudget,
) -> Result<u32, StrategyError> {
    let refuse = |value: &toml::Value| StrategyError::range(KEY, value, NEEDED);
    match value {
        None => Ok(0),
        Some(toml::Value::Integer(steps)) => {
            u32::try_from(*steps).map_err(|_| refuse(&toml::Value::Integer(*steps)))
        }
        Some(value) => {
            let (part, of) = value
                .as_str()
                .and_then(share)
                .ok_or_else(|| refuse(value))?;
            let steps = match budget {
                StepBudget::Steps(steps) => steps,
                StepBudget::Time(_) => 1,
            };
            let late = (u64::from(steps) * u64::from(part)).div_ceil(u64::from(of));
            Ok(u32::try_from(late).unwrap_or(u32::MAX))
        }
    }
}

/// A share in (0, 1].
fn share(text: &str) -> Option<(u32, u32)> {
    let (part, of) = text.split_once('/')?;
    let (part, of) = (part.trim().parse().ok()?, of.trim().parse().ok()?);
    (part > 0 && part <= of).then_some((part, of))
}

pub(super) const LAYERS_KEY: &str = "overlap.layers";

/// In the order of [`LAYERS`].
const ALL: [Layers; LAYERS.len()] = [
    Layers::Together,
    Layers::AsReady,
    Layers::ByPriority,
    Layers::IntoForward,
    Layers::Decoupled,
];

pub(super) fn layers(table: &Table) -> Result<Layers, StrategyError> {
    let name = choose(&table.layers, LAYERS[0].name, LAYERS_KEY, &LAYERS)?;
    let named = LAYERS.iter().zip(ALL).find(|(entry, _)| entry.name == name);
    Ok(named.map_or(ALL[0], |(_, layers)| layers))
}

pub(super) fn layers_name(layers: Layers) -> String {
    let named = LAYERS.iter().zip(ALL).find(|(_, all)| *all == layers);
    named.map_or(LAYERS[0], |(entry, _)| *entry).name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn late(value: impl Into<toml::Value>, steps: u32) -> Result<u32, StrategyError> {
        late_steps(&Some(value.into()), StepBudget::Steps(steps))
    }

    #[test]
    fn a_share_follows_the_round_and_a_number_does_not() {
        for (steps, whole, third) in [(4, 4, 2), (6, 6, 2), (25, 25, 9), (1, 1, 1)] {
            assert_eq!(late("1/1", steps), Ok(whole));
            assert_eq!(late("1/3", steps), Ok(third));
            assert_eq!(late(2, steps), Ok(2));
        }
        assert_eq!(late_steps(&None, StepBudget::Steps(9)), Ok(0));
        let time = StepBudget::Time(Duration::from_secs(1));
        assert_eq!(late_steps(&Some("1/3".into()), time), Ok(1));
    }

    #[test]
    fn what_is_no_share_is_refused_with_what_is() {
        for text in ["", "1", "0/3", "4/3", "1/0", "-1/3", "a/b", "1/3/5"] {
            let error = late(text, 6).unwrap_err().to_string();
            assert!(
                error.contains(KEY) && error.contains("1/3"),
                "{text}: {error}"
            );
        }
        assert!(late(-1, 6).is_err() && late(0.5, 6).is_err());
    }
}
