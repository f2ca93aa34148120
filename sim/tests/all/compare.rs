//! Comparisons: their errors, their results, and that they are reproducible.

use murmurate_sim::ToyTasksOnly;
use murmurate_sim::compare::{Comparison, ComparisonReport, run_comparison};

const SMALL: &str = r#"
seeds = [1, 2]
peers = [4]
points = 8
presets = ["bsp", "local-sgd"]
[[task]]
name = "<quadratic>"
inner_steps = 64
target = { loss = 1.0 }
scenario = { task = { kind = "quadratic", dim = 8, noise = 0.0 } }
data = [{ name = "unlike", scenario = { task = { heterogeneity = 0.5 } } }]
[[network]]
name = "near"
scenario.network = { latency_ms = 0.1 }
[[network]]
name = "far"
scenario.network = { latency_ms = 50.0 }
"#;

fn play(text: &str) -> ComparisonReport {
    let comparison = Comparison::from_toml(text, "small.toml").unwrap();
    run_comparison(&comparison, &ToyTasksOnly, &mut |_, _, _| {}).unwrap()
}

#[test]
fn the_same_samples_cost_rounds_bytes_and_seconds() {
    let report = play(SMALL);
    assert_eq!(report.outcomes.len(), 2 * 2 * 2);
    let of = |preset: &str, network: &str| {
        let mut runs = report.outcomes.iter();
        runs.find(|run| run.preset == preset && run.network == network)
            .unwrap()
    };
    let (near, far) = (of("bsp", "near"), of("bsp", "far"));
    // The network changes times only.
    let losses = |run: &murmurate_sim::compare::Outcome| {
        let looks = run.points.iter();
        looks.map(|p| (p.round, p.loss)).collect::<Vec<_>>()
    };
    assert_eq!(losses(near), losses(far));
    assert!(far.virtual_s > near.virtual_s * 5.0, "{far:?}");
    // Fewer exchanges with the same bytes each.
    let last = |preset| of(preset, "far").points.last().unwrap().bytes;
    assert!(last("bsp") > 2.0 * last("local-sgd"), "{report}");
    let target = 1.0;
    for run in &report.outcomes {
        let reached = run.points.iter().any(|p| p.loss.unwrap() <= target);
        assert_eq!(run.reached.is_some(), reached, "{run:?}");
    }
    assert!(report.outcomes.iter().any(|run| run.reached.is_some()));
}

#[test]
fn a_comparison_repeats_to_the_bit() {
    assert_eq!(play(SMALL), play(SMALL));
}

#[test]
fn the_page_has_every_preset_and_nothing_to_fetch() {
    let page = play(SMALL).to_html("1.2.3, commit <none>");
    for needed in [
        "bsp",
        "local-sgd",
        "&lt;quadratic&gt;",
        "near",
        "far",
        "seeds 1, 2",
        "commit &lt;none&gt;",
    ] {
        assert!(page.contains(needed), "{needed}");
    }
    // Charts over rounds, bytes, and seconds on both networks, each with a curve for every preset.
    assert_eq!(page.matches("<polyline").count(), 4 * 2);
    assert!(!page.contains("NaN") && !page.contains("inf,"));
    for fetched in ["http", "<script", "src="] {
        assert!(!page.contains(fetched), "{fetched}");
    }
}

#[test]
fn a_preset_that_cannot_work_says_so_in_its_row() {
    let text = SMALL.replace("{ task = { kind", "{ strategy = { compression = { codec = \"top-k\", error_feedback = false } }, task = { kind");
    let report = play(&text);
    assert!(
        report.outcomes.iter().all(|run| run.error.is_some()),
        "{report}"
    );
    assert!(report.to_string().contains("top-k"), "{report}");
    assert!(report.to_html("1").contains("colspan=\"3\" title="));
}

#[test]
fn what_cannot_be_compared_is_named() {
    for (from, to, expected) in [
        ("points = 8", "points = 0", "small.toml:4: `points` is 0"),
        ("points = 8", "pionts = 8", "did you mean `points`?"),
        ("seeds = [1, 2]", "seeds = []", "`seeds` is empty"),
        ("{ loss = 1.0 }", "{}", "needs either `loss` or `accuracy`"),
        (
            "inner_steps = 64",
            "inner_steps = 0",
            "`task[0].inner_steps` is 0",
        ),
        ("\"bsp\", ", "\"bps\", ", "`bps`"),
    ] {
        let text = SMALL.replace(from, to);
        let error = Comparison::from_toml(&text, "small.toml")
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
    let far = SMALL.replace("latency_ms = 50.0", "latency_ms = -50.0");
    let comparison = Comparison::from_toml(&far, "small.toml").unwrap();
    let error = run_comparison(&comparison, &ToyTasksOnly, &mut |_, _, _| {}).unwrap_err();
    assert!(error.to_string().contains("latency_ms"), "{error}");
}
