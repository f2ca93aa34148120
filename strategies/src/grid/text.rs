//! A configuration from text to tables and back. The keys of a table are the fields of its structure, and
//! the parameters of the methods that are chosen there; there is no second list.

use super::paces::{PACES, PaceSpec};
use super::tables::{
    Aggregation, Agreement, Architecture, Compression, Deadlines, Inner, Outer, Overlap,
    Synchronization, Tables,
};
use super::{StrategyError, methods, rates, schedule};
use crate::aggregate::AggregationSpec;
use crate::correct::CorrectionSpec;
use crate::inner::InnerSpec;
use crate::kind::Spec;
use crate::names::hint;
use crate::outer::OuterSpec;
use crate::parameter::Parameter;
use crate::{compress, topology};
use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::{Deserialize, Serialize, Serializer, forward_to_deserialize_any};

/// The tables in the order in which they are written.
const TABLES: [&str; 9] = [
    "synchronization",
    "architecture",
    "compression",
    "overlap",
    "outer",
    "aggregation",
    "agreement",
    "inner",
    "deadlines",
];

/// The order of keys in some tables: the hash of a plan depends on it. Keys that are not listed follow, so
/// a new method's keys need no place here.
const ORDER: [(&str, &str); 4] = [
    (
        "synchronization",
        "inner_steps round_time pace switch_round switch_inner_steps decay_every loss_every \
         stagnation_factor mode enough grace grace_ms fraction",
    ),
    (
        "outer",
        "optimizer lr momentum betas eps every spread alpha pull penalty clip state",
    ),
    (
        "aggregation",
        "rule liars radius iterations bucket top memory batches",
    ),
    (
        "inner",
        "optimizer lr momentum weight_decay betas eps freeze sends correction mu beta schedule \
         no_decay",
    ),
];

/// The first keys of a table in the order in which they are written; the others follow by name.
fn order(table: &str) -> Vec<&'static str> {
    let listed = ORDER.iter().find(|(name, _)| *name == table);
    match listed {
        Some((_, keys)) => keys.split(' ').collect(),
        None => named(table).to_vec(),
    }
}

/// The fields of a table's structure.
fn named(table: &str) -> &'static [&'static str] {
    match table {
        "synchronization" => fields::<Synchronization>(),
        "architecture" => fields::<Architecture>(),
        "compression" => fields::<Compression>(),
        "overlap" => fields::<Overlap>(),
        "outer" => fields::<Outer>(),
        "aggregation" => fields::<Aggregation>(),
        "agreement" => fields::<Agreement>(),
        "inner" => fields::<Inner>(),
        _ => fields::<Deadlines>(),
    }
}

/// Parameters that several methods of a table share.
fn shared(table: &str) -> impl Iterator<Item = &'static Parameter> {
    fn all<S: Spec>() -> impl Iterator<Item = (&'static str, &'static Parameter)> {
        let lists = S::list().iter().map(|spec| spec.keys());
        lists.flat_map(|keys| keys.list.iter().map(move |key| (keys.table, key)))
    }
    all::<PaceSpec>()
        .chain(all::<OuterSpec>())
        .chain(all::<AggregationSpec>())
        .chain(all::<InnerSpec>())
        .chain(all::<CorrectionSpec>())
        .filter(move |(of, _)| *of == table)
        .map(|(_, key)| key)
}

/// Keys of single methods of a table.
fn own(table: &str) -> Vec<&'static str> {
    match table {
        "synchronization" => methods::mode_parameter_names(),
        "architecture" => [
            topology::parameter_names(),
            schedule::parameter_names(),
            methods::parameter_names(),
        ]
        .concat(),
        "compression" => compress::parameter_names(),
        "inner" => rates::parameter_names(),
        _ => Vec::new(),
    }
}

fn keys(table: &str) -> Vec<&'static str> {
    let mut all = order(table);
    for key in shared(table) {
        if !all.contains(&key.name) {
            all.push(key.name);
        }
    }
    all.extend(own(table));
    all
}

