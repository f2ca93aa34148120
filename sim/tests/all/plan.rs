//! The planner with every preset.

use murmurate_sim::plan::{Choice, Cluster, Cost, Groups, Learns, PlanReport, Verdict, plan};
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::grid::registry::PRESETS;

const LINKS: [&str; 4] = [
    "100gbit/10us",
    "1gbit/30ms",
    "20mbit/100mbit/60ms",
    "1mbit/200ms",
];

fn report(link: &str, peers: usize) -> PlanReport {
    let cluster = Cluster::new(1.3e9, 400.0, link, peers, 0.8).expect("a cluster");
    plan(&cluster, Learns::Anything).expect("every preset can be planned for")
}

#[test]
fn every_preset_gets_numbers_and_a_reason_on_every_network() {
    for link in LINKS {
        for peers in [1, 2, 16, 1000] {
            let report = report(link, peers);
            assert_eq!(report.presets.len(), PRESETS.len());
            for plan in &report.presets {
                let cost = plan.cost;
                let name = format!("{} on {link} with {peers}", plan.preset);
                assert!(cost.utilization > 0.0 && cost.utilization <= 1.0, "{name}");
                assert!(cost.round_s.is_finite() && cost.round_s > 0.0, "{name}");
                assert!(cost.memory_bytes >= 2.0 * 4.0 * 1.3e9, "{name}");
                assert!(!plan.advice.reason.is_empty(), "{name}");
                let with = plan.advice.verdict == Verdict::AdvisedWith;
                assert_eq!(with, plan.advice.changes.is_some(), "{name}");
            }
        }
    }
}

#[test]
fn advised_changes_are_configurations_that_reach_the_target() {
    for link in LINKS {
        let report = report(link, 16);
        for advised in &report.presets {
            let Some(changes) = &advised.advice.changes else {
                continue;
            };
            let strategy = Strategy::parse(changes, Some(advised.preset));
            let strategy = strategy.unwrap_or_else(|e| panic!("{}: {e}", advised.preset));
            let cost = murmurate_sim::plan::Cost::of(&strategy, &report.cluster).expect("a cost");
            assert!(
                cost.utilization >= 0.8,
                "{} on {link}: {changes}",
                advised.preset
            );
            assert_eq!(advised.advice.changed, Some(cost), "{}", advised.preset);
        }
    }
}

#[test]
fn a_slower_link_is_never_better() {
    let faster = report("1gbit/30ms", 16);
    let slower = report("100mbit/30ms", 16);
    for (fast, slow) in faster.presets.iter().zip(&slower.presets) {
        assert!(
            slow.cost.utilization <= fast.cost.utilization,
            "{}",
            fast.preset
        );
    }
}

#[test]
fn above_a_group_the_planner_says_how_the_swarm_is_cut() {
    let report = report("1gbit/30ms", 1000);
    let text = report.to_string();
    assert!(
        text.contains("exact: 63 rows x 16 columns, 31 owners"),
        "{text}"
    );
    assert!(text.contains("one group of 64 takes turns"), "{text}");
    let groups = |preset: &str| {
        let plan = report.presets.iter().find(|plan| plan.preset == preset);
        plan.expect("a preset").cost.groups
    };
    assert!(matches!(groups("diloco"), Some(Groups::Grid(_))));
    assert!(matches!(groups("guarded"), Some(Groups::Turns { .. })));
    assert_eq!(groups("d-psgd"), None);
    let json = serde_json::to_string(&report).unwrap();
    assert!(json.contains("\"rows\":63"), "{json}");
}

#[test]
fn no_advised_preset_sends_more_than_the_link_carries() {
    for link in LINKS {
        let report = report(link, 16);
        let Cluster { link: rates, .. } = report.cluster;
        for plan in &report.presets {
            let cost = match plan.advice.verdict {
                Verdict::Advised => plan.cost,
                Verdict::AdvisedWith => plan.advice.changed.expect("the cost with the changes"),
                _ => continue,
            };
            let room = cost.round_s * (1.0 + 1e-9);
            let carried = cost.bytes_up / rates.up <= room && cost.bytes_down / rates.down <= room;
            assert!(carried, "{} on {link}: {cost:?}", plan.preset);
        }
    }
}

