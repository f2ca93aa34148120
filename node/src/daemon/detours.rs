//! Says which links go through another daemon because no direct way was found, and when that is over.

use crate::net::Path;
use murmurate_protocol::PeerId;
use std::collections::BTreeMap;

/// The links that were said to go through another daemon. Bounded by the number of links.
#[derive(Debug, Default)]
pub(super) struct Detours(BTreeMap<PeerId, Option<PeerId>>);

/// What there is to say of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It goes through the other daemon, if that is known.
    Through(Option<PeerId>),
    /// It is direct again.
    Direct,
}

impl Detours {
    /// A link has this path now. `in_vain` says whether direct dials were tried and failed.
    pub(super) fn path(&mut self, peer: PeerId, path: Path, in_vain: bool) -> Option<Told> {
        match path {
            Path::Relayed(relay) => {
                let new = in_vain && self.0.get(&peer) != Some(&relay);
                new.then(|| {
                    self.0.insert(peer, relay);
                    Told::Through(relay)
                })
            }
            Path::Direct | Path::Punched => self.0.remove(&peer).map(|_| Told::Direct),
        }
    }

    /// Forgets peers that are not known any more. Another link to one that is, through the same daemon, is
    /// not worth a line.
    pub(super) fn keep(&mut self, known: impl Fn(&PeerId) -> bool) {
        self.0.retain(|peer, _| known(peer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detour_is_said_once_for_each_daemon_that_carries_it_and_so_is_its_end() {
        let [peer, one, two] = [1, 2, 3].map(|id| PeerId::from_bytes([id; 32]));
        let mut detours = Detours::default();
        let through = |relay| Path::Relayed(Some(relay));
        assert_eq!(detours.path(peer, Path::Direct, false), None);
        assert_eq!(detours.path(peer, through(one), false), None, "not tried");
        let said = |relay| Some(Told::Through(Some(relay)));
        assert_eq!(detours.path(peer, through(one), true), said(one));
        assert_eq!(detours.path(peer, through(one), true), None);
        assert_eq!(detours.path(peer, through(two), true), said(two));
        assert_eq!(detours.path(peer, Path::Punched, true), Some(Told::Direct));
        assert_eq!(detours.path(peer, Path::Direct, true), None);
        assert_eq!(detours.path(peer, through(two), true), said(two));
        detours.keep(|known| *known != peer);
        assert_eq!(detours.path(peer, Path::Direct, true), None);
    }
}
