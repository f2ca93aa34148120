//! What a member or the owner can do for others: invite, admit, revoke, list; and what the owner directs,
//! signed with the run key.

use super::MembershipError;
use super::card::Card;
use super::key_file::read_key;
use super::roll::{find_orders, leave_order, read_register};
use crate::net::{is_loopback, now_s};
use crate::store::{Identity, random_bytes, read_addresses};
use libp2p::Multiaddr;
use murmurate_protocol::{Change, Directives, PeerId, Round};
use murmurate_trust::{
    Chain, Holder, Invite, Issuer, News, Role, Run, RunKey, SignedDirective, Terms,
};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Where a right to let others in comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// A daemon's directory.
    pub dir: PathBuf,
    /// The file of the run key; `None` uses what the directory has.
    pub key: Option<PathBuf>,
}

/// A right to let others in and to throw them out.
#[derive(Debug)]
pub struct Office {
    dir: PathBuf,
    name: String,
    run: Run,
    issuer: Issuer,
}

/// One member, for a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemberView {
    /// Its id.
    pub peer: String,
    /// Its role.
    pub role: String,
    /// When its certificate ends, in seconds since 1970.
    pub until_s: u64,
    /// Who let it in: the id of a member, or the key of an invite; `None` is the owner.
    pub by: Option<String>,
    /// Set where it came with an invite.
    pub invited: bool,
    /// Set once it was revoked.
    pub revoked: bool,
    /// Its proven lie in words that follow its name, if it is banned.
    pub banned: Option<String>,
}

fn key_of(source: &Source) -> Result<Option<RunKey>, MembershipError> {
    let own_key = source.dir.join("run.key");
    match &source.key {
        Some(path) => read_key(path).map(Some),
        None if own_key.exists() => read_key(&own_key).map(Some),
        None => Ok(None),
    }
}

impl Office {
    /// The right that a key or a directory gives.
    ///
    /// # Errors
    /// If it gives none.
    pub fn of(source: &Source) -> Result<Self, MembershipError> {
        let dir = source.dir.clone();
        if let Some(key) = key_of(source)? {
            return Ok(Self {
                dir,
                name: key.name().to_owned(),
                run: key.run(),
                issuer: Issuer::Owner(key),
            });
        }
        let card = Card::of(&dir)?;
        let roles = card.chain.roles();
        if !roles.is_some_and(|roles| roles.has(Role::Admit)) {
            return Err(MembershipError::NoOffice(dir));
        }
        let identity = Identity::load_or_create(&dir)?;
        let own = card.chain.check(&card.run, &identity.peer(), now_s());
        own.map_err(|flaw| MembershipError::Ended {
            path: Card::path(&dir),
            flaw,
        })?;
        Ok(Self {
            issuer: Issuer::Member {
                secret: identity.seed(),
                chain: card.chain,
            },
            dir,
            name: card.name,
            run: card.run,
        })
    }

    /// The run's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// An invite, with these addresses or else those of the directory's daemon.
    ///
    /// # Errors
    /// If an address is none.
    pub fn invite(&self, terms: Terms, addresses: &[String]) -> Result<Invite, MembershipError> {
        let run = (&self.run, self.name.as_str());
        let invite = Invite::new(run, &self.issuer, terms, now_s(), random_bytes());
        Ok(invite.with_addresses(self.addresses(addresses)?))
    }

    /// An invite that only one peer can use.
    ///
    /// # Errors
    /// If the text is no id, or an address is none.
    pub fn admit(
        &self,
        peer: &str,
        role: Role,
        addresses: &[String],
    ) -> Result<Invite, MembershipError> {
        let peer =
            PeerId::from_hex(peer).ok_or_else(|| MembershipError::NotAnId(peer.to_owned()))?;
        let run = (&self.run, self.name.as_str());
        let invite = Invite::personal(run, &self.issuer, peer, role, now_s());
        Ok(invite.with_addresses(self.addresses(addresses)?))
    }

