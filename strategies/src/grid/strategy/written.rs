//! A strategy as a configuration from which the same strategy can be parsed.

use super::Strategy;
use crate::grid::methods;
use crate::grid::tables::{self, Tables};
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
    fn leave_out_usual(&self, parameters: &mut toml::Table) {
        if self.parts() == 0 {
            parameters.remove("parts");
        }
        if !self.schedule().goes_by_sites() {
            parameters.remove("islands_by");
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
        // What the recipe leaves out keeps the hash of plans from before the key.
        tables.outer = tables::Outer::from_kind(&self.outer, self.outer_state, deadlines);
        tables.aggregation = tables::Aggregation::from_kind(&self.aggregation);
        if !deadlines {
            self.leave_out_usual(&mut tables.architecture.parameters);
        }
        // Part of the plan itself, so it need not be part of the recipe.
        if deadlines {
            tables.agreement = tables::Agreement::from_plan(self.liars, self.grouping);
        }
        tables.inner = tables::Inner::from_kind(&self.inner.optimizer);
        tables.inner.set_correction(&self.inner.correction);
        tables
            .inner
            .set_rate(&self.inner.rate, &self.inner.no_decay);
        tables.deadlines = deadlines.then(|| tables::Deadlines::from_plan(&self.deadlines));
        tables
    }
}

fn canonical(tables: &Tables) -> String {
    toml::to_string(tables).expect("tables of strings and numbers are always TOML")
}
