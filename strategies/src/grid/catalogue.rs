//! Every method with its keys, equation, source and properties, for people and programs. `murmurate
//! strategies` prints it, and `docs/coverage.md` is checked against it. A configuration is a
//! [`Strategy`] instead.

use super::entry::Entry;
use super::presets::HEADER;
use super::registry;
use super::strategy::{HELD, HELD_MEMBERS};
use super::{LATER, Later, Strategy, StrategyError, preset};
use crate::compress::{self, CodecKind, CodecSpec, Reduction};
use crate::correct::CorrectionKind;
use crate::inner::InnerKind;
use crate::names::nearest;
use crate::outer::OuterKind;
use crate::parameter::Parameter;
use serde::Serialize;

/// One method: a value of the key that chooses it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Method {
    /// The key that chooses it, such as `outer.optimizer`, or `preset`.
    pub key: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its description, in a line.
    pub summary: &'static str,
    /// The rule, in a line.
    pub equation: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// The keys that it takes.
    pub keys: Vec<MethodKey>,
    /// Its stores, with their sizes in multiples of 4 bytes x parameters. For a preset these are
    /// all but those of slices under way.
    pub state: Vec<(&'static str, f64)>,
    /// What a codec promises: a fact a line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<String>,
    /// What a preset keeps of its paper and what not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What members that lie can do where a preset is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<&'static str>,
    /// A preset's whole configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toml: Option<String>,
    /// Why it cannot be chosen yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refusal>,
}

/// A key of a method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MethodKey {
    /// Its full name, such as `outer.lr`.
    pub name: String,
    /// The values that it may have, in words.
    pub range: String,
    /// Its default as TOML; where there is none it must be given.
    pub default: Option<String>,
    /// Its meaning.
    pub about: &'static str,
}

/// Why a method cannot be chosen yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The reason, in the words of the refusal.
    pub reason: &'static str,
    /// The nearest that works.
    pub remedy: &'static str,
}

/// Every method, key by key; within a key first those that can be chosen, then those that cannot yet.
pub fn catalogue() -> Vec<Method> {
    let mut all = Vec::new();
    for (key, entries) in registry::ALL {
        all.extend(entries.iter().map(|entry| method(key, entry)));
        let later = LATER.iter();
        all.extend(later.filter(|later| later.key == key).map(refused));
    }
    all
}

/// The methods of a name: one for each key that has it.
///
/// # Errors
/// With the nearest names, when there is none.
///
/// ```
/// use murmurate_strategies::grid::find;
/// assert_eq!(find("slow-mo").unwrap()[0].key, "outer.optimizer");
/// assert!(find("slowmoo").unwrap_err().to_string().contains("`slowmo`"));
/// ```
pub fn find(name: &str) -> Result<Vec<Method>, StrategyError> {
    let mut all = catalogue();
    let known: Vec<_> = all.iter().map(|method| method.name).collect();
    if known.contains(&name) {
        all.retain(|method| method.name == name);
        return Ok(all);
    }
    let near = nearest(name, &known, 3).into_iter();
    let near: Vec<_> = near.map(|name| format!("`{name}`")).collect();
    Err(StrategyError::UnknownMethod {
        found: name.to_owned(),
        nearest: near.join(", "),
    })
}

fn plain(key: &'static str, entry: &Entry) -> Method {
    let shared = entry.keys.iter().map(|key| MethodKey {
        name: key.name.to_owned(),
        range: key.range.to_owned(),
        default: key.default.map(str::to_owned),
        about: key.about,
    });
    let table = key.split_once('.').map_or(key, |(table, _)| table);
    let own = entry
        .parameters
        .iter()
        .map(|parameter| of(table, parameter));
    Method {
        key,
        name: entry.name,
        summary: entry.summary,
        equation: entry.equation,
        source: entry.source,
        keys: own.chain(shared).collect(),
        state: Vec::new(),
        properties: Vec::new(),
        note: None,
        trust: None,
        toml: None,
        refused: None,
    }
}

fn of(table: &str, parameter: &Parameter) -> MethodKey {
    MethodKey {
        name: format!("{table}.{}", parameter.name),
        range: parameter.range.to_string(),
        default: parameter.usual().map(|usual| match usual {
            // Short for small numbers, too.
            toml::Value::Float(number) => format!("{number:?}"),
            usual => usual.to_string(),
        }),
        about: parameter.about,
    }
}

fn refused(later: &Later) -> Method {
    Method {
        refused: Some(Refusal {
            reason: later.reason,
            remedy: later.remedy,
        }),
        ..plain(later.key, &later.entry)
    }
}

