//! A directive with the owner's signature.

use crate::key::RunKey;
use crate::run::{Run, holds, sign};
use murmurate_protocol::{Change, Directive, Round};
use serde::{Deserialize, Serialize};

const WHAT: &str = "murmurate directive 1";

/// A directive that the run key has signed. No one else can: a member with the role `admit` decides who takes
/// part, and not what the run does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedDirective {
    directive: Directive,
    signature: Vec<u8>,
}

impl SignedDirective {
    /// The directive.
    pub const fn directive(&self) -> &Directive {
        &self.directive
    }

    /// The key of the run signed it. In an open run everyone has that key, so nothing counts there.
    pub fn is_genuine(&self, run: &Run) -> bool {
        let signed = (&run.id, &self.directive);
        !run.open && holds(&run.key, WHAT, &signed, &self.signature)
    }
}

impl RunKey {
    /// Signs a change of this run that is in force from a round on.
    pub fn direct(
        &self,
        number: u32,
        at_s: u64,
        (from, change): (Round, Change),
    ) -> SignedDirective {
        let directive = Directive {
            number,
            at_s,
            from,
            change,
        };
        SignedDirective {
            directive,
            signature: sign(self.seed(), WHAT, &(&self.run().id, &directive)),
        }
    }
}