    /// Revokes a member or an invite, by the line of the invite, an id or its first digits. The
    /// daemon of the directory passes it on. Returns the revoked key.
    ///
    /// # Errors
    /// If no member fits, or the order cannot be left.
    pub fn revoke(&self, whom: &str) -> Result<PeerId, MembershipError> {
        let key = self.key_of(whom)?;
        let revocation = self.issuer.revoke(&self.run, key, now_s());
        let mut register = read_register(&self.dir, &self.run)?;
        let of_key = |chain: &&Chain| chain.keys().any(|known| known == key);
        let chains: Vec<&Chain> = register.chains().filter(of_key).collect();
        if !chains.is_empty() && !chains.iter().any(|chain| revocation.voids(chain)) {
            return Err(MembershipError::NotYours {
                whom: key.to_hex(),
                dir: self.dir.clone(),
            });
        }
        register.revoke(revocation.clone());
        if !register.revocations().any(|known| known.key == key) {
            return Err(MembershipError::NoMoreRevocations(self.dir.clone()));
        }
        let news = News {
            revocations: vec![revocation],
            ..News::default()
        };
        leave_order(&self.dir, news)?;
        Ok(key)
    }

    fn key_of(&self, whom: &str) -> Result<PeerId, MembershipError> {
        if let Ok(invite) = super::invite_from(whom)
            && let Some(key) = invite.revocable()
        {
            return Ok(key);
        }
        if let Some(key) = PeerId::from_hex(whom) {
            return Ok(key);
        }
        let register = read_register(&self.dir, &self.run)?;
        let mut fit: Vec<PeerId> = register
            .chains()
            .flat_map(Chain::keys)
            .filter(|key| whom.len() >= 4 && key.to_hex().starts_with(whom))
            .collect();
        fit.sort_unstable();
        fit.dedup();
        match fit[..] {
            [key] => Ok(key),
            _ => Err(MembershipError::Ambiguous {
                text: whom.to_owned(),
                found: fit.len(),
            }),
        }
    }

    fn addresses(&self, given: &[String]) -> Result<Vec<Vec<u8>>, MembershipError> {
        if given.is_empty() {
            let own = read_addresses(&self.dir);
            let own = own.iter().filter_map(|text| text.parse::<Multiaddr>().ok());
            let (near, far): (Vec<_>, Vec<_>) = own.partition(is_loopback);
            // No one else can use a loopback address, except where there is no other.
            let useful = if far.is_empty() { near } else { far };
            return Ok(useful.iter().map(Multiaddr::to_vec).collect());
        }
        let read = given
            .iter()
            .map(|text| bytes_of(text).ok_or_else(|| MembershipError::Address(text.clone())));
        read.collect()
    }
}

fn bytes_of(text: &str) -> Option<Vec<u8>> {
    Some(text.parse::<Multiaddr>().ok()?.to_vec())
}

/// The run that a directory's daemon is a member of.
///
/// # Errors
/// If it is not the directory of a member.
pub fn run_of(dir: &Path) -> Result<Run, MembershipError> {
    Ok(Card::of(dir)?.run)
}

/// The members that a directory's daemon knows of, by id.
///
/// # Errors
/// If it is not the directory of a member.
pub fn members(dir: &Path) -> Result<Vec<MemberView>, MembershipError> {
    let card = Card::of(dir)?;
    let register = read_register(dir, &card.run)?;
    let own = card.chain.peer().map(|peer| (peer, &card.chain, false));
    let mut all: Vec<_> = register.members().collect();
    if let Some(own) = own.filter(|own| all.iter().all(|known| known.0 != own.0)) {
        all.push(own);
    }
    all.sort_by_key(|(peer, ..)| *peer);
    let view = |(peer, chain, revoked): (PeerId, &Chain, bool)| {
        let issuer = chain.certificates().len().checked_sub(2);
        let issuer = issuer.and_then(|at| chain.certificates().get(at));
        MemberView {
            peer: peer.to_hex(),
            role: chain
                .roles()
                .map(|roles| roles.to_string())
                .unwrap_or_default(),
            until_s: chain.until_s(),
            by: issuer.map(|issuer| issuer.holder.key().to_hex()),
            invited: issuer.is_some_and(|i| matches!(i.holder, Holder::Invite { .. })),
            revoked,
            banned: register.banned(&peer).map(|proof| proof.what()),
        }
    };
    Ok(all.into_iter().map(view).collect())
}

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
            return Err(MembershipError::Undirected(dir));
        };
        let Some(key) = key else {
            return Err(MembershipError::NotTheOwner(dir));
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
    let card = card.ok_or_else(|| MembershipError::Undirected(dir.to_owned()))?;
    Ok(read_register(dir, &card.run)?.directives())
}
