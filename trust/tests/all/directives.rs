//! What the owner directs counts at all members, and no one else can direct anything.

use murmurate_protocol::wire::encode_value;
use murmurate_protocol::{Change, Digest, Directive, PeerId, RateFactor, Round};
use murmurate_trust::gate::Message;
use murmurate_trust::{Holder, Issuer, News, Register, Role, Roles, Run, RunKey, SignedDirective};
use proptest::prelude::*;

const NOW: u64 = 1_700_000_000;

fn key() -> RunKey {
    RunKey::from_seed("birds".to_owned(), [99; 32])
}

/// The member that tells the news.
fn teller() -> PeerId {
    PeerId::from_bytes([5; 32])
}

fn register() -> Register {
    Register::new(key().run())
}

fn pause(number: u32, from: u64) -> SignedDirective {
    key().direct(number, NOW, (Round(from), Change::Pause))
}

fn said(directives: Vec<SignedDirective>) -> News {
    News {
        directives,
        ..News::default()
    }
}

/// The register of a member that reads these messages.
fn heard(messages: impl IntoIterator<Item = Message>) -> Register {
    let mut register = register();
    for message in messages {
        let message = Message::decode(&message.encode()).expect("a message is read back");
        register.learn(message.news().expect("news"), &teller(), NOW);
    }
    register
}

#[test]
fn a_directive_of_the_owner_counts_at_every_member_and_over_restarts() {
    let mut here = register();
    assert!(!here.knows(&said(vec![pause(1, 41)]), &teller(), NOW));
    let learned = here.learn(said(vec![pause(1, 41)]), &teller(), NOW);
    assert!(!learned.slanders);
    assert!(here.knows(&said(vec![pause(1, 41)]), &teller(), NOW));
    assert!(!here.knows(&said(vec![pause(2, 41)]), &teller(), NOW));
    assert_eq!(learned.fresh.directives, [pause(1, 41)]);
    assert!(
        here.learn(said(vec![pause(1, 41)]), &teller(), NOW)
            .fresh
            .is_empty()
    );
    assert_eq!(
        here.directives().in_force(Round(41)).paused,
        Some(Round(41))
    );

    let there = heard(here.news().into_iter().flat_map(News::messages));
    assert_eq!(
        (there.directives(), there.digest()),
        (here.directives(), here.digest())
    );
    let restarted = Register::from_bytes(key().run(), &here.to_bytes()).unwrap();
    assert_eq!(restarted.directives(), here.directives());
    // A later one takes its place, and does not give it back.
    let resume = key().direct(2, NOW + 1, (Round(0), Change::Resume));
    here.learn(said(vec![resume.clone()]), &teller(), NOW);
    assert!(
        here.learn(said(vec![pause(1, 41)]), &teller(), NOW)
            .fresh
            .is_empty()
    );
    assert_eq!(
        here.directives().iter().collect::<Vec<_>>(),
        [resume.directive()]
    );
}

#[test]
fn what_the_run_key_has_not_signed_is_refused_and_a_slander() {
    let other = RunKey::from_seed("birds".to_owned(), [98; 32]);
    let admitter = RunKey::from_seed("birds".to_owned(), [7; 32]);
    let of_another_run = RunKey::from_seed("bees".to_owned(), [99; 32]);
    for key in [other, admitter, of_another_run] {
        let forged = key.direct(1, NOW, (Round(3), Change::Rounds(5)));
        let mut register = register();
        let learned = register.learn(said(vec![forged.clone()]), &teller(), NOW);
        assert!(learned.slanders && learned.fresh.is_empty());
        assert_eq!(register.direct(forged), None);
        assert_eq!(register.directives().iter().count(), 0);
    }
}

