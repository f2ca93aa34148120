//! What an aggregation rule is, and rules as data, from the `[aggregation]` table.

use crate::kind::Kind;
use crate::parameter::{Number, Parameter, Range};
use murmurate_protocol::Scoring;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;

/// A decoded contribution and its weight.
pub type Input<'a> = (&'a [f32], f32);

/// A rule that needs all contributions at the same time. Its inputs are finite (quarantined), in
/// `PeerId` order, and as long as `out`; weights are above zero.
pub trait Aggregator: Send {
    /// The aggregate of `inputs` into `out`; zeros where there are none.
    ///
    /// # Panics
    /// If an input is shorter than `out`.
    fn aggregate(&mut self, inputs: &[Input<'_>], out: &mut [f32]);
}

impl<F: FnMut(&[Input<'_>], &mut [f32]) + Send> Aggregator for F {
    fn aggregate(&mut self, inputs: &[Input<'_>], out: &mut [f32]) {
        self(inputs, out);
    }
}

/// One aggregation rule as the configuration knows it.
#[derive(Clone, Copy, Debug)]
pub struct AggregationSpec {
    /// Its name in the configuration.
    pub name: &'static str,
    /// Its description, in a line.
    pub summary: &'static str,
    /// The result, in a line.
    pub equation: &'static str,
    /// The paper.
    pub source: &'static str,
    /// Its parameters, as keys of `[aggregation]`.
    pub parameters: &'static [Parameter],
    /// How it treats contributions.
    pub nature: Nature,
    /// Set where it compares contributions in each coordinate alone, so that sub-slices give the same as the
    /// whole. The others go by norms or distances, or compare nothing.
    pub coordinate_wise: bool,
    /// The least number of contributions that it combines for this many liars; one for a rule that allows for no
    /// given number.
    pub contributions: fn(usize) -> usize,
    /// Makes it of parameters within their ranges; `None` for a weighted mean, which needs no decoded copies.
    pub build: fn(&AggregationKind) -> Option<Box<dyn Aggregator>>,
}

impl AggregationSpec {
    /// An entry of a robust rule that goes by norms or distances, and combines any number of contributions. Each rule
    /// adds its name, its texts and its parameters, and replaces what differs.
    pub(super) const fn of(build: fn(&AggregationKind) -> Option<Box<dyn Aggregator>>) -> Self {
        Self {
            name: "",
            summary: "",
            equation: "",
            source: "",
            parameters: &[],
            nature: Nature::Robust,
            coordinate_wise: false,
            contributions: |_| 1,
            build,
        }
    }
}

/// How a rule treats contributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// By samples.
    Mean,
    /// By inner steps.
    Steps,
    /// The plain mean of clipped and noised contributions.
    Private,
    /// By samples, of masked contributions: only their sum can be read.
    Masked,
    /// Bounds what one that lies changes.
    Robust,
    /// As [`Nature::Robust`], by signs alone.
    Signs,
    /// As [`Nature::Robust`], by the distance from this peer's own.
    Partners,
    /// The mean of those that members admit by their scores ([`Scoring`]).
    Scored,
}

/// An aggregation rule with its parameters.
pub type AggregationKind = Kind<AggregationSpec>;

/// The key for the least number of contributions of rules that hide each of them.
pub(super) const MEMBERS: &str = "members";

/// Contributions that lie.
pub(super) const LIARS: Parameter = Parameter::required(
    "liars",
    &Range::Count(Number::Size, 0, 31),
    "give how many members of a group may send wrong values, such as 1",
    "how many members of a group may send wrong values, such as 1",
);

pub(super) const RADIUS: Parameter = Parameter::required(
    "radius",
    &Range::Above,
    "give the largest norm of a contribution to a shard",
    "the largest norm of a contribution to a shard, such as 3.0",
);

pub(super) const fn iterations(default: f64) -> Parameter {
    let range = Range::Count(Number::Small, 1, 100);
    Parameter::new("iterations", range, default, "iterations of the rule")
}

pub(super) const GAUNTLET: AggregationSpec = AggregationSpec {
    name: "gauntlet",
    summary: "only contributions that lower the loss of members' held samples, and the best by rating of those",
    equation: "s_k = median over i != k of L_i(a) - L_i(a + x_k); r_k' = m r_k + (1 - m) s_k; the weighted mean of the `top` largest r_k' with s_k > 0",
    source: "Lidin et al., arXiv 2505.21684",
    parameters: &[TOP, MEMORY, BATCHES],
    nature: Nature::Scored,
    // Whom members admit is settled before anything is combined.
    ..AggregationSpec::of(|_| None)
};

const TOP: Parameter = Parameter::new(
    "top",
    Range::Count(Number::Size, 0, GROUP_MEMBERS_MAX as u64),
    16.0,
    "the most contributions that are merged, the best by rating; 0 is all that lower the loss",
);

const MEMORY: Parameter = Parameter::new(
    "memory",
    Range::Thousandths(0, 999),
    0.9,
    "the share of a rating that a round leaves; the rest is the round's score",
);

const BATCHES: Parameter = Parameter::new(
    "batches",
    Range::Count(Number::Size, 1, 1024),
    2.0,
    "batches of the held sample on which a member scores each contribution",
);

/// Parts of a rating's memory.
const THOUSAND: f64 = 1e3;

impl AggregationKind {
    /// How it treats contributions.
    pub fn nature(&self) -> Nature {
        self.spec().nature
    }

    /// Set for the mean by samples.
    pub fn is_mean(&self) -> bool {
        self.nature() == Nature::Mean
    }

    /// Set where a contribution that lies moves the result by a bounded amount only.
    pub fn is_robust(&self) -> bool {
        !matches!(
            self.nature(),
            Nature::Mean | Nature::Steps | Nature::Private | Nature::Masked
        )
    }

    /// The rule itself; `None` for a weighted mean, which needs no decoded copies.
    pub fn build(&self) -> Option<Box<dyn Aggregator>> {
        (self.spec().build)(self)
    }

    /// The liars that it allows for.
    pub(super) fn faulty(&self) -> usize {
        self.count(LIARS.name)
    }

    /// The least number of contributions that it combines: with fewer, its bound does not hold for the
    /// liars that it allows for, and the round is void. One for a rule that allows for no given number.
    pub fn contributions(&self) -> usize {
        if self.has(MEMBERS) {
            return self.count(MEMBERS);
        }
        let faulty = if self.has(LIARS.name) {
            self.faulty()
        } else {
            0
        };
        (self.spec().contributions)(faulty)
    }

    /// How members score contributions before they are merged, if they do.
    pub fn scoring(&self) -> Option<Scoring> {
        if self.nature() != Nature::Scored {
            return None;
        }
        let count = |key| u16::try_from(self.count(key)).unwrap_or(u16::MAX);
        Some(Scoring {
            batches: count(BATCHES.name),
            top: count(TOP.name),
            memory: (self.number(MEMORY.name) * THOUSAND).round() as u16,
        })
    }

    /// Set where it compares contributions in each coordinate alone.
    pub fn is_coordinate_wise(&self) -> bool {
        self.spec().coordinate_wise
    }
}
