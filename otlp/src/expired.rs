//! How a wait ended.

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// What it was for has come.
    No,
    /// Its deadline has passed.
    Yes,
}
