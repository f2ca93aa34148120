//! The memory of a run's members: the peers that they let in, revocations, bans, and the owner's directives.

use crate::chain::{Chain, Flaw};
use crate::directive::SignedDirective;
use crate::limits::{
    ADMITTER_MEMBERS_MAX, ADMITTER_REVOCATIONS_MAX, MEMBERS_MAX, NEWS_ITEMS_MAX, REVOCATIONS_MAX,
};
use crate::news::News;
use crate::revocation::Revocation;
use crate::roles::Roles;
use crate::run::Run;
use crate::seats::{Seat, Seats};
use murmurate_protocol::{Directive, Directives, PeerId, Proof};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Why a peer is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// Its certificates prove nothing.
    #[error("{0}")]
    Flaw(#[from] Flaw),
    /// It, its invite or anyone who let it in was revoked.
    #[error("its membership was revoked: ask the owner of the run for a new invite")]
    Revoked,
    /// As many peers as may have used its invite.
    #[error("its invite is used up (it lets {uses} machines in): ask for another one")]
    InviteUsed {
        /// How many peers may use it.
        uses: u32,
    },
    /// Its invite ended before the peer used it.
    #[error("its invite ended {ago_s} s ago: ask for another one")]
    InviteExpired {
        /// Seconds since the end.
        ago_s: u64,
    },
    /// There are too many members.
    #[error("the run has {MEMBERS_MAX} members already")]
    Full,
    /// It has lied.
    #[error("it is banned from the run, because it signed statements that contradict each other")]
    Banned,
    /// There are too many members whom its admitter let in.
    #[error(
        "the member that let it in, and those that it let in, have let in {ADMITTER_MEMBERS_MAX} machines already: ask \
         the owner of the run for an invite"
    )]
    AdmitterFull,
}

/// The members and revocations of a closed run that a member knows of. Of an open run nothing is
/// remembered.
///
/// Every member lets the first peers that it sees use an invite. What one member has seen spreads to all. Of
/// two machines that use one invite at the same moment at different members, all keep the one that used it
/// first by its certificate.
#[derive(Clone, Debug)]
pub struct Register {
    pub(crate) run: Run,
    pub(crate) seats: Seats,
    pub(crate) revocations: BTreeMap<PeerId, Revocation>,
    /// One proof for each banned member.
    pub(crate) bans: BTreeMap<PeerId, Proof>,
    /// Those of the owner that still count.
    pub(crate) directives: BTreeMap<Directive, SignedDirective>,
}

impl Register {
    /// An empty register.
    pub fn new(run: Run) -> Self {
        Self {
            run,
            seats: Seats::default(),
            revocations: BTreeMap::new(),
            bans: BTreeMap::new(),
            directives: BTreeMap::new(),
        }
    }

    /// The run.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Lets `peer` in by these certificates, or not. Returns its roles, and whether the register
    /// did not know these certificates.
    ///
    /// # Errors
    /// Why not.
    pub fn admit(
        &mut self,
        chain: &Chain,
        peer: &PeerId,
        now_s: u64,
    ) -> Result<(Roles, bool), Refusal> {
        let roles = chain.check(&self.run, peer, now_s)?;
        if self.run.open {
            return Ok((roles, false));
        }
        if self.bans.contains_key(peer) {
            return Err(Refusal::Banned);
        }
        if self.is_void(chain) {
            return Err(Refusal::Revoked);
        }
        let seat = (*peer, chain.issuer(&self.run));
        if let Some((key, uses, until_s)) = chain.invite()
            && self.seats.get(&seat).is_none()
        {
            if now_s >= until_s {
                let ago_s = now_s - until_s;
                return Err(Refusal::InviteExpired { ago_s });
            }
            if self.seats.by(key).count() >= uses as usize {
                return Err(Refusal::InviteUsed { uses });
            }
        }
        self.enter(seat, chain, now_s).map(|fresh| (roles, fresh))
    }

    /// Bans a member that has lied, for as long as the register is kept. Only known members are banned,
    /// so there are no more bans than members. Returns whether that is new; `None` if the proof proves
    /// nothing.
    pub fn ban(&mut self, proof: Proof) -> Option<bool> {
        if self.bans.contains_key(&proof.by()) {
            return Some(false);
        }
        if !self.run.proves(&proof) {
            return None;
        }
        let known = self.seats.of(&proof.by()).next().is_some() && self.bans.len() < MEMBERS_MAX;
        if known {
            self.bans.insert(proof.by(), proof);
        }
        Some(known)
    }

