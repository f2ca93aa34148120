//! How contributions are encoded, and from which codecs rounds choose: from the table of the configuration to
//! the plan.

use super::error::{no_liars, refuse};
use super::registry::{CHOICES, CHOOSE_EVERY, CHOOSE_FROM, CODECS, FROM_RANGE, TRAIN_SHARE};
use super::strategy::{Choice, Compression};
use super::tables::Compression as Table;
use super::validate::{choose, refuse_foreign};
use super::{Strategy, StrategyError, methods};
use crate::compress::{self, CodecKind, by_tag, may_replace};
use murmurate_protocol::limits::RUNGS_MAX;
use murmurate_protocol::{ExchangeFacts, Ladder, Layers, Pace, Rung, StepBudget};

const KEY: &str = "compression.choose";
const FROM: &str = CHOOSE_FROM.name;

/// The parameter of sparse codecs that says which share of the values they keep.
const DENSITY: &str = "density";

/// Parts of a share.
const THOUSAND: f64 = 1e3;

/// Parts of a density, as a plan says it.
const BILLION: f64 = 1e9;

/// Reads the table. By default error feedback is used if the codec needs it, except for differences to replicas,
/// where the next difference contains what the codec left out, and where a part of the parameters is mixed, and
/// another part in the next round.
pub(super) fn read(table: &Table, exchange: ExchangeFacts) -> Result<Compression, StrategyError> {
    let name = choose(
        &table.codec,
        compress::DEFAULT.name,
        "compression.codec",
        &CODECS,
    )?;
    let codec = CodecKind::from_table(name, &table.parameters)?;
    let properties = codec.build().properties();
    let mixed_in_parts = properties.masks && exchange.mixes_parts;
    let needed = properties.needs_feedback && !exchange.has_replicas && !mixed_in_parts;
    let chosen = choose(&table.choose, "fixed", KEY, &CHOICES)?;
    refuse_foreign("compression", table, &CHOICES, chosen)?;
    Ok(Compression {
        codec,
        error_feedback: table.error_feedback.unwrap_or(needed),
        choice: match chosen {
            "measured" => Some(choice(&codec, table)?),
            _ => None,
        },
    })
}

fn choice(codec: &CodecKind, table: &Table) -> Result<Choice, StrategyError> {
    let every = table.choose_every.map(|every| every as f64);
    let every = CHOOSE_EVERY.given(every, |every| every > 0.0)?;
    let thousandths = |share: f64| (share * THOUSAND).round();
    let holds = |share| (1.0..THOUSAND).contains(&thousandths(share));
    let share = TRAIN_SHARE.given(table.train_share, holds)?;
    refuse(
        may_replace(codec, codec.spec()).is_err(),
        KEY,
        "this codec keeps a state, or its contributions are not summed: no other can take its place",
        "use codec \"f32\", \"bf16\", \"int8\" or \"top-k\", or leave it out",
    )?;
    refuse(
        codec.build().properties().matrices,
        KEY,
        "what this codec sends depends on the shapes of the tensors, so no other is known to send less",
        "use codec \"f32\", \"bf16\", \"int8\" or \"top-k\", or leave it out",
    )?;
    let codecs = match &table.choose_from {
        Some(list) => listed(codec, list)?,
        None => usual(codec)?,
    };
    Ok(Choice {
        every: every as u64,
        share: thousandths(share) as u16,
        codecs,
    })
}

/// Those of the usual codecs that send less than the configured one.
fn usual(codec: &CodecKind) -> Result<Vec<CodecKind>, StrategyError> {
    if takes_density(codec) {
        let needed = "give densities below that of the codec, the largest first";
        return Err(StrategyError::missing(FROM, needed));
    }
    let all = compress::HALVES.iter().map(|spec| CodecKind::of(spec, &[]));
    let all = all.collect::<Result<Vec<_>, _>>()?;
    let less =
        |kind: &CodecKind| sends_less(codec, kind) && may_replace(codec, kind.spec()).is_ok();
    let codecs: Vec<_> = all.into_iter().filter(less).collect();
    if codecs.is_empty() {
        let needed = "give codecs that send less than the configured one";
        Err(StrategyError::missing(FROM, needed))
    } else {
        Ok(codecs)
    }
}

/// The codecs that a configuration lists.
fn listed(codec: &CodecKind, list: &[toml::Value]) -> Result<Vec<CodecKind>, StrategyError> {
    let mut codecs: Vec<CodecKind> = Vec::new();
    for value in list {
        let kind = one(codec, value)?;
        let before = codecs.last().unwrap_or(codec);
        match kind.filter(|kind| sends_less(before, kind)) {
            Some(kind) => codecs.push(kind),
            None => return Err(StrategyError::range(FROM, value, FROM_RANGE)),
        }
    }
    if (1..RUNGS_MAX).contains(&codecs.len()) {
        Ok(codecs)
    } else {
        let list = toml::Value::from(list.to_vec());
        Err(StrategyError::range(FROM, list, FROM_RANGE))
    }
}

