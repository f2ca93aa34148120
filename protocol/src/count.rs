//! Counters of different kinds, each its own type so that they cannot be mixed up.

use core::fmt;
use serde::{Deserialize, Serialize};

macro_rules! count {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub struct $name(pub $inner);

        impl $name {
            /// The next one, saturating at the end of the range.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }

            /// How many lie between `earlier` and `self`; zero when `earlier` is later.
            pub const fn since(self, earlier: Self) -> $inner {
                self.0.saturating_sub(earlier.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

count!(
    /// A round: inner steps, then an exchange. Round `r` leads from anchor `r` to anchor `r + 1`.
    Round(u64)
);
count!(
    /// An inner step, counted from the start of its round.
    InnerStep(u64)
);
count!(
    /// A fragment: a run of the flat parameters that is exchanged as one unit.
    FragmentId(u16)
);
count!(
    /// A work order. Every reply names the order it answers.
    OrderId(u64)
);
