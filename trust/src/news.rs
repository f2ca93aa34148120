//! What members tell each other of a run, and what one learns from it.

use crate::chain::Chain;
use crate::directive::SignedDirective;
use crate::gate::Message;
use crate::revocation::Revocation;
use murmurate_protocol::Proof;
use serde::{Deserialize, Serialize};

/// What one member tells another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct News {
    /// Members that were let in.
    pub members: Vec<Chain>,
    /// Revocations.
    pub revocations: Vec<Revocation>,
    /// Proofs that members lie, which ban them.
    pub bans: Vec<Proof>,
    /// Directives of the owner. They travel in a message of their own
    /// ([`Message::Directives`](crate::gate::Message)).
    #[serde(skip)]
    pub directives: Vec<SignedDirective>,
}

/// What a member learned from news.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// What was new.
    pub fresh: News,
    /// Whether the news contained a proof that proves nothing, or a directive that the owner has not signed.
    /// No honest member passes one on.
    pub slanders: bool,
}

impl News {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.are_directives() && self.directives.is_empty()
    }

    /// Whether it says nothing but directives.
    fn are_directives(&self) -> bool {
        self.members.is_empty() && self.revocations.is_empty() && self.bans.is_empty()
    }

    /// The messages that say it.
    pub fn messages(mut self) -> impl Iterator<Item = Message> {
        let directives = std::mem::take(&mut self.directives);
        let directives = (!directives.is_empty()).then_some(Message::Directives(directives));
        let rest = (!self.are_directives()).then_some(Message::News(self));
        rest.into_iter().chain(directives)
    }
}
