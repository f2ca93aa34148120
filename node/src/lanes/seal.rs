//! The lane that signs and checks statements, on a thread of its own: a signature takes longer than
//! the driver should.
//!
//! The file `votes` in the daemon's directory names the last round in which this daemon may have
//! voted. It is written, and synced, before a round's first signature leaves. A daemon
//! that restarts says so of all rounds up to that one. Where the file is gone or damaged, the last round
//! that `openings` names takes its place: a daemon votes only in rounds that it has begun.

use super::queue::Answer;
use crate::net::public_key;
use crate::store::{StoreError, append_private, write_atomically, write_private};
use libp2p::identity::Keypair;
use murmurate_protocol::limits::OPENINGS_MAX;
use murmurate_protocol::wire::Message;
use murmurate_protocol::{Base, Digest, PeerId, Round, RunId, SealMemory, Signature};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc::{Receiver, Sender};

/// Messages that wait for signatures or checks. A sender's share is bounded by the protocol.
pub(super) const SEALS_WAITING_MAX: usize = 16 * 1024;

#[derive(Debug)]
pub(super) enum SealWork {
    Sign(PeerId, Message),
    Check(PeerId, Message),
    /// Remember with which parameters a round began.
    Opened(Base),
}

/// Signs and checks.
#[derive(Debug)]
pub(crate) struct Sealer {
    key: Keypair,
    me: PeerId,
    run: RunId,
    votes: PathBuf,
    /// The last round of an earlier life.
    forgotten: Option<Round>,
    /// The last round that the file names.
    noted: Option<Round>,
    /// Set where the file was gone or damaged.
    repaired: bool,
    openings: Openings,
    memory: SealMemory,
}

impl Sealer {
    /// A sealer of the daemon in this directory. Repairs its file of votes if that is gone or damaged.
    ///
    /// # Errors
    /// If that file is damaged and no other says in which rounds the daemon may have voted, or if it cannot be
    /// written.
    pub(crate) fn new(
        key: Keypair,
        me: PeerId,
        run: RunId,
        dir: &Path,
    ) -> Result<Self, StoreError> {
        let votes = dir.join("votes");
        let openings = Openings::new(dir.join("openings"));
        let last_begun = openings.all().iter().map(|base| base.round).max();
        let text = std::fs::read_to_string(&votes);
        let gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
        let noted = text.as_ref().ok().and_then(|text| text.trim().parse().ok());
        let (forgotten, repaired) = match (noted.map(Round), last_begun) {
            (Some(noted), _) => (Some(noted), false),
            (None, Some(last)) => (Some(last), true),
            (None, None) if text.as_ref().is_err_and(gone) => (None, false),
            (None, None) => return Err(StoreError::Votes(votes)),
        };
        if let Some(round) = forgotten.filter(|_| repaired) {
            write_votes(&votes, round)?;
        }
        Ok(Self {
            key,
            me,
            run,
            votes,
            forgotten,
            noted: forgotten,
            repaired,
            openings,
            memory: SealMemory::default(),
        })
    }

    /// If its file of votes was gone or damaged: the round up to which this daemon votes in none.
    pub(crate) fn repaired(&self) -> Option<Round> {
        self.forgotten.filter(|_| self.repaired)
    }

    /// With which parameters rounds of earlier lives began, oldest first.
    pub(crate) fn opened(&self) -> Vec<Base> {
        self.openings.all()
    }

    /// Signs what this daemon says; `None` where the round cannot be noted, because then nothing may
    /// be signed.
    fn sign(&mut self, mut message: Message) -> Result<Message, String> {
        if let Some(round) = message.binds() {
            self.note(round)?;
        }
        if let Some(forgotten) = self.forgotten {
            message.confess(self.me, forgotten);
        }
        for signed in message.signed(&self.run, self.me) {
            if signed.by == self.me && signed.signature.is_blank() {
                let made = self.memory.made(&signed.statement);
                *signed.signature = match made {
                    Some(made) => made,
                    None => self.make(&signed.statement)?,
                };
            }
        }
        Ok(message)
    }

