//! Says which links go through another daemon because no direct way was found, and when that is over.

use crate::daemon::driver::Driver;
use crate::net::Path;
use murmurate_protocol::PeerId;
use std::collections::BTreeMap;

/// The links that were said to go through another daemon. Bounded by the number of links.
#[derive(Debug, Default)]
pub(super) struct Detours(BTreeMap<PeerId, Option<PeerId>>);

/// What there is to say of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// It goes through the other daemon, if that is known.
    Through(Option<PeerId>),
    /// It is direct again.
    Direct,
}

impl Detours {
    /// A link has this path now. `in_vain` says whether direct dials were tried and failed.
    fn path(&mut self, peer: PeerId, path: Path, in_vain: bool) -> Option<Told> {
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

impl Driver {
    /// A link has another path: shows it, and says if it is one through another daemon.
    pub(super) fn on_path(&mut self, peer: PeerId, path: Path, reason: String, in_vain: bool) {
        self.console.status.with(|o| o.set_path(peer, path, reason));
        let told = self.console.detours.path(peer, path, in_vain);
        let called = |peer: PeerId| self.called(peer);
        let text = match told {
            None => return,
            Some(Told::Direct) => format!("there is a direct way to {} again", called(peer)),
            Some(Told::Through(relay)) => {
                let relay = relay.map_or_else(|| "another daemon".to_owned(), called);
                format!(
                    "no direct way to {}: through {relay}, whose uplink carries it",
                    called(peer)
                )
            }
        };
        self.console.printer.note(&text);
        let view = self.peer.view();
        self.console.detours.keep(|peer| view.get(*peer).is_some());
    }

    /// A daemon by its own name, if it said one and no other daemon has the same, or by its id.
    fn called(&self, peer: PeerId) -> String {
        let id = peer.to_hex();
        self.console.status.look(|facts| {
            let mut names = facts.claims.unique_names();
            let name = names.find(|(of, _)| *of == id);
            name.map_or_else(|| format!("daemon {peer}"), |(_, name)| name.to_owned())
        })
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
