//! A directive of the owner, as programs and people read it.

use murmurate_protocol::{Change, Directive, Round};
use murmurate_strategies::compress::by_tag;
use serde::{Deserialize, Serialize};

/// One directive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DirectiveStatus {
    /// Its number.
    pub number: u32,
    /// What changes: `pause`, `resume`, `rounds`, `inner_steps`, `learning_rate` or `codec`.
    pub change: String,
    /// To what, where that is a number.
    pub value: Option<f64>,
    /// To which codec, where the codec changes.
    pub codec: Option<String>,
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
            Change::Codec(_) => ("codec", None),
        };
        Self {
            number: directive.number,
            change: change.to_owned(),
            value,
            codec: codec_words(directive.change),
            from_round: directive.from.0,
            signed_unix_s: directive.at_s,
            state: state.to_owned(),
        }
    }
}

/// What stands for the codec of the configuration.
pub const CONFIGURED: &str = "configured";

fn codec_words(change: Change) -> Option<String> {
    let Change::Codec(byte) = change else {
        return None;
    };
    Some(byte.map_or(CONFIGURED.to_owned(), codec_name))
}

pub(crate) fn codec_name(byte: u8) -> String {
    by_tag(byte).map_or_else(|| format!("unknown ({byte})"), |spec| spec.name.to_owned())
}

/// A directive in words: `pause from round 41`.
pub fn directive_words(directive: &Directive) -> String {
    let Directive { from, change, .. } = directive;
    let change = match codec_words(*change) {
        Some(codec) => format!("codec {codec}"),
        None => change.to_string(),
    };
    match *from {
        Round(0) => change,
        from => format!("{change} from round {from}"),
    }
}
