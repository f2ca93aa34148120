//! What a member may do.

use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// What a member may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Take part in the training.
    Train,
    /// Take part, invite and admit others, and revoke those that it let in.
    Admit,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 2] = [Self::Train, Self::Admit];

    /// Its name in commands and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Admit => "admit",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a role; roles are train and admit")]
pub struct NoRole(String);

impl FromStr for Role {
    type Err = NoRole;

    fn from_str(text: &str) -> Result<Self, NoRole> {
        let found = Self::ALL.into_iter().find(|role| role.name() == text);
        found.ok_or_else(|| NoRole(text.to_owned()))
    }
}

/// A set of roles. Who may admit may also train.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roles(u8);

impl Roles {
    const TRAIN: u8 = 1;
    const ADMIT: u8 = 2;

    /// The roles that `role` stands for.
    pub const fn of(role: Role) -> Self {
        match role {
            Role::Train => Self(Self::TRAIN),
            Role::Admit => Self(Self::TRAIN | Self::ADMIT),
        }
    }

    /// Whether `role` is among them.
    pub const fn has(self, role: Role) -> bool {
        let bit = match role {
            Role::Train => Self::TRAIN,
            Role::Admit => Self::ADMIT,
        };
        self.0 & bit != 0
    }

    /// Whether all of them are among `others`.
    pub(crate) const fn within(self, others: Self) -> bool {
        self.0 & !others.0 == 0
    }

    /// Whether it consists of known roles.
    pub(crate) const fn known(self) -> bool {
        self.0 != 0 && self.within(Self::of(Role::Admit))
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.has(Role::Admit) {
            true => "admit",
            false => "train",
        })
    }
}
