//! The kinds of transport of a bulk stream.

/// What carries a bulk stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A bulk connection over QUIC.
    Quic,
    /// A bulk connection over TLS and TCP.
    Tls,
    /// The link itself.
    Link,
}
