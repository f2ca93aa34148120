//! The version of the protocol on the wire.

/// The version byte that opens every frame. Raised with every change of a message's layout.
pub const WIRE_VERSION: u8 = 7;
