//! Members that speak different versions of the wire.

use super::*;

/// A member that speaks these versions of the wire.
async fn speaking(key: &RunKey, wire: WireVersions, on: &str) -> Side {
    let config = NetConfig {
        wire,
        ..owners(key, on)
    };
    started(config, TestStore::default()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_members_use_the_newest_version_that_both_speak() {
    let key = birds();
    let before = WireVersions::of_ours(7, 7).unwrap();
    for (one, other, shared) in [
        (WireVersions::OURS, WireVersions::OURS, 8),
        (before, WireVersions::OURS, 7),
        (WireVersions::OURS, before, 7),
    ] {
        let mut a = speaking(&key, one, QUIC).await;
        let mut b = speaking(&key, other, QUIC).await;
        b.net.dial(a.record.clone()).unwrap();
        b.up(a.id).await;
        a.up(b.id).await;
        for (side, peer) in [(&a, b.id), (&b, a.id)] {
            let used = side.net.wire_with(&peer).map(WireVersion::number);
            assert_eq!(used, Some(shared));
            assert_eq!(side.net.links()[&peer].wire, side.net.wire_with(&peer));
        }
        // What version 7 has no word for is not said in it.
        let settings: wire::Message = MembershipMessage::Settings(Vec::new()).into();
        a.net.say(b.id, &settings).unwrap();
        let leaving = MembershipMessage::Goodbye(Reason::Leaving).into();
        a.net.say(b.id, &leaving).unwrap();
        let first = b.until(|event| match event {
            NetEvent::Frame { bytes, .. } => Some(bytes),
            _ => None,
        });
        let first = first.await;
        assert_eq!(u64::from(first[0]), u64::from(shared));
        let said = wire::decode_within(&first, other).unwrap();
        let expected = if shared == 8 { settings } else { leaving };
        assert_eq!(said, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_without_a_version_in_common_both_name_both_ranges() {
    let key = birds();
    for on in [QUIC, TCP] {
        let (old, new) = (WireVersions::OURS, WireVersions::claimed(9, 10));
        let mut a = speaking(&key, old, on).await;
        let mut b = speaking(&key, new, on).await;
        b.net.dial(a.record.clone()).unwrap();
        let told = [turned_away(&mut b).await, turned_away(&mut a).await];
        let named = |ours, theirs| GateError::OtherVersion { ours, theirs };
        assert_eq!(told, [named(new, old), named(old, new)]);
        let [at_b, at_a] = told.map(|error| error.to_string());
        assert!(
            at_b.starts_with(
                "it speaks wire versions 7 to 8, this daemon wire versions 9 to 10: upgrade murmurate on \
                 the other machine"
            ),
            "{at_b}"
        );
        assert!(at_a.contains("upgrade murmurate on this machine"), "{at_a}");
    }
}
