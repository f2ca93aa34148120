//! The keys of each table: the fields of its structure, and the parameters of the methods that are
//! chosen there. There is no second list.

use super::entry::hint;
use super::fields::fields;
use super::tables::{
    Aggregation, Agreement, Architecture, Compression, Deadlines, Inner, Measured, Outer, Overlap,
    Synchronization,
};
use super::{StrategyError, methods, rates, schedule};
use crate::{compress, topology};

/// The keys of each table.
fn tables() -> [(&'static str, Vec<&'static str>); 9] {
    let with = |fields: &[&'static str], more: &[Vec<&'static str>]| {
        let mut all = fields.to_vec();
        all.extend(more.concat());
        all
    };
    let in_architecture = [
        topology::parameter_names(),
        schedule::parameter_names(),
        methods::parameter_names(),
    ];
    let modes = methods::mode_parameter_names();
    let codecs = compress::parameter_names();
    [
        (
            "synchronization",
            with(
                fields::<Synchronization>(),
                &[fields::<Measured>().to_vec(), modes],
            ),
        ),
        (
            "architecture",
            with(fields::<Architecture>(), &in_architecture),
        ),
        ("compression", with(fields::<Compression>(), &[codecs])),
        ("overlap", fields::<Overlap>().to_vec()),
        ("outer", fields::<Outer>().to_vec()),
        ("aggregation", fields::<Aggregation>().to_vec()),
        ("agreement", fields::<Agreement>().to_vec()),
        (
            "inner",
            with(fields::<Inner>(), &[rates::parameter_names()]),
        ),
        ("deadlines", fields::<Deadlines>().to_vec()),
    ]
}

/// Refuses tables and keys that do not exist.
pub(super) fn check(config: &toml::Table) -> Result<(), StrategyError> {
    let tables = tables();
    for (name, value) in config {
        let Some((_, keys)) = tables.iter().find(|(table, _)| table == name) else {
            return Err(StrategyError::UnknownKey {
                key: name.clone(),
                hint: hint(name, &tables.each_ref().map(|(name, _)| *name)),
            });
        };
        let Some(table) = value.as_table() else {
            let message = format!("found {}, needs a table: [{name}]", value.type_str());
            return Err(StrategyError::Type {
                key: name.clone(),
                message,
            });
        };
        if let Some(key) = table.keys().find(|key| !keys.contains(&key.as_str())) {
            let mut known = keys.clone();
            known.dedup();
            return Err(StrategyError::UnknownKey {
                key: format!("{name}.{key}"),
                hint: hint(key, &known),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tables_keys_are_its_fields_and_its_methods_parameters() {
        let all = tables();
        let of = |name: &str| &all.iter().find(|(table, _)| *table == name).unwrap().1;
        assert_eq!(*of("deadlines"), ["floor_ms", "initial_ms", "ceiling_ms"]);
        for key in ["exchange", "topology", "degree", "group", "owners", "rate"] {
            assert!(of("architecture").contains(&key), "{key}");
        }
        for key in ["inner_steps", "mode", "lead_most", "staleness"] {
            assert!(of("synchronization").contains(&key), "{key}");
        }
        assert!(of("compression").contains(&"density"));
        assert!(all.iter().all(|(_, keys)| !keys.contains(&"parameters")));
    }
}
