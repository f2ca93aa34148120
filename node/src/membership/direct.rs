//! What the owner directs, signed with the run key.

use super::MembershipError;
use super::card::Card;
use super::issue::{Source, key_of};
use super::roll::{find_orders, leave_order, read_register};
use crate::net::now_s;
use murmurate_protocol::{Change, Directives, Round};
use murmurate_trust::{News, Run, RunKey, SignedDirective};
use std::path::{Path, PathBuf};

/// The right to direct a run, which only its key gives.
#[derive(Debug)]
pub struct Owner {
    dir: PathBuf,
    run: Run,
    key: RunKey,
}

impl Owner {
    /// The right that a key gives in the directory of a member.
    ///
    /// # Errors
    /// If there is no key, it is of another run, or the run is open.
    pub fn of(source: &Source) -> Result<Self, MembershipError> {
        let dir = source.dir.clone();
        let key = key_of(source)?;
        let Some(card) = Card::read(&dir)? else {
            return Err(MembershipError::Undirected { dir });
        };
        let Some(key) = key else {
            return Err(MembershipError::NotTheOwner { dir });
        };
        let run = key.run();
        if card.run != run {
            return Err(MembershipError::OtherRun {
                dir,
                name: card.name,
                given: "key",
            });
        }
        Ok(Self { dir, run, key })
    }

    /// Signs a change that is in force from a round on, and leaves it for the daemon of the directory, which
    /// tells the others.
    ///
    /// # Errors
    /// If it cannot be left.
    pub fn direct(&self, from: Round, change: Change) -> Result<SignedDirective, MembershipError> {
        let number = self.known()?.next_number();
        let directive = self.key.direct(number, now_s(), (from, change));
        let news = News {
            directives: vec![directive.clone()],
            ..News::default()
        };
        leave_order(&self.dir, news)?;
        Ok(directive)
    }

    /// The directives that the directory knows, those among them that wait for its daemon.
    fn known(&self) -> Result<Directives, MembershipError> {
        // In this order: the daemon removes an order after it has written the register.
        let left = find_orders(&self.dir).into_iter();
        let mut register = read_register(&self.dir, &self.run)?;
        for directive in left.flat_map(|(_, news)| news.directives) {
            register.direct(directive);
        }
        Ok(register.directives())
    }
}

/// The directives that the daemon of a directory knew when it last wrote its register.
///
/// # Errors
/// If it is not the directory of a member of a closed run.
pub fn directives(dir: &Path) -> Result<Directives, MembershipError> {
    let card = Card::read(dir)?;
    let card = card.ok_or_else(|| MembershipError::Undirected {
        dir: dir.to_owned(),
    })?;
    Ok(read_register(dir, &card.run)?.directives())
}