pub(super) fn check(config: &toml::Table) -> Result<(), StrategyError> {
    for (name, value) in config {
        if !TABLES.contains(&name.as_str()) {
            return Err(StrategyError::UnknownKey {
                key: name.clone(),
                hint: hint(name, &TABLES),
            });
        }
        let Some(table) = value.as_table() else {
            let message = format!("found {}, needs a table: [{name}]", value.type_str());
            return Err(StrategyError::Type {
                key: name.clone(),
                message,
            });
        };
        let mut known = keys(name);
        if let Some(key) = table.keys().find(|key| !known.contains(&key.as_str())) {
            known.dedup();
            return Err(StrategyError::UnknownKey {
                key: format!("{name}.{key}"),
                hint: hint(key, &known),
            });
        }
    }
    Ok(())
}

/// Keys that choose a method. A configuration that chooses another one than its preset does not
/// inherit the preset's other keys of that table, because they are parameters of the other method.
const SELECTORS: [(&str, &[&str]); 6] = [
    ("synchronization", &["mode"]),
    ("architecture", &["exchange"]),
    ("compression", &["codec"]),
    ("outer", &["optimizer"]),
    ("inner", &["optimizer"]),
    ("aggregation", &["rule"]),
];

/// Keys of `[agreement]` that cut a swarm into groups.
const GROUPS: [&str; 4] = ["grouping", "row", "cell", "dealing"];

/// How long a round trains, and how that changes. A configuration that sets one of the first two
/// replaces all of them, and the keys of paces.
const BUDGET: [&str; 3] = ["inner_steps", "round_time", "pace"];

/// Where fragments begin. A configuration that sets the first replaces all of them.
const CUT: [&str; 5] = ["cut", "fragments", "latency_ms", "mbit_s", "backward_ms"];

pub(super) fn parse(text: &str) -> Result<toml::Table, StrategyError> {
    text.parse::<toml::Table>()
        .map_err(|error| StrategyError::Syntax {
            line: error
                .span()
                .map_or(0, |at| 1 + text[..at.start].matches('\n').count()),
            message: one_line(error.message()),
        })
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Lays a configuration over its preset, key by key. Both have passed [`check`].
pub(super) fn lay_over(preset: &mut toml::Table, config: toml::Table) {
    drop_groups_of_another_exchange(preset, &config);
    for (name, value) in config {
        let toml::Value::Table(table) = value else {
            continue;
        };
        let selectors = SELECTORS
            .iter()
            .find(|(of, _)| *of == name)
            .map_or(&[][..], |(_, s)| s);
        let below = preset
            .entry(name)
            .or_insert_with(|| toml::Table::new().into());
        let Some(below) = below.as_table_mut() else {
            continue;
        };
        if selectors
            .iter()
            .any(|key| table.contains_key(*key) && table.get(*key) != below.get(*key))
        {
            below.clear();
        }
        let chosen = |key: &&str| table.contains_key(*key) && table.get(*key) != below.get(*key);
        let mut gone = Vec::new();
        if BUDGET[..2].iter().any(chosen) {
            gone.extend(BUDGET);
            let paces = PACES.iter().flat_map(|spec| spec.entry.parameters);
            gone.extend(paces.map(|key| key.name));
        }
        if chosen(&CUT[0]) {
            gone.extend(CUT);
        }
        below.retain(|key, _| !gone.contains(&key));
        below.extend(table);
    }
}

/// How a preset cuts groups belongs to its exchange: it goes where the configuration chooses another one.
fn drop_groups_of_another_exchange(preset: &mut toml::Table, config: &toml::Table) {
    fn exchange(of: &toml::Table) -> Option<&toml::Value> {
        of.get("architecture")?.get("exchange")
    }
    let other = exchange(config).is_some_and(|chosen| Some(chosen) != exchange(preset));
    let agreement = preset.get_mut("agreement").filter(|_| other);
    if let Some(agreement) = agreement.and_then(toml::Value::as_table_mut) {
        agreement.retain(|key, _| !GROUPS.contains(&key));
    }
}

pub(super) fn read(config: &toml::Table) -> Result<Tables, StrategyError> {
    Ok(Tables {
        synchronization: Synchronization {
            parameters: parameters::<Synchronization>(config, "synchronization")?,
            ..table(config, "synchronization")?
        },
        architecture: Architecture {
            parameters: parameters::<Architecture>(config, "architecture")?,
            ..table(config, "architecture")?
        },
        compression: Compression {
            parameters: parameters::<Compression>(config, "compression")?,
            ..table(config, "compression")?
        },
        overlap: table(config, "overlap")?,
        outer: Outer {
            parameters: parameters::<Outer>(config, "outer")?,
            ..table(config, "outer")?
        },
        aggregation: Aggregation {
            parameters: parameters::<Aggregation>(config, "aggregation")?,
            ..table(config, "aggregation")?
        },
        agreement: table(config, "agreement")?,
        inner: Inner {
            parameters: parameters::<Inner>(config, "inner")?,
            ..table(config, "inner")?
        },
        deadlines: Some(table(config, "deadlines")?),
    })
}

/// The entries of a table that are not fields of its structure.
fn parameters<T: DeserializeOwned>(
    config: &toml::Table,
    name: &str,
) -> Result<toml::Table, StrategyError> {
    let fields = fields::<T>();
    let table = config.get(name).and_then(toml::Value::as_table);
    let mut all = table.cloned().unwrap_or_default();
    all.retain(|key, _| !fields.contains(&key));
    for (key, value) in &all {
        let parameter = shared(name).find(|parameter| parameter.name == key);
        let numbers = parameter.map(|parameter| parameter.range.numbers(value));
        numbers.transpose().map_err(|message| StrategyError::Type {
            key: format!("{name}.{key}"),
            message: one_line(&message),
        })?;
    }
    Ok(all)
}

/// The tables as TOML, with their keys in the order that the hash of a plan needs.
pub(super) fn canonical(tables: &Tables) -> String {
    const TOML: &str = "tables of strings and numbers are always TOML";
    let mut written = toml::Table::try_from(tables).expect(TOML);
    let ordered = |name: &'static str| {
        let toml::Value::Table(mut table) = written.remove(name)? else {
            return None;
        };
        let first = order(name).into_iter();
        let first = first.filter_map(|key| Some((key.to_owned(), table.remove(key)?)));
        let mut keys: Vec<_> = first.collect();
        keys.extend(table);
        Some((name, Ordered(keys)))
    };
    let tables = Ordered(TABLES.into_iter().filter_map(ordered).collect());
    toml::to_string(&tables).expect(TOML)
}

