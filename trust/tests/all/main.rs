//! Who may take part, over whole histories of invites, members and bans. One program, linked once.

mod bans;
mod directives;
mod gate;
mod membership;
mod register;
