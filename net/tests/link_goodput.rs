//! How much of a long lossy link our controller uses, and how much it retransmits. In virtual time.

mod common;

use std::time::Duration;

use common::link::{Event, LinkSpec};
use common::{Factory, Outcome, cold, virtually};
use murmurate_net::congestion::{Congestion, Limits, MaxRate, Phase, path_model};

fn ours() -> Factory {
    Congestion::Bbr3.factory(&MaxRate::default())
}

fn cubic() -> Factory {
    Congestion::Cubic.factory(&MaxRate::default())
}

fn run(name: &str, spec: &LinkSpec, megabytes: u64) -> Outcome {
    let outcome = cold(spec, ours(), megabytes * 1_000_000).expect("the transfer completes");
    println!(
        "{name}: {:.2} Mbit/s, resent {:.4}, {:?}",
        outcome.goodput(),
        outcome.resent_share(),
        outcome.link
    );
    outcome
}

/// 200 MB at each loss rate: a minimum goodput in Mbit/s, and retransmissions of at most 5 % above
/// the loss.
#[test]
fn a_long_lossy_link_is_filled_and_not_flooded() {
    for (loss, least, least_cold) in [
        (0.0, 40.0, 38.0),
        (0.001, 38.0, 37.0),
        (0.01, 35.0, 35.0),
        (0.03, 25.0, 25.0),
    ] {
        for (megabytes, least) in [(20, least_cold), (200, least)] {
            let outcome = run(&format!("loss {loss}"), &LinkSpec::lossy(loss), megabytes);
            assert!(outcome.goodput() >= least, "{loss}: {outcome:?}");
            assert!(outcome.resent_share() <= loss + 0.05, "{loss}: {outcome:?}");
            let dropped = outcome.link.queue_dropped as f64 / outcome.payload as f64;
            assert!(dropped <= 0.01, "{loss}: {outcome:?}");
        }
    }
}

/// A comparison with CUBIC on the same link in the same test bed.
#[test]
fn cubic_collapses_where_ours_does_not() {
    let spec = LinkSpec::lossy(0.01);
    let theirs = cold(&spec, cubic(), 10_000_000).unwrap();
    let ours = cold(&spec, ours(), 10_000_000).unwrap();
    assert!(
        ours.goodput() > 5.0 * theirs.goodput(),
        "{ours:?} {theirs:?}"
    );
}

#[test]
fn a_run_repeats_to_the_microsecond() {
    let spec = LinkSpec::lossy(0.01);
    let once = cold(&spec, ours(), 5_000_000).unwrap();
    assert_eq!(once, cold(&spec, ours(), 5_000_000).unwrap());
    let other = LinkSpec { seed: 2, ..spec };
    assert_ne!(once, cold(&other, ours(), 5_000_000).unwrap());
}

#[test]
fn losses_in_bursts_are_borne_like_single_ones() {
    let spec = LinkSpec {
        burst: 8.0,
        ..LinkSpec::lossy(0.01)
    };
    let outcome = run("bursts", &spec, 50);
    assert!(outcome.goodput() >= 35.0, "{outcome:?}");
    assert!(outcome.resent_share() <= 0.06, "{outcome:?}");
}

/// One datagram in a hundred arrives 5 ms late. quinn declares it lost, because three later ones
/// came first, so it is sent again. Nothing else may be sent again.
#[test]
fn reordering_costs_its_share_only() {
    let spec = LinkSpec {
        reorder: (0.01, Duration::from_millis(5)),
        ..LinkSpec::long()
    };
    let outcome = run("reordering", &spec, 50);
    assert!(outcome.goodput() >= 38.0, "{outcome:?}");
    assert!(outcome.resent_share() <= 0.06, "{outcome:?}");
}

/// A queue of a twentieth of the round trip, which overflows before it can be noticed.
#[test]
fn a_short_queue_is_not_flooded() {
    for loss in [0.0, 0.01] {
        let spec = LinkSpec {
            queue: Duration::from_millis(5),
            ..LinkSpec::lossy(loss)
        };
        let outcome = run(&format!("short queue, loss {loss}"), &spec, 50);
        assert!(outcome.goodput() >= 30.0, "{outcome:?}");
        assert!(outcome.resent_share() <= loss + 0.08, "{outcome:?}");
    }
}

#[test]
fn a_fast_short_link_is_filled() {
    let spec = LinkSpec {
        rate: 1e9,
        delay: Duration::from_millis(1),
        queue: Duration::from_millis(5),
        ..LinkSpec::long()
    };
    let outcome = run("lan", &spec, 100);
    assert!(outcome.goodput() >= 700.0, "{outcome:?}");
    assert!(outcome.resent_share() <= 0.05, "{outcome:?}");
}

#[test]
fn a_blackout_of_five_seconds_costs_little_more() {
    let second = Duration::from_secs(1);
    let spec = LinkSpec {
        events: vec![
            (second * 3, Event::Forward(false)),
            (second * 3, Event::Backward(false)),
            (second * 8, Event::Forward(true)),
            (second * 8, Event::Backward(true)),
        ],
        ..LinkSpec::long()
    };
    let outcome = run("blackout", &spec, 50);
    // 50 MB take 9 s without the interruption; probes back off to some seconds while no answer
    // comes.
    assert!(outcome.took <= second * 18, "{outcome:?}");
    assert!(outcome.resent_share() <= 0.05, "{outcome:?}");
}

