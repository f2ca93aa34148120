//! Our controller beside other traffic: a second flow of ours, a CUBIC flow, and small messages. In
//! virtual time.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::link::LinkSpec;
use common::{Bed, Factory, quantile, share, virtually};
use murmurate_net::congestion::{Congestion, MaxRate};

fn ours() -> Factory {
    Congestion::Bbr3.factory(&MaxRate::default())
}

fn cubic() -> Factory {
    Congestion::Cubic.factory(&MaxRate::default())
}

const FROM: Duration = Duration::from_secs(10);
const UNTIL: Duration = Duration::from_secs(40);

/// For every order and distance of the two starts.
#[test]
fn two_of_our_flows_share_within_sixty_to_forty() {
    for (offset, loss) in [
        (100, 0.0),
        (1000, 0.0),
        (3000, 0.0),
        (7000, 0.0),
        (3000, 0.01),
    ] {
        // One factory, as in a daemon, so that its flows do not probe together.
        let factory = ours();
        let both = [Arc::clone(&factory), factory];
        let spec = LinkSpec::lossy(loss);
        let [first, second] = share(&spec, both, Duration::from_millis(offset), FROM, UNTIL);
        println!("offset {offset} loss {loss}: {first:.2} {second:.2}");
        let total = first + second;
        let greater = first.max(second) / total;
        assert!(greater <= 0.6, "{offset} ms, {loss}: {first} {second}");
        assert!(total >= 40.0, "{offset} ms, {loss}: {first} {second}");
    }
}

/// CUBIC keeps at least 30 % of the link, and our flow does not starve.
#[test]
fn a_cubic_flow_beside_ours_keeps_its_part() {
    for (offset, ours_first) in [(500, true), (3000, true), (500, false), (3000, false)] {
        let both = if ours_first {
            [ours(), cubic()]
        } else {
            [cubic(), ours()]
        };
        let offset = Duration::from_millis(offset);
        let [first, second] = share(&LinkSpec::long(), both, offset, FROM, UNTIL);
        let (mine, theirs) = if ours_first {
            (first, second)
        } else {
            (second, first)
        };
        println!("{offset:?} ours first {ours_first}: ours {mine:.2}, cubic {theirs:.2}");
        assert!(
            theirs >= 15.0,
            "{offset:?}, ours first {ours_first}: {mine} {theirs}"
        );
        assert!(
            mine >= 8.0,
            "{offset:?}, ours first {ours_first}: {mine} {theirs}"
        );
    }
}

/// Small messages on the connection that sends 200 MB. The 99th percentile of their round trips is
/// at most twice the idle round trip.
#[test]
fn small_messages_pass_while_a_transfer_runs() {
    virtually(async {
        let bed = Bed::new(&LinkSpec::long());
        let flow = Arc::new(bed.flow(ours()).await);
        let every = Duration::from_millis(20);
        let idle_over = tokio::time::Instant::now() + Duration::from_secs(5);
        let mut idle = flow
            .ping(every, || tokio::time::Instant::now() >= idle_over)
            .await;
        let done = Arc::new(AtomicBool::new(false));
        let pinging = {
            let (flow, done) = (Arc::clone(&flow), Arc::clone(&done));
            tokio::spawn(async move { flow.ping(every, || done.load(Ordering::Relaxed)).await })
        };
        flow.transfer(&bed, 200_000_000).await.unwrap();
        done.store(true, Ordering::Relaxed);
        let mut busy = pinging.await.unwrap();
        let idle = quantile(&mut idle, 0.5);
        let (half, slow) = (quantile(&mut busy, 0.5), quantile(&mut busy, 0.99));
        println!(
            "idle {idle:?}, busy {half:?}, slowest hundredth {slow:?} of {}",
            busy.len()
        );
        assert!(busy.len() > 200);
        assert!(slow <= idle * 2, "{idle:?} {slow:?}");
    });
}
