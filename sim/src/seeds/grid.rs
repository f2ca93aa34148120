//! Random grids: rows of peers at a few sites that come, go, crash and are cut off.

use super::draw::{DENSE, head};
use super::point::Draw;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::fmt::Write;

/// Peers in the column that has the fewest: of two, one that crashes takes the majority with it.
const ROWS_MIN: u64 = 3;

/// The scenario of a seed with a grid of 9 to 36 peers in rows of 3 to 6.
///
/// Columns have three members or more, and faults take one machine at a time: a column without a majority
/// waits for those that it lost. No message is lost, and no machine lies, because a grid does not survive
/// liars.
pub fn random_grid(seed: u64) -> String {
    let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed.rotate_left(16)));
    let row = 3 + draw.below(4);
    let rows = ROWS_MIN + draw.below(36 / row - ROWS_MIN + 1);
    let peers = row * rows + draw.below((36 - row * rows).min(row - 1) + 1);
    let preset = draw.one_of(&["local-sgd", "diloco", "bsp"]);
    let codec = draw.one_of(&DENSE);
    let fragments = 1 + draw.below(3);
    let rounds = 60 + draw.below(15);
    let head = head(seed, peers, rounds);
    let mut text = format!(
        "{head}[strategy]\npreset = \"{preset}\"\n[strategy.compression]\ncodec = \"{codec}\"\n\
         [strategy.overlap]\nfragments = {fragments}\n\
         [strategy.agreement]\ngrouping = \"grid\"\nrow = {row}\n\
         [strategy.deadlines]\nfloor_ms = 300\ninitial_ms = 1000\nceiling_ms = 5000\n\
         [limits]\nvirtual_s = 3600.0\nevents = 20_000_000\n"
    );
    text += &network(peers, &mut draw);
    text += &faults(peers, &mut draw);
    text
}

fn network(peers: u64, draw: &mut Draw) -> String {
    let (latency, jitter) = (1 + draw.below(60), draw.below(20));
    let labels = draw.one_of(&["none", "configured", "measured"]);
    let mut text = format!(
        "[network]\nlatency_ms = {latency}.0\njitter_ms = {jitter}.0\n\
         uplink_mbit = 20.0\ndownlink_mbit = 50.0\nlabels = \"{labels}\"\n"
    );
    let sites = 1 + draw.below(4);
    for site in 0..sites {
        let (first, end) = (site * peers / sites, (site + 1) * peers / sites);
        let uplink = [1, 5, 20][draw.below(3) as usize];
        let _ = write!(
            text,
            "[[network.site]]\nname = \"site-{site}\"\nfirst = {first}\nlast = {}\n\
             latency_ms = 1.0\nuplink_mbit = {uplink}.0\nwan_uplink_mbit = 10.0\n",
            end - 1
        );
    }
    text += "[compute]\nstep_ms = 10.0\nspread = 1.0\n";
    text
}

/// Crashes and restarts of one machine at a time, a stall, and a newcomer.
fn faults(peers: u64, draw: &mut Draw) -> String {
    let mut text = String::new();
    match draw.below(3) {
        0 => {
            let back = ["0.3", "1.0", "4.0"][draw.below(3) as usize];
            let _ = write!(
                text,
                "[[fault]]\nkind = \"random-crashes\"\nmean_s = 1.0\nrestart_after_s = {back}\n\
                 until_s = 8.0\ndown_max = 1\n"
            );
        }
        1 => {
            let (victim, round) = (draw.below(peers), 1 + draw.below(8));
            let phase = draw.one_of(&["train", "exchange", "apply"]);
            let delay = draw.below(80);
            let _ = write!(
                text,
                "[[fault]]\nkind = \"crash\"\npeer = {victim}\nround = {round}\n\
                 phase = \"{phase}\"\ndelay_s = 0.0{delay:02}\nrestart_after_s = 2.5\n"
            );
        }
        _ => {}
    }
    if draw.below(3) == 0 {
        let (peer, factor) = (draw.below(peers), 2 + draw.below(20));
        let _ = write!(
            text,
            "[[fault]]\nkind = \"straggler\"\npeer = {peer}\nat_s = 3.0\nfactor = {factor}.0\n\
             lasts_s = 2.0\n"
        );
    }
    if draw.below(3) == 0 {
        let (peer, at) = (draw.below(peers), 3 + draw.below(3));
        let _ = write!(
            text,
            "[[fault]]\nkind = \"join\"\npeer = {peer}\nat_s = {at}.0\n"
        );
    }
    text
}
