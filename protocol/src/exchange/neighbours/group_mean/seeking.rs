//! Who makes the mean of a fragment, and who is asked for it.

use super::group::Group;
use super::means::Stage;
use super::state::{GroupMeans, Sought};
use crate::core::context::Context;
use crate::exchange::neighbours::mix::FragmentMix;
use crate::exchange::neighbours::pull::PullMessage;
use crate::exchange::neighbours::ranks::Ranks;
use crate::exchange::neighbours::rule::MixesOf;
use crate::rendezvous::rendezvous;
use crate::{PeerId, Round};

/// The slots of the rendezvous hash that rank makers: by fragment, apart from those of other
/// choices.
const MAKERS: u16 = 128;

impl GroupMeans {
    /// The other members of this peer's group of a round, among all that take part: also those that
    /// it suspects, so that peers that suspect different others deal the same groups.
    pub(super) fn mates(&self, cx: &Context, round: Round) -> Vec<PeerId> {
        let others = cx.view.of_this_branch().filter(|(_, remote)| remote.ready);
        let ranks = Ranks::among(cx.me(), others.map(|(id, _)| id));
        let mates: Vec<usize> = match self.bounds.syncs(round) {
            true => (0..ranks.count()).collect(),
            false => {
                let dealt = self.topology.partners(round, ranks.me(), ranks.count());
                dealt.receive
            }
        };
        mates
            .into_iter()
            .filter_map(|rank| ranks.other(rank))
            .collect()
    }

    /// What this peer does as the maker of a mean.
    pub(super) fn group(&self, cx: &Context, round: Round) -> Group {
        let others = self.mates(cx, round);
        let waited = others
            .iter()
            .copied()
            .filter(|peer| !is_suspected(cx, *peer));
        Group {
            waited: waited.chain([cx.me()]).collect(),
            others,
        }
    }

    /// Asks for the mean of a fragment, or makes it.
    pub(super) fn seek(
        &mut self,
        cx: &mut Context,
        mix: &mut FragmentMix<Sought>,
        mates: &[PeerId],
    ) {
        let (round, fragment) = (mix.round, mix.fragment);
        let slot = (MAKERS + fragment.0 % MAKERS) as u8;
        let rank = |peer: &PeerId| rendezvous(&cx.plan.run, round, slot, *peer);
        let candidates = mates.iter().copied().chain([cx.me()]);
        let candidates =
            candidates.filter(|peer| !mix.own.tried.contains(peer) && !is_suspected(cx, *peer));
        let Some(maker) = candidates.max_by_key(rank) else {
            return;
        };
        mix.own.tried.insert(maker);
        if maker != cx.me() {
            let closes = false;
            mix.expected.insert(maker);
            let message = PullMessage::AskMean {
                round,
                fragment,
                closes,
            };
            cx.send(maker, message);
            return;
        }
        let group = self.group(cx, round);
        if self.means.open(cx, (fragment, round), group, &self.parts) {
            // As a slice of its own that is being encoded.
            mix.own.makes = true;
            mix.encoding += 1;
        }
    }

    /// Takes the means that this peer has made for itself.
    pub(super) fn take_own(&self, cx: &Context, mixes: &mut MixesOf<Self>) {
        for mix in mixes.iter_mut().filter(|mix| mix.own.makes) {
            let key = (mix.fragment, mix.round);
            match self.means.stage(key) {
                Some(Stage::Gathering | Stage::Summing { .. }) => continue,
                Some(Stage::Made { .. }) if mix.is_collecting() => {
                    let made = self.means.made(key, cx.me());
                    let fresh = |own: Option<Round>| own == Some(key.1);
                    mix.own.got = made.map(|made| (made.slice, made.parts, fresh(made.own)));
                }
                _ => {}
            }
            mix.own.makes = false;
            mix.encoding = mix.encoding.saturating_sub(1);
        }
    }

    /// Releases own slices that no question, push or mean needs.
    pub(super) fn release(&mut self, cx: &mut Context) {
        let means = &self.means;
        self.parts.release(cx, |slice| means.reads(slice));
    }
}

fn is_suspected(cx: &Context, peer: PeerId) -> bool {
    cx.view.get(peer).is_some_and(|remote| remote.suspected)
}
