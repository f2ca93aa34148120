//! A strategy as a configuration from which the same strategy can be parsed.

use super::Strategy;
use crate::grid::methods;
use crate::grid::tables::{self, Tables};
use crate::grid::text::canonical;
use crate::outer::StatePrecision;
use murmurate_protocol::StepBudget;

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
        let architecture = &mut tables.architecture.parameters;
        if self.parts() == 0 {
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
        if let Some(choice) = self.choice() {
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
            tables.agreement = tables::Agreement::from_plan(self.liars, self.grouping);
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