struct Ordered<K, V>(Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for Ordered<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

fn table<T: DeserializeOwned + Default>(
    config: &toml::Table,
    name: &str,
) -> Result<T, StrategyError> {
    let Some(value) = config.get(name) else {
        return Ok(T::default());
    };
    let fields = fields::<T>();
    let mut value = value.clone();
    if let Some(table) = value.as_table_mut() {
        table.retain(|key, _| fields.contains(&key));
    }
    value.clone().try_into::<T>().map_err(|error| {
        // The error does not name its key. Each key alone does.
        let alone = |key: &String, value: &toml::Value| {
            let one: toml::Table = [(key.clone(), value.clone())].into_iter().collect();
            one.try_into::<T>().is_err()
        };
        let keys = value.as_table().into_iter().flatten();
        let key = keys
            .into_iter()
            .find(|(key, value)| alone(key, value))
            .map(|(key, _)| key);
        let key = key.map_or_else(|| name.to_owned(), |key| format!("{name}.{key}"));
        StrategyError::Type {
            key,
            message: one_line(error.message()),
        }
    })
}

/// The names of a structure's fields, as serde reads them.
fn fields<T: for<'a> Deserialize<'a>>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    // Ends with an error on purpose: serde has named the fields by then.
    let _ = T::deserialize(Fields(&mut fields));
    fields
}

/// A deserializer that notes which fields a structure asks for and gives it none.
struct Fields<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("a structure with fields was expected"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("its fields are noted"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tables_keys_are_its_fields_and_its_methods_parameters() {
        let all = TABLES.map(|table| (table, keys(table)));
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

    #[test]
    fn an_order_lists_every_field_and_no_key_that_is_none() {
        for (table, _) in ORDER {
            let order = order(table);
            assert!(named(table).iter().all(|field| order.contains(field)));
            for key in order.iter().filter(|key| !named(table).contains(key)) {
                assert!(
                    shared(table).any(|known| known.name == *key),
                    "{table}.{key}"
                );
            }
        }
    }
}
