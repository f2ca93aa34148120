//! Who gets in, and who does not.

use murmurate_protocol::{PeerId, RunId};
use murmurate_trust::limits::{CLOCK_SKEW_S, DAY_S, MEMBER_LIFE_S};
use murmurate_trust::{
    Chain, Flaw, Holder, Invite, InviteError, Issuer, Refusal, Register, Role, Roles, Run, RunKey,
    Terms,
};

const NOW: u64 = 1_700_000_000;

/// A peer and the secret half of its id.
fn peer(number: u8) -> ([u8; 32], PeerId) {
    let seed = [number; 32];
    (seed, RunKey::from_seed(String::new(), seed).public())
}

fn run() -> (RunKey, Run, Register) {
    let key = RunKey::from_seed("birds".to_owned(), [99; 32]);
    let run = key.run();
    (key, run.clone(), Register::new(run))
}

fn invite(key: &RunKey, terms: Terms, seed: u8) -> Invite {
    let owner = Issuer::Owner(key.clone());
    Invite::new((&key.run(), key.name()), &owner, terms, NOW, [seed; 32])
}

fn once(key: &RunKey, seed: u8) -> Invite {
    invite(key, Terms::default(), seed)
}

#[test]
fn an_invite_lets_in_the_peer_that_uses_it() {
    let (key, run, mut register) = run();
    let (_, friend) = peer(1);
    let line = once(&key, 7).with_addresses([vec![1, 2, 3]]).to_line();
    let invite = Invite::from_line(&line).unwrap();
    assert_eq!((invite.name(), invite.run()), ("birds", run.clone()));
    assert_eq!(invite.addresses(), [vec![1, 2, 3]]);
    let chain = invite.accept(friend, NOW + 5).unwrap();
    let (roles, fresh) = register.admit(&chain, &friend, NOW + 6).unwrap();
    assert!(roles.has(Role::Train) && !roles.has(Role::Admit) && fresh);
    // A second time is nothing new, also after the invite's end.
    let later = NOW + 8 * DAY_S;
    assert_eq!(register.admit(&chain, &friend, later), Ok((roles, false)));
    let ended = NOW + 5 + MEMBER_LIFE_S;
    assert_eq!(
        register.admit(&chain, &friend, ended),
        Err(Refusal::Flaw(Flaw::Expired { ago_s: 0 }))
    );
}

#[test]
fn an_invite_is_used_as_often_as_it_says_and_not_after_its_end() {
    let (key, _, mut register) = run();
    let terms = Terms {
        uses: 2,
        ..Terms::default()
    };
    let twice = invite(&key, terms, 7);
    for number in [1, 2] {
        let (_, friend) = peer(number);
        let chain = twice.accept(friend, NOW).unwrap();
        register.admit(&chain, &friend, NOW).unwrap();
    }
    let (_, third) = peer(3);
    let chain = twice.accept(third, NOW).unwrap();
    assert_eq!(
        register.admit(&chain, &third, NOW),
        Err(Refusal::InviteUsed { uses: 2 })
    );

    // Its holder could date a certificate back, so no one new gets in after the end.
    let (_, late) = peer(4);
    let chain = once(&key, 8).accept(late, NOW).unwrap();
    let end = NOW + 7 * DAY_S;
    assert_eq!(
        register.admit(&chain, &late, end + 9),
        Err(Refusal::InviteExpired { ago_s: 9 })
    );
    let refused = once(&key, 8).accept(late, end).unwrap_err();
    assert_eq!(refused, InviteError::Flaw(Flaw::Expired { ago_s: 0 }));
}

