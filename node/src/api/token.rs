//! The token without which nothing can be changed over HTTP. Programs of other users of the machine
//! reach the server on loopback, and cannot read the daemon's directory.

use axum::http::{HeaderMap, header};
use murmurate_protocol::Digest;

/// Name of the token's file in the daemon's directory.
pub const TOKEN_FILE: &str = "http-token";

/// 32 random bytes in hexadecimal, new with every start.
#[derive(Clone)]
pub struct Token(Digest);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// A token of these random bytes.
    pub const fn new(random: [u8; 32]) -> Self {
        Self(Digest::from_bytes(random))
    }

    /// The content of the file.
    pub fn text(&self) -> String {
        self.0.to_hex()
    }

    /// A request carries it: `Authorization: Bearer TOKEN`.
    pub(super) fn admits(&self, head: &HeaderMap) -> bool {
        let value = head.get(header::AUTHORIZATION);
        let value = value.and_then(|value| value.to_str().ok());
        let given = value.and_then(|value| value.strip_prefix("Bearer "));
        // Hashes are compared, so the time of the comparison tells nothing about the token.
        let hash = |text: &str| Digest::of(text.as_bytes());
        given.is_some_and(|given| hash(given) == hash(&self.text()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_admitted() {
        let token = Token::new([7; 32]);
        let mut head = HeaderMap::new();
        assert!(!token.admits(&head));
        for (value, admitted) in [
            (format!("Bearer {}", token.text()), true),
            (format!("Bearer {}", &token.text()[1..]), false),
            (token.text(), false),
            ("Bearer ".to_owned(), false),
        ] {
            head.insert(header::AUTHORIZATION, value.parse().unwrap());
            assert_eq!(token.admits(&head), admitted, "{value}");
        }
        assert_eq!(format!("{token:?}"), "Token");
    }
}
