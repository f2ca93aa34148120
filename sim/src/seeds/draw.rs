//! A random scenario as TOML that a person could write, so that a failure is easy to reduce.

use super::point::{Draw, PARAMETERS, ROUNDS_MIN, random_point};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::fmt::Write;
use toml::{Table, Value};

/// Codecs that keep every value.
pub(super) const DENSE: [&str; 3] = ["f32", "bf16", "int8"];

/// Schedules for all-reduces whose codec allows them, in turn.
const SCHEDULES: [&str; 8] = [
    "butterfly",
    "ring",
    "recursive-doubling",
    "halving-doubling",
    "binary-tree",
    "double-tree",
    "torus",
    "hierarchical",
];

/// The scenario of a seed, with any strategy of the grid.
pub fn random_scenario(seed: u64) -> String {
    // A separate stream, so that new methods do not change a seed's network and faults.
    let mut point = Draw(ChaCha8Rng::seed_from_u64(seed.rotate_left(32)));
    let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed));
    let peers = 2 + draw.below(8);
    let rounds = ROUNDS_MIN + draw.below(20);
    let strategy = Table::from_iter([(
        "strategy".to_owned(),
        Value::Table(random_point(&mut point, peers)),
    )]);
    let mut text = head(seed, peers, rounds);
    text += &strategy.to_string();
    text += TAIL;
    text += &network(peers, &mut draw);
    text += &compute(&mut draw);
    text += &faults(peers, &mut draw);
    text += &cuts_and_lies(seed, peers);
    text
}

/// The scenario of a seed with one of these presets.
pub fn random_scenario_of(seed: u64, presets: &[&str]) -> String {
    let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed));
    let peers = 2 + draw.below(8);
    let mut text = strategy(seed, peers, presets, &mut draw);
    text += &network(peers, &mut draw);
    text += &compute(&mut draw);
    text += &faults(peers, &mut draw);
    text += &cuts_and_lies(seed, peers);
    text
}

fn strategy(seed: u64, peers: u64, presets: &[&str], draw: &mut Draw) -> String {
    let preset = draw.one_of(presets);
    let codec = match draw.one_of(&DENSE) {
        // Relayed sums must not be rounded.
        _ if preset == "relaysgd" => "f32",
        codec => codec,
    };
    let schedule = SCHEDULES[(seed / 2 % 8) as usize];
    let sums = ["local-sgd", "diloco", "bsp"].contains(&preset);
    let schedule = if sums && codec != "int8" {
        format!("[strategy.architecture]\nschedule = \"{schedule}\"\n")
    } else {
        String::new()
    };
    // More than the window holds at a time.
    let fragments = [1, 2, 3, 40][draw.below(4) as usize];
    let rounds = 10 + draw.below(20);
    let head = head(seed, peers, rounds);
    format!(
        "{head}[strategy]\npreset = \"{preset}\"\n[strategy.compression]\ncodec = \"{codec}\"\n\
         {schedule}[strategy.overlap]\nfragments = {fragments}\n{TAIL}"
    )
}

pub(super) fn head(seed: u64, peers: u64, rounds: u64) -> String {
    format!(
        "seed = {seed}\npeers = {peers}\nrounds = {rounds}\nsave_every_s = 0.5\n\
         [task]\nkind = \"quadratic\"\ndim = {PARAMETERS}\n"
    )
}

/// Deadlines for such small models, and limits far above what a run needs.
const TAIL: &str = "[strategy.deadlines]\nfloor_ms = 300\ninitial_ms = 1000\nceiling_ms = 5000\n\
                    [limits]\nvirtual_s = 3600.0\nevents = 3_000_000\n";

fn network(peers: u64, draw: &mut Draw) -> String {
    let (latency, jitter, loss) = (1 + draw.below(60), draw.below(40), draw.below(6));
    let transport = draw.one_of(&["ideal", "tcp", "quic"]);
    let packets = draw.below(3);
    let mut text = format!(
        "[network]\nlatency_ms = {latency}.0\njitter_ms = {jitter}.0\nloss = 0.0{loss}\n\
         transport = \"{transport}\"\npacket_loss = 0.0{packets}\n\
         uplink_mbit = 20.0\ndownlink_mbit = {down}.0\n",
        down = 20 + draw.below(80)
    );
    if peers >= 4 && draw.below(2) == 0 {
        let (half, far) = (peers / 2, 1 + draw.below(120));
        let _ = write!(
            text,
            "[[network.site]]\nname = \"a\"\nfirst = 0\nlast = {}\nlatency_ms = 1.0\n\
             wan_uplink_mbit = 10.0\n\
             [[network.site]]\nname = \"b\"\nfirst = {half}\nlast = {}\nlatency_ms = 2.0\n\
             [[network.between]]\nsites = [\"a\", \"b\"]\nlatency_ms = {far}.0\n",
            half - 1,
            peers - 1
        );
    }
    if draw.below(3) == 0 {
        let (peer, mbit) = (draw.below(peers), 1 + draw.below(10));
        let _ = write!(
            text,
            "[[network.trace]]\npeer = {peer}\nat_s = [1.0, 3.0]\nuplink_mbit = [0.1, {mbit}.0]\n"
        );
    }
    text
}

