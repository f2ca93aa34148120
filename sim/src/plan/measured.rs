//! What presets for language models cost in loss, as measured on a small one by `murmurate sim language`.

use crate::equal::{Penalties, Penalty};

/// The file that `--penalties` wrote.
const MEASURED: &str = include_str!("measured.toml");

/// All that was measured.
///
/// # Panics
/// Never: a test reads the file.
pub fn measured_penalties() -> Penalties {
    toml::from_str(MEASURED).expect("measured.toml is what `--penalties` wrote")
}

/// The rows of a preset with the number of peers, then the inner steps between two exchanges of a value,
/// that are nearest to these as ratios; one for each distribution of the data.
pub fn measured(preset: &str, peers: usize, steps: f64) -> Vec<Penalty> {
    let away = |row: &Penalty| {
        let ratio = |a: f64, b: f64| (a / b).ln().abs();
        (
            ratio(row.peers as f64, peers as f64),
            ratio(row.period, steps),
        )
    };
    let mut nearest: Vec<Penalty> = Vec::new();
    let rows = measured_penalties().row.into_iter();
    for row in rows.filter(|row| row.preset == preset) {
        match nearest.iter_mut().find(|other| other.data == row.data) {
            Some(other) if away(&row) < away(other) => *other = row,
            Some(_) => {}
            None => nearest.push(row),
        }
    }
    nearest
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_strategies::grid::Strategy;

    #[test]
    fn what_was_measured_can_be_read_and_names_presets() {
        let all = measured_penalties();
        assert!(all.command.starts_with("murmurate sim language"), "{all:?}");
        for row in &all.row {
            assert!(Strategy::preset(&row.preset).is_ok(), "{row:?}");
            assert!(row.loss > 0.0 && row.penalty > -0.5, "{row:?}");
        }
    }

    #[test]
    fn the_nearest_row_answers_for_each_distribution() {
        for preset in [
            "local-adam-lm",
            "diloco-lm",
            "streaming-diloco-lm",
            "sparseloco-lm",
        ] {
            let found = measured(preset, 3, 40.0);
            let data: Vec<&str> = found.iter().map(|row| row.data.as_str()).collect();
            assert!(data.contains(&"iid"), "{preset}: {found:?}");
            assert!(found.iter().all(|row| (row.peers, row.period) == (4, 32.0)));
        }
        assert!(measured("diloco", 4, 32.0).is_empty());
    }
}
