//! This daemon's membership, as the gate of every connection uses it.

use murmurate_protocol::{PeerId, RunId};
use murmurate_trust::{Chain, Learned, News, Refusal, Register, Role, Roles, Run};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The run, this daemon's certificates, and the members that it knows of.
#[derive(Debug)]
pub struct Membership {
    run: Run,
    me: PeerId,
    chain: Chain,
    register: Mutex<Register>,
}

impl Membership {
    /// The membership of the peer `me`, with the register of its earlier lives.
    pub fn new(me: PeerId, chain: Chain, mut register: Register) -> Self {
        // The others know this member, so their registers differ from one without it. Where its certificate
        // has ended since, the others say so.
        let _ = register.admit(&chain, &me, now_s());
        Self {
            run: register.run().clone(),
            me,
            chain,
            register: Mutex::new(register),
        }
    }

    /// The membership of the peer `me` in an open run.
    pub fn open(run: RunId, me: PeerId) -> Self {
        let (run, key) = Run::open(run);
        let chain = key.certify_self(&run, me, now_s());
        Self::new(me, chain, Register::new(run))
    }

    /// The run.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// This daemon's id.
    pub fn me(&self) -> PeerId {
        self.me
    }

    /// This daemon's certificates.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// This daemon's role.
    pub fn role(&self) -> Role {
        let roles = self.chain.roles();
        roles.and_then(Roles::role).unwrap_or(Role::Relay)
    }

    /// Checks a peer's certificates, and remembers the peer if it gets in.
    pub(super) fn admit(&self, chain: &Chain, peer: &PeerId) -> Result<(Roles, bool), Refusal> {
        self.register().admit(chain, peer, now_s())
    }

    /// Learns what a member says, or the operator of this daemon.
    pub(super) fn learn(&self, news: News, from: &PeerId) -> Learned {
        self.register().learn(news, from, now_s())
    }

    /// Forgets what has ended. Returns whether there was something.
    pub(super) fn tidy(&self) -> bool {
        self.register().tidy(now_s())
    }

    /// A member that was let in may stay, or why not.
    pub(super) fn stays(&self, chain: &Chain) -> Result<(), Refusal> {
        self.register().stays(chain, now_s())
    }

    /// True for members as far as this daemon knows. In an open run everyone is one.
    pub fn has(&self, peer: &PeerId) -> bool {
        self.register().is_member(peer, now_s())
    }

    /// The members and revocations that are known.
    pub fn register(&self) -> MutexGuard<'_, Register> {
        // Each change is complete before the lock is released.
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Seconds since 1970 in UTC, by this machine's clock.
pub(crate) fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}
