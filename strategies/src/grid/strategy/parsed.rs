//! A strategy from its configuration.

use super::{Inner, Rounds, Strategy};
use crate::grid::tables::Tables;
use crate::grid::validate::{self, read_method};
use crate::grid::{DEFAULT_PRESET, StrategyError, preset};
use crate::grid::{
    agreement, architecture, compression, grouping, overlap, rates, refuse, synchronization, text,
};
use core::str::FromStr;

impl Strategy {
    /// Reads a configuration. It is laid over a preset, key by key: the one given, else the one its
    /// key `preset` names, else [`DEFAULT_PRESET`]. Where it chooses another method than the preset
    /// (another codec, say), the preset's parameters of the old one are left out.
    ///
    /// # Errors
    /// The first thing wrong with it.
    ///
    /// ```
    /// use murmurate_strategies::grid::Strategy;
    /// let text = "[compression]\ncodec = \"int8\"";
    /// let strategy = Strategy::parse(text, Some("diloco")).unwrap();
    /// assert_eq!(strategy.codec_kind().name(), "int8");
    /// let error = Strategy::parse("[compression]\ncodec = \"bf15\"", None).unwrap_err();
    /// assert!(error.to_string().contains("did you mean `bf16`?"));
    /// ```
    pub fn parse(toml_text: &str, preset: Option<&str>) -> Result<Self, StrategyError> {
        Self::from_table(text::parse(toml_text)?, preset)
    }

    /// As [`Strategy::parse`], of a table that is part of a larger configuration.
    ///
    /// # Errors
    /// The first thing wrong with it.
    pub fn from_table(
        mut config: toml::Table,
        preset_name: Option<&str>,
    ) -> Result<Self, StrategyError> {
        let named = match config.remove("preset") {
            None => None,
            Some(toml::Value::String(name)) => Some(name),
            Some(other) => {
                let message = format!("found {}, needs the name of a preset", other.type_str());
                return Err(StrategyError::Type {
                    key: "preset".to_owned(),
                    message,
                });
            }
        };
        let name = preset_name
            .or(named.as_deref())
            .unwrap_or(DEFAULT_PRESET)
            .to_owned();
        let mut whole = text::parse(preset(&name)?)?;
        text::check(&config)?;
        text::lay_over(&mut whole, config);
        Self::from_tables(name, &text::read(&whole)?)
    }

    /// A preset as it is.
    ///
    /// # Errors
    /// When there is no such preset.
    pub fn preset(name: &str) -> Result<Self, StrategyError> {
        Self::parse("", Some(name))
    }

    fn from_tables(name: String, tables: &Tables) -> Result<Self, StrategyError> {
        let architecture = architecture::read(tables)?;
        let kind = architecture.kind;
        let compression = compression::read(&tables.compression, kind.facts())?;
        let deadlines = tables.deadlines.clone().unwrap_or_default();
        let when = &tables.synchronization;
        let budget = validate::budget(when)?;
        let (outer, inner, rule) = (&tables.outer, &tables.inner, &tables.aggregation);
        let optimizer = read_method(&inner.optimizer, &inner.parameters)?;
        let strategy = Self {
            name,
            rounds: Rounds {
                budget,
                synchronization: synchronization::read(kind, when)?,
            },
            architecture,
            compression,
            overlap: overlap::read(&tables.overlap, budget)?,
            outer: read_method(&outer.optimizer, &outer.parameters)?,
            aggregation: read_method(&rule.rule, &rule.parameters)?,
            liars: agreement::read(kind, &tables.agreement)?,
            grouping: grouping::read(kind, &tables.agreement)?,
            inner: Inner {
                optimizer,
                correction: read_method(&inner.correction, &inner.parameters)?,
                rate: rates::read(inner)?,
                no_decay: rates::no_decay(inner, &optimizer)?,
            },
            deadlines: validate::deadlines(&deadlines)?,
        };
        refuse::check(&strategy)?;
        Ok(strategy)
    }
}

impl FromStr for Strategy {
    type Err = StrategyError;

    fn from_str(text: &str) -> Result<Self, StrategyError> {
        Self::parse(text, None)
    }
}