#[test]
fn certificates_of_others_prove_nothing() {
    let (key, run, mut register) = run();
    let (secret, friend) = peer(1);
    let (_, other) = peer(2);
    let chain = once(&key, 7).accept(friend, NOW).unwrap();
    let refused =
        |register: &mut Register, chain: &Chain, peer| match register.admit(chain, peer, NOW) {
            Err(Refusal::Flaw(flaw)) => flaw,
            other => panic!("{other:?}"),
        };
    assert_eq!(refused(&mut register, &chain, &other), Flaw::OtherPeer);
    // Of another run with the same name.
    let stranger = RunKey::from_seed("birds".to_owned(), [98; 32]);
    let foreign = once(&stranger, 7).accept(friend, NOW).unwrap();
    assert_eq!(refused(&mut register, &foreign, &friend), Flaw::Foreign);
    // The same certificates in a run with another name.
    let renamed = Run::closed("fish", run.key, *run.secret());
    assert_eq!(
        Register::new(renamed).admit(&chain, &friend, NOW),
        Err(Flaw::Foreign.into())
    );
    // A member without the role that lets another in.
    let issuer = Issuer::Member { secret, chain };
    let by_friend = issuer.certify(
        &run,
        Holder::Peer(other),
        Roles::of(Role::Train),
        NOW,
        DAY_S,
    );
    assert_eq!(refused(&mut register, &by_friend, &other), Flaw::Unentitled);
    // A clock that is a day ahead.
    let early = once(&key, 9).accept(friend, NOW + DAY_S).unwrap();
    assert_eq!(
        refused(&mut register, &early, &friend),
        Flaw::Early { ahead_s: DAY_S }
    );
    let soon = once(&key, 9).accept(friend, NOW + CLOCK_SKEW_S).unwrap();
    assert!(register.admit(&soon, &friend, NOW).is_ok());
    // A clock that is a day behind.
    let behind = once(&key, 9).accept(friend, NOW - DAY_S).unwrap_err();
    assert_eq!(behind, InviteError::Flaw(Flaw::Early { ahead_s: DAY_S }));
}

#[test]
fn no_changed_byte_of_a_chain_is_believed() {
    let (key, run, _) = run();
    let (_, friend) = peer(1);
    let chain = once(&key, 7).accept(friend, NOW).unwrap();
    let bytes = chain.to_bytes();
    assert_eq!(Chain::from_bytes(&bytes), Some(chain));
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        if let Some(chain) = Chain::from_bytes(&changed) {
            assert!(chain.check(&run, &friend, NOW).is_err(), "byte {at}");
        }
        assert_eq!(Chain::from_bytes(&bytes[..at]), None);
    }
}

#[test]
fn an_admitter_lets_others_in_and_takes_them_with_it() {
    let (key, run, mut register) = run();
    let owner = Issuer::Owner(key.clone());
    let (secret, admitter) = peer(1);
    let (_, friend) = peer(2);
    let (_, own) = peer(3);
    let terms = Terms {
        role: Role::Admit,
        ..Terms::default()
    };
    let chain = invite(&key, terms, 7).accept(admitter, NOW).unwrap();
    register.admit(&chain, &admitter, NOW).unwrap();
    register
        .admit(&key.certify_self(&run, own, NOW), &own, NOW)
        .unwrap();

    let issuer = Issuer::Member { secret, chain };
    let by_it = Invite::personal((&run, "birds"), &issuer, friend, Role::Train, NOW);
    let chain = by_it.accept(friend, NOW).unwrap();
    assert_eq!(
        by_it.accept(own, NOW),
        Err(InviteError::Flaw(Flaw::OtherPeer))
    );
    register.admit(&chain, &friend, NOW).unwrap();

    // It may not revoke those above it or beside it.
    assert_eq!(register.revoke(issuer.revoke(&run, own, NOW)), Some(true));
    assert!(register.members().all(|(_, _, revoked)| !revoked));
    // The owner may, and all that the revoked let in go too.
    assert_eq!(
        register.revoke(owner.revoke(&run, admitter, NOW)),
        Some(true)
    );
    let revoked: Vec<_> = register.members().filter(|m| m.2).map(|m| m.0).collect();
    assert_eq!(revoked.len(), 2);
    assert!(revoked.contains(&friend) && revoked.contains(&admitter));
    assert_eq!(register.admit(&chain, &friend, NOW), Err(Refusal::Revoked));
    assert_eq!(register.stays(&chain, NOW), Err(Refusal::Revoked));
}