fn compute(draw: &mut Draw) -> String {
    let (spread, drift) = (draw.below(3), draw.below(4));
    format!("[compute]\nstep_ms = 10.0\nspread = {spread}.0\ndrift = 0.{drift}\ndrift_s = 2.0\n")
}

fn faults(peers: u64, draw: &mut Draw) -> String {
    let mut text = String::new();
    for _ in 0..draw.below(3) {
        let (victim, phase) = (
            draw.below(peers),
            draw.one_of(&["train", "exchange", "apply"]),
        );
        let (round, delay, back) = (1 + draw.below(8), draw.below(80), draw.below(4));
        let _ = write!(
            text,
            "[[fault]]\nkind = \"crash\"\npeer = {victim}\nround = {round}\nphase = \"{phase}\"\n\
             delay_s = 0.0{delay:02}\nrestart_after_s = {back}.5\n"
        );
    }
    if draw.below(3) == 0 {
        let most = 1 + peers / 4;
        let _ = write!(
            text,
            "[[fault]]\nkind = \"random-crashes\"\nmean_s = 1.0\nrestart_after_s = 1.0\n\
             until_s = 6.0\ndown_max = {most}\n"
        );
    }
    if draw.below(3) == 0 {
        let (peer, first, gone) = (draw.below(peers), 1 + draw.below(3), 1 + draw.below(2));
        let (back, second) = (first + gone, first + gone + 1);
        let _ = write!(
            text,
            "[[fault]]\nkind = \"churn\"\npeer = {peer}\ndown_s = [{first}.0, {second}.0]\n\
             up_s = [{back}.0, {second}.5]\n"
        );
    }
    if draw.below(3) == 0 {
        let (peer, factor) = (draw.below(peers), 2 + draw.below(20));
        let _ = write!(
            text,
            "[[fault]]\nkind = \"straggler\"\npeer = {peer}\nat_s = 1.0\nfactor = {factor}.0\n\
             lasts_s = 2.0\n"
        );
    }
    if draw.below(3) == 0 {
        let (peer, ahead) = (draw.below(peers), draw.below(500));
        let _ = write!(
            text,
            "[[fault]]\nkind = \"clock-skew\"\npeer = {peer}\nahead_s = {ahead}.0\n"
        );
    }
    text
}

/// Partitions that end, false slices, and processes that stand still. They use a separate stream, so that they do not change a
/// seed's other faults.
fn cuts_and_lies(seed: u64, peers: u64) -> String {
    let mut draw = Draw(ChaCha8Rng::seed_from_u64(!seed));
    let mut text = String::new();
    if peers >= 3 && draw.below(3) == 0 {
        let (first, many) = (draw.below(peers), 1 + draw.below(peers / 2));
        let cut: Vec<String> = (first..first + many)
            .map(|peer| (peer % peers).to_string())
            .collect();
        let (at, lasts) = (5 + draw.below(30), 1 + draw.below(25));
        let _ = write!(
            text,
            "[[fault]]\nkind = \"partition\"\npeers = [{}]\nat_s = {}.{}\nlasts_s = {}.{}\n",
            cut.join(", "),
            at / 10,
            at % 10,
            lasts / 10,
            lasts % 10,
        );
    }
    if peers >= 3 && draw.below(4) == 0 {
        let peer = draw.below(peers);
        let lie = draw.one_of(&["garbage", "truncated", "flipped-bit"]);
        let (round, lasts) = (1 + draw.below(5), 1 + draw.below(3));
        let _ = write!(
            text,
            "[[fault]]\nkind = \"byzantine\"\npeer = {peer}\nround = {round}\n\
             phase = \"train\"\nlie = \"{lie}\"\nlasts_s = 0.{lasts}\n"
        );
    }
    if draw.below(3) == 0 {
        // Most of them for longer than the deadlines, and one machine may be stopped twice.
        for _ in 0..1 + draw.below(peers) {
            let (peer, at, lasts) = (draw.below(peers), 10 + draw.below(40), 1 + draw.below(60));
            let _ = write!(
                text,
                "[[fault]]\nkind = \"pause\"\npeer = {peer}\nat_s = {}.{}\nlasts_s = {}.{}\n",
                at / 10,
                at % 10,
                lasts / 10,
                lasts % 10,
            );
        }
    }
    text
}
