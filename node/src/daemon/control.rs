//! Brings the owner's directives from the register of members to the peer.

use crate::daemon::driver::Driver;
use crate::directive::directive_words;
use murmurate_protocol::{Directive, Input};

impl Driver {
    /// Tells the peer the directives that the register knows, if one of them is new to it. Their signatures
    /// were checked when they entered the register.
    pub(super) fn tell_directives(&mut self) {
        let known = self.contacts.roll.directives();
        let told = self.peer.directives();
        if known.iter().any(|directive| !told.contains(directive)) {
            let known = known.iter().copied().collect();
            self.feed(Input::Directives(known));
        }
    }

    /// Says what the owner changes.
    pub(super) fn directed(&self, directive: &Directive) {
        let words = directive_words(directive);
        let line = format!("directive {} of the owner: {words}", directive.number);
        self.console.printer.note(&line);
    }
}