    /// Enters a directive of the owner. Returns whether it is new and counts; `None` if the owner has not
    /// signed it.
    pub fn direct(&mut self, directive: SignedDirective) -> Option<bool> {
        if !directive.is_genuine(&self.run) {
            return None;
        }
        let mut counting = self.directives();
        if counting.merge([*directive.directive()]).is_empty() {
            return Some(false);
        }
        self.directives.insert(*directive.directive(), directive);
        self.directives.retain(|known, _| counting.contains(known));
        Some(true)
    }

    /// The directives of the owner that count.
    pub fn directives(&self) -> Directives {
        let mut all = Directives::default();
        all.merge(self.directives.keys().copied());
        all
    }

    /// The same with the owner's signatures.
    pub fn signed_directives(&self) -> Vec<SignedDirective> {
        self.directives.values().cloned().collect()
    }

    /// Why a member is banned, if it is.
    pub fn banned(&self, peer: &PeerId) -> Option<&Proof> {
        self.bans.get(peer)
    }

    /// Gives a peer its seat, or renews it. Returns whether that changes something.
    pub(crate) fn enter(&mut self, seat: Seat, chain: &Chain, now_s: u64) -> Result<bool, Refusal> {
        match self.seats.get(&seat) {
            None => self.room_for(chain)?,
            Some(known) if known.until_s() <= now_s || chain.supersedes(known) => {}
            Some(_) => return Ok(false),
        }
        self.seats.insert(seat, chain.clone());
        Ok(true)
    }

    /// Room for one more member, in all and among those that its admitter answers for.
    fn room_for(&self, chain: &Chain) -> Result<(), Refusal> {
        if self.seats.len() >= MEMBERS_MAX {
            return Err(Refusal::Full);
        }
        let branch = chain.branch();
        if branch == chain.peer() {
            return Ok(());
        }
        let of_it = |known: &&Chain| known.branch() == branch && known.peer() != branch;
        let beside = self.seats.chains().filter(of_it);
        if beside.filter(|known| !self.is_void(known)).count() >= ADMITTER_MEMBERS_MAX {
            Err(Refusal::AdmitterFull)
        } else {
            Ok(())
        }
    }

    /// Enters a revocation. Returns whether it is new and counts; `None` if no one signed it that may revoke.
    /// The owner's takes the place of a member's, and of the oldest if there are too many.
    pub fn revoke(&mut self, revocation: Revocation) -> Option<bool> {
        let stronger = |known: &Revocation| known.by().is_some() && revocation.by().is_none();
        let known = self.revocations.get(&revocation.key);
        if known.is_some_and(|known| !stronger(known)) {
            return Some(false);
        }
        if !revocation.is_genuine(&self.run) {
            return None;
        }
        let branch = revocation.branch();
        let by_members = || self.revocations.values().filter(|r| r.by().is_some());
        let beside = by_members().filter(|known| known.branch() == branch);
        if branch.is_some() && beside.count() >= ADMITTER_REVOCATIONS_MAX {
            return Some(false);
        }
        if self.revocations.len() >= REVOCATIONS_MAX {
            let oldest = by_members().min_by_key(|known| known.at_s);
            let oldest = oldest.map(|known| known.key);
            match oldest.filter(|_| branch.is_none()) {
                Some(oldest) => drop(self.revocations.remove(&oldest)),
                None => return Some(false),
            }
        }
        self.revocations.insert(revocation.key, revocation);
        // A revoked admitter gives its places back.
        if self.seats.len() > MEMBERS_MAX / 2 {
            let mut seats = std::mem::take(&mut self.seats);
            seats.retain(|chain| !self.is_void(chain));
            self.seats = seats;
        }
        Some(true)
    }

    /// A key of the chain was revoked by one that may.
    pub(crate) fn is_void(&self, chain: &Chain) -> bool {
        let mut revoked = chain.keys().filter_map(|key| self.revocations.get(&key));
        revoked.any(|revocation| revocation.voids(chain))
    }

