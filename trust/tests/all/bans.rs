//! Members that are proven to lie stay out.

use ed25519_dalek::SigningKey;
use ed25519_dalek::ed25519::signature::Signer;
use murmurate_protocol::{Digest, FragmentId, GroupTag, PeerId, Proof, Round, Saying, Signature};
use murmurate_trust::{Chain, Invite, Issuer, News, Refusal, Register, Run, RunKey, Terms};

const NOW: u64 = 1_700_000_000;

fn key() -> RunKey {
    RunKey::from_seed("birds".to_owned(), [99; 32])
}

fn peer(number: u8) -> PeerId {
    RunKey::from_seed(String::new(), [number; 32]).public()
}

/// A member with this number, and its certificates.
fn member(number: u8) -> (PeerId, Chain) {
    let issuer = Issuer::Owner(key());
    let terms = Terms {
        uses: 9,
        ..Terms::default()
    };
    let run = key().run();
    let invite = Invite::new((&run, "birds"), &issuer, terms, NOW, [7; 32]);
    let peer = peer(number);
    (peer, invite.accept(peer, NOW).expect("a valid invite"))
}

fn vote(value: &[u8]) -> Saying {
    Saying::Vote {
        ballot: 0,
        value: Digest::of(value),
    }
}

/// What the member with this number signs, twice.
fn proof(number: u8, run: &Run, values: [&[u8]; 2]) -> Proof {
    let place = (Round(3), FragmentId(0), GroupTag::from_bits(5));
    let blank = values.map(|value| (vote(value), Signature::BLANK));
    let blank = Proof::new(peer(number), place, blank).expect("two values");
    let secret = SigningKey::from_bytes(&[number; 32]);
    let signed = blank.statements(&run.id);
    let sign = |at: usize| Signature::from_bytes(secret.sign(&signed[at]).to_bytes());
    let said = [(vote(values[0]), sign(0)), (vote(values[1]), sign(1))];
    Proof::new(peer(number), place, said).expect("two values")
}

fn bans(proof: Proof) -> News {
    News {
        bans: vec![proof],
        ..News::default()
    }
}

#[test]
fn a_member_that_contradicts_itself_is_banned_everywhere_and_for_good() {
    let run = key().run();
    let (liar, chain) = member(1);
    let mut here = Register::new(run.clone());
    here.admit(&chain, &liar, NOW).unwrap();
    assert!(here.stays(&chain, NOW).is_ok());
    let proof = proof(1, &run, [b"a", b"b"]);
    let learned = here.learn(bans(proof), &peer(8), NOW);
    assert!(!learned.slanders);
    assert_eq!(learned.fresh.bans, [proof]);
    assert_eq!(here.stays(&chain, NOW), Err(Refusal::Banned));
    assert_eq!(here.admit(&chain, &liar, NOW), Err(Refusal::Banned));
    assert!(here.banned(&liar).unwrap().what().contains("round 3"));
    // A second time it is nothing new.
    assert!(here.learn(bans(proof), &peer(8), NOW).fresh.is_empty());

    // One that has never met the liar hears of both.
    let mut there = Register::new(run.clone());
    assert_eq!(
        there.learn(learned.fresh, &peer(8), NOW).fresh.bans,
        [proof]
    );
    assert_eq!(there.admit(&chain, &liar, NOW), Err(Refusal::Banned));
    let mut later = Register::new(run.clone());
    for news in here.news() {
        later.learn(news, &peer(8), NOW);
    }
    assert_eq!(later.digest(), here.digest());

    // After a restart too, and when its certificate has ended.
    let mut read = Register::from_bytes(run.clone(), &here.to_bytes()).unwrap();
    assert_eq!(read.digest(), here.digest());
    read.tidy(chain.until_s() + 1);
    assert_eq!(read.admit(&chain, &liar, NOW), Err(Refusal::Banned));
}

#[test]
fn a_false_proof_bans_no_one_and_is_noticed() {
    let run = key().run();
    let (honest, chain) = member(1);
    let mut register = Register::new(run.clone());
    register.admit(&chain, &honest, NOW).unwrap();
    // The signatures are another member's, or of another run, or damaged.
    let by_another = {
        let mut bytes = proof(2, &run, [b"a", b"b"]).to_bytes();
        bytes[..32].copy_from_slice(honest.as_bytes());
        Proof::from_bytes(&bytes).unwrap()
    };
    let elsewhere = RunKey::from_seed("fish".to_owned(), [98; 32]).run();
    let of_another_run = proof(1, &elsewhere, [b"a", b"b"]);
    let damaged = {
        let mut bytes = proof(1, &run, [b"a", b"b"]).to_bytes();
        *bytes.last_mut().unwrap() ^= 1;
        Proof::from_bytes(&bytes).unwrap()
    };
    for lie in [by_another, of_another_run, damaged] {
        let learned = register.learn(bans(lie), &peer(8), NOW);
        assert!(learned.slanders && learned.fresh.is_empty(), "{lie:?}");
        assert_eq!(register.ban(lie), None);
    }
    assert!(register.banned(&honest).is_none());
    assert!(register.stays(&chain, NOW).is_ok());
}

#[test]
fn only_members_are_banned() {
    let run = key().run();
    let mut register = Register::new(run.clone());
    // Anyone can make keys that contradict themselves.
    for number in 1..9 {
        let learned = register.learn(bans(proof(number, &run, [b"a", b"b"])), &peer(8), NOW);
        assert!(!learned.slanders && learned.fresh.is_empty());
        assert!(register.banned(&peer(number)).is_none());
    }
}
