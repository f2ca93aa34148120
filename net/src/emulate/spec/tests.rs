//! Texts of links that parse, that print as they were written, and that are refused.

use super::*;
use proptest::prelude::*;

#[test]
fn no_loss_needs_no_unit() {
    let plain: LinkSpec = "50mbit/100ms/0".parse().unwrap();
    assert_eq!(Ok(plain), "50mbit/100ms/0%".parse());
}

#[test]
fn the_usual_link() {
    let link: LinkSpec = "50mbit/100ms/1%".parse().unwrap();
    assert_eq!(link.up, Rate::from_bits(50_000_000));
    assert_eq!(
        (link.up, link.queue),
        (link.down, Duration::from_millis(100))
    );
    assert_eq!(
        (link.rtt, link.loss_ppm),
        (Duration::from_millis(100), 10_000)
    );
    assert_eq!(link.to_string(), "50mbit/100ms/1%");
}

#[test]
fn asymmetric_links_and_keys() {
    let text =
        "up=20mbit,down=100mbit/40ms/0.1%/queue=20ms,jitter=1.5ms,reorder=yes,burst=8,mtu=9000";
    let link: LinkSpec = text.parse().unwrap();
    assert_eq!(
        (link.up.bits(), link.down.bits()),
        (Some(20_000_000), Some(100_000_000))
    );
    assert_eq!(
        (link.burst, link.reorder, link.mtu),
        (Some(8.0), true, 9000)
    );
    assert_eq!(
        link.to_string(),
        "up=20mbit,down=100mbit/40ms/0.1%/queue=20ms/jitter=1500us/reorder=yes/burst=8/mtu=9000"
    );
    let other: LinkSpec = "100mbit/40ms/0.1%/up=20mbit".parse().unwrap();
    assert_eq!((other.up, other.down), (link.up, link.down));
}

#[test]
fn two_halves_make_the_path() {
    let link: LinkSpec = "up=20mbit,down=100mbit/100ms/1%/jitter=4ms"
        .parse()
        .unwrap();
    let (up, down) = (link.half(Direction::Up), link.half(Direction::Down));
    assert_eq!((up.rate, down.rate), (link.up, link.down));
    assert_eq!(up.delay + down.delay, link.rtt / 2);
    assert_eq!(up.jitter + down.jitter, link.jitter);
    let passes = (1.0 - up.loss) * (1.0 - down.loss);
    assert!((passes - 0.99).abs() < 1e-12);
    assert_eq!(link.path(Direction::Up).loss, 0.01);
}

/// Texts, and how their errors begin.
const REFUSED: &str = "
50mbit | link: `50mbit` is not a link; write RATE/RTT/LOSS
50mbit/100ms/1%/5 | link: `50mbit/100ms/1%/5` is not a link
fast/100ms/1% | RATE: `fast` is not a rate; write 1kbit to 100gbit
50mbit/100/1% | RTT: `100` is not a time; write 0ms to 60s
50mbit/61s/1% | RTT: `61s` is not a time
50mbit/100ms/1 | LOSS: `1` is not a loss; write 0% to 100%
50mbit/100ms/101% | LOSS: `101%` is not a loss
50mbit/100ms/1%/queu=5ms | key: `queu` is no key; there are queue, jitter
50mbit/100ms/1%/queue=5 | queue: `5` is not a time
50mbit/100ms/1%/up=5 | up: `5` is not a rate
50mbit/100ms/1%/mtu=1279 | mtu: `1279` is not the size of a packet
50mbit/100ms/1%/burst=0.5 | burst: `0.5` is not a mean count
50mbit/100ms/60%/burst=1 | burst: `1` is too short for this loss
50mbit/100ms/1%/reorder=maybe | reorder: `maybe` must be yes or no
50mbit/100ms/1%/queue=1ms,queue=2ms | queue: `2ms` is the second value
";

#[test]
fn errors_name_the_part_and_say_what_is_expected() {
    for row in REFUSED.trim().lines() {
        let (text, start) = row.split_once(" | ").expect("a row");
        let said = text.parse::<LinkSpec>().unwrap_err().to_string();
        assert!(said.starts_with(start), "{text}: {said}");
    }
}

fn any_rate() -> impl Strategy<Value = Rate> {
    prop_oneof![
        Just(Rate::UNLIMITED),
        (1_000u64..=100_000_000_000).prop_map(Rate::from_bits)
    ]
}

prop_compose! {
    fn any_link()(
        up in any_rate(), down in any_rate(),
        micros in prop::array::uniform3(0u64..=60_000_000),
        loss_ppm in 0u32..=1_000_000, reorder in any::<bool>(),
        burst in prop::option::of(1.0..10_000.0f64),
        mtu in 1280..=u16::MAX,
    ) -> LinkSpec {
        let [rtt, queue, jitter] = micros.map(Duration::from_micros);
        let loss = f64::from(loss_ppm) / 1e6;
        LinkSpec {
            up, down, rtt, loss_ppm, queue, jitter,
            reorder: reorder && !jitter.is_zero(),
            mtu,
            burst: burst.filter(|b| loss <= b / (b + 1.0)),
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back(link in any_link()) {
        prop_assert_eq!(link.to_string().parse::<LinkSpec>().unwrap(), link);
    }

    #[test]
    fn no_text_panics(text in "[0-9a-z%=/,.]{0,40}") {
        let _ = text.parse::<LinkSpec>();
    }
}