    fn make(&mut self, statement: &[u8]) -> Result<Signature, String> {
        let made = self.key.sign(statement);
        let made = made.map_err(|error| error.to_string())?;
        let bytes: [u8; 64] = made
            .try_into()
            .map_err(|_| "a signature that is not 64 bytes long".to_owned())?;
        let signature = Signature::from_bytes(bytes);
        self.memory.note_made(statement, signature);
        Ok(signature)
    }

    /// Notes a round before anything is signed in it.
    fn note(&mut self, round: Round) -> Result<(), String> {
        if self.noted.is_some_and(|noted| noted >= round) {
            return Ok(());
        }
        write_votes(&self.votes, round).map_err(|error| error.to_string())?;
        self.noted = Some(round);
        Ok(())
    }

    /// Checks every signature of a message.
    fn check(&mut self, from: PeerId, message: &mut Message) -> bool {
        let memory = &mut self.memory;
        message.signed(&self.run, from).iter().all(|signed| {
            let (by, statement, signature) = (signed.by, &signed.statement, &*signed.signature);
            if memory.is_right(by, statement, signature) {
                return true;
            }
            let right =
                public_key(&by).is_some_and(|key| key.verify(statement, &signature.to_bytes()));
            if right {
                memory.note_right(by, statement, signature);
            }
            right
        })
    }
}

fn write_votes(path: &Path, round: Round) -> Result<(), StoreError> {
    write_atomically(path, format!("{}\n", round.0).as_bytes())
}

/// Runs until the queue closes.
pub(super) fn run(mut sealer: Sealer, work: &mut Receiver<SealWork>, answers: &Sender<Answer>) {
    while let Some(work) = work.blocking_recv() {
        let answer = match work {
            SealWork::Opened(base) => match sealer.openings.add(base) {
                Ok(()) => continue,
                Err(error) => Answer::Note(format!("the file `openings` was not written: {error}")),
            },
            SealWork::Sign(to, message) => match sealer.sign(message) {
                Ok(message) => Answer::Signed(to, message),
                Err(error) => Answer::Note(format!("a statement was not signed: {error}")),
            },
            SealWork::Check(from, mut message) => {
                let right = sealer.check(from, &mut message);
                Answer::Checked(from, right.then_some(message))
            }
        };
        let _ = answers.blocking_send(answer);
    }
}

/// Lines of the file, beyond which the oldest ones are removed.
const LINES_MAX: usize = 2 * OPENINGS_MAX;

/// The file `openings` in the daemon's directory: with which parameters its last rounds began, a line
/// each. After a restart of the whole swarm the daemons confirm each other's states with it.
///
/// Lines are only added, and not synced: what a power cut takes, others remember. Once in a while the
/// file is written again without its oldest lines.
#[derive(Debug)]
pub(super) struct Openings {
    path: PathBuf,
    last: VecDeque<Base>,
    lines: usize,
    file: Option<File>,
    /// Set once the last line could not be written, which was reported.
    failed: bool,
}

impl Openings {
    /// Those of earlier lives. A file that cannot be read is an empty one: the others remember.
    pub(super) fn new(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let mut openings = Self {
            path,
            last: VecDeque::new(),
            lines: 0,
            file: None,
            failed: false,
        };
        for base in text.lines().filter_map(read) {
            openings.keep(base);
        }
        openings
    }

    /// The last ones, oldest first.
    pub(super) fn all(&self) -> Vec<Base> {
        self.last.iter().copied().collect()
    }

    fn keep(&mut self, base: Base) {
        if self.last.len() == OPENINGS_MAX {
            self.last.pop_front();
        }
        self.last.push_back(base);
    }