/// The codec of this name, or the configured one with this density; `None` if it cannot take its place.
fn one(codec: &CodecKind, value: &toml::Value) -> Result<Option<CodecKind>, StrategyError> {
    if let toml::Value::String(name) = value {
        let known = super::entry::names(&CODECS);
        if !known.contains(&name.as_str()) {
            return Err(StrategyError::unknown(FROM, name, &known));
        }
        let found = CodecKind::new(name, &[]).ok();
        return Ok(found.filter(|kind| may_replace(codec, kind.spec()).is_ok()));
    }
    let density = value.as_float().filter(|d| 0.0 < *d && *d < 1.0);
    let density = density.filter(|_| takes_density(codec));
    Ok(density.map(|density| codec.with(DENSITY, density)))
}

/// Set where the configuration names the share of values that it keeps.
fn takes_density(codec: &CodecKind) -> bool {
    let mut parameters = codec.spec().parameters.iter();
    parameters.any(|parameter| parameter.name == DENSITY)
}

fn sends_less(than: &CodecKind, kind: &CodecKind) -> bool {
    kind.build().bytes_bound().per_1024 < than.build().bytes_bound().per_1024
}

/// Refuses a choice where the members of a round cannot agree on one.
pub(super) fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    const FIXED: &str = "leave it out: all rounds then have the configured codec";
    if strategy.compression.choice.is_none() {
        return Ok(());
    }
    refuse(
        !strategy.exchange().agrees(),
        KEY,
        "peers measure different waits, and only peers that agree on every round agree on one",
        "use exchange = \"all-reduce\" or \"gathered\", or leave it out",
    )?;
    refuse(
        strategy.signs(),
        KEY,
        "what members sign says nothing of their waits",
        no_liars!("leave it out"),
    )?;
    refuse(
        strategy
            .groups
            .grouping
            .is_some_and(|grouping| grouping.has_roll()),
        KEY,
        "the codec follows what the members of a group agree on, and a grid has no one group",
        "use grouping = \"flat\", or leave it out",
    )?;
    refuse(
        matches!(strategy.budget(), StepBudget::Time(_)),
        KEY,
        "waits are compared with a number of inner steps, and a time bounds them here",
        "give `synchronization.inner_steps` in place of `synchronization.round_time`",
    )?;
    refuse(
        matches!(strategy.synchronization().pace, Pace::Loss { .. }),
        KEY,
        "members say one number with their contributions, and with this pace it is their loss",
        "use pace = \"decay\" or \"measured\", or leave it out",
    )?;
    let overlap = &strategy.overlap;
    refuse(
        overlap.plan.late_steps > 0 || overlap.plan.layers != Layers::Together,
        KEY,
        "a wait is measured between training and the result, and here training goes on meanwhile",
        "set overlap.late_steps to 0 and overlap.layers to \"together\", or leave it out",
    )?;
    refuse(
        overlap.has_densities(),
        KEY,
        "fragments have densities of their own",
        FIXED,
    )
}

impl Choice {
    pub(super) fn write(&self, codec: &CodecKind, table: &mut Table) {
        let own = |kind: &CodecKind| kind.spec().tag == codec.spec().tag;
        let value = |kind: &CodecKind| {
            if own(kind) {
                kind.number(DENSITY).into()
            } else {
                kind.name().into()
            }
        };
        table.choose = Some("measured".to_owned());
        table.choose_from = Some(self.codecs.iter().map(value).collect());
        table.choose_every = Some(self.every);
        table.train_share = Some(f64::from(self.share) / THOUSAND);
    }
}

impl Strategy {
    /// The codecs from which the members of a round choose, as a plan says it.
    pub(super) fn ladder(&self) -> Option<Ladder> {
        let choice = self.compression.choice.as_ref()?;
        let (exchange, own) = (self.exchange(), self.codec_kind());
        let bound = methods::of(exchange).costs.aggregate;
        let rung = |kind: &CodecKind| {
            let codec = kind.build();
            let (contribution, aggregate) = (codec.bytes_bound(), bound(exchange, &*codec));
            // A sparse sum is as long as the contributions are, which its bound does not say. Members of
            // a gathered exchange receive no sum.
            let sums = !takes_density(own) && !exchange.facts().shows_contributions;
            let of_sum = if sums { aggregate.per_1024 } else { 0 };
            let density = takes_density(kind).then(|| kind.number(DENSITY));
            Rung {
                tag: kind.spec().tag,
                per_billion: density.map_or(0, |density| (density * BILLION).round() as u32),
                per_1024: contribution.per_1024 + of_sum,
                contribution,
                aggregate,
            }
        };
        let all = std::iter::once(own).chain(&choice.codecs);
        Ladder::new(
            choice.every,
            choice.share,
            &all.map(rung).collect::<Vec<_>>(),
        )
    }
}

/// A codec of a ladder in words: its name, and its density if it has one.
pub fn rung_words(rung: &Rung) -> String {
    let name = by_tag(rung.tag).map_or("unknown", |spec| spec.name);
    match rung.per_billion {
        0 => name.to_owned(),
        density => format!("{name} with density {}", f64::from(density) / BILLION),
    }
}
