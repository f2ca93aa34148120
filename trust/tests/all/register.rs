//! What a register remembers, how much, and what several of them agree on.

use murmurate_protocol::PeerId;
use murmurate_protocol::wire::{decode_value, encode_value};
use murmurate_trust::limits::{
    ADMITTER_MEMBERS_MAX, CLOCK_SKEW_S, DAY_S, LIFE_MAX_S, MEMBER_LIFE_S, REGISTER_BYTES_MAX,
};
use murmurate_trust::{
    Chain, Flaw, Holder, Invite, Issuer, News, Overused, Refusal, Register, Role, Roles, Run,
    RunKey, Terms, Unreadable,
};

const NOW: u64 = 1_700_000_000;

/// The end of an invite with the usual terms.
const END: u64 = NOW + 7 * DAY_S;

fn key() -> RunKey {
    RunKey::from_seed("birds".to_owned(), [99; 32])
}

fn run() -> Run {
    key().run()
}

/// The secret half of a peer's id.
fn secret(number: u16) -> [u8; 32] {
    let [low, high] = number.to_le_bytes();
    let mut secret = [7; 32];
    secret[..2].copy_from_slice(&[low, high]);
    secret
}

fn peer(number: u16) -> PeerId {
    RunKey::from_seed(String::new(), secret(number)).public()
}

fn invite(terms: Terms) -> Invite {
    let owner = Issuer::Owner(key());
    let seed = if terms.role == Role::Admit { 3 } else { 1 };
    Invite::new((&run(), "birds"), &owner, terms, NOW, [seed; 32])
}

fn admits() -> Terms {
    Terms {
        role: Role::Admit,
        ..Terms::default()
    }
}

/// A register that knows a member with the role `admit`, which can let others in.
fn with_admitter(number: u16) -> (Register, Issuer) {
    let mut register = Register::new(run());
    let chain = invite(admits()).accept(peer(number), NOW);
    let chain = chain.expect("an invite that is valid");
    let admitted = register.admit(&chain, &peer(number), NOW);
    admitted.expect("a first member");
    let secret = secret(number);
    (register, Issuer::Member { secret, chain })
}

fn says(members: Vec<Chain>) -> News {
    News {
        members,
        ..News::default()
    }
}

fn tell(to: &mut Register, from: &Register, by: PeerId, now_s: u64) -> Vec<Overused> {
    let all = from.news().into_iter();
    all.flat_map(|news| to.learn(news, &by, now_s).overused)
        .collect()
}

#[test]
fn an_invite_that_is_used_at_three_members_at_once_lets_the_same_one_in_everywhere() {
    let once = invite(Terms::default());
    let chains = [2, 1, 0].map(|n: u16| once.accept(peer(n), NOW + u64::from(n)).unwrap());
    // Whatever they hear first, from whom.
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut all = chains.each_ref().map(|chain| {
            let mut register = Register::new(run());
            register
                .admit(chain, &chain.peer().unwrap(), NOW + 5)
                .unwrap();
            register
        });
        let mut reported = Vec::new();
        for _ in 0..2 {
            for (to, from) in order.iter().flat_map(|to| order.map(|from| (*to, from))) {
                let from = all[from].clone();
                reported.extend(tell(&mut all[to], &from, peer(9), NOW + 5));
            }
        }
        for register in &all {
            assert_eq!(register.digest(), all[0].digest());
            let members: Vec<_> = register.members().map(|(peer, ..)| peer).collect();
            assert_eq!(members, [peer(0)]);
            let why = register.stays(&chains[0], NOW + 5);
            assert_eq!(why, Err(Refusal::InviteUsed { uses: 1 }));
            assert!(register.stays(&chains[2], NOW + 5).is_ok());
        }
        for out in [1, 2] {
            let overused = reported.iter().find(|over| over.out == peer(out));
            let overused = overused.expect("each that is out is reported");
            assert_eq!(Some(overused.invite), once.revocable());
            assert_eq!(overused.uses, 1);
        }
        assert_eq!(
            all[1].admit(&chains[0], &peer(2), NOW + 6),
            Err(Refusal::InviteUsed { uses: 1 })
        );
    }
}

#[test]
fn what_one_member_saw_counts_for_the_others() {
    let once = invite(Terms::default());
    let (mut here, mut there) = (Register::new(run()), Register::new(run()));
    here.admit(&once.accept(peer(1), NOW).unwrap(), &peer(1), NOW)
        .unwrap();
    assert_ne!(here.digest(), there.digest());
    assert_eq!(tell(&mut there, &here, peer(9), NOW), []);
    assert_eq!(here.digest(), there.digest());
    let stolen = once.accept(peer(2), NOW + 1).unwrap();
    assert_eq!(
        there.admit(&stolen, &peer(2), NOW + 1),
        Err(Refusal::InviteUsed { uses: 1 })
    );
    let lie = there.learn(says(vec![stolen]), &peer(9), NOW + 1);
    assert!(lie.fresh.is_empty() && lie.overused.len() == 1);
}

