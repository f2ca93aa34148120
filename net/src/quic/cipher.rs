//! The preferred cipher of a dial, and the fastest cipher of this machine.

/// The cipher that a dial prefers. Both ends support all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cipher {
    /// AES-128-GCM if the machine has AES instructions, otherwise ChaCha20-Poly1305.
    #[default]
    Auto,
    /// AES-128-GCM.
    Aes128,
    /// ChaCha20-Poly1305.
    ChaCha20,
}

impl Cipher {
    /// Whether it resolves to AES-128-GCM on this machine.
    #[must_use]
    pub fn is_aes(self) -> bool {
        match self {
            Self::Auto => hardware_aes(),
            Self::Aes128 => true,
            Self::ChaCha20 => false,
        }
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn hardware_aes() -> bool {
    std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn hardware_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
fn hardware_aes() -> bool {
    false
}
