//! The roles of members.

use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// The role of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Take part in the training.
    Train,
    /// Take part, invite and admit others, and revoke those that it let in.
    Admit,
    /// Follow the training: take over states and decisions, evaluate and save. No part in rounds.
    Observe,
    /// Relay for others and help them find each other. No part in rounds, and no model.
    Relay,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Train, Self::Admit, Self::Observe, Self::Relay];

    /// Its name in commands and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Admit => "admit",
            Self::Observe => "observe",
            Self::Relay => "relay",
        }
    }

    /// Roles that take part in rounds.
    pub const fn trains(self) -> bool {
        matches!(self, Self::Train | Self::Admit)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a role; roles are train, admit, observe and relay")]
pub struct NoRole(String);

impl FromStr for Role {
    type Err = NoRole;

    fn from_str(text: &str) -> Result<Self, NoRole> {
        let found = Self::ALL.into_iter().find(|role| role.name() == text);
        found.ok_or_else(|| NoRole(text.to_owned()))
    }
}

/// The rights that a certificate gives: those of one role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roles(u8);

impl Roles {
    const TRAIN: u8 = 1;
    const ADMIT: u8 = 2;
    const OBSERVE: u8 = 4;
    const RELAY: u8 = 8;

    /// The rights of `role`.
    pub const fn of(role: Role) -> Self {
        match role {
            Role::Train => Self(Self::TRAIN),
            Role::Admit => Self(Self::TRAIN | Self::ADMIT),
            Role::Observe => Self(Self::OBSERVE),
            Role::Relay => Self(Self::RELAY),
        }
    }

    /// The role that has these rights; `None` if no role has them.
    pub fn role(self) -> Option<Role> {
        Role::ALL.into_iter().find(|role| Self::of(*role) == self)
    }

    /// `role` is among them.
    pub const fn has(self, role: Role) -> bool {
        let bit = match role {
            Role::Train => Self::TRAIN,
            Role::Admit => Self::ADMIT,
            Role::Observe => Self::OBSERVE,
            Role::Relay => Self::RELAY,
        };
        self.0 & bit != 0
    }

    /// The holder of `others` may pass all of them on. A peer that may train may also give
    /// less than that.
    pub(crate) const fn within(self, others: Self) -> bool {
        let less = match others.0 & Self::TRAIN {
            0 => 0,
            _ => Self::OBSERVE | Self::RELAY,
        };
        self.0 & !(others.0 | less) == 0
    }

    /// The rights of one of the known roles.
    pub(crate) fn known(self) -> bool {
        self.role().is_some()
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.role().map_or("unknown", Role::name))
    }
}