#[test]
fn a_member_cannot_help_anybody_to_enter_with_an_invite_that_has_ended() {
    let late = invite(Terms::default()).accept(peer(1), NOW).unwrap();
    let (mut register, admitter) = with_admitter(8);
    let other = Issuer::Owner(key());
    let other = Invite::personal((&run(), "birds"), &other, peer(9), Role::Train, NOW);
    let chain = other.accept(peer(9), NOW).unwrap();
    register.admit(&chain, &peer(9), NOW).unwrap();

    // The clock of a member may be behind by this.
    let now = END + CLOCK_SKEW_S;
    let mut before = register.clone();
    let learned = before.learn(says(vec![late.clone()]), &peer(9), now - 1);
    assert_eq!(learned.fresh.members, std::slice::from_ref(&late));
    for by in [9, 7] {
        let learned = register.learn(says(vec![late.clone()]), &peer(by), now);
        assert!(learned.fresh.is_empty() && !learned.slanders);
    }
    assert!(!register.is_member(&peer(1), now));
    // One that may let others in needs no invite to do so.
    let by = match &admitter {
        Issuer::Member { chain, .. } => chain.peer().unwrap(),
        Issuer::Owner(_) => unreachable!(),
    };
    // The usual life of its invite has ended too, and it is a member.
    let learned = register.learn(says(vec![late.clone()]), &by, now);
    assert_eq!(learned.fresh.members, [late]);
}

#[test]
fn the_invited_does_not_choose_how_long_it_stays() {
    let chain = invite(Terms::default()).accept(peer(1), NOW).unwrap();
    let only_the_invite = encode_value(&chain.certificates()[..1].to_vec());
    let holder = Issuer::Member {
        secret: [1; 32],
        chain: decode_value(&only_the_invite).unwrap(),
    };
    let signs = |life_s| {
        let (holds, roles) = (Holder::Peer(peer(1)), Roles::of(Role::Train));
        holder.certify(&run(), holds, roles, NOW, life_s)
    };
    assert!(signs(MEMBER_LIFE_S).check(&run(), &peer(1), NOW).is_ok());
    for life_s in [MEMBER_LIFE_S + 1, LIFE_MAX_S] {
        let refused = signs(life_s).check(&run(), &peer(1), NOW);
        assert_eq!(refused, Err(Flaw::Overlong));
        let mut register = Register::new(run());
        let learned = register.learn(says(vec![signs(life_s)]), &peer(9), NOW);
        assert!(learned.slanders && learned.fresh.is_empty());
    }
    // The owner gives a year.
    let owner = Issuer::Owner(key());
    let (holds, roles) = (Holder::Peer(peer(1)), Roles::of(Role::Train));
    let year = owner.certify(&run(), holds, roles, NOW, LIFE_MAX_S);
    assert!(year.check(&run(), &peer(1), NOW + 300 * DAY_S).is_ok());
}

#[test]
fn an_admitter_that_invents_members_keeps_no_one_else_out_and_is_undone_by_its_revocation() {
    let (mut register, admitter) = with_admitter(8);
    let let_in = |register: &mut Register, number: u16| {
        let (holder, roles) = (Holder::Peer(peer(number)), Roles::of(Role::Train));
        let chain = admitter.certify(&run(), holder, roles, NOW, DAY_S);
        register.admit(&chain, &peer(number), NOW)
    };
    let max = u16::try_from(ADMITTER_MEMBERS_MAX).unwrap();
    for number in 100..100 + max {
        let_in(&mut register, number).unwrap();
    }
    let full = Err(Refusal::AdmitterFull);
    assert_eq!(let_in(&mut register, 99).map(drop), full);
    let learned = register.learn(
        says(vec![admitter.certify(
            &run(),
            Holder::Peer(peer(99)),
            Roles::of(Role::Train),
            NOW,
            DAY_S,
        )]),
        &peer(9),
        NOW,
    );
    assert!(learned.fresh.is_empty());
    // Others come in as before.
    let own = key().certify_self(&run(), peer(1), NOW);
    register.admit(&own, &peer(1), NOW).unwrap();
    // What it let in goes with it, and a member that starts now hears of none of them.
    let revocation = Issuer::Owner(key()).revoke(&run(), peer(8), NOW);
    assert_eq!(register.revoke(revocation), Some(true));
    let mut newcomer = Register::new(run());
    tell(&mut newcomer, &register, peer(1), NOW);
    let members: Vec<_> = newcomer.members().map(|(peer, ..)| peer).collect();
    assert_eq!(members, [peer(1)]);
    assert_eq!(newcomer.digest(), register.digest());
}

