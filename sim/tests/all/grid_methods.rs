//! Every preset and codec that the grid of methods accepts on rows and columns.

use crate::common::loss;
use murmurate_sim::Report;
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::grid::registry::{CODECS, PRESETS};

/// Nine machines of a preset, in three rows or in one group.
fn run(preset: &str, strategy: &str, grid: bool) -> Report {
    let grouping = match grid {
        true => "grouping = \"grid\"\nrow = 3",
        false => "grouping = \"flat\"",
    };
    let text = format!(
        "seed = 3\npeers = 9\nrounds = 6\nevaluate_every = 1000\n[task]\nkind = \"quadratic\"\n\
         dim = 600\nnoise = 0.0\n[strategy]\npreset = \"{preset}\"\n[strategy.agreement]\n{grouping}\n\
         {strategy}[strategy.deadlines]\nfloor_ms = 200\ninitial_ms = 1000\nceiling_ms = 5000\n\
         [network]\nlatency_ms = 5.0\nuplink_mbit = 1000.0\ndownlink_mbit = 1000.0\n\
         [compute]\nstep_ms = 5.0\n"
    );
    crate::common::run(&text, None)
}

/// What differs between a grid and a group, in a line; nothing where they agree.
fn difference(preset: &str, strategy: &str) -> Option<String> {
    let (grid, flat) = (run(preset, strategy, true), run(preset, strategy, false));
    let counters = &grid.counters;
    let (a, b) = (loss(&grid), loss(&flat));
    // A quantizing codec scales blocks of a shard, and shards of a grid are longer.
    let apart = (a / b).max(b / a);
    let well = grid.consensus_distance == 0.0
        && counters.rounds_ended == 9 * 6
        && counters.voided + counters.catch_ups + counters.rule_breaks + counters.waits_expired
            == 0;
    (!well || apart > 2.0).then(|| {
        format!(
            "{preset} {strategy:?}: loss {a:.4} in a grid, {b:.4} in a group; {} apart, {} rounds, {} void, \
             {} catch-ups, {} rule breaks, {} waits expired",
            grid.consensus_distance,
            counters.rounds_ended,
            counters.voided,
            counters.catch_ups,
            counters.rule_breaks,
            counters.waits_expired
        )
    })
}

fn on_a_grid(preset: &str, text: &str) -> bool {
    let text = format!("{text}[agreement]\ngrouping = \"grid\"\nrow = 3\n");
    Strategy::parse(&text, Some(preset)).is_ok()
}

#[test]
fn presets_do_on_a_grid_what_they_do_in_a_group() {
    let names = PRESETS.iter().map(|entry| entry.name);
    let names: Vec<&str> = names.filter(|name| on_a_grid(name, "")).collect();
    assert!(names.len() > 15, "{names:?}");
    let found: Vec<String> = names
        .iter()
        .filter_map(|name| difference(name, ""))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn codecs_do_on_a_grid_what_they_do_in_a_group() {
    let mut found = Vec::new();
    let mut tried = 0;
    for codec in CODECS {
        let named = format!("codec = \"{}\"\n", codec.name);
        // What some codecs require.
        let more = ["", "density = 0.25\n", "threshold = 0.01\n"];
        let texts = more.map(|more| format!("[compression]\n{named}{more}"));
        let Some(text) = texts.iter().find(|text| on_a_grid("diloco", text)) else {
            continue;
        };
        tried += 1;
        let text = text.replace("[compression]", "[strategy.compression]");
        found.extend(difference("diloco", &text));
    }
    assert!(tried > 30, "{tried} codecs");
    assert!(found.is_empty(), "{}", found.join("\n"));
}
