//! Errors of memberships. Each message is one line that says what to do.

use crate::store::StoreError;
use murmurate_trust::{Flaw, InviteError, Unreadable};
use std::path::PathBuf;

/// Why a daemon cannot enter a run, or a member cannot let others in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MembershipError {
    /// A file cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The invite cannot be used.
    #[error("--invite: {0}")]
    Invite(#[from] InviteError),
    /// The file is no run key.
    #[error("{} is not a run key: {reason}", path.display())]
    Key {
        /// Its path.
        path: PathBuf,
        /// The problem and what to do.
        reason: String,
    },
    /// The file is no membership.
    #[error("{} is damaged ({reason}); restore it, or enter again with --invite in a new --dir", path.display())]
    Card {
        /// Its path.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The file is no register of members.
    #[error(
        "the register of members {} {flaw}: it says who was revoked, so nothing starts without it; {}",
        path.display(), remedy(flaw)
    )]
    Register {
        /// Its path.
        path: PathBuf,
        /// The problem.
        flaw: Unreadable,
    },
    /// The daemon's own certificate proves nothing.
    #[error("the certificate in {}: {flaw}", path.display())]
    Ended {
        /// Its path.
        path: PathBuf,
        /// Why.
        flaw: Flaw,
    },
    /// The directory's certificate is of another key than the one in it.
    #[error(
        "{} lets in another peer than identity.key beside it: put the old identity.key back, or enter the run as a \
         new member in a new directory (`murmurate run --dir NEW --invite FILE`)",
        .0.display()
    )]
    OtherKey(PathBuf),
    /// There are addresses to join, but nothing that lets this daemon in.
    #[error(
        "this daemon has addresses to join but no invite: run `murmurate invite DIR` on a machine of the \
         run and start with --invite FILE here; or start all daemons of the run with --open"
    )]
    NoInvite,
    /// The directory belongs to another run.
    #[error(
        "{} belongs to the run `{name}`, and the {given} is of another one; give another --dir",
        dir.display()
    )]
    OtherRun {
        /// The directory.
        dir: PathBuf,
        /// The name of its run.
        name: String,
        /// The credential that is of another run, such as `invite`.
        given: &'static str,
    },
    /// The directory belongs to a closed run.
    #[error(
        "--open: {} belongs to the closed run `{name}`; give another --dir, or leave --open out",
        dir.display()
    )]
    Closed {
        /// The directory.
        dir: PathBuf,
        /// The name of its run.
        name: String,
    },
    /// An open run needs no invite.
    #[error(
        "--open lets everyone in who knows the name, so it goes neither with --invite nor with --key"
    )]
    OpenAndMore,
    /// The configuration names another run than the key or the invite.
    #[error(
        "`run.name` is `{configured}`, but the {given} is of the run `{name}`; leave the name out"
    )]
    OtherName {
        /// The configured name.
        configured: String,
        /// The name of the run.
        name: String,
        /// What says so.
        given: &'static str,
    },
    /// The directory may not let others in.
    #[error(
        "{} may not let others in: only the owner and members with the role admit may; give the owner's \
         key with --key, or use the directory of such a member", .0.display()
    )]
    NoOffice(PathBuf),
    /// Another one let the member in.
    #[error(
        "{whom} was not let in by the daemon in {}, so the others would not believe its revocation: revoke it with \
         the owner's key (--key FILE), or in the directory of the member that let it in", dir.display()
    )]
    NotYours {
        /// The member.
        whom: String,
        /// The directory.
        dir: PathBuf,
    },
    /// A directory with a checkpoint says of no run.
    #[error(
        "{} has a checkpoint.json and neither membership.toml nor run.key, so this daemon would found another run: \
         restore these files and identity.key, enter the run again with --invite FILE, or give another --dir",
        .0.display()
    )]
    Lost(PathBuf),
    /// The register has no room for another revocation of this member's.
    #[error(
        "the register has no room for another revocation by the member in {}: revoke with the owner's key (--key FILE)",
        .0.display()
    )]
    NoMoreRevocations(PathBuf),
    /// Only the owner directs.
    #[error(
        "only the owner of a run directs it: {} has a certificate and not the run key; give the key with \
         --key FILE", .0.display()
    )]
    NotTheOwner(PathBuf),
    /// The run is open, or there is none.
    #[error(
        "{} is not the directory of a daemon of a closed run; give the directory of one that has run (an open \
         run cannot be directed, because everyone knows its key)", .0.display()
    )]
    Undirected(PathBuf),
    /// The directory is not of a member.
    #[error("{} is not the directory of a member of a closed run; give that of a daemon that has run", .0.display())]
    NoMember(PathBuf),
    /// A file is there already.
    #[error("{} exists already; give another --to", .0.display())]
    Exists(PathBuf),
    /// The text is no id.
    #[error(
        "`{0}` is not a peer's id: give its 64 hexadecimal digits, which `murmurate id DIR` prints"
    )]
    NotAnId(String),
    /// No member or invite begins with this text.
    #[error("{}; `murmurate members DIR` lists the members with their ids", fits(text, *found))]
    Ambiguous {
        /// The text.
        text: String,
        /// How many it fits.
        found: usize,
    },
    /// The address is none.
    #[error("--address: `{0}` is not a multiaddress such as /ip4/203.0.113.7/udp/4001/quic-v1")]
    Address(String),
}

/// What to do about a register that cannot be read.
fn remedy(flaw: &Unreadable) -> &'static str {
    match flaw {
        Unreadable::Newer => "install that version again",
        _ => {
            "restore it from a copy; or remove it where another member of the run is there, which then tells this \
             daemon who was revoked"
        }
    }
}

/// How many members an id is the beginning of.
fn fits(text: &str, found: usize) -> String {
    match found {
        0 => format!("no member's id begins with `{text}`, and it is no invite"),
        found => format!("the ids of {found} members begin with `{text}`: give more digits"),
    }
}
