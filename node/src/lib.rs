//! The Murmurate daemon: sockets, threads, disks and the interface to people. It joins the peer,
//! the arithmetic and the models, which are other crates.

/// Declares an enum whose variants have one word each: theirs in JSON, on the command line and for people.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// All of them, in their order.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Its word.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The one with this word.
            pub fn of_word(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.word() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

pub mod api;
pub mod bulk;
pub mod config;
pub mod daemon;
mod depot;
mod descriptors;
pub mod directive;
pub mod events;
pub mod faults;
mod goal;
mod lanes;
pub mod lies;
mod lines;
pub mod local;
pub mod membership;
mod metrics;
pub mod net;
pub mod ports;
pub mod progress;
pub mod report;
mod spans;
pub mod splits;
pub mod store;
mod telemetry;
mod traffic;
pub mod unit;

#[cfg(test)]
mod tests;
