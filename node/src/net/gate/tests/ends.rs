//! How memberships end: with their certificates, and for those that used an invite after others.

use super::*;
use murmurate_trust::{Holder, Overused, Role, Roles};

/// A member that used this invite at this time.
async fn invited_at(invite: &Invite, at_s: u64) -> Side {
    let keys = Keypair::generate_ed25519();
    let me = id_of(&keys);
    let chain = invite.accept(me, at_s).unwrap();
    let membership = Membership::new(me, chain, Register::new(invite.run()));
    started(listening(keys, membership, QUIC), TestStore::default()).await
}

async fn reports(side: &mut Side) -> Overused {
    side.until(|event| match event {
        NetEvent::Overused(overused) => Some(overused),
        _ => None,
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_used_an_invite_at_different_members_all_keep_the_first() {
    let key = birds();
    // Neither knows of the other yet.
    let mut a = owner(&key, QUIC).await;
    let mut b = owner(&key, QUIC).await;
    let once = invite(&key, 1);
    let mut late = invited_at(&once, now_s()).await;
    let mut first = invited_at(&once, now_s() - 9).await;
    for (member, new) in [(&mut a, &mut late), (&mut b, &mut first)] {
        new.net.dial(member.record.clone()).unwrap();
        member.up(new.id).await;
        new.up(member.id).await;
    }
    a.net.dial(b.record.clone()).unwrap();
    let expected = Overused {
        invite: once.revocable().unwrap(),
        uses: 1,
        out: late.id,
    };
    assert_eq!(reports(&mut a).await, expected);
    a.dismisses(late.id).await;
    late.net.dial(b.record.clone()).unwrap();
    let refused = GateError::Refused(Refusal::InviteUsed { uses: 1 });
    assert_eq!(turned_away(&mut late).await, refused);
    // The first one has the seat at both.
    first.net.dial(a.record.clone()).unwrap();
    a.up(first.id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_ends_with_its_certificate() {
    let key = birds();
    let mut a = owner(&key, QUIC).await;
    let keys = Keypair::generate_ed25519();
    let me = id_of(&keys);
    let issuer = Issuer::Owner(key.clone());
    // Long enough for the handshake on a busy machine.
    let (holder, roles) = (Holder::Peer(me), Roles::of(Role::Train));
    let chain = issuer.certify(&key.run(), holder, roles, now_s(), 8);
    let membership = Membership::new(me, chain, Register::new(key.run()));
    let config = listening(keys, membership, QUIC);
    let b = started(config, TestStore::default()).await;
    b.net.dial(a.record.clone()).unwrap();
    a.up(b.id).await;
    let since = Instant::now();
    a.dismisses(b.id).await;
    a.down(b.id).await;
    assert!(since.elapsed() < Duration::from_secs(60));
}