    /// Adds one.
    ///
    /// # Errors
    /// If the file cannot be written, once until it can be again.
    pub(super) fn add(&mut self, base: Base) -> Result<(), String> {
        let reported = self.failed;
        let added = self.write(base);
        self.failed = added.is_err();
        if self.failed {
            // Half a line may be there.
            self.file = None;
        }
        if reported { Ok(()) } else { added }
    }

    fn write(&mut self, base: Base) -> Result<(), String> {
        self.keep(base);
        match &mut self.file {
            Some(file) if self.lines < LINES_MAX => {
                self.lines += 1;
                let written = file.write_all(line(base).as_bytes());
                written.map_err(|error| error.to_string())
            }
            // The last line of an earlier life may have no end.
            _ => self.rewrite(),
        }
    }

    fn rewrite(&mut self) -> Result<(), String> {
        let text: String = self.last.iter().copied().map(line).collect();
        write_private(&self.path, text.as_bytes()).map_err(|error| error.to_string())?;
        self.lines = self.last.len();
        self.file = Some(append_private(&self.path).map_err(|error| error.to_string())?);
        Ok(())
    }
}

fn line(base: Base) -> String {
    format!("{} {}\n", base.round.0, base.anchor.to_hex())
}

fn read(line: &str) -> Option<Base> {
    let (round, anchor) = line.split_once(' ')?;
    Some(Base {
        round: Round(round.parse().ok()?),
        anchor: Digest::from_hex(anchor)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::wire::{
        AgreedMessage, ExchangeMessage, FormingMessage, FragmentMessage, Scoped, Seat,
        SignedMessage, Stated,
    };
    use murmurate_protocol::{Digest, FragmentId, GroupTag};

    fn sealer(dir: &std::path::Path) -> Sealer {
        let pair = libp2p::identity::ed25519::Keypair::generate();
        let me = PeerId::from_bytes(pair.public().to_bytes());
        let run = RunId::from_bytes([1; 32]);
        Sealer::new(pair.into(), me, run, dir).unwrap()
    }

    fn ready(me: PeerId, round: u64) -> Message {
        let seat = Seat {
            peer: me,
            weight: 8.0,
            life: 7,
            forgets: false,
            signature: Signature::BLANK,
        };
        let (round, anchor) = (Round(round), Digest::from_bytes([3; 32]));
        let ready = FormingMessage::SignedReady {
            round,
            anchor,
            proposes: true,
            seat,
        };
        Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Forming(ready)))
    }

    fn seat(message: &Message) -> Seat {
        match message {
            Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Forming(
                FormingMessage::SignedReady { seat, .. },
            ))) => *seat,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_signed_statement_passes_and_a_changed_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut sealer = sealer(dir.path());
        let me = sealer.me;
        let mut message = sealer.sign(ready(me, 4)).unwrap();
        assert!(sealer.check(me, &mut message));
        let other = PeerId::from_bytes([9; 32]);
        assert!(!sealer.check(other, &mut message.clone()));
        if let Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Forming(
            FormingMessage::SignedReady { seat, .. },
        ))) = &mut message
        {
            seat.weight = 9.0;
        }
        assert!(!sealer.check(me, &mut message));
    }

    fn vote(round: u64) -> Message {
        let vote = SignedMessage::Vote(Stated {
            ballot: 0,
            value: Digest::from_bytes([4; 32]),
            versions: Vec::new(),
            signature: Signature::BLANK,
        });
        let scoped = Scoped {
            round: Round(round),
            fragment: FragmentId(0),
            group: GroupTag::from_bits(6),
            body: FragmentMessage::Signed(vote),
        };
        Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Fragment(scoped)))
    }

    /// It remembers its votes. That it was ready may be said again.
    #[test]
    fn a_daemon_that_restarts_says_in_which_rounds_it_may_have_voted() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = sealer(dir.path());
        let signed = first.sign(ready(first.me, 5)).unwrap();
        assert!(!seat(&signed).forgets);
        let votes = dir.path().join("votes");
        assert!(!votes.exists());
        first.sign(vote(5)).unwrap();
        first.sign(ready(first.me, 6)).unwrap();
        assert_eq!(std::fs::read_to_string(votes).unwrap(), "5\n");
        let mut second = sealer(dir.path());
        for (round, forgets) in [(4, true), (5, true), (6, false)] {
            let signed = second.sign(ready(second.me, round)).unwrap();
            assert_eq!(seat(&signed).forgets, forgets, "{round}");
        }
    }

    fn begins(sealer: &mut Sealer, round: u64) {
        let anchor = Digest::from_bytes([3; 32]);
        let round = Round(round);
        sealer.openings.add(Base { round, anchor }).unwrap();
    }

    /// It would say of every round that it may have voted in it, and none would count it.
    #[test]
    fn votes_that_are_gone_are_those_of_all_rounds_that_were_begun() {
        for lost in [Some(""), Some("no number\n"), None] {
            let dir = tempfile::tempdir().unwrap();
            let votes = dir.path().join("votes");
            let mut first = sealer(dir.path());
            assert_eq!(first.repaired(), None);
            (4..7).for_each(|round| begins(&mut first, round));
            first.sign(vote(5)).unwrap();
            match lost {
                Some(text) => std::fs::write(&votes, text).unwrap(),
                None => std::fs::remove_file(&votes).unwrap(),
            }
            let mut second = sealer(dir.path());
            assert_eq!(second.repaired(), Some(Round(6)), "{lost:?}");
            assert_eq!(std::fs::read_to_string(&votes).unwrap(), "6\n");
            for (round, forgets) in [(6, true), (7, false)] {
                let signed = second.sign(ready(second.me, round)).unwrap();
                assert_eq!(seat(&signed).forgets, forgets, "{round}");
            }
            assert_eq!(sealer(dir.path()).repaired(), None, "it is whole again");
        }
    }

    #[test]
    fn damaged_votes_of_unknown_rounds_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let votes = dir.path().join("votes");
        std::fs::write(&votes, "").unwrap();
        let pair = libp2p::identity::ed25519::Keypair::generate();
        let me = PeerId::from_bytes(pair.public().to_bytes());
        let run = RunId::from_bytes([1; 32]);
        let refused = Sealer::new(pair.into(), me, run, dir.path()).unwrap_err();
        assert!(matches!(refused, StoreError::Votes(_)), "{refused}");
        assert_eq!(std::fs::read_to_string(&votes).unwrap(), "");
    }

    fn base(round: u64) -> Base {
        Base {
            round: Round(round),
            anchor: Digest::of(&round.to_le_bytes()),
        }
    }

    #[test]
    fn the_last_ones_come_back_and_the_file_stays_small() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("openings");
        let mut first = Openings::new(path.clone());
        let rounds = 3 * LINES_MAX as u64;
        for round in 0..rounds {
            first.add(base(round)).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.lines().count() <= LINES_MAX);
        let last: Vec<Base> = (rounds - OPENINGS_MAX as u64..rounds).map(base).collect();
        assert_eq!(Openings::new(path).all(), last);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_reported_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("away").join("openings");
        let mut openings = Openings::new(path.clone());
        assert!(openings.add(base(1)).is_err());
        assert!(openings.add(base(2)).is_ok());
        std::fs::create_dir(dir.path().join("away")).unwrap();
        openings.add(base(3)).unwrap();
        assert_eq!(Openings::new(path).all(), [base(1), base(2), base(3)]);
    }

    #[test]
    fn half_a_line_and_nonsense_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("openings");
        let whole = line(base(7));
        std::fs::write(&path, format!("\nx\n9 abc\n{whole}{}", &whole[..30])).unwrap();
        let mut openings = Openings::new(path.clone());
        assert_eq!(openings.all(), [base(7)]);
        openings.add(base(8)).unwrap();
        assert_eq!(Openings::new(path).all(), [base(7), base(8)]);
    }
}
