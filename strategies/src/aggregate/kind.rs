//! Aggregation rules as data, from the `[aggregation]` table. The grid checks the ranges.

use super::{
    Aggregator, Bucketing, Bulyan, CenteredClip, ClippedGossip, FedNova, GeometricMedian, Krum,
    Median, NearestMeans, NormClip, Scope, SignMajority, TrimmedMean,
};
use murmurate_protocol::Scoring;
use serde::{Deserialize, Serialize};

/// An aggregation rule with its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AggregationKind {
    /// [`Bulyan`].
    Bulyan {
        /// Liars it allows for.
        liars: usize,
    },
    /// [`CenteredClip`], after [`Bucketing`] where buckets hold more than one.
    CenteredClip {
        /// How far one contribution may pull.
        radius: f64,
        /// Iterations.
        iterations: u32,
        /// Contributions of a bucket.
        bucket: usize,
    },
    /// [`ClippedGossip`], between neighbours.
    ClippedGossip {
        /// Partners of a peer that may lie.
        liars: usize,
    },
    /// [`FedNova`].
    FedNova,
    /// The weighted mean of those contributions that members admit by their scores
    /// ([`Scoring`](murmurate_protocol::Scoring)).
    Gauntlet {
        /// The most contributions that are merged; zero where it is not limited.
        top: usize,
        /// The share of a rating that a round leaves.
        memory: f64,
        /// Batches of the held sample.
        batches: usize,
    },
    /// [`GeometricMedian`].
    GeometricMedian {
        /// Iterations.
        iterations: u32,
    },
    /// [`Krum`].
    Krum {
        /// Liars it allows for.
        liars: usize,
    },
    /// [`Median`].
    Median,
    /// [`Krum::multi`].
    MultiKrum {
        /// Liars it allows for.
        liars: usize,
    },
    /// [`TrimmedMean`] after [`NearestMeans`].
    NearestTrimmedMean {
        /// Liars it allows for.
        liars: usize,
    },
    /// [`NormClip`].
    NormClip {
        /// The largest norm.
        radius: f64,
    },
    /// [`SignMajority`].
    SignMajority,
    /// [`TrimmedMean`].
    TrimmedMean {
        /// Liars it allows for: values dropped on each side.
        liars: usize,
    },
    /// [`weighted_mean()`](super::weighted_mean()).
    #[default]
    WeightedMean,
}

/// Parts of a rating's memory.
const THOUSAND: f64 = 1e3;

/// Smoothing of the geometric median, relative to the median distance.
const SMOOTHING: f64 = 1e-6;

/// Seed of the buckets: shuffles are for variance, not for secrecy.
const BUCKET_SEED: u64 = 0x6d75_726d;

impl AggregationKind {
    /// Its name in the configuration.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Bulyan { .. } => "bulyan",
            Self::CenteredClip { .. } => "centered-clip",
            Self::ClippedGossip { .. } => "clipped-gossip",
            Self::FedNova => "fed-nova",
            Self::Gauntlet { .. } => "gauntlet",
            Self::GeometricMedian { .. } => "geometric-median",
            Self::Krum { .. } => "krum",
            Self::Median => "median",
            Self::MultiKrum { .. } => "multi-krum",
            Self::NearestTrimmedMean { .. } => "nearest-trimmed-mean",
            Self::NormClip { .. } => "norm-clip",
            Self::SignMajority => "sign-majority",
            Self::TrimmedMean { .. } => "trimmed-mean",
            Self::WeightedMean => "weighted-mean",
        }
    }

    /// Whether a contribution that lies moves the result by a bounded amount only.
    pub const fn is_robust(&self) -> bool {
        !matches!(self, Self::WeightedMean | Self::FedNova)
    }

    /// The rule itself; `None` for the weighted mean, which needs no decoded copies.
    pub fn build(&self) -> Option<Box<dyn Aggregator>> {
        Some(match *self {
            // Whom members admit is settled before anything is combined.
            Self::WeightedMean | Self::Gauntlet { .. } => return None,
            Self::Bulyan { liars } => Box::new(Bulyan::new(liars)),
            Self::CenteredClip {
                radius,
                iterations,
                bucket,
            } => {
                let rule = Box::new(CenteredClip::new(radius, iterations));
                if bucket < 2 {
                    return Some(rule);
                }
                Box::new(Bucketing::new(rule, bucket, BUCKET_SEED))
            }
            Self::ClippedGossip { liars } => Box::new(ClippedGossip::new(liars)),
            Self::FedNova => Box::new(FedNova),
            Self::GeometricMedian { iterations } => {
                Box::new(GeometricMedian::new(SMOOTHING, iterations))
            }
            Self::Krum { liars } => Box::new(Krum::new(liars)),
            Self::Median => Box::new(Median::default()),
            Self::MultiKrum { liars } => Box::new(Krum::multi(liars)),
            Self::NearestTrimmedMean { liars } => {
                let rule = Box::new(TrimmedMean::new(liars));
                Box::new(NearestMeans::new(self.name(), rule, liars))
            }
            Self::NormClip { radius } => Box::new(NormClip::new(radius)),
            Self::SignMajority => Box::new(SignMajority),
            Self::TrimmedMean { liars } => Box::new(TrimmedMean::new(liars)),
        })
    }

    /// The least number of contributions that it combines: with fewer, its bound does not hold for the
    /// liars that it allows for, and the round is void. One for a rule that allows for no given number.
    pub const fn contributions(&self) -> usize {
        match *self {
            Self::TrimmedMean { liars } | Self::NearestTrimmedMean { liars } => 2 * liars + 1,
            Self::Krum { liars } | Self::MultiKrum { liars } => 2 * liars + 3,
            Self::Bulyan { liars } => 4 * liars + 3,
            Self::CenteredClip { .. }
            | Self::ClippedGossip { .. }
            | Self::FedNova
            | Self::Gauntlet { .. }
            | Self::GeometricMedian { .. }
            | Self::Median
            | Self::NormClip { .. }
            | Self::SignMajority
            | Self::WeightedMean => 1,
        }
    }

    /// How members score contributions before they are merged, if they do.
    pub fn scoring(&self) -> Option<Scoring> {
        let Self::Gauntlet {
            top,
            memory,
            batches,
        } = *self
        else {
            return None;
        };
        Some(Scoring {
            batches: u16::try_from(batches).unwrap_or(u16::MAX),
            top: u16::try_from(top).unwrap_or(u16::MAX),
            memory: (memory * THOUSAND).round() as u16,
        })
    }

    /// Whether it compares contributions in each coordinate alone. A sum compares nothing.
    pub fn is_coordinate_wise(&self) -> bool {
        let alone = |rule: Box<dyn Aggregator>| rule.scope() == Scope::Coordinate;
        *self != Self::FedNova && self.build().is_some_and(alone)
    }
}
