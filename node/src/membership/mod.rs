//! A daemon's membership in a run: the files that prove it, how a daemon enters a run, and how a
//! member lets others in.
//!
//! A daemon's directory holds `membership.toml` (its certificates and what every member knows of
//! the run), `register` (the members and revocations that it knows of), and `run.key` if the run
//! was founded there. All are readable by their owner only.

mod card;
mod enter;
mod error;
mod issue;
mod key_file;
mod roll;

pub(crate) use enter::{Entered, enter};
pub use error::MembershipError;
pub use issue::{MemberView, Office, Owner, Source, directives, members, run_of};
pub use key_file::found;
pub(crate) use roll::Roll;

use murmurate_trust::{Invite, InviteError};

/// Parses an invite, or reads it from the file with this name.
///
/// # Errors
/// If it is neither.
pub fn invite_from(text: &str) -> Result<Invite, MembershipError> {
    match Invite::from_line(text) {
        Err(InviteError::NotOne) => {
            let file = std::fs::read_to_string(text).map_err(|_| InviteError::NotOne)?;
            // Some editors begin a text with a mark of its byte order.
            Ok(Invite::from_line(file.trim_start_matches('\u{feff}'))?)
        }
        other => Ok(other?),
    }
}
