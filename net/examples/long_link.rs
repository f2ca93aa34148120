//! Goodput and retransmissions over the emulated long link, for each controller and loss rate, in
//! virtual time.
//!
//! ```text
//! cargo run --release -p murmurate-net --example long_link -- [--json] [--megabytes 200]
//! ```
//!
//! prints a row for each controller and loss rate: `controller`, `loss`, `goodput_mbit_s`,
//! `retransmitted_share` and `queue_ms` (the longest wait in the link's queue). Then it prints how
//! two flows share the link.

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::Duration;

use common::link::LinkSpec;
use common::{Factory, cold, share};
use murmurate_net::congestion::{Congestion, MaxRate};
use quinn::congestion::BbrConfig;

fn factory(name: &str) -> Factory {
    match name.parse::<Congestion>() {
        Ok(choice) => choice.factory(&MaxRate::default()),
        Err(_) => Arc::new(BbrConfig::default()),
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let json = args.iter().any(|arg| arg == "--json");
    let megabytes = args
        .iter()
        .position(|arg| arg == "--megabytes")
        .and_then(|at| args.get(at + 1)?.parse::<u64>().ok())
        .unwrap_or(200);
    for name in ["bbr3", "cubic", "quinn-bbr"] {
        for loss in [0.0, 0.001, 0.01, 0.03] {
            for size in [20, megabytes] {
                let spec = LinkSpec::lossy(loss);
                let outcome = match cold(&spec, factory(name), size * 1_000_000) {
                    Ok(outcome) => outcome,
                    Err(error) => {
                        eprintln!("{name} at loss {loss}, {size} MB: {error}");
                        continue;
                    }
                };
                let (goodput, resent) = (outcome.goodput(), outcome.resent_share());
                let queue = outcome.link.longest_queue.as_millis();
                if json {
                    println!(
                        "{{\"controller\":\"{name}\",\"loss\":{loss},\"megabytes\":{size},\
                         \"goodput_mbit_s\":{goodput:.2},\"retransmitted_share\":{resent:.4},\
                         \"queue_ms\":{queue}}}"
                    );
                } else {
                    println!(
                        "{name:>10} loss {loss:<6} {size:>4} MB {goodput:>7.2} Mbit/s \
                         resent {resent:.4} queue {queue} ms"
                    );
                }
            }
        }
    }
    let (from, until) = (Duration::from_secs(10), Duration::from_secs(40));
    for names in [
        ["bbr3", "bbr3"],
        ["bbr3", "cubic"],
        ["cubic", "bbr3"],
        ["cubic", "cubic"],
    ] {
        for offset in [500, 3000] {
            let both = names.map(factory);
            let offset = Duration::from_millis(offset);
            let [one, two] = share(&LinkSpec::long(), both, offset, from, until);
            let [first, second] = names;
            if json {
                println!(
                    "{{\"first\":\"{first}\",\"second\":\"{second}\",\"first_mbit_s\":{one:.2},\
                     \"second_mbit_s\":{two:.2}}}"
                );
            } else {
                println!(
                    "{first} {one:.2} Mbit/s beside {second} {two:.2} Mbit/s, {offset:?} later"
                );
            }
        }
    }
}
