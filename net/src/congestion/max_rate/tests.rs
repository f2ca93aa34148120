//! Throttles and capped windows under paused tokio time.

use super::*;

fn limits(peer: Option<u64>, daemon: Option<u64>) -> Limits {
    Limits { peer, daemon }
}

async fn draw(throttle: Throttle, times: u32) -> Duration {
    let start = tokio::time::Instant::now();
    for _ in 0..times {
        throttle.acquire(100_000).await;
    }
    start.elapsed()
}

fn close(took: Duration, seconds: f64) -> bool {
    (took.as_secs_f64() - seconds).abs() < 0.05
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_nothing_waits() {
    assert_eq!(
        draw(MaxRate::default().throttle(), 1000).await,
        Duration::ZERO
    );
}

#[tokio::test(start_paused = true)]
async fn a_peer_is_held_to_its_rate() {
    let rate = MaxRate::new(limits(Some(1_000_000), None));
    // The first draw is lent, so eleven draws wait for the time of ten.
    assert!(close(draw(rate.throttle(), 11).await, 1.0));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let throttle = rate.throttle();
    throttle.acquire(100_000).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(
        close(draw(throttle, 11).await, 0.95),
        "an idle minute saves 50 ms"
    );
}

#[tokio::test(start_paused = true)]
async fn peers_have_buckets_of_their_own_and_share_the_daemons() {
    let rate = MaxRate::new(limits(Some(1_000_000), None));
    let (one, two) = tokio::join!(draw(rate.throttle(), 11), draw(rate.throttle(), 11));
    assert!(close(one, 1.0) && close(two, 1.0), "{one:?} {two:?}");
    let rate = MaxRate::new(limits(Some(1_000_000), Some(1_000_000)));
    let (one, two) = tokio::join!(draw(rate.throttle(), 11), draw(rate.throttle(), 11));
    assert!(close(one.max(two), 2.1), "{one:?} {two:?}");
}

#[tokio::test(start_paused = true)]
async fn a_changed_limit_counts_for_what_waits_already() {
    let rate = MaxRate::new(limits(Some(1), None));
    let waiting = tokio::spawn(draw(rate.throttle(), 3));
    tokio::time::sleep(Duration::from_secs(2)).await;
    rate.set(limits(None, None));
    assert!(close(waiting.await.unwrap(), 2.0));
    assert_eq!(rate.get(), Limits::default());
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_zero_is_slow_and_no_panic() {
    let rate = MaxRate::new(limits(Some(0), Some(0)));
    let waiting = tokio::time::timeout(Duration::from_secs(10), draw(rate.throttle(), 3));
    assert!(waiting.await.is_err());
}

#[test]
fn the_window_keeps_to_the_lower_limit_on_a_long_path() {
    let rate = MaxRate::new(limits(Some(2_000_000), Some(1_000_000)));
    let mut wide = quinn::congestion::NewRenoConfig::default();
    wide.initial_window(1 << 20);
    let mut controller = LimitedController {
        inner: Arc::new(wide).build(Instant::now(), 1200),
        limit: rate.clone(),
        mtu: 1200,
        smoothed_rtt: Some(Duration::from_millis(100)),
        least_rtt: None,
    };
    assert_eq!(controller.window(), 104_000);
    rate.set(limits(Some(1), None));
    assert_eq!(controller.window(), 12_000);
    // The throttle alone limits a short path.
    controller.smoothed_rtt = Some(SHORT_PATH - Duration::from_micros(1));
    assert_eq!(controller.window(), 1 << 20);
    controller.smoothed_rtt = Some(SHORT_PATH);
    assert_eq!(controller.window(), 12_000);
    // A window below the largest packet would send nothing any more.
    controller.on_mtu_update(65_487);
    assert_eq!(controller.window(), 654_870);
    rate.set(limits(None, None));
    assert_eq!(controller.window(), 1 << 20);
}

#[test]
fn the_shortest_round_trip_is_never_none_at_all() {
    let inner = Arc::new(quinn::congestion::NewRenoConfig::default());
    let limited = Arc::new(Limited::new(inner, MaxRate::default()));
    let built = limited.build(Instant::now(), 1200);
    let Ok(mut controller) = built.into_any().downcast::<LimitedController>() else {
        panic!("a limited controller is one");
    };
    controller.came_back_after(Duration::ZERO);
    assert_eq!(controller.least_rtt(), None);
    for micros in [9, 3, 0, 5] {
        controller.came_back_after(Duration::from_micros(micros));
    }
    let three = Some(Duration::from_micros(3));
    assert_eq!(crate::congestion::least_rtt(controller.clone_box()), three);
}
