//! A topology's entry in the list of topologies, and a topology as data: what `architecture.topology`
//! and its keys say.

use crate::parameter::{PARAMETERS_MAX, Parameter, ParameterError, Parameters, Values};
use murmurate_protocol::Topology;
use serde::{Serialize, Serializer};

/// One topology as the configuration knows it.
#[derive(Clone, Copy, Debug)]
pub struct TopologySpec {
    /// Its name in the configuration.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Its mixing matrix W, in a line.
    pub equation: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its parameters, as keys of `[architecture]`.
    pub parameters: &'static [Parameter],
    /// Whether W is symmetric in every round: a peer that another one pushes to pushes back.
    pub symmetric: bool,
    /// Whether, in round 0, every rank but 0 has a neighbour below it and none has many: its graph
    /// has a spanning tree along which sums can travel.
    pub spans: bool,
    /// Whether each round draws new pairs among all peers, so that every peer meets every other.
    pub random_pairs: bool,
    /// Makes it from parameters within their ranges and a seed.
    pub build: fn(&TopologyKind, u64) -> Box<dyn Topology>,
}

impl TopologySpec {
    /// Its parameters, as keys of `[architecture]`.
    pub const fn parameters(&self) -> Parameters {
        Parameters {
            table: "architecture",
            method: self.name,
            list: self.parameters,
        }
    }
}

/// A topology with its parameters, all within their ranges: who pushes to whom in a round.
#[derive(Clone, Copy)]
pub struct TopologyKind {
    spec: &'static TopologySpec,
    values: Values,
}

impl TopologyKind {
    /// A topology of the list with these parameters; the others get their defaults.
    ///
    /// # Errors
    /// When a parameter is missing, unknown or out of its range.
    pub(super) fn of(
        spec: &'static TopologySpec,
        given: &[(&str, f64)],
    ) -> Result<Self, ParameterError> {
        let values = spec.parameters().values(given)?;
        Ok(Self { spec, values })
    }

    /// A topology of the list with what a table says of its parameters.
    ///
    /// # Errors
    /// As [`TopologyKind::new`], and when a value has the wrong type.
    pub fn read(spec: &'static TopologySpec, table: &toml::Table) -> Result<Self, ParameterError> {
        let values = spec.parameters().read(table)?;
        Ok(Self { spec, values })
    }

    /// Its parameters as TOML.
    pub fn to_table(&self) -> toml::Table {
        self.spec.parameters().write(&self.values)
    }

    /// Its name in the configuration.
    pub const fn name(&self) -> &'static str {
        self.spec.name
    }

    /// Its entry in the list.
    pub const fn spec(&self) -> &'static TopologySpec {
        self.spec
    }

    /// The value of a parameter that its entry lists.
    ///
    /// # Panics
    /// If the entry lists no such parameter.
    pub fn number(&self, parameter: &str) -> f64 {
        self.spec.parameters().number(&self.values, parameter)
    }

    /// As [`TopologyKind::number`], of a parameter that is a whole number.
    ///
    /// # Panics
    /// If the entry lists no such parameter.
    pub fn count(&self, parameter: &str) -> usize {
        self.number(parameter) as usize
    }

    /// The topology itself. All peers of a run must give the same seed; only topologies that draw
    /// graphs use it.
    pub fn build(&self, seed: u64) -> Box<dyn Topology> {
        (self.spec.build)(self, seed)
    }

    /// The values of its parameters; zeros follow them.
    pub(super) const fn values(&self) -> &[f64; PARAMETERS_MAX] {
        &self.values
    }
}

impl PartialEq for TopologyKind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.values == other.values
    }
}

impl core::fmt::Debug for TopologyKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut entry = f.debug_struct(self.name());
        for (parameter, value) in self.spec.parameters.iter().zip(&self.values) {
            entry.field(parameter.name, value);
        }
        entry.finish()
    }
}

/// As its name and the values of its parameters, in the order of its list.
impl Serialize for TopologyKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values = &self.values()[..self.spec.parameters.len()];
        (self.name(), values).serialize(serializer)
    }
}
