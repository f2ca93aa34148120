//! The changes of a path after dials that fail, succeed or are refused.

use super::*;
use libp2p::identity;

fn reason(path: &Path) -> &str {
    match path {
        Path::Stream { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_failed_dial_is_tried_again_with_growing_pauses() {
    let (mut path, mut now) = (Path::Unknown, Instant::now());
    let (error, second) = (
        Error::HandshakeTimeout(Duration::from_secs(5)),
        Duration::from_secs(1),
    );
    assert!(
        path.advance(now) && !path.advance(now),
        "one dial at a time"
    );
    for pause in [5, 10, 20, 40, 80, 160, 300, 300] {
        path.dial_failed(&error, now);
        assert!(reason(&path).starts_with("no handshake within"));
        now += pause * second;
        assert!(!path.advance(now - second), "not before {pause} s");
        assert!(path.advance(now), "after {pause} s");
    }
}

#[test]
fn what_the_peer_does_not_speak_is_asked_for_seldom_and_a_missing_path_often() {
    let now = Instant::now();
    let mut path = Path::Dialing { failures: 0 };
    path.dial_failed(&Error::Unsupported("murmurate-bulk/1"), now);
    assert!(!path.advance(now + PAUSE_MAX - Duration::from_secs(1)));
    let mut path = Path::Dialing { failures: 0 };
    path.dial_failed(&Error::NoPath(identity::PeerId::random()), now);
    assert!(reason(&path).contains("TCP or a relay"));
    assert!(path.advance(now + PAUSE_NO_PATH));
    assert!(matches!(path, Path::Dialing { failures: 0 }));
}
