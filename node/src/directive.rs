//! A directive of the owner, as programs and people read it.

use murmurate_protocol::{Change, Directive, Round};
use serde::{Deserialize, Serialize};

/// One directive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DirectiveStatus {
    /// Its number.
    pub number: u32,
    /// What changes: `pause`, `resume`, `rounds`, `inner_steps` or `learning_rate`.
    pub change: String,
    /// To what, where that is a number.
    pub value: Option<f64>,
    /// The first round in which it is in force; zero is at once.
    pub from_round: u64,
    /// Unix time at which the owner signed it, seconds.
    pub signed_unix_s: u64,
    /// `in force`, `pending`, `over` (a later one counts), or `refused` (it does not fit the strategy).
    pub state: String,
}

impl DirectiveStatus {
    /// A directive that is in this state.
    pub fn new(directive: &Directive, state: &str) -> Self {
        let (change, value) = match directive.change {
            Change::Pause => ("pause", None),
            Change::Resume => ("resume", None),
            Change::Rounds(rounds) => ("rounds", Some(rounds as f64)),
            Change::InnerSteps(steps) => ("inner_steps", Some(f64::from(steps))),
            Change::LearningRate(factor) => ("learning_rate", Some(factor.get())),
        };
        Self {
            number: directive.number,
            change: change.to_owned(),
            value,
            from_round: directive.from.0,
            signed_unix_s: directive.at_s,
            state: state.to_owned(),
        }
    }
}

/// A directive in words: `pause from round 41`.
pub fn directive_words(directive: &Directive) -> String {
    let Directive { from, change, .. } = directive;
    match *from {
        Round(0) => change.to_string(),
        from => format!("{change} from round {from}"),
    }
}