#[test]
fn a_member_with_the_role_admit_cannot_direct() {
    let (run, secret) = (key().run(), [7; 32]);
    let member = RunKey::from_seed("birds".to_owned(), secret);
    let owner = Issuer::Owner(key());
    let holder = Holder::Peer(member.public());
    let chain = owner.certify(&run, holder, Roles::of(Role::Admit), NOW, 1000);
    let mut register = register();
    register.admit(&chain, &member.public(), NOW).unwrap();
    // The member signs with the key that its certificate names, for the owner's run.
    let bytes = signed_by(&member, &run);
    let Ok(Message::Directives(forged)) = Message::decode(&bytes) else {
        panic!("the bytes are those of directives");
    };
    assert!(register.learn(said(forged), &teller(), NOW).slanders);
}

/// A directive for `run` with the signature of another key instead of the owner's.
fn signed_by(member: &RunKey, run: &Run) -> Vec<u8> {
    assert_ne!(member.public(), run.key);
    let theirs = member.direct(1, NOW, (Round(3), Change::Pause));
    Message::Directives(vec![theirs]).encode()
}

#[test]
fn in_an_open_run_nothing_is_directed() {
    let id = key().run().id;
    let (run, everyone) = Run::open(id);
    let mut register = Register::new(run);
    let directive = everyone.direct(1, NOW, (Round(3), Change::Pause));
    assert!(
        register
            .learn(said(vec![directive.clone()]), &teller(), NOW)
            .fresh
            .is_empty()
    );
    assert_eq!(register.direct(directive), None);
}

/// The bytes of a signed directive of each kind. A difference is a change of the wire and of the register's
/// file.
#[test]
fn the_bytes_of_directives_are_these() {
    let rate = Change::LearningRate(RateFactor::new(0.5).unwrap());
    let changes = [
        Change::Pause,
        Change::Resume,
        Change::Rounds(120),
        Change::InnerSteps(16),
        rate,
    ];
    let all = changes.map(|change| key().direct(3, NOW, (Round(41), change)));
    let bytes = Message::Directives(all.to_vec()).encode();
    assert_eq!(Digest::of(&bytes).to_hex(), GOLDEN);
    let plain = encode_value(all[0].directive());
    let text: String = plain.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(text, "0300000000f1536500000000290000000000000000000000");
}

const GOLDEN: &str = "5b0f83787cb8e0671cdb51a93c829a1524cb68be40fcf53ecfab25fd51a42fa2";

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        Just(Change::Pause),
        Just(Change::Resume),
        any::<u64>().prop_map(Change::Rounds),
        (1..u32::MAX).prop_map(Change::InnerSteps),
        (0.001..1000.0f64)
            .prop_map(|f| Change::LearningRate(RateFactor::new(f).expect("a factor"))),
    ]
}

proptest! {
    #[test]
    fn a_changed_bit_is_no_directive(
        (number, from, change, bit) in (1..9u32, any::<u64>(), change(), any::<prop::sample::Index>()),
    ) {
        let signed = key().direct(number, NOW, (Round(from), change));
        prop_assert!(signed.is_genuine(&key().run()));
        let mut bytes = encode_value(&signed);
        let bit = bit.index(8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
        let read = murmurate_protocol::wire::decode_value::<SignedDirective>(&bytes);
        prop_assert!(!read.is_ok_and(|read| read.is_genuine(&key().run())));
    }

    #[test]
    fn members_that_hear_the_same_in_another_order_know_the_same(
        all in prop::collection::vec((1..9u32, 0..9u64, change()), 0..20),
    ) {
        let sign = |(number, from, change): &(u32, u64, Change)| {
            key().direct(*number, NOW, (Round(*from), *change))
        };
        let one = heard([Message::Directives(all.iter().map(sign).collect())]);
        let each = all.iter().rev().map(|d| Message::Directives(vec![sign(d)]));
        let other = heard(each);
        prop_assert_eq!(one.directives(), other.directives());
        prop_assert_eq!(one.to_bytes(), other.to_bytes());
        let known: Vec<Directive> = one.directives().iter().copied().collect();
        let news = one.news().into_iter().flat_map(|news| news.directives);
        let told: Vec<Directive> = news.map(|d| *d.directive()).collect();
        prop_assert_eq!(told, known);
    }
}