    /// A member that was let in may stay.
    ///
    /// # Errors
    /// Why it may not.
    pub fn stays(&self, chain: &Chain, now_s: u64) -> Result<(), Refusal> {
        let seat = Seats::seat_of(chain, &self.run);
        let seated = self.run.open || seat.is_some_and(|seat| self.seats.get(&seat).is_some());
        let uses = chain.invite().map_or(0, |(_, uses, _)| uses);
        match seat {
            Some((peer, _)) if self.bans.contains_key(&peer) => Err(Refusal::Banned),
            _ if self.is_void(chain) => Err(Refusal::Revoked),
            // Others used its invite before it.
            _ if !seated => Err(Refusal::InviteUsed { uses }),
            _ => Ok(chain.check_time(now_s)?),
        }
    }

    /// Membership of a peer. In an open run everyone is a member.
    pub fn is_member(&self, peer: &PeerId, now_s: u64) -> bool {
        self.run.open
            || self
                .seats
                .of(peer)
                .any(|chain| self.stays(chain, now_s).is_ok())
    }

    /// Forgets what has ended. Returns whether there was something. An invite that is valid still remembers
    /// who used it.
    pub fn tidy(&mut self, now_s: u64) -> bool {
        let before = (self.seats.len(), self.revocations.len());
        let mut seats = std::mem::take(&mut self.seats);
        let bans = &self.bans;
        seats.retain(|chain| {
            let invite_until = chain.invite().map_or(0, |(_, _, until_s)| until_s);
            let banned = chain.peer().is_some_and(|peer| bans.contains_key(&peer));
            chain.until_s().max(invite_until) > now_s || banned
        });
        // The clock of who revoked may have been wrong: as long as there are certificates, it counts.
        let named: BTreeSet<PeerId> = seats.chains().flat_map(Chain::keys).collect();
        self.seats = seats;
        self.revocations
            .retain(|key, revocation| revocation.until_s() > now_s || named.contains(key));
        before != (self.seats.len(), self.revocations.len())
    }

    /// All known members with their best certificates, and whether they were revoked.
    pub fn members(&self) -> impl Iterator<Item = (PeerId, &Chain, bool)> {
        let mut best: BTreeMap<PeerId, (bool, u64, &Chain)> = BTreeMap::new();
        for chain in self.chains() {
            let Some(peer) = chain.peer() else { continue };
            let (valid, until_s) = (!self.is_void(chain), chain.until_s());
            let known = best.get(&peer).map(|known| (known.0, known.1));
            if known.is_none_or(|known| known < (valid, until_s)) {
                best.insert(peer, (valid, until_s, chain));
            }
        }
        let all = best.into_iter();
        all.map(|(peer, (valid, _, chain))| (peer, chain, !valid))
    }

    /// All certificates of members: a member has one from everyone that let it in.
    pub fn chains(&self) -> impl Iterator<Item = &Chain> {
        self.seats.chains()
    }

    /// All known revocations.
    pub fn revocations(&self) -> impl Iterator<Item = &Revocation> {
        self.revocations.values()
    }

    /// All that it contains of those that were not revoked, in messages of bounded size.
    pub fn news(&self) -> Vec<News> {
        let members = self.chains().filter(|chain| !self.is_void(chain));
        let members: Vec<_> = members.cloned().collect();
        let revocations: Vec<_> = self.revocations.values().cloned().collect();
        let mut all = Vec::new();
        all.extend(revocations.chunks(NEWS_ITEMS_MAX).map(|some| News {
            revocations: some.to_vec(),
            ..News::default()
        }));
        all.extend(members.chunks(NEWS_ITEMS_MAX).map(|some| News {
            members: some.to_vec(),
            ..News::default()
        }));
        let bans: Vec<Proof> = self.bans.values().copied().collect();
        for some in bans.chunks(NEWS_ITEMS_MAX) {
            // An expired certificate is not learned again, and its holder needs no ban elsewhere.
            let known = some
                .iter()
                .filter_map(|ban| self.seats.of(&ban.by()).next());
            all.push(News {
                members: known.cloned().collect(),
                bans: some.to_vec(),
                ..News::default()
            });
        }
        if !self.directives.is_empty() {
            all.push(News {
                directives: self.signed_directives(),
                ..News::default()
            });
        }
        all
    }
}
