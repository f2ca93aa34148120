//! What a daemon says of links that go through another one, and of another daemon with its identity.

use super::detours::Told;
use super::elsewhere::{STAYS, Verdict};
use crate::api::Clock;
use crate::daemon::DaemonError;
use crate::daemon::driver::Driver;
use crate::events::Kind;
use crate::net::Path;
use murmurate_protocol::{PeerId, Phase};
use std::time::Instant;

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

impl Driver {
    /// Looks whether another daemon has this one's identity.
    pub(super) fn look_elsewhere(&mut self) {
        let seen = self.net.vitals().elsewhere();
        let (round, at) = (self.peer.round(), Instant::now());
        let verdict = self.ending.elsewhere.judge(seen.as_ref(), round, at);
        let there = self.ending.elsewhere.is_there();
        let now = self.clock.now();
        self.console.status.with(|o| o.elsewhere(now, there));
        match verdict {
            Verdict::Nothing => {}
            Verdict::Says => self.tell_elsewhere(STAYS, self.peer.phase()),
            Verdict::Leaves => {
                let line = format!("{}; it ends in a moment", DaemonError::Elsewhere);
                self.tell_elsewhere(&line, Phase::Leaving);
            }
            Verdict::Stops => self.ending.fail(DaemonError::Elsewhere),
        }
    }

    /// Tells the operator, the log and the other one.
    fn tell_elsewhere(&mut self, line: &str, phase: Phase) {
        self.console.printer.note(line);
        let (now, round) = (self.clock.now(), self.peer.round().0);
        self.console.log.add(now, round, Kind::Elsewhere);
        let vitals = self.vitals_in(phase, &[]);
        self.net.vitals().say_to_the_other(vitals);
    }
}
