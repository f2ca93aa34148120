//! Bandwidth of each tier, calibrated on BSP-A2A.
//!
//! BSP-A2A overlaps nothing, so T = T_comp + a(n) + 2(n-1)/n * m/B (methods of Shi et al. 2021):
//! the ring is flat over all GPUs and as fast as its slowest link, which is PCIe inside a machine
//! and the NIC beyond. T is linear in 1/B, so the least squares of the relative errors are solved
//! in closed form.

use crate::constants::Constants;
use crate::error::SurveyError;
use crate::measured::{Measured, Row};
use crate::model::ModelProfile;
use crate::schedule::Method;
use serde::Serialize;

/// Bandwidths of the two tiers of a cluster, bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tiers {
    /// Between the GPUs of one machine; `None` without a measurement of that size.
    pub pcie: Option<f64>,
    /// Between machines.
    pub nic: Option<f64>,
}

impl Tiers {
    /// Calibrates the tiers of one network.
    ///
    /// # Errors
    /// If the network has no BSP-A2A rows, or rows in which the exchange took no time.
    pub(crate) fn calibrate(
        measured: &Measured,
        network: &str,
        constants: &Constants,
    ) -> Result<Self, SurveyError> {
        let rows: Vec<&Row> = measured
            .rows
            .iter()
            .filter(|row| row.network == network && row.method == Method::BspA2a)
            .collect();
        let refuse = |reason: String| SurveyError::Calibration {
            file: measured.file.clone(),
            reason,
        };
        if rows.is_empty() {
            return Err(refuse(format!(
                "`net` {network} has no row with `method` BSP-A2A: bandwidths are calibrated on it"
            )));
        }
        let tier = |inside: bool| {
            let (mut product, mut square) = (0.0, 0.0);
            for (row, (ranks, speed)) in rows.iter().flat_map(|row| {
                let cells = row.speeds.iter().copied();
                cells.map(move |cell| (*row, cell))
            }) {
                if (ranks <= constants.gpus_per_machine) != inside {
                    continue;
                }
                let Some(model) = ModelProfile::named(&row.model, constants) else {
                    continue;
                };
                let seconds = row.seconds(ranks, speed);
                let fixed = row.single_seconds() + constants.message_seconds(ranks);
                let slope = ring_share(ranks) * 4.0 * model.parameters() as f64 / seconds;
                product += slope * (1.0 - fixed / seconds);
                square += slope * slope;
            }
            match (square > 0.0, product > 0.0) {
                (false, _) => Ok(None),
                (true, true) => Ok(Some(square / product)),
                (true, false) => Err(refuse(format!(
                    "the BSP-A2A rows of `net` {network} leave no time for the exchange {}: \
                     `g1` must be one GPU's speed",
                    if inside {
                        "inside a machine"
                    } else {
                        "between machines"
                    }
                ))),
            }
        };
        Ok(Self {
            pcie: tier(true)?,
            nic: tier(false)?,
        })
    }
}

/// The data that each rank of a ring sends, in messages: 2(n-1)/n (Patarasuk and Yuan 2009).
pub(crate) fn ring_share(ranks: usize) -> f64 {
    2.0 * (ranks as f64 - 1.0) / ranks as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_known_bandwidth_is_recovered() {
        let constants = Constants::shipped().unwrap();
        let model = ModelProfile::named("BERT-Base", &constants).unwrap();
        let speed = |ranks: usize, rate: f64| {
            let bytes = ring_share(ranks) * 4.0 * model.parameters() as f64;
            let seconds = 0.3 + constants.message_seconds(ranks) + bytes / rate;
            ranks as f64 * 64.0 / seconds
        };
        let text = format!(
            "dnn,bs,net,method,g1,g4,g8,g16\nBERT-Base,64,x,BSP-A2A,{},{},{},{}\n",
            64.0 / 0.3,
            speed(4, 5e9),
            speed(8, 1e9),
            speed(16, 1e9)
        );
        let measured = Measured::from_text(&text, "m.csv").unwrap();
        let tiers = Tiers::calibrate(&measured, "x", &constants).unwrap();
        assert!((tiers.pcie.unwrap() / 5e9 - 1.0).abs() < 1e-9);
        assert!((tiers.nic.unwrap() / 1e9 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn without_bsp_there_is_nothing_to_calibrate_on() {
        let constants = Constants::shipped().unwrap();
        let text = "dnn,bs,net,method,g1,g8\nBERT-Base,64,x,WFBP-A2A,200,500\n";
        let measured = Measured::from_text(text, "m.csv").unwrap();
        let error = Tiers::calibrate(&measured, "x", &constants).unwrap_err();
        assert!(
            error.to_string().starts_with("m.csv: `net` x has no row"),
            "{error}"
        );
    }

    #[test]
    fn faster_than_one_gpu_is_refused() {
        let constants = Constants::shipped().unwrap();
        let text = "dnn,bs,net,method,g1,g8\nBERT-Base,64,x,BSP-A2A,200,5000\n";
        let measured = Measured::from_text(text, "m.csv").unwrap();
        let error = Tiers::calibrate(&measured, "x", &constants).unwrap_err();
        assert!(error.to_string().contains("between machines"), "{error}");
    }
}
