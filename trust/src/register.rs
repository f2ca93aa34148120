//! What the members of a run remember: whom they let in, what was revoked, who lied, and what the owner
//! directs.

use crate::ban;
use crate::chain::{Chain, Flaw};
use crate::directive::SignedDirective;
use crate::limits::{MEMBERS_MAX, NEWS_ITEMS_MAX, REVOCATIONS_MAX};
use crate::news::{Learned, News};
use crate::revocation::Revocation;
use crate::roles::Roles;
use crate::run::Run;
use murmurate_protocol::limits::DIRECTIVES_MAX;
use murmurate_protocol::{Digest, Directive, Directives, PeerId, Proof};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
}

/// The members and revocations of a closed run that a member knows of. Of an open run nothing is
/// remembered.
///
/// Every member lets the first peers that it sees use an invite. What one member has seen spreads
/// to all, so of two machines that use one invite at the same moment, each may get in at different
/// members.
#[derive(Clone, Debug)]
pub struct Register {
    pub(crate) run: Run,
    pub(crate) members: BTreeMap<PeerId, Chain>,
    /// Which peers used which invite: by invite and peer.
    pub(crate) used: BTreeMap<(PeerId, PeerId), ()>,
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
            members: BTreeMap::new(),
            used: BTreeMap::new(),
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
        if self.members.get(peer) == Some(chain) {
            return Ok((roles, false));
        }
        if let Some((key, uses, until_s)) = chain.invite()
            && !self.used.contains_key(&(key, *peer))
        {
            if now_s >= until_s {
                let ago_s = now_s - until_s;
                return Err(Refusal::InviteExpired { ago_s });
            }
            if self.uses(&key) >= uses {
                return Err(Refusal::InviteUsed { uses });
            }
        }
        self.enter(chain.clone(), *peer).map(|()| (roles, true))
    }

    /// Learns what another member says: it let peers in while their invites were valid, and heard
    /// of revocations and bans.
    pub fn learn(&mut self, news: News, now_s: u64) -> Learned {
        let mut learned = Learned::default();
        if self.run.open {
            return learned;
        }
        let fresh = &mut learned.fresh;
        for revocation in news.revocations.into_iter().take(NEWS_ITEMS_MAX) {
            if self.revoke(revocation.clone()) {
                fresh.revocations.push(revocation);
            }
        }
        for chain in news.members.into_iter().take(NEWS_ITEMS_MAX) {
            if self.learn_member(&chain, now_s) {
                fresh.members.push(chain);
            }
        }
        for directive in news.directives.into_iter().take(DIRECTIVES_MAX) {
            match self.direct(directive.clone()) {
                Some(true) => fresh.directives.push(directive),
                Some(false) => {}
                None => learned.slanders = true,
            }
        }
        for proof in news.bans.into_iter().take(NEWS_ITEMS_MAX) {
            let by = proof.by();
            match self.ban(proof) {
                // Those who hear of it next may not know the member.
                Some(true) => {
                    let chain = self.members.get(&by).cloned();
                    fresh
                        .members
                        .extend(chain.filter(|c| !fresh.members.contains(c)));
                    fresh.bans.push(proof);
                }
                Some(false) => {}
                None => learned.slanders = true,
            }
        }
        learned
    }

    /// Whether news would change nothing.
    pub fn knows(&self, news: &News, now_s: u64) -> bool {
        self.clone().learn(news.clone(), now_s).fresh.is_empty()
    }

    /// Bans a member that has lied, for as long as the register is kept. Only known members are banned,
    /// so there are no more bans than members. Returns whether that is new; `None` if the proof proves
    /// nothing.
    pub fn ban(&mut self, proof: Proof) -> Option<bool> {
        if self.bans.contains_key(&proof.by()) {
            return Some(false);
        }
        if !ban::holds(&proof, &self.run) {
            return None;
        }
        let known = self.members.contains_key(&proof.by());
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

    fn learn_member(&mut self, chain: &Chain, now_s: u64) -> bool {
        let Some(peer) = chain.peer() else {
            return false;
        };
        let known = self.members.get(&peer);
        // The longer one of two certificates of a peer is kept.
        if known.is_some_and(|known| known.until_s() >= chain.until_s()) {
            return false;
        }
        if chain.check(&self.run, &peer, now_s).is_err() || self.is_void(chain) {
            return false;
        }
        let used =
            |(key, uses, _)| !self.used.contains_key(&(key, peer)) && self.uses(&key) >= uses;
        if chain.invite().is_some_and(used) {
            return false;
        }
        self.enter(chain.clone(), peer).is_ok()
    }

    fn enter(&mut self, chain: Chain, peer: PeerId) -> Result<(), Refusal> {
        let room = self.members.len() < MEMBERS_MAX && self.used.len() < MEMBERS_MAX;
        if !room && !self.members.contains_key(&peer) {
            return Err(Refusal::Full);
        }
        if let Some((key, _, _)) = chain.invite() {
            self.used.insert((key, peer), ());
        }
        self.members.insert(peer, chain);
        Ok(())
    }

    /// Enters a revocation. Returns whether it is genuine and new. The owner's takes the place of a
    /// member's, and of the oldest if there are too many.
    pub fn revoke(&mut self, revocation: Revocation) -> bool {
        let stronger = |known: &Revocation| known.by().is_some() && revocation.by().is_none();
        if self
            .revocations
            .get(&revocation.key)
            .is_some_and(|known| !stronger(known))
        {
            return false;
        }
        if !revocation.is_genuine(&self.run) {
            return false;
        }
        if self.revocations.len() >= REVOCATIONS_MAX {
            let by_members = self
                .revocations
                .values()
                .filter(|known| known.by().is_some());
            let oldest = by_members
                .min_by_key(|known| known.at_s)
                .map(|known| known.key);
            match oldest.filter(|_| revocation.by().is_none()) {
                Some(oldest) => drop(self.revocations.remove(&oldest)),
                None => return false,
            }
        }
        self.revocations.insert(revocation.key, revocation);
        true
    }

    /// Whether any key of the chain was revoked by one that may.
    fn is_void(&self, chain: &Chain) -> bool {
        let revoked = chain.keys().filter_map(|key| self.revocations.get(&key));
        revoked
            .into_iter()
            .any(|revocation| revocation.voids(chain))
    }

    /// Whether a member that was let in may stay.
    pub fn still_in(&self, chain: &Chain, now_s: u64) -> bool {
        let banned = chain
            .peer()
            .is_some_and(|peer| self.bans.contains_key(&peer));
        chain.check_time(now_s).is_ok() && !self.is_void(chain) && !banned
    }

    /// Whether a peer is a member. In an open run everyone is.
    pub fn is_member(&self, peer: &PeerId, now_s: u64) -> bool {
        let known = self.members.get(peer);
        self.run.open || known.is_some_and(|chain| self.still_in(chain, now_s))
    }

    /// How many peers are known to have used an invite.
    fn uses(&self, invite: &PeerId) -> u32 {
        let first = (*invite, PeerId::from_bytes([0; 32]));
        let last = (*invite, PeerId::from_bytes([0xff; 32]));
        u32::try_from(self.used.range(first..=last).count()).unwrap_or(u32::MAX)
    }

    /// Forgets what has ended.
    pub fn tidy(&mut self, now_s: u64) {
        let bans = &self.bans;
        self.members
            .retain(|peer, chain| chain.until_s() > now_s || bans.contains_key(peer));
        self.revocations
            .retain(|_, revocation| revocation.until_s() > now_s);
        let members = &self.members;
        self.used.retain(|(_, peer), ()| members.contains_key(peer));
    }

    /// All known members with their certificates, and whether they were revoked.
    pub fn members(&self) -> impl Iterator<Item = (PeerId, &Chain, bool)> {
        let all = self.members.iter();
        all.map(|(peer, chain)| (*peer, chain, self.is_void(chain)))
    }

    /// All known revocations.
    pub fn revocations(&self) -> impl Iterator<Item = &Revocation> {
        self.revocations.values()
    }

    /// Equal registers have equal digests.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.to_bytes())
    }

    /// All that it contains, in messages of bounded size.
    pub fn news(&self) -> Vec<News> {
        let members: Vec<_> = self.members.values().cloned().collect();
        let revocations: Vec<_> = self.revocations.values().cloned().collect();
        let mut all = Vec::new();
        for some in revocations.chunks(NEWS_ITEMS_MAX) {
            all.push(News {
                revocations: some.to_vec(),
                ..News::default()
            });
        }
        for some in members.chunks(NEWS_ITEMS_MAX) {
            all.push(News {
                members: some.to_vec(),
                ..News::default()
            });
        }
        let bans: Vec<Proof> = self.bans.values().copied().collect();
        for some in bans.chunks(NEWS_ITEMS_MAX) {
            // An expired certificate is not learned again, and its holder needs no ban elsewhere.
            let known = some.iter().filter_map(|ban| self.members.get(&ban.by()));
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