#[test]
fn the_answer_begins_with_configurations_and_says_each_reason_once() {
    let text = report("100mbit/40ms", 16).to_string();
    let (first, rest) = text.split_once("All that are advised").expect("a table");
    assert_eq!(first.matches("[strategy]\npreset").count(), 0, "indented");
    assert_eq!(first.matches("[strategy]").count(), 3, "{first}");
    let reason = "one peer alone takes more inner steps a second";
    assert_eq!(rest.matches(reason).count(), 1, "{rest}");
}

fn chosen(parameters: f64, link: &str, peers: usize) -> (Cluster, Vec<Choice>) {
    let cluster = Cluster::new(parameters, 250.0, link, peers, 0.8).expect("a cluster");
    let report = plan(&cluster, Learns::Anything).expect("every preset can be planned for");
    (cluster, report.best)
}

#[test]
fn what_is_chosen_can_be_pasted_and_reaches_the_target() {
    for (parameters, link, peers) in [
        (1e8, "100mbit/40ms", 8),
        (1e6, "10gbit/100us", 4),
        (1e8, "1gbit/30ms", 1000),
        (1e9, "20mbit/100mbit/60ms", 16),
    ] {
        let (cluster, best) = chosen(parameters, link, peers);
        for choice in best {
            let file: toml::Table = choice.toml.parse().expect("TOML");
            let strategy = toml::to_string(&file["strategy"]).expect("a table");
            let strategy: Strategy = strategy.parse().expect("a strategy");
            let cost = Cost::of(&strategy, &cluster).expect("a cost");
            assert_eq!(cost, choice.cost, "{}", choice.toml);
            assert!(cost.utilization >= 0.8, "{}", choice.toml);
            let ceiling = strategy.deadlines().ceiling.as_secs_f64();
            assert!(cost.exchange_s <= ceiling, "{}", choice.toml);
        }
    }
}

#[test]
fn on_a_fast_network_every_step_is_exchanged_as_it_is() {
    let (_, best) = chosen(1e6, "10gbit/100us", 4);
    assert_eq!((best[0].preset, &*best[0].codec), ("bsp", "f32"));
    assert!(!best[0].toml.contains("inner_steps"), "{}", best[0].toml);
}

#[test]
fn the_three_differ_in_more_than_their_optimizers_and_begin_with_the_most_frequent() {
    let (_, best) = chosen(1e8, "100mbit/40ms", 8);
    assert_eq!(best.len(), 3);
    let steps = |choice: &Choice| choice.cost.inner_steps as u64;
    for (at, choice) in best.iter().enumerate() {
        for before in &best[..at] {
            let (one, other) = (
                (steps(before), &before.codec),
                (steps(choice), &choice.codec),
            );
            assert!(one != other || before.agrees != choice.agrees, "{best:?}");
            let earlier = (!before.agrees, steps(before)) <= (!choice.agrees, steps(choice));
            assert!(earlier, "{best:?}");
        }
    }
}

#[test]
fn a_language_model_is_given_the_families_made_for_it_with_what_they_cost() {
    for (parameters, link, peers) in [(1e8, "100mbit/40ms", 8), (1e6, "10gbit/100us", 4)] {
        let cluster = Cluster::new(parameters, 250.0, link, peers, 0.8).expect("a cluster");
        let report = plan(&cluster, Learns::Language).expect("every preset can be planned for");
        let names: Vec<&str> = report.best.iter().map(|choice| choice.preset).collect();
        assert_eq!(names.first(), Some(&"local-adam-lm"), "{names:?}");
        for choice in &report.best {
            let known = !choice.measured.is_empty();
            assert!(known || !choice.preset.ends_with("-lm"), "{names:?}");
        }
        let text = report.to_string();
        assert!(text.contains("loss over bsp's with equal tokens"), "{text}");
        let other = plan(&cluster, Learns::Anything).expect("every preset can be planned for");
        let names: Vec<&str> = other.best.iter().map(|choice| choice.preset).collect();
        assert!(!names.iter().any(|name| name.ends_with("-lm")), "{names:?}");
        assert!(!other.to_string().contains("loss over"));
    }
}
