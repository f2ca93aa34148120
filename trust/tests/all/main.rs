//! Who may take part, over whole histories of invites, members and bans. One program, linked once.
#![expect(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

mod bans;
mod directives;
mod gate;
mod membership;
