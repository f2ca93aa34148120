//! Who may take part in a run.
//!
//! A run has a key ([`RunKey`]). Anyone who holds it, or a certificate with the role `admit`, lets
//! others in: by an [`Invite`], whose own key signs the peer that uses it, or by a certificate for
//! one peer. Every peer shows its [`Chain`] of certificates, from the run's key to its own id, at
//! the [`gate`] of each connection. A [`Register`] keeps what all members must remember: the
//! peers that each invite let in, revocations, bans, and the owner's directives ([`SignedDirective`]).
//!
//! Nothing here reads a clock, draws random numbers or does IO. Times are seconds since 1970 in
//! UTC. All parsers of bytes check lengths first and return an error for bytes that are not theirs.

mod certificate;
mod chain;
mod directive;
pub mod gate;
mod invite;
mod issuer;
mod key;
mod learn;
pub mod limits;
mod news;
mod register;
mod revocation;
mod roles;
mod run;
mod seats;
mod stored;

pub use certificate::{Certificate, Holder};
pub use chain::{Chain, Flaw};
pub use directive::SignedDirective;
pub use invite::{Invite, InviteError, Terms};
pub use issuer::Issuer;
pub use key::{RunKey, pair_secret};
pub use news::{Learned, News, Overused};
pub use register::{Refusal, Register};
pub use revocation::Revocation;
pub use roles::{Role, Roles};
pub use run::Run;
pub use stored::Unreadable;