fn method(key: &'static str, entry: &Entry) -> Method {
    let mut method = plain(key, entry);
    match key {
        "preset" => {
            let strategy = Strategy::preset(entry.name).expect("tests parse every preset");
            method.state = strategy.stores();
            method.note = preset(entry.name).ok().map(note);
            method.trust = Some(strategy.trust());
            method.toml = Some(strategy.to_toml());
        }
        "compression.codec" => {
            let spec = compress::CODECS.iter().find(|spec| spec.name == entry.name);
            codec(spec.expect("the list is made of these"), &mut method);
        }
        "outer.optimizer" => method.state = outer(entry),
        "inner.optimizer" => method.state = inner(entry),
        "inner.correction" => method.state = correction(entry),
        "aggregation.rule" if !["weighted-mean", "private-mean"].contains(&entry.name) => {
            method.state = vec![("decoded contributions", 1.0)];
        }
        _ => {}
    }
    method
}

/// The comment that a preset's text begins with, after its header.
fn note(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with(HEADER));
    let lines = lines.map_while(|line| line.strip_prefix('#'));
    let words: Vec<_> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

fn outer(entry: &Entry) -> Vec<(&'static str, f64)> {
    let kind = OuterKind::new(entry.name, &[]).expect("every parameter has a default");
    let mut state = some("outer optimizer", kind.state_multiple());
    state.extend(some("companion", 2 * kind.companion().len(1)));
    state
}

fn inner(entry: &Entry) -> Vec<(&'static str, f64)> {
    let kind = InnerKind::new(entry.name, &[]).expect("every parameter has a default");
    some("inner optimizer", kind.state_multiple_max())
}

fn correction(entry: &Entry) -> Vec<(&'static str, f64)> {
    let kind = CorrectionKind::new(entry.name, &[]).expect("every parameter has a default");
    let mut state = some("correction", kind.state_multiple());
    state.extend(some("companion", 2 * kind.companion().len(1)));
    state
}

fn some(store: &'static str, multiple: usize) -> Vec<(&'static str, f64)> {
    match multiple {
        0 => Vec::new(),
        _ => vec![(store, multiple as f64)],
    }
}

/// Keys, state and properties of a codec, by its entry in the list of codecs.
fn codec(spec: &'static CodecSpec, method: &mut Method) {
    let own = spec.parameters.iter();
    method
        .keys
        .extend(own.map(|parameter| of("compression", parameter)));
    let needed = spec.parameters.iter().filter(|p| p.default.is_none());
    let given: Vec<_> = needed.map(|p| (p.name, p.range.example())).collect();
    let kind = CodecKind::new(spec.name, &given).expect("examples lie in their ranges");
    let mut codec = kind.build();
    let properties = codec.properties();
    method.state = some("residual", usize::from(properties.needs_feedback));
    method.state.extend(some("codec", properties.planes));
    let holds = codec.gathering().is_some_and(|common| common.holds());
    let held = if holds { HELD_MEMBERS } else { 0 };
    method.state.extend(some(HELD, held));
    let mut say = |holds: bool, what: &str| {
        if holds {
            method.properties.push(what.to_owned());
        }
    };
    say(properties.lossless, "lossless");
    say(properties.unbiased && !properties.lossless, "unbiased");
    say(properties.stochastic, "rounds at random, from a seed");
    say(properties.needs_feedback, "needs error feedback");
    say(
        !properties.scaled,
        "for gradients only: signs have no magnitude",
    );
    say(properties.dense, "may carry parameters themselves");
    say(properties.shared_seed, "all peers share a seed");
    say(properties.matrices, "looks at matrices");
    say(
        properties.quiet > 0.0,
        "sends nothing of values below a threshold",
    );
    let reduction = match properties.reduction {
        Reduction::WhileEncoded => "may be summed while encoded",
        Reduction::AfterDecoding => "is decoded into the sum",
        Reduction::Squeezed => {
            "needs a parameter server: the owner of a shard keeps a residual of its reductions"
        }
        Reduction::TwoPasses => {
            "takes two passes: members contribute again, for what owners made of the first"
        }
        Reduction::Gathered => "must be gathered: for exchange \"gathered\" only",
    };
    say(true, reduction);
    if !properties.lossless && properties.error.is_finite() {
        let bound = format!("E ||C(x) - x||^2 <= {:.3e} ||x||^2", properties.error);
        say(true, &bound);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_the_comment_that_a_text_begins_with() {
        assert_eq!(note("#: a\n# One,\n# two.\n[a]\n# three\n"), "One, two.");
        assert_eq!(note("[a]\n"), "");
    }
}
