//! All cells with their measured and predicted speed, and the error.

use crate::constants::Constants;
use crate::error::SurveyError;
use crate::fabric::{self, Figure};
use crate::measured::Measured;
use crate::model::ModelProfile;
use crate::schedule::{Method, Setting};
use crate::tiers::Tiers;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Two methods on the same model and number of GPUs count as different if one is faster by this
/// fraction.
const DIFFERENT: f64 = 0.1;

/// One cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Name of the network.
    pub network: String,
    /// Name of the model.
    pub model: String,
    /// The method.
    pub method: Method,
    /// Number of GPUs.
    pub gpus: usize,
    /// Measured speed, samples per second.
    pub measured: f64,
    /// Predicted speed, samples per second.
    pub predicted: f64,
    /// Set if the cell counts: it was not used for calibration and is not dominated by another
    /// effect.
    pub counted: bool,
}

impl Cell {
    /// (predicted - measured) / measured.
    pub fn relative_error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }

    /// Returns `true` if the measured numbers show an effect outside the model: ByteScheduler-A2A loses 99 to
    /// 178 ms per step on ResNet-50 even inside one machine.
    fn is_overhead(&self) -> bool {
        self.method == Method::ByteSchedulerA2a && self.model == "ResNet-50"
    }

    fn comparable(&self) -> (&str, &str, usize) {
        (&self.network, &self.model, self.gpus)
    }
}

/// Accuracy of the predictions over the counted cells.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Number of counted cells.
    pub cells: usize,
    /// Median of their absolute relative errors.
    pub median_error: f64,
    /// Their 90th percentile.
    pub p90_error: f64,
    /// Number of counted cells whose measurement differs from that of BSP-A2A by more than a tenth.
    pub different_cells: usize,
    /// Median of the absolute relative errors of these cells.
    pub different_median_error: f64,
    /// As `median_error`, if the measured speed of BSP-A2A were the prediction for every method.
    pub bsp_median_error: f64,
    /// As `different_median_error`, for that prediction.
    pub bsp_different_median_error: f64,
    /// Pairs of methods with the same model and GPUs of which one is faster by more than a tenth.
    pub pairs: usize,
    /// Fraction of these pairs that are predicted in the right order.
    pub right_order: f64,
}

/// The result of a survey.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SurveyReport {
    /// Calibrated bandwidths of each network, bytes per second.
    pub tiers: BTreeMap<String, Tiers>,
    /// The constants of the model.
    pub constants: Constants,
    /// All cells in the order of the file.
    pub cells: Vec<Cell>,
    /// Their accuracy.
    pub summary: Summary,
    /// Models of networks that exist in the simulator only, with the figures of their papers.
    pub simulated: Vec<Figure>,
}

/// Calibrates the bandwidths and predicts all cells.
pub(crate) fn predict(
    measured: &Measured,
    constants: &Constants,
) -> Result<SurveyReport, SurveyError> {
    let mut tiers = BTreeMap::new();
    for row in &measured.rows {
        if !tiers.contains_key(&row.network) {
            let found = Tiers::calibrate(measured, &row.network, constants)?;
            tiers.insert(row.network.clone(), found);
        }
    }
    let mut cells = Vec::new();
    for row in &measured.rows {
        let model = ModelProfile::named(&row.model, constants);
        let model = model.expect("the measurements hold known models only");
        for (gpus, speed) in &row.speeds {
            let single = row.single_seconds();
            let setting = Setting::new(&model, constants, &tiers[&row.network], *gpus, single)
                .ok_or_else(|| SurveyError::Calibration {
                    file: measured.file.clone(),
                    reason: format!("`g{gpus}` needs a BSP-A2A speed of the same tier"),
                })?;
            let seconds = setting.iteration_seconds(row.method);
            let mut cell = Cell {
                network: row.network.clone(),
                model: row.model.clone(),
                method: row.method,
                gpus: *gpus,
                measured: *speed,
                predicted: *gpus as f64 * f64::from(row.batch) / seconds,
                counted: row.method != Method::BspA2a,
            };
            cell.counted &= !cell.is_overhead();
            cells.push(cell);
        }
    }
    let summary = summarize(&cells);
    Ok(SurveyReport {
        tiers,
        constants: *constants,
        cells,
        summary,
        simulated: fabric::figures(constants)?,
    })
}