#[test]
fn a_rate_that_drops_to_a_tenth_is_followed() {
    let spec = LinkSpec {
        events: vec![(Duration::from_secs(3), Event::Rate(5e6))],
        ..LinkSpec::long()
    };
    let outcome = run("rate drop", &spec, 20);
    // About 16 MB pass in the first 3 s; the other 4 MB need 6.5 s at 5 Mbit/s.
    assert!(outcome.took <= Duration::from_secs(15), "{outcome:?}");
    // The bytes in flight at the drop, one window at 50 Mbit/s, are 3 %. Finding the new rate costs
    // more.
    assert!(outcome.resent_share() <= 0.15, "{outcome:?}");
}

#[test]
fn a_rate_that_rises_tenfold_is_found() {
    let spec = LinkSpec {
        rate: 5e6,
        events: vec![(Duration::from_secs(5), Event::Rate(50e6))],
        ..LinkSpec::long()
    };
    let outcome = run("rate rise", &spec, 50);
    // 47.5 MB at the new rate take 8.1 s; finding it may take 10 s.
    assert!(outcome.took <= Duration::from_secs(23), "{outcome:?}");
    assert!(outcome.resent_share() <= 0.05, "{outcome:?}");
}

/// The path's largest datagram shrinks below the discovered size. quinn notices the black hole and
/// falls back to 1200 bytes, and the transfer continues.
#[test]
fn a_shrinking_path_mtu_is_survived() {
    let spec = LinkSpec {
        events: vec![(Duration::from_secs(3), Event::Mtu(1300))],
        ..LinkSpec::long()
    };
    let outcome = run("mtu", &spec, 50);
    assert!(outcome.took <= Duration::from_secs(20), "{outcome:?}");
    assert!(outcome.resent_share() <= 0.10, "{outcome:?}");
}

/// Data passes and acknowledgements do not, first for a while, then forever.
#[test]
fn a_one_way_link_is_not_flooded() {
    let second = Duration::from_secs(1);
    let while_deaf = LinkSpec {
        events: vec![
            (second * 3, Event::Backward(false)),
            (second * 6, Event::Backward(true)),
        ],
        ..LinkSpec::long()
    };
    let outcome = run("deaf for 3 s", &while_deaf, 50);
    assert!(outcome.took <= second * 18, "{outcome:?}");
    assert!(outcome.resent_share() <= 0.08, "{outcome:?}");
    let for_ever = LinkSpec {
        events: vec![(second * 3, Event::Backward(false))],
        ..LinkSpec::long()
    };
    let sent = virtually(async {
        let bed = common::Bed::new(&for_ever);
        let flow = bed.flow(ours()).await;
        let error = flow.transfer(&bed, 50_000_000).await.unwrap_err();
        assert_eq!(error, quinn::ConnectionError::TimedOut);
        bed.counters().offered
    });
    // Three seconds of the link, at most two windows, and probes.
    assert!(sent <= 3 * 6_250_000 + 2 * 1_250_000, "{sent}");
}

#[test]
fn the_model_of_a_connection_can_be_read() {
    let model = virtually(async {
        let bed = common::Bed::new(&LinkSpec::lossy(0.01));
        let flow = bed.flow(ours()).await;
        flow.transfer(&bed, 20_000_000).await.unwrap();
        path_model(flow.connection.congestion_state()).unwrap()
    });
    assert!((4.5e6..6.5e6).contains(&model.bandwidth), "{model:?}");
    let min_rtt = model.min_rtt.unwrap();
    assert!(min_rtt.abs_diff(Duration::from_millis(101)) < Duration::from_millis(5));
    assert!((0.003..0.03).contains(&model.background_loss), "{model:?}");
    assert!(model.delivered >= 20_000_000);
    assert_ne!(model.phase, Phase::Startup);
    let none = virtually(async {
        let bed = common::Bed::new(&LinkSpec::long());
        let flow = bed.flow(cubic()).await;
        path_model(flow.connection.congestion_state())
    });
    assert_eq!(none, None);
}

/// Both controllers obey the limit, also if it changes during the transfer.
#[test]
fn a_limit_holds_and_can_be_changed_on_the_way() {
    for choice in Congestion::ALL {
        let limit = MaxRate::new(Limits {
            peer: Some(1_250_000),
            daemon: None,
        });
        let rates = virtually(async {
            let bed = common::Bed::new(&LinkSpec::long());
            let flow = std::sync::Arc::new(bed.flow(choice.factory(&limit)).await);
            let sender = std::sync::Arc::clone(&flow);
            tokio::spawn(async move { sender.push(1 << 40).await });
            let mut rates = Vec::new();
            for next in [Some(2_500_000), None, None] {
                tokio::time::sleep(Duration::from_secs(5)).await;
                let before = bed.counters().offered;
                tokio::time::sleep(Duration::from_secs(5)).await;
                rates.push((bed.counters().offered - before) as f64 * 8e-6 / 5.0);
                limit.set(Limits {
                    peer: None,
                    daemon: next,
                });
            }
            rates
        });
        println!("{choice}: {rates:?}");
        assert!((8.5..10.6).contains(&rates[0]), "{choice}: {rates:?}");
        assert!((17.0..21.2).contains(&rates[1]), "{choice}: {rates:?}");
        assert!(rates[2] > 35.0, "{choice}: {rates:?}");
    }
}
