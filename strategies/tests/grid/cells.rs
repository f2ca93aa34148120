//! Cells in a configuration: how they are chosen. What they refuse is among the refusals of `strategies.rs`.

use murmurate_protocol::{ExchangeKind, Grouping, RunId};
use murmurate_strategies::Layout;
use murmurate_strategies::grid::Strategy;

/// What all peers need for cells, over the default preset.
const PLAIN: &str = "[architecture]\ncontribution = \"parameters\"\n[outer]\noptimizer = \"average\"\n\
                     [agreement]\ngrouping = \"cells\"\n";

fn parsed(text: &str, preset: &str) -> Strategy {
    Strategy::parse(text, Some(preset)).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn an_all_reduce_grouped_in_cells_is_the_exchange_over_cells() {
    let by_grouping = parsed(PLAIN, "diloco");
    let by_exchange = PLAIN
        .replace("[architecture]", "[architecture]\nexchange = \"cells\"")
        .replace("[agreement]\ngrouping = \"cells\"\n", "");
    for strategy in [by_grouping, parsed(&by_exchange, "diloco")] {
        assert_eq!(strategy.exchange(), ExchangeKind::Cells);
        assert_eq!(strategy.grouping(), Some(Grouping::Cells { cell: 16 }));
    }
}

#[test]
fn cells_survive_their_own_text_and_have_a_plan() {
    for (text, preset) in [
        (PLAIN.to_owned(), "diloco"),
        (PLAIN.to_owned() + "cell = 10\n", "local-sgd"),
        (String::new(), "moshpit"),
        ("[compression]\ncodec = \"int8\"\n".to_owned(), "moshpit"),
        ("[agreement]\ncell = 64\n".to_owned(), "moshpit"),
        ("[agreement]\ndealing = \"random\"\n".to_owned(), "moshpit"),
        (PLAIN.to_owned() + "dealing = \"random\"\n", "local-sgd"),
        (String::new(), "prague"),
        ("[agreement]\ndealing = \"axes\"\n".to_owned(), "prague"),
    ] {
        let strategy = parsed(&text, preset);
        let again: Strategy = strategy.to_toml().parse().unwrap();
        assert_eq!(again, strategy, "{}", strategy.to_toml());
        let layout = Layout::new([("parameters", vec![1000])]);
        let plan = strategy
            .plan(RunId::from_bytes([0; 32]), &layout, 3)
            .unwrap();
        assert!(plan.agreement.grouping.cell().is_some(), "{text}");
    }
}

#[test]
fn random_cells_are_chosen_by_their_dealing_and_only_they_change_the_plan() {
    let plan = |text: &str, preset| {
        let layout = Layout::new([("parameters", vec![1000])]);
        let run = RunId::from_bytes([0; 32]);
        parsed(text, preset).plan(run, &layout, 3).unwrap()
    };
    let random = plan("[agreement]\ndealing = \"random\"\n", "moshpit");
    assert_eq!(random.agreement.grouping, Grouping::RandomCells { cell: 4 });
    let along = plan("", "moshpit");
    let said = plan("[agreement]\ndealing = \"axes\"\n", "moshpit");
    assert_eq!(along.agreement.grouping, Grouping::Cells { cell: 4 });
    assert_eq!(along.hash(), said.hash());
    assert_ne!(along.hash(), random.hash());
    let prague = parsed("", "prague");
    assert_eq!(prague.exchange(), ExchangeKind::Cells);
    assert_eq!(prague.grouping(), Some(Grouping::RandomCells { cell: 4 }));
    // Another exchange has other groups.
    let gossip = "[architecture]\nexchange = \"gossip\"\ntopology = \"random-groups\"\ngroup = 4\n";
    assert_eq!(parsed(gossip, "prague").grouping(), None);
}

#[test]
fn the_topology_of_gossip_stays_beside_the_preset() {
    let text = "[architecture]\nexchange = \"gossip\"\ntopology = \"moshpit\"\ngroup = 4\n";
    let strategy = parsed(text, "moshpit");
    assert_eq!(strategy.exchange(), ExchangeKind::Gossip);
    assert_eq!(strategy.grouping(), None);
}
