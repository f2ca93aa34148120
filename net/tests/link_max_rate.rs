//! A limit of the sending rate holds on short and long paths. In virtual time.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::time::Duration;

use common::link::LinkSpec;
use common::{Bed, virtually};
use murmurate_net::congestion::{Congestion, Limits, MaxRate};
use tokio::time::Instant;

/// Bytes a second that arrive while a sender draws its bytes from a throttle, after the first
/// second.
fn measured(delay: Duration, limit: u64) -> f64 {
    let spec = LinkSpec {
        rate: 10e9,
        delay,
        queue: Duration::from_millis(20),
        ..LinkSpec::long()
    };
    virtually(async {
        let rate = MaxRate::new(Limits {
            peer: Some(limit),
            daemon: None,
        });
        let bed = Bed::new(&spec);
        let flow = bed.flow(Congestion::Bbr3.factory(&rate)).await;
        let throttle = rate.throttle();
        let received = flow.received.clone();
        let sending = async {
            let mut stream = flow.connection.open_uni().await.unwrap();
            let piece = vec![0; 64 << 10];
            loop {
                throttle.acquire(piece.len() as u64).await;
                stream.write_all(&piece).await.unwrap();
            }
        };
        // Long enough for a hundred pieces.
        let span = Duration::from_secs_f64((6.5e6 / limit as f64).clamp(2.0, 60.0));
        let measuring = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let (before, began) = (*received.borrow(), Instant::now());
            tokio::time::sleep(span).await;
            (*received.borrow() - before) as f64 / began.elapsed().as_secs_f64()
        };
        tokio::select! {
            () = sending => unreachable!("it has no end"),
            rate = measuring => rate,
        }
    })
}

#[test]
fn a_limit_holds_within_five_percent_on_every_path() {
    let mut wrong = false;
    for round_trip in [0.05, 1.0, 4.9, 5.1, 40.0] {
        for limit in [100_000, 1_000_000, 10_000_000, 100_000_000] {
            let delay = Duration::from_secs_f64(round_trip / 2e3);
            let rate = measured(delay, limit);
            let share = rate / limit as f64;
            println!("{round_trip} ms, {limit} bytes/s: {share:.3}");
            wrong |= !(0.95..=1.05).contains(&share);
        }
    }
    assert!(!wrong, "a rate is off by more than 5 %");
}
