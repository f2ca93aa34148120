//! A strategy from its configuration, and as a configuration from which the same strategy can be parsed.

use super::{Inner, Rounds, Strategy};
use crate::grid::methods;
use crate::grid::tables::{self, Tables};
use crate::grid::text::canonical;
use crate::grid::validate::{self, read_method};
use crate::grid::{DEFAULT_PRESET, StrategyError, preset};
use crate::grid::{
    agreement, architecture, compression, overlap, rates, refuse, synchronization, text,
};
use crate::outer::StatePrecision;
use core::str::FromStr;
use murmurate_protocol::StepBudget;

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
            groups: agreement::read(kind, &tables.agreement)?,
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

impl Strategy {
    /// The canonical configuration: every key that applies, in a fixed order. Parsing it gives this
    /// strategy again.
    pub fn to_toml(&self) -> String {
        format!(
            "preset = \"{}\"\n\n{}",
            self.name,
            canonical(&self.tables(true))
        )
    }

    /// The part that all peers of a run must share: no name, no deadlines.
    pub(super) fn recipe(&self) -> String {
        canonical(&self.tables(false))
    }

    /// Removes keys that say what every plan had before there were such keys, so that the hash of those
    /// plans stays.
    fn leave_out_usual(&self, tables: &mut Tables) {
        // Peers must have the same tensors that travel, and the layout says which.
        tables.architecture.local = None;
        let architecture = &mut tables.architecture.parameters;
        if self.architecture.parts == 0 {
            architecture.remove("parts");
        }
        if !self.schedule().goes_by_sites() {
            architecture.remove("islands_by");
        }
        if self.outer_state() == StatePrecision::F32 {
            tables.outer.parameters.remove("state");
        }
    }

    fn tables(&self, deadlines: bool) -> Tables {
        let name = |name: &str| Some(name.to_owned());
        let mut tables = Tables::default();
        match self.rounds.budget {
            StepBudget::Steps(count) => tables.synchronization.inner_steps = Some(count),
            StepBudget::Time(time) => tables.synchronization.round_time = Some(time.as_secs_f64()),
        }
        let kind = self.architecture.kind;
        tables.set_synchronization(kind, &self.rounds.synchronization);
        tables.set_architecture(&self.architecture);
        (methods::of(kind).write)(self, &mut tables);
        tables.compression.codec = name(self.compression.codec.name());
        tables.compression.parameters = self.compression.codec.to_table();
        tables.compression.error_feedback = Some(self.compression.error_feedback);
        if let Some(choice) = &self.compression.choice {
            choice.write(self.codec_kind(), &mut tables.compression);
        }
        tables.overlap = tables::Overlap::from_overlap(&self.overlap);
        tables.outer.optimizer = name(self.outer.name());
        tables.outer.parameters = self.outer.to_table();
        tables.aggregation.rule = name(self.aggregation.name());
        tables.aggregation.parameters = self.aggregation.to_table();
        if !deadlines {
            self.leave_out_usual(&mut tables);
        }
        // Part of the plan itself, so it need not be part of the recipe.
        if deadlines {
            tables.agreement = tables::Agreement::of(self.groups);
        }
        let inner = &mut tables.inner;
        inner.optimizer = name(self.inner.optimizer.name());
        inner.parameters = self.inner.optimizer.to_table();
        if !self.inner.correction.is_none() {
            inner.correction = name(self.inner.correction.name());
            inner.parameters.extend(self.inner.correction.to_table());
        }
        inner.set_rate(&self.inner.rate, &self.inner.no_decay);
        tables.deadlines = deadlines.then(|| tables::Deadlines::from_plan(&self.deadlines));
        tables
    }
}

impl FromStr for Strategy {
    type Err = StrategyError;

    fn from_str(text: &str) -> Result<Self, StrategyError> {
        Self::parse(text, None)
    }
}
