//! Topologies and aggregation rules between the written tables and their kinds. Whether they go together
//! with the rest is asked in `refuse`.

use super::StrategyError;
use super::registry::{RULES, TOPOLOGIES};
use super::tables::{Aggregation, Architecture};
use super::validate::{above_zero, absent, choose, count, range};
use crate::aggregate::AggregationKind;
use crate::topology::TopologyKind;

/// The most rounds between two in which islands mix.
const EVERY_MAX: usize = 1_000_000;

/// How far neighbours with replicas move towards each other.
pub(super) fn rate(table: &Architecture) -> Result<f64, StrategyError> {
    let (key, rate) = ("architecture.rate", table.rate.unwrap_or(1.0));
    range(rate as f32 > 0.0 && rate <= 1.0, key, rate, "in (0, 1]").map(|()| rate)
}

/// Who is whose neighbour.
pub(super) fn topology(table: &Architecture) -> Result<TopologyKind, StrategyError> {
    let key = "architecture.topology";
    let name = choose(&table.topology, "ring", key, &TOPOLOGIES)?;
    let degrees = matches!(name, "base-k" | "equi-static" | "random-regular");
    if !degrees {
        absent(&table.degree, "architecture.degree", name)?;
    }
    let groups = matches!(name, "hierarchical" | "islands" | "moshpit");
    if !groups {
        absent(&table.group, "architecture.group", name)?;
    }
    if name != "islands" {
        absent(&table.every, "architecture.every", name)?;
    }
    if name != "matcha" {
        absent(&table.budget, "architecture.budget", name)?;
    }
    let degree = |default| {
        let value = table.degree.unwrap_or(default);
        count("architecture.degree", value, [1, 64], "from 1 to 64")
    };
    let group = || {
        let value = table.group.unwrap_or(4);
        count("architecture.group", value, [2, 64], "from 2 to 64")
    };
    Ok(match name {
        "base-k" => TopologyKind::BaseK { degree: degree(1)? },
        "binary-tree" => TopologyKind::BinaryTree,
        "complete" => TopologyKind::Complete,
        "equi-dyn" => TopologyKind::EquiDyn,
        "equi-static" => TopologyKind::EquiStatic { degree: degree(4)? },
        "exponential" => TopologyKind::Exponential,
        "hierarchical" => TopologyKind::Hierarchical { group: group()? },
        "hypercube" => TopologyKind::Hypercube,
        "islands" => {
            let (key, every) = ("architecture.every", table.every.unwrap_or(4));
            let every = count(key, every, [2, EVERY_MAX], "from 2 to a million")? as u64;
            let group = group()?;
            TopologyKind::Islands { group, every }
        }
        "matcha" => {
            let (key, budget) = ("architecture.budget", table.budget.unwrap_or(0.5));
            range(budget > 0.0 && budget <= 1.0, key, budget, "in (0, 1]")?;
            TopologyKind::Matcha { budget }
        }
        "moshpit" => TopologyKind::Moshpit { group: group()? },
        "null-cascade" => TopologyKind::NullCascade,
        "one-peer-exponential" => TopologyKind::OnePeerExponential,
        "random-matching" => TopologyKind::RandomMatching,
        "random-regular" => TopologyKind::RandomRegular { degree: degree(4)? },
        "star" => TopologyKind::Star,
        "torus" => TopologyKind::Torus,
        _ => TopologyKind::Ring,
    })
}

/// The aggregation rule.
pub(super) fn aggregation(table: &Aggregation) -> Result<AggregationKind, StrategyError> {
    let name = choose(&table.rule, "weighted-mean", "aggregation.rule", &RULES)?;
    let by_liars = matches!(name, "bulyan" | "krum" | "multi-krum" | "trimmed-mean");
    let by_radius = matches!(name, "centered-clip" | "norm-clip");
    let iterated = matches!(name, "centered-clip" | "geometric-median");
    if !by_liars {
        absent(&table.liars, "aggregation.liars", name)?;
    }
    if !by_radius {
        absent(&table.radius, "aggregation.radius", name)?;
    }
    if !iterated {
        absent(&table.iterations, "aggregation.iterations", name)?;
    }
    if name != "centered-clip" {
        absent(&table.bucket, "aggregation.bucket", name)?;
    }
    let liars = || {
        let key = "aggregation.liars";
        let needed = "give how many of a group's members may lie, such as 1";
        let value = table.liars.ok_or(StrategyError::Missing { key, needed })?;
        count(key, value, [0, 31], "from 0 to 31")
    };
    let radius = || {
        let key = "aggregation.radius";
        let needed = "give the length that one contribution to a shard may have";
        let value = table.radius.ok_or(StrategyError::Missing { key, needed })?;
        above_zero(key, value)
    };
    let iterations = |default| {
        let value = table.iterations.unwrap_or(default) as usize;
        let value = count("aggregation.iterations", value, [1, 100], "from 1 to 100")?;
        Ok::<u32, StrategyError>(value as u32)
    };
    Ok(match name {
        "bulyan" => AggregationKind::Bulyan { liars: liars()? },
        "centered-clip" => AggregationKind::CenteredClip {
            radius: radius()?,
            iterations: iterations(3)?,
            bucket: count(
                "aggregation.bucket",
                table.bucket.unwrap_or(1),
                [1, 16],
                "from 1 to 16",
            )?,
        },
        "geometric-median" => AggregationKind::GeometricMedian {
            iterations: iterations(8)?,
        },
        "krum" => AggregationKind::Krum { liars: liars()? },
        "median" => AggregationKind::Median,
        "multi-krum" => AggregationKind::MultiKrum { liars: liars()? },
        "norm-clip" => AggregationKind::NormClip { radius: radius()? },
        "sign-majority" => AggregationKind::SignMajority,
        "trimmed-mean" => AggregationKind::TrimmedMean { liars: liars()? },
        _ => AggregationKind::WeightedMean,
    })
}

impl Architecture {
    /// Writes a topology down.
    pub(super) fn set_topology(&mut self, kind: &TopologyKind) {
        self.topology = Some(kind.name().to_owned());
        match *kind {
            TopologyKind::BaseK { degree }
            | TopologyKind::EquiStatic { degree }
            | TopologyKind::RandomRegular { degree } => self.degree = Some(degree),
            TopologyKind::Hierarchical { group } | TopologyKind::Moshpit { group } => {
                self.group = Some(group);
            }
            TopologyKind::Islands { group, every } => {
                self.group = Some(group);
                self.every = Some(every as usize);
            }
            TopologyKind::Matcha { budget } => self.budget = Some(budget),
            _ => {}
        }
    }
}

impl Aggregation {
    /// Writes a rule down.
    pub(super) fn from_kind(kind: &AggregationKind) -> Self {
        let mut table = Self {
            rule: Some(kind.name().to_owned()),
            ..Self::default()
        };
        match *kind {
            AggregationKind::Bulyan { liars }
            | AggregationKind::Krum { liars }
            | AggregationKind::MultiKrum { liars }
            | AggregationKind::TrimmedMean { liars } => table.liars = Some(liars),
            AggregationKind::CenteredClip {
                radius,
                iterations,
                bucket,
            } => {
                (table.radius, table.iterations) = (Some(radius), Some(iterations));
                table.bucket = Some(bucket);
            }
            AggregationKind::GeometricMedian { iterations } => table.iterations = Some(iterations),
            AggregationKind::NormClip { radius } => table.radius = Some(radius),
            AggregationKind::Median
            | AggregationKind::SignMajority
            | AggregationKind::WeightedMean => {}
        }
        table
    }
}