fn summarize(cells: &[Cell]) -> Summary {
    let counted: Vec<&Cell> = cells.iter().filter(|cell| cell.counted).collect();
    let bsp = |cell: &Cell| {
        let of = |other: &&Cell| {
            other.method == Method::BspA2a && other.comparable() == cell.comparable()
        };
        cells.iter().find(of).map(|other| other.measured)
    };
    let unlike =
        |cell: &&&Cell| bsp(cell).is_some_and(|bsp| (cell.measured / bsp - 1.0).abs() > DIFFERENT);
    let naive = |cell: &&Cell| bsp(cell).map(|bsp| (bsp / cell.measured - 1.0).abs());
    let error = |cell: &Cell| cell.relative_error().abs();
    let errors = sorted(counted.iter().map(|cell| error(cell)));
    let different = sorted(counted.iter().filter(unlike).map(|cell| error(cell)));
    let naive_errors = sorted(counted.iter().filter_map(naive));
    let naive_different = sorted(counted.iter().filter(unlike).filter_map(naive));
    let (mut pairs, mut right) = (0, 0);
    for (index, a) in cells.iter().enumerate() {
        for b in &cells[index + 1..] {
            let (slow, fast) = if a.measured < b.measured {
                (a, b)
            } else {
                (b, a)
            };
            let apart = fast.measured / slow.measured - 1.0 > DIFFERENT;
            let overhead = a.is_overhead() || b.is_overhead();
            if apart && !overhead && a.comparable() == b.comparable() {
                pairs += 1;
                right += usize::from(fast.predicted > slow.predicted);
            }
        }
    }
    Summary {
        cells: errors.len(),
        median_error: quantile(&errors, 0.5),
        p90_error: quantile(&errors, 0.9),
        different_cells: different.len(),
        different_median_error: quantile(&different, 0.5),
        bsp_median_error: quantile(&naive_errors, 0.5),
        bsp_different_median_error: quantile(&naive_different, 0.5),
        pairs,
        right_order: right as f64 / (pairs as f64).max(1.0),
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The quantile `share` of sorted values, interpolated linearly; zero if there are no values.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    let at = share * last as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (at - at.floor()) * (sorted[high] - sorted[low])
}

impl fmt::Display for SurveyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (network, tiers) in &self.tiers {
            let giga = |rate: Option<f64>| {
                rate.map_or_else(|| "-".to_owned(), |r| format!("{:.2} GB/s", r * 1e-9))
            };
            let (pcie, nic) = (giga(tiers.pcie), giga(tiers.nic));
            writeln!(
                f,
                "{network}: {pcie} inside a machine, {nic} between, from BSP-A2A"
            )?;
        }
        writeln!(
            f,
            "{:<11} {:<18} {:>4} {:>10} {:>10} {:>8}",
            "model", "method", "gpus", "measured", "predicted", "error"
        )?;
        for cell in &self.cells {
            let mark = match (cell.is_overhead(), cell.counted) {
                (true, _) => " *",
                (false, true) => "",
                (false, false) => " calibrated on",
            };
            writeln!(
                f,
                "{:<11} {:<18} {:>4} {:>10.1} {:>10.1} {:>+7.1}%{mark}",
                cell.model,
                cell.method.name(),
                cell.gpus,
                cell.measured,
                cell.predicted,
                100.0 * cell.relative_error()
            )?;
        }
        if self.cells.iter().any(Cell::is_overhead) {
            writeln!(
                f,
                "* not counted: ByteScheduler's own overhead (99 to 178 ms a step on ResNet-50, even \
                 inside one machine) is not physics of a network"
            )?;
        }
        self.summary.fmt(f)?;
        writeln!(
            f,
            "in the simulator only, whatever the file measures:\n{:<23} {:<56} {:>9} {:<9} published",
            "method", "case", "predicted", ""
        )?;
        for figure in &self.simulated {
            writeln!(f, "{figure}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| 100.0 * share;
        writeln!(
            f,
            "error over {} cells: median {:.1} %, 90th percentile {:.1} %",
            self.cells,
            percent(self.median_error),
            percent(self.p90_error)
        )?;
        writeln!(
            f,
            "over the {} that differ from BSP-A2A by more than 10 %: median {:.1} %",
            self.different_cells,
            percent(self.different_median_error)
        )?;
        writeln!(
            f,
            "BSP-A2A's number for every method would give {:.1} % and {:.1} %",
            percent(self.bsp_median_error),
            percent(self.bsp_different_median_error)
        )?;
        writeln!(
            f,
            "order right in {:.1} % of {} pairs of methods that differ by more than 10 %",
            percent(self.right_order),
            self.pairs
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_have_their_special_cases() {
        assert_eq!(quantile(&[], 0.5), 0.0);
        assert_eq!(quantile(&[3.0], 0.9), 3.0);
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.5), 2.0);
        assert_eq!(quantile(&[0.0, 10.0], 0.9), 9.0);
    }
}
