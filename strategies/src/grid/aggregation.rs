//! Aggregation rules: from the table of the configuration to their kinds. `refuse` checks whether a
//! rule works with the other choices.

use super::StrategyError;
use super::registry::RULES;
use super::tables::Aggregation;
use super::validate::{above_zero, choose, count, range, refuse_foreign};
use crate::aggregate::AggregationKind;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;

/// The aggregation rule.
pub(super) fn read(table: &Aggregation) -> Result<AggregationKind, StrategyError> {
    let name = choose(&table.rule, "weighted-mean", "aggregation.rule", &RULES)?;
    refuse_foreign("aggregation", table, &RULES, name)?;
    let liars = || {
        let key = "aggregation.liars";
        let needed = "give how many members of a group may send wrong values, such as 1";
        let value = table.liars.ok_or(StrategyError::Missing { key, needed })?;
        count(key, value, [0, 31], "from 0 to 31")
    };
    let radius = || {
        let key = "aggregation.radius";
        let needed = "give the largest norm of a contribution to a shard";
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
        "clipped-gossip" => AggregationKind::ClippedGossip { liars: liars()? },
        "fed-nova" => AggregationKind::FedNova,
        "gauntlet" => gauntlet(table)?,
        "geometric-median" => AggregationKind::GeometricMedian {
            iterations: iterations(8)?,
        },
        "krum" => AggregationKind::Krum { liars: liars()? },
        "median" => AggregationKind::Median,
        "multi-krum" => AggregationKind::MultiKrum { liars: liars()? },
        "nearest-trimmed-mean" => AggregationKind::NearestTrimmedMean { liars: liars()? },
        "norm-clip" => AggregationKind::NormClip { radius: radius()? },
        "sign-majority" => AggregationKind::SignMajority,
        "trimmed-mean" => AggregationKind::TrimmedMean { liars: liars()? },
        _ => AggregationKind::WeightedMean,
    })
}

/// Admission by scores.
fn gauntlet(table: &Aggregation) -> Result<AggregationKind, StrategyError> {
    let (top, batches) = (table.top.unwrap_or(16), table.batches.unwrap_or(2));
    let memory = table.memory.unwrap_or(0.9);
    // In thousandths, as the plan has it.
    let memory = (memory * 1e3).round() / 1e3;
    let most = GROUP_MEMBERS_MAX;
    range(
        (0.0..1.0).contains(&memory),
        "aggregation.memory",
        memory,
        "from 0 to 0.999",
    )?;
    Ok(AggregationKind::Gauntlet {
        top: count("aggregation.top", top, [0, most], "from 0 to 64")?,
        memory,
        batches: count("aggregation.batches", batches, [1, 1024], "from 1 to 1024")?,
    })
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
            | AggregationKind::ClippedGossip { liars }
            | AggregationKind::NearestTrimmedMean { liars }
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
            AggregationKind::Gauntlet {
                top,
                memory,
                batches,
            } => {
                (table.top, table.batches) = (Some(top), Some(batches));
                table.memory = Some(memory);
            }
            AggregationKind::GeometricMedian { iterations } => table.iterations = Some(iterations),
            AggregationKind::NormClip { radius } => table.radius = Some(radius),
            AggregationKind::FedNova
            | AggregationKind::Median
            | AggregationKind::SignMajority
            | AggregationKind::WeightedMean => {}
        }
        table
    }
}