#[test]
fn an_admitter_revokes_whom_it_let_in_and_its_invites() {
    let (key, run, mut register) = run();
    let (secret, admitter) = peer(1);
    let (_, friend) = peer(2);
    let terms = Terms {
        role: Role::Admit,
        ..Terms::default()
    };
    let chain = invite(&key, terms, 7).accept(admitter, NOW).unwrap();
    let issuer = Issuer::Member { secret, chain };
    let open = Invite::new((&run, "birds"), &issuer, Terms::default(), NOW, [8; 32]);
    let chain = open.accept(friend, NOW).unwrap();
    register.admit(&chain, &friend, NOW).unwrap();
    assert!(register.is_member(&friend, NOW) && !register.is_member(&peer(6).1, NOW));
    assert_eq!(
        register.revoke(issuer.revoke(&run, open.revocable().unwrap(), NOW)),
        Some(true)
    );
    assert!(!register.is_member(&friend, NOW));
    assert_eq!(register.admit(&chain, &friend, NOW), Err(Refusal::Revoked));
    // A member without the role revokes nothing.
    let (secret, plain) = peer(5);
    let chain = once(&key, 9).accept(plain, NOW).unwrap();
    let plain = Issuer::Member { secret, chain };
    assert_eq!(register.revoke(plain.revoke(&run, admitter, NOW)), None);
}

#[test]
fn an_open_run_lets_in_everyone_who_knows_its_name() {
    let (run, key) = Run::open(RunId::from_bytes([5; 32]));
    let (_, anybody) = peer(1);
    let mut register = Register::new(run.clone());
    let chain = key.certify_self(&run, anybody, NOW);
    assert!(register.admit(&chain, &anybody, NOW).is_ok());
    assert_eq!(register.members().count(), 0);
    let (other, _) = Run::open(RunId::from_bytes([6; 32]));
    assert!(Register::new(other).admit(&chain, &anybody, NOW).is_err());
}

#[test]
fn a_line_is_read_whole_or_not_at_all() {
    let (key, ..) = run();
    let line = once(&key, 7).to_line();
    assert!(line.len() < 700, "{} characters", line.len());
    let broken: String = line.chars().flat_map(|c| [c, '\n']).collect();
    assert!(Invite::from_line(&broken).is_ok());
    assert!(Invite::from_line(&format!("\u{feff}{line}\r\n")).is_ok());
    assert_eq!(Invite::from_line("hello"), Err(InviteError::NotOne));
    assert_eq!(
        Invite::from_line("murmurate-invite-9.abc"),
        Err(InviteError::Version)
    );
    for cut in 0..line.len() {
        assert!(Invite::from_line(&line[..cut]).is_err());
    }
    let changed = line.replace(&line[60..61], "_");
    assert_eq!(Invite::from_line(&changed), Err(InviteError::Damaged));
    let text = format!("{:?}", once(&key, 7));
    assert!(!text.contains("secret") && !text.contains("seed"), "{text}");
}

#[test]
fn observers_and_relays_get_their_role_and_no_more() {
    let (key, run, mut register) = run();
    let (secret, admitter) = peer(1);
    let admits = Terms {
        role: Role::Admit,
        ..Terms::default()
    };
    let chain = invite(&key, admits, 7).accept(admitter, NOW).unwrap();
    // A member that lets others in may give less than it has.
    let issuer = Issuer::Member { secret, chain };
    for (number, role) in [(2, Role::Observe), (3, Role::Relay)] {
        let (secret, guest) = peer(number);
        let terms = Terms {
            role,
            ..Terms::default()
        };
        let invite = Invite::new((&run, "birds"), &issuer, terms, NOW, [number; 32]);
        let chain = invite.accept(guest, NOW).unwrap();
        let (roles, _) = register.admit(&chain, &guest, NOW).unwrap();
        assert_eq!(roles.role(), Some(role));
        assert!(!roles.has(Role::Train) && !role.trains());
        assert_eq!(roles.to_string(), role.name());
        // It gives nothing to others, and itself nothing more.
        let guest = Issuer::Member { secret, chain };
        for (to, more) in [(4, role), (number, Role::Train)] {
            let (_, to) = peer(to);
            let chain = guest.certify(&run, Holder::Peer(to), Roles::of(more), NOW, DAY_S);
            let refused = Refusal::Flaw(Flaw::Unentitled);
            assert_eq!(register.admit(&chain, &to, NOW), Err(refused));
        }
    }
}