#[test]
fn a_register_of_thousands_is_read_as_it_was_written() {
    let terms = Terms {
        uses: u32::MAX,
        ..Terms::default()
    };
    let (mut register, all) = (Register::new(run()), invite(terms));
    for number in 0..3200 {
        let chain = all.accept(peer(number), NOW).unwrap();
        register.admit(&chain, &peer(number), NOW).unwrap();
    }
    let revocation = Issuer::Owner(key()).revoke(&run(), peer(7), NOW);
    assert_eq!(register.revoke(revocation), Some(true));
    let bytes = register.to_bytes();
    assert!(bytes.len() < REGISTER_BYTES_MAX, "{}", bytes.len());
    assert!(bytes.len() > 3200 * 256, "{}", bytes.len());
    let read = Register::from_bytes(run(), &bytes).unwrap();
    assert_eq!(read.to_bytes(), bytes);
    assert!(!read.is_member(&peer(7), NOW) && read.is_member(&peer(8), NOW));
}

#[test]
fn no_changed_byte_of_a_register_is_believed() {
    let (mut register, _) = with_admitter(1);
    register.revoke(Issuer::Owner(key()).revoke(&run(), peer(2), NOW));
    let bytes = register.to_bytes();
    let reads = |bytes: &[u8]| Register::from_bytes(run(), bytes).map(|r| r.digest());
    assert_eq!(reads(&bytes), Ok(register.digest()));
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(reads(&changed).is_err(), "byte {at}");
        assert_eq!(reads(&bytes[..at]), Err(Unreadable::Damaged));
    }
    // A file system that lost what was written leaves zeros.
    for length in [0, 1, 24, 32, bytes.len()] {
        assert_eq!(reads(&vec![0; length]), Err(Unreadable::Damaged));
    }
    let mut newer = bytes.clone();
    newer["murmurate register\n".len()] += 1;
    assert_eq!(reads(&newer), Err(Unreadable::Newer));
    let long = vec![0; REGISTER_BYTES_MAX + 1];
    let bytes = long.len() as u64;
    assert_eq!(reads(&long), Err(Unreadable::TooLong { bytes }));
}

#[test]
fn what_has_ended_is_forgotten_and_who_used_a_valid_invite_is_not() {
    let (mut register, _) = with_admitter(1);
    let long = Terms {
        life_s: 300 * DAY_S,
        ..Terms::default()
    };
    let owner = Issuer::Owner(key());
    let long = Invite::new((&run(), "birds"), &owner, long, NOW, [2; 32]);
    let chain = long.accept(peer(2), NOW).unwrap();
    register.admit(&chain, &peer(2), NOW).unwrap();
    // The clock of who revoked it was years behind.
    register.revoke(owner.revoke(&run(), peer(1), 1000));
    assert!(!register.tidy(NOW + DAY_S));
    assert!(!register.is_member(&peer(1), NOW + DAY_S));

    let now = NOW + MEMBER_LIFE_S;
    assert!(register.tidy(now));
    assert_eq!(register.revocations().count(), 0);
    assert!(!register.is_member(&peer(2), now));
    let thief = long.accept(peer(3), now).unwrap();
    assert_eq!(
        register.admit(&thief, &peer(3), now),
        Err(Refusal::InviteUsed { uses: 1 })
    );
    // Who used it renews its certificate with it.
    let again = long.accept(peer(2), now).unwrap();
    register.admit(&again, &peer(2), now).unwrap();
    assert!(register.is_member(&peer(2), now));
    assert!(register.tidy(NOW + 400 * DAY_S));
    assert_eq!(register.members().count(), 0);
}

#[test]
fn forged_news_are_slanders_and_end_the_reading() {
    let (mut register, admitter) = with_admitter(8);
    let foreign = RunKey::from_seed("fish".to_owned(), [98; 32]);
    let forged = foreign.certify_self(&foreign.run(), peer(1), NOW);
    let good = key().certify_self(&run(), peer(2), NOW);
    let learned = register.learn(says(vec![forged, good.clone()]), &peer(9), NOW);
    assert!(learned.slanders && learned.fresh.is_empty());
    // A plain member revokes no one.
    let chain = good.clone();
    let plain = Invite::personal((&run(), "birds"), &admitter, peer(3), Role::Train, NOW);
    let plain = Issuer::Member {
        secret: secret(3),
        chain: plain.accept(peer(3), NOW).unwrap(),
    };
    let news = News {
        revocations: vec![plain.revoke(&run(), peer(2), NOW)],
        ..says(vec![chain])
    };
    assert!(register.learn(news, &peer(9), NOW).slanders);
    // Clocks differ, and certificates end: that is no one's lie.
    for now in [NOW - DAY_S, NOW + MEMBER_LIFE_S] {
        let learned = register.learn(says(vec![good.clone()]), &peer(9), now);
        assert!(!learned.slanders && learned.fresh.is_empty());
    }
}
