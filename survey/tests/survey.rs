//! Published measurements, predicted: the targets of the quantitative survey on 10 GbE.

use murmurate_survey::{Constants, Method, SurveyReport, run_survey};
use std::path::Path;

fn report() -> SurveyReport {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/10gbe.csv");
    let constants = Constants::shipped().expect("what ships is valid");
    run_survey(&path, &constants).expect("the shipped file is predicted")
}

#[test]
fn the_survey_on_10gbe_is_predicted() {
    let report = report();
    let summary = report.summary;
    // Three models, seven methods, four sizes.
    assert_eq!((report.cells.len(), summary.cells), (84, 68));
    assert!(summary.median_error <= 0.10, "{report}");
    assert!(summary.different_median_error <= 0.13, "{report}");
    assert!(summary.right_order >= 0.80, "{report}");
    // Using BSP-A2A's number for every method is clearly worse.
    assert!(
        summary.median_error < 0.75 * summary.bsp_median_error,
        "{report}"
    );
    let naive = summary.bsp_different_median_error;
    assert!(summary.different_median_error < 0.75 * naive, "{report}");
    // Both sets are large enough for a meaningful test.
    assert!(
        summary.different_cells >= 30 && summary.pairs >= 90,
        "{report}"
    );
}

#[test]
fn the_tiers_are_those_of_the_testbed() {
    let report = report();
    let tiers = report.tiers.values().next().expect("one network");
    // 10 Gb/s are 1.25 GB/s; PCIe all-reduce in one machine took 4.1 to 6.4 GB/s.
    let (pcie, nic) = (tiers.pcie.expect("four GPUs"), tiers.nic.expect("eight"));
    assert!(
        (1.0e9..1.25e9).contains(&nic) && (4.1e9..6.4e9).contains(&pcie),
        "{report}"
    );
}

#[test]
fn merging_beats_both_extremes_where_messages_are_many() {
    let report = report();
    let speed = |method: Method| {
        let cells = report.cells.iter();
        let mut of = cells.filter(|c| c.method == method && c.model == "ResNet-50" && c.gpus == 32);
        of.next().expect("a cell").predicted
    };
    assert!(speed(Method::MgWfbp) > 1.2 * speed(Method::WfbpA2a));
    assert!(speed(Method::MgWfbp) > 1.2 * speed(Method::BspA2a));
}
