//! A random strategy: a preset with other methods applied to it, as far as the grid accepts them.
//! This file names no method, so new methods in the registries are drawn, too.

use murmurate_protocol::{Plan, RunId};
use murmurate_strategies::Layout;
use murmurate_strategies::grid::registry::{
    CODECS, EXCHANGES, Entry, LAYERS, MODES, PRESETS, SCHEDULES, TOPOLOGIES,
};
use murmurate_strategies::grid::{Strategy, StrategyError};
use rand_chacha::ChaCha8Rng;
use rand_core::Rng;
use toml::{Table, Value};

/// How often to draw again after a refusal, before the preset is used unchanged. The grid accepts
/// about one in three.
const ATTEMPTS: usize = 32;

/// The fewest rounds of a random scenario.
pub(super) const ROUNDS_MIN: u64 = 10;

pub(super) const PARAMETERS: u64 = 48;

/// Random choices of one scenario.
pub(super) struct Draw(pub(super) ChaCha8Rng);

impl Draw {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }

    pub(super) fn one_of<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }
}

pub(super) fn random_point(draw: &mut Draw, peers: u64) -> Table {
    // Without an exchange there is nothing to test.
    let presets: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    let presets: Vec<&str> = presets.into_iter().filter(|name| *name != "none").collect();
    let preset = draw.one_of(&presets);
    let mut drawn = (0..ATTEMPTS).map(|_| laid_over(preset, draw, peers));
    let accepted = drawn.find(|table| works(table).is_ok());
    accepted.unwrap_or_else(|| Table::from_iter([("preset".to_owned(), preset.into())]))
}

/// The plan of the strategy, if the grid accepts it.
fn works(table: &Table) -> Result<Plan, StrategyError> {
    let layout = Layout::new([("parameters", vec![PARAMETERS])]);
    let strategy = Strategy::from_table(table.clone(), None)?;
    strategy.plan(RunId::from_bytes([0; 32]), &layout, ROUNDS_MIN)
}

fn laid_over(preset: &str, draw: &mut Draw, peers: u64) -> Table {
    let mut point = Point(Table::from_iter([("preset".to_owned(), preset.into())]));
    if draw.below(4) > 0 {
        // Presets use up to hundreds of inner steps, and a run is short.
        point.set("synchronization", "inner_steps", 1 + draw.below(12));
    }
    if draw.below(3) == 0 {
        point.name("architecture", "exchange", &EXCHANGES, draw);
        let contribution = draw.one_of(&["gradient", "delta", "parameters"]);
        point.set("architecture", "contribution", contribution);
    }
    if draw.below(2) == 0 {
        point.name("architecture", "schedule", &SCHEDULES, draw);
    }
    if draw.below(2) == 0 {
        point.name("architecture", "topology", &TOPOLOGIES, draw);
    }
    if draw.below(4) == 0 {
        point.name("synchronization", "mode", MODES, draw);
        point.set("architecture", "owners", 1 + draw.below(peers));
        match draw.below(4) {
            0 => point.set("synchronization", "enough", 1 + draw.below(peers)),
            1 => point.set("synchronization", "lead", 1 + draw.below(4)),
            2 => point.set("synchronization", "buffer", 1 + draw.below(peers)),
            _ => {}
        }
    }
    if draw.below(2) == 0 {
        point.name("compression", "codec", &CODECS, draw);
        point.set("compression", "error_feedback", draw.below(2) == 0);
    }
    // Forty are more than are open at a time.
    let fragments = [1_u64, 2, 3, 40][draw.below(4) as usize];
    point.set("overlap", "fragments", fragments);
    if draw.below(3) == 0 {
        point.set("overlap", "stagger", 1 + draw.below(4));
    }
    if draw.below(3) == 0 {
        point.name("overlap", "layers", &LAYERS, draw);
    }
    if draw.below(3) == 0 {
        point.set("overlap", "late_steps", draw.below(6));
        if draw.below(2) == 0 {
            point.set("overlap", "blend", "own-progress");
        }
    }
    point.0
}

struct Point(Table);

impl Point {
    fn set(&mut self, table: &str, key: &str, value: impl Into<TomlValue>) {
        let entry = self.0.entry(table);
        let inner = entry.or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(inner) = inner {
            inner.insert(key.to_owned(), value.into().0);
        }
    }

    fn name(&mut self, table: &str, key: &str, of: &[Entry], draw: &mut Draw) {
        let names: Vec<&str> = of.iter().map(|entry| entry.name).collect();
        self.set(table, key, draw.one_of(&names));
    }
}

/// Random counts, names and switches.
struct TomlValue(Value);

impl From<u64> for TomlValue {
    fn from(count: u64) -> Self {
        Self(Value::Integer(i64::try_from(count).unwrap_or(i64::MAX)))
    }
}

impl From<&str> for TomlValue {
    fn from(name: &str) -> Self {
        Self(Value::String(name.to_owned()))
    }
}

impl From<bool> for TomlValue {
    fn from(switch: bool) -> Self {
        Self(Value::Boolean(switch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::Layers;
    use murmurate_protocol::SortedSet;
    use rand_core::SeedableRng;

    #[test]
    fn every_exchange_and_most_codecs_and_schedules_are_drawn() {
        let (mut exchanges, mut codecs, mut schedules) =
            (SortedSet::new(), SortedSet::new(), SortedSet::new());
        let (mut staggered, mut late, mut by_layers) = (0, 0, 0);
        for seed in 0..2000 {
            let mut draw = Draw(rand_chacha::ChaCha8Rng::seed_from_u64(seed));
            let strategy = Strategy::from_table(random_point(&mut draw, 6), None).unwrap();
            let exchange = format!("{:?}", strategy.exchange());
            exchanges.insert(exchange.split('(').next().unwrap().to_owned());
            codecs.insert(strategy.codec_kind().name());
            schedules.insert(format!("{:?}", strategy.schedule()));
            let overlap = strategy.overlap_plan();
            staggered += u32::from(overlap.stagger > 1);
            late += u32::from(overlap.late_steps > 0);
            by_layers += u32::from(overlap.layers != Layers::Together);
        }
        for exchange in [
            "AllReduce",
            "Gathered",
            "Server",
            "Center",
            "Gossip",
            "Push",
            "RelaySum",
            "Pull",
            "Replicas",
            "Pairs",
            "Differences",
        ] {
            assert!(exchanges.contains(exchange), "{exchange}: {exchanges:?}");
        }
        assert!(codecs.len() > CODECS.len() / 2, "{codecs:?}");
        // A schedule that must be given links is refused without them, and another drawn.
        let free = |entry: &&Entry| entry.keys.iter().all(|key| key.default.is_some());
        let drawn = SCHEDULES.iter().filter(free).count();
        assert_eq!(schedules.len(), drawn, "{schedules:?}");
        let counts = [staggered, late, by_layers];
        assert!(counts.iter().all(|count| *count > 30), "{counts:?} of 2000");
    }
}
