//! Tests of who may read what.

use super::slices::tests::{plan, slice};
use super::*;
use murmurate_protocol::Part;

#[test]
fn only_accepted_peers_read_and_only_what_is_shared() {
    let dir = tempfile::tempdir().unwrap();
    let depot = Depot::in_dir(plan(), dir.path());
    let (peer, other) = (PeerId::from_bytes([1; 32]), PeerId::from_bytes([2; 32]));
    let named = |part| SliceId {
        part,
        ..slice(0, 0)
    };
    let reads = |to, slice: &SliceId| depot.may_read(to, Some(slice));
    let (sum, own) = (named(Part::Aggregate), named(Part::Contribution));
    assert!(
        !reads(peer, &sum) && !depot.may_read(peer, None),
        "no hello yet"
    );
    depot.set_greeted(peer, true);
    assert!(reads(peer, &sum) && depot.may_read(peer, None));
    assert!(!reads(peer, &own) && !reads(peer, &named(Part::Partial)));
    assert!(!reads(other, &sum));
    depot.set_greeted(peer, false);
    assert!(!reads(peer, &sum));
}
