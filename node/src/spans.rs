//! The spans of log lines: run > round > fragment > peer, each with its value as a field.
//!
//! A span below the logged level is disabled, and entering it costs one comparison. `run` applies
//! to all levels, `round` to `info` and below, `fragment` and `peer` to `debug`.

use murmurate_protocol::{FragmentId, PeerId, Round, SliceId};
use std::fmt::{self, Write};
use tracing::Span;
use tracing::span::EnteredSpan;

pub(crate) fn run(name: &str, me: PeerId) -> Span {
    tracing::error_span!("run", run = name, me = %me)
}

pub(crate) fn round(round: Round) -> Span {
    tracing::info_span!("round", round = round.0)
}

fn fragment(fragment: FragmentId) -> Span {
    tracing::debug_span!("fragment", fragment = fragment.0)
}

fn peer(peer: PeerId) -> Span {
    tracing::debug_span!("peer", peer = %peer)
}

/// Entered spans of a fragment and a peer. Dropping it leaves both.
#[must_use]
pub(crate) struct Scope {
    // Fields are dropped in this order, so the inner span is left first.
    _peer: Option<EnteredSpan>,
    _fragment: Option<EnteredSpan>,
}

/// Enters the spans of a fragment and of a peer, as far as they are given.
pub(crate) fn enter(of_fragment: Option<FragmentId>, of_peer: Option<PeerId>) -> Scope {
    let entered = of_fragment.map(|id| fragment(id).entered());
    Scope {
        _peer: of_peer.map(|id| peer(id).entered()),
        _fragment: entered,
    }
}

/// The spans of a slice that is sent to or received from a peer, for a task of its own.
pub(crate) fn transfer(slice: &SliceId, with: PeerId) -> Span {
    round(slice.round).in_scope(|| fragment(slice.fragment).in_scope(|| peer(with)))
}

/// The name of an enum's variant, taken from its `Debug` output. So the log needs no second list of
/// names.
pub(crate) fn variant(of: &impl fmt::Debug) -> String {
    let mut name = Name(String::new());
    // The writer stops with an error after the name, so the rest, which may be a large snapshot, is
    // not formatted.
    let _ = write!(name, "{of:?}");
    name.0
}

/// Accepts text up to the first character that cannot be part of a name.
struct Name(String);

impl Write for Name {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        let end = text.find(|c| !part(c)).unwrap_or(text.len());
        self.0.push_str(&text[..end]);
        if end < text.len() {
            return Err(fmt::Error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::{Done, Order};

    #[test]
    fn variants_are_named_without_their_content() {
        assert_eq!(variant(&Done::Saved), "Saved");
        let save = Order::Save {
            round: Round(3),
            snapshot: vec![0; 1 << 20],
            branch: false,
        };
        assert_eq!(variant(&save), "Save");
    }
}
