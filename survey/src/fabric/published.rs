//! The models of this folder against the figures of their papers.

use super::figure::{Figure, Published};
use super::jobs::{self, Job, Sharing};
use super::switch::Switch;
use super::topology::{RailOnly, Rings};
use super::transport::Transport;
use crate::constants::Constants;
use crate::error::SurveyError;
use crate::measured::Measured;
use crate::model::ModelProfile;
use crate::schedule::{Method, Setting};
use crate::tiers::Tiers;

/// The measurements that ship with the crate: their BSP-A2A rows say what PCIe carries.
const SHIPPED: &str = include_str!("../../data/10gbe.csv");

/// 100 Gb/s in bytes per second.
const HUNDRED: f64 = 12.5e9;

/// GPUs of the cells that are compared.
const GPUS: usize = 32;

/// A model, its batch, and samples/s: of one GPU, then of the two networks with two methods each.
type Cell = (&'static str, u32, f64, [f64; 2], [f64; 2]);

/// Model, batch and single-GPU samples/s of the survey's testbed; then samples/s of 32 GPUs with
/// BSP-A2A and MG-WFBP, over 100 GbE with TCP and over 100 Gb/s InfiniBand with RDMA.
const CELLS: [Cell; 3] = [
    (
        "ResNet-50",
        64,
        253.1,
        [5744.76, 7540.94],
        [7126.52, 7876.46],
    ),
    (
        "BERT-Base",
        64,
        212.8,
        [2815.72, 3540.80],
        [4184.38, 4940.08],
    ),
    ("BERT-Large", 8, 49.0, [187.0, 191.46], [375.22, 400.16]),
];

const S3: &str = "Shi et al. 2021 (arXiv 2005.13247), the authors' repository, run of 2020-05-29";

/// All rows.
///
/// # Errors
/// If the shipped measurements cannot be calibrated on, which a test excludes.
pub(crate) fn figures(constants: &Constants) -> Result<Vec<Figure>, SurveyError> {
    let measured = Measured::from_text(SHIPPED, "10gbe.csv")?;
    let tiers = Tiers::calibrate(&measured, &measured.rows[0].network, constants)?;
    let pcie = tiers.pcie.unwrap_or(f64::INFINITY);
    let mut figures = transports(constants, pcie);
    figures.extend(aggregation(constants, pcie));
    figures.extend(topologies());
    figures.extend(interleaving());
    Ok(figures)
}

fn model(name: &str, constants: &Constants) -> ModelProfile {
    ModelProfile::named(name, constants).expect("the survey's own models are known")
}

/// Nanoseconds of a core for a byte over TCP: the one number that is taken from the 100 GbE cells.
fn core_ns_per_byte(constants: &Constants) -> f64 {
    let (name, batch, single, tcp, _) = CELLS[0];
    let (n, bytes) = (
        GPUS as f64,
        4.0 * model(name, constants).parameters() as f64,
    );
    let exchange = n * f64::from(batch) / tcp[0] - f64::from(batch) / single;
    let sending = exchange - constants.message_seconds(GPUS);
    1e9 * sending / (2.0 * (n - 1.0) / n * bytes)
}

fn transports(constants: &Constants, pcie: f64) -> Vec<Figure> {
    let core = core_ns_per_byte(constants);
    let tcp = Transport::tcp(HUNDRED, core);
    let rdma = Transport::infiniband(HUNDRED);
    let mut figures = Vec::new();
    for (network, transport) in [("100 GbE", tcp), ("100 Gb/s", rdma)] {
        // A card that needs no core is fed through PCIe, as the GPUs are.
        let slowest = transport.rate().min(pcie);
        let constants = Constants {
            message_us_per_rank: 2.0 * transport.hop_us,
            ..*constants
        };
        for (name, batch, single, tcp, rdma) in CELLS {
            let model = model(name, &constants);
            let setting = Setting {
                model: &model,
                constants: &constants,
                ranks: GPUS,
                pcie,
                slowest,
                single: f64::from(batch) / single,
            };
            let cells = if transport.cpu_ns_per_byte > 0.0 {
                tcp
            } else {
                rdma
            };
            for (method, speed) in [Method::BspA2a, Method::MgWfbp].into_iter().zip(cells) {
                let seconds = setting.iteration_seconds(method);
                let calibrated = speed == CELLS[0].3[0];
                figures.push(Figure {
                    method: "RDMA against TCP",
                    what: format!(
                        "{name}, {}, {GPUS} GPUs, {network} {}",
                        method.name(),
                        transport.name
                    ),
                    unit: "samples/s",
                    predicted: GPUS as f64 * f64::from(batch) / seconds,
                    published: Some(if calibrated {
                        Published::CalibratedOn(speed)
                    } else {
                        Published::Measured(speed)
                    }),
                    source: S3,
                });
            }
        }
    }
    figures
}

/// A job of BERT-Large on 8 hosts of one GPU: a ring over TCP against a switch that sums, at
/// 100 Gb/s. It is the model of the survey with the most bytes for its computation.
fn aggregation(constants: &Constants, pcie: f64) -> Vec<Figure> {
    let (name, batch, single, ..) = CELLS[2];
    let bytes = 4.0 * model(name, constants).parameters() as f64;
    let compute = f64::from(batch) / single;
    let tcp = Transport::tcp(HUNDRED, core_ns_per_byte(constants));
    // Packets of 256 entries (1024 bytes), as the authors' code has them. The round trip is an
    // assumption, and the slots are enough to fill the link over it.
    let switch = Switch {
        line: HUNDRED.min(pcie * (1.0 + 90.0 / 1024.0)),
        payload: 1024.0,
        overhead: 90.0,
        slots: 512,
        round_trip_us: 30.0,
        levels: 1,
        level_us: 1.0,
    };
    let ring = compute + tcp.ring_seconds(8, bytes);
    let summed = compute + switch.seconds(bytes);
    let gain = |hosts: usize| {
        let n = hosts as f64;
        2.0 * (n - 1.0) / n
    };
    vec![
        Figure {
            method: "in-network aggregation",
            what: "BERT-Large, 8 hosts, switch against ring over TCP".to_owned(),
            unit: "times",
            predicted: ring / summed,
            published: Some(Published::UpTo(5.55)),
            source: "SwitchML, Sapio et al. (arXiv 1903.06701): eight models, 100 Gb/s",
        },
        Figure {
            method: "in-network aggregation",
            what: "large messages, 128 hosts, bytes alone".to_owned(),
            unit: "times",
            // 95 % of the link's rate is what the paper measured for the switch.
            predicted: 0.95 * gain(128),
            published: Some(Published::Between(2.0, 5.0)),
            source: "SHARP streaming aggregation, Graham et al. 2020 (ISC): against hosts that sum",
        },
    ]
}

fn topologies() -> Vec<Figure> {
    const RAILS: &str = "Wang et al. 2023 (arXiv 2307.12169): 8.2 % to 11.2 %";
    let slower = |inside: f64, rail: f64| {
        let rails = RailOnly {
            domain: 256,
            machines: 128,
            inside,
            rail,
        };
        100.0 * (rails.all_to_all(1e9) / rails.all_to_all_with_spine(1e9) - 1.0)
    };
    let rings = Rings::new(128, 4);
    vec![
        Figure {
            method: "rail-only",
            what: "all-to-all, 300 GB/s inside, 200 Gb/s rails".to_owned(),
            unit: "% slower",
            predicted: slower(300e9, 25e9),
            published: Some(Published::Between(8.2, 11.2)),
            source: RAILS,
        },
        Figure {
            method: "rail-only",
            what: "all-to-all, 450 GB/s inside, 400 Gb/s rails".to_owned(),
            unit: "% slower",
            predicted: slower(450e9, 50e9),
            published: Some(Published::Between(8.2, 11.2)),
            source: RAILS,
        },
        Figure {
            method: "TopoOpt",
            what: "128 hosts on 4 rings, mean distance".to_owned(),
            unit: "links",
            predicted: rings.mean_hops(),
            published: None,
            source: "Wang et al. 2022 (arXiv 2202.00433): its gains rest on prices of switches",
        },
    ]
}

/// Jobs that begin together, against the same jobs taking turns.
fn interleaving() -> Vec<Figure> {
    let jobs = |count: u32| {
        let job = Job {
            compute_ms: 40 * (count - 1),
            send_ms: 40,
        };
        vec![job; count as usize]
    };
    let mean = |all: Vec<f64>| all.iter().sum::<f64>() / all.len() as f64;
    let together = |jobs: &[Job]| {
        let begin = vec![0; jobs.len()];
        mean(jobs::mean_iterations(jobs, &begin, Sharing::Fair, 40))
    };
    let three = jobs(3);
    let (_, turns) = jobs::compatibility(&three);
    let rotated = mean(jobs::mean_iterations(&three, &turns, Sharing::Fair, 40));
    // Slightly different beginnings: equal ones would stay equal under any rule.
    let four = jobs(4);
    let begin: Vec<u32> = (0..4).map(|job| 4 * job).collect();
    let scaled = mean(jobs::mean_iterations(&four, &begin, jobs::MLTCP, 300));
    vec![
        Figure {
            method: "CASSINI",
            what: "3 equal jobs, turned against begun together".to_owned(),
            unit: "times",
            predicted: together(&three) / rotated,
            published: Some(Published::UpTo(1.6)),
            source: "Rajasekaran et al. 2023 (arXiv 2308.00852): mean completion time",
        },
        Figure {
            method: "MLTCP",
            what: "4 equal jobs, scaled windows against fair ones".to_owned(),
            unit: "times",
            predicted: together(&four) / scaled,
            published: Some(Published::UpTo(2.0)),
            source: "Rajasekaran et al. 2024 (arXiv 2402.09589): mean iteration",
        },
    ]
}
