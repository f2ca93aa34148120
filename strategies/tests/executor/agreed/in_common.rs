//! What all members keep in common, in whole groups: the same bits at all of them, newcomers too, and
//! again after a checkpoint.

use crate::common::check::{newcomer_takes_over, refused};
use crate::common::{Swarm, peer, same_bits};
use murmurate_protocol::Round;
use murmurate_strategies::compress::CODECS;
use murmurate_strategies::grid::{Strategy, StrategyError};
use murmurate_strategies::toy::ToyTask;

const DIM: usize = 203;

/// Every codec that keeps something in common, in the exchange that allows it.
fn texts() -> Vec<(&'static str, String)> {
    let given = |name: &str| match name {
        "g-top-k" | "ok-top-k" | "clt-k" => "density = 0.1\n",
        "fetch-sgd" => "density = 0.05\nwidth = 0.5\nmomentum = 0.5\n",
        "lag" => "xi = 0.05\n",
        "gradiveq" => "slice = 6\nkept = 3\nsampled = 2\ncompressed = 3\n",
        _ => "",
    };
    let names = [
        "ef21",
        "diana",
        "lag",
        "g-top-k",
        "ok-top-k",
        "clt-k",
        "acp-sgd",
        "fetch-sgd",
        "gradiveq",
    ];
    names
        .into_iter()
        .map(|name| (name, text(name, given(name))))
        .collect()
}

/// The same, and other settings.
fn variants() -> Vec<(&'static str, String)> {
    let lazy = text("lag", "rule = \"server\"\nof = \"int8\"\n");
    texts().into_iter().chain([("lag", lazy)]).collect()
}

fn text(codec: &str, given: &str) -> String {
    format!(
        "preset = \"local-sgd\"\n[synchronization]\ninner_steps = 2\n[architecture]\nexchange = \"gathered\"\n\
         contribution = \"delta\"\n[compression]\ncodec = \"{codec}\"\n{given}[overlap]\nfragments = 3\n"
    )
}

fn swarm(text: &str, seed: u64) -> Swarm {
    let make = Box::new(|index| ToyTask::quadratic(DIM).build(index, 5, 11));
    Swarm::new(text, 4, seed, make)
}

#[test]
fn all_members_hold_the_same_bits() {
    for (name, text) in variants() {
        for seed in 0..3 {
            let mut swarm = swarm(&text, seed);
            swarm.run(12);
            same_bits(&swarm, 12, name);
            let anchor = &swarm.members[&peer(0)].anchors;
            assert_ne!(anchor[&Round(0)], anchor[&Round(11)], "{name} moves");
        }
    }
}

#[test]
fn a_newcomer_takes_over_what_is_kept_in_common() {
    for (name, text) in variants() {
        newcomer_takes_over(&mut swarm(&text, 1), name);
    }
}

#[test]
fn others_than_gathered_are_refused_with_the_exchange_that_is_not() {
    for (name, text) in texts() {
        for exchange in ["all-reduce", "parameter-server"] {
            let text = text.replace("gathered", exchange);
            let error = Strategy::parse(&text, None).unwrap_err();
            assert!(
                matches!(error, StrategyError::Refused { .. }),
                "{name}: {error}"
            );
            assert!(error.to_string().contains("gathered"), "{name}: {error}");
        }
        let robust = format!("{text}[aggregation]\nrule = \"median\"\n");
        refused(&robust, &["aggregation.rule"]);
    }
    let all = CODECS.iter().filter(|spec| {
        let given: Vec<_> = spec
            .parameters
            .iter()
            .filter(|p| p.default.is_none())
            .collect();
        let given: Vec<_> = given.iter().map(|p| (p.name, 0.1)).collect();
        let kind = murmurate_strategies::compress::CodecKind::new(spec.name, &given).unwrap();
        kind.build().gathering().is_some()
    });
    assert_eq!(all.count(), texts().len());
}
