//! Links that are missing: members that this daemon wants to be linked with and cannot reach, though
//! others can. Such a link goes through a common member, until a direct dial succeeds again.
//!
//! Reads no clock; callers pass the time, and what they heard of a member.

use crate::net::bucket::doubled;
use crate::net::record::is_relayed;
use libp2p::Multiaddr;
use libp2p::identity::PeerId;
use murmurate_protocol::SortedMap;
use murmurate_protocol::limits::VIEW_PEERS_MAX;
use std::time::Duration;
use tokio::time::Instant;

/// How long direct dials may take before other members are asked.
const PATIENCE: Duration = Duration::from_secs(3);

/// Pause between two questions whether a member lives.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A member that said something within this time, which others passed on, lives. Daemons speak every
/// five seconds.
const LIVES: Duration = Duration::from_secs(15);

/// How long a member that says nothing at all is taken to live, if its record is not old.
const SILENT: Duration = Duration::from_secs(60);

/// How long after the last request for a link it is sought.
const SOUGHT: Duration = Duration::from_secs(600);

/// Time for the reservations of both ends before the first dial of a circuit.
const HEAD_START: Duration = Duration::from_millis(500);

/// How much later one of the two ends dials, so that usually one circuit is made and not two.
const TURN: Duration = Duration::from_millis(1500);

/// Pauses between dials of circuits: the first one, and the longest; it doubles in between.
const CIRCUIT_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// Pauses between direct dials while the link goes through another member.
const DIRECT_PAUSES: [Duration; 2] = [Duration::from_secs(15), Duration::from_secs(600)];

/// Missing links that are remembered. The one that was wanted least recently is forgotten first.
const GAPS_MAX: usize = VIEW_PEERS_MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It is dialled directly, or its link was lost and no one asked for another one yet.
    Sought,
    /// It is dialled through other members.
    Missing,
    /// The link goes through another member.
    Relayed,
}

#[derive(Clone, Debug)]
struct Gap {
    stage: Stage,
    addresses: Vec<Multiaddr>,
    /// Since when there is no link.
    since: Instant,
    /// Set where there was one before.
    lost: bool,
    /// When a link was last asked for.
    wanted: Option<Instant>,
    /// Set where its record was signed not long ago.
    fresh: bool,
    /// Set where this end makes reservations, so that the other one can dial it through them.
    reserves: bool,
    dials: u32,
    due: Instant,
}

/// What to do about a missing link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Dial it through other members: those here, then those of its record.
    Through(Vec<Multiaddr>),
    /// Dial the addresses of its record directly.
    Directly(Vec<Multiaddr>),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    gaps: SortedMap<PeerId, Gap>,
}

impl Gaps {
    /// A peer without a link is dialled at these addresses. `fresh` says whether its record was signed not
    /// long ago.
    pub(super) fn sought(
        &mut self,
        peer: PeerId,
        addresses: Vec<Multiaddr>,
        fresh: bool,
        now: Instant,
    ) {
        let gap = self.entry(peer, false, now);
        (gap.addresses, gap.fresh, gap.wanted) = (addresses, fresh, Some(now));
        gap.due = gap.due.min(now + PATIENCE);
    }

    /// A direct link ended, and no one wished that.
    pub(super) fn lost(&mut self, peer: PeerId, now: Instant) {
        self.entry(peer, true, now);
    }

    fn entry(&mut self, peer: PeerId, lost: bool, now: Instant) -> &mut Gap {
        if self.gaps.len() >= GAPS_MAX && !self.gaps.contains_key(&peer) {
            let oldest = self.gaps.iter().min_by_key(|(_, gap)| gap.wanted);
            if let Some(oldest) = oldest.map(|(peer, _)| *peer) {
                self.gaps.remove(&oldest);
            }
        }
        self.gaps.entry(peer).or_insert_with(|| Gap {
            stage: Stage::Sought,
            addresses: Vec::new(),
            since: now,
            lost,
            wanted: None,
            fresh: false,
            reserves: false,
            dials: 0,
            due: now + PATIENCE,
        })
    }

    /// The link goes through another member. `first` says whether this end dials first.
    pub(super) fn relayed(&mut self, peer: &PeerId, first: bool, now: Instant) {
        let missing = |gap: &&mut Gap| gap.stage != Stage::Relayed;
        if let Some(gap) = self.gaps.get_mut(peer).filter(missing) {
            let [pause, _] = DIRECT_PAUSES;
            // Never both ends at once, or two direct connections would replace each other.
            let later = if first { Duration::ZERO } else { pause / 2 };
            gap.enter(Stage::Relayed, now + pause + later);
        }
    }

    /// A link through another member ended. Returns whether there was one.
    pub(super) fn broken(&mut self, peer: &PeerId, now: Instant) -> bool {
        let relayed = |gap: &&mut Gap| gap.stage == Stage::Relayed;
        let Some(gap) = self.gaps.get_mut(peer).filter(relayed) else {
            return false;
        };
        gap.enter(Stage::Missing, now);
        // For a while it is taken to live.
        (gap.since, gap.lost, gap.wanted) = (now, false, Some(now));
        true
    }

    /// Forgets a peer that is linked directly, or is not wanted any more. Returns whether it was known.
    pub(super) fn over(&mut self, peer: &PeerId) -> bool {
        self.gaps.remove(peer).is_some()
    }

    /// True while other members must carry a link of this daemon.
    pub(super) fn need(&self) -> bool {
        self.gaps.values().any(|gap| gap.reserves)
    }

    /// A reservation was made, so the next dials may succeed. `first` are the peers that this end dials
    /// first.
    pub(super) fn reserved(&mut self, first: impl Fn(&PeerId) -> bool, now: Instant) {
        for (peer, gap) in &mut self.gaps {
            if gap.stage == Stage::Missing && gap.dials > 0 {
                gap.due = gap.due.min(now + turn(first(peer)));
            }
        }
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.gaps.values().map(|gap| gap.due).min()
    }

    /// The steps that are due. `heard` is how long ago a member spoke, as far as it was passed on; `first` as in
    /// [`Gaps::reserved`].
    pub(super) fn due(
        &mut self,
        heard: impl Fn(&PeerId) -> Option<Duration>,
        first: impl Fn(&PeerId) -> bool,
        now: Instant,
    ) -> Vec<(PeerId, Step)> {
        self.gaps.retain(|_, gap| {
            let sought = now.saturating_duration_since(gap.wanted.unwrap_or(gap.since)) < SOUGHT;
            sought || gap.stage == Stage::Relayed
        });
        let mut steps = Vec::new();
        for (peer, gap) in &mut self.gaps {
            if gap.due > now {
                continue;
            }
            let lives = gap.wanted.is_some() && gap.lives(heard(peer), now);
            match gap.stage {
                Stage::Relayed => {
                    gap.due = now + gap.pause(DIRECT_PAUSES);
                    steps.push((*peer, Step::Directly(gap.addresses.clone())));
                }
                _ if !lives => {
                    let pause = gap.wanted.map_or(SOUGHT, |_| LOOK_EVERY);
                    gap.enter(Stage::Sought, now + pause);
                    gap.reserves = false;
                }
                Stage::Sought => {
                    let due = now + HEAD_START + turn(first(peer));
                    gap.enter(Stage::Missing, due);
                    // The other end's reservations may be enough.
                    gap.reserves = !gap.addresses.iter().any(is_relayed);
                }
                Stage::Missing => {
                    gap.reserves |= gap.dials > 0;
                    gap.due = now + gap.pause(CIRCUIT_PAUSES);
                    steps.push((*peer, Step::Through(gap.addresses.clone())));
                }
            }
        }
        steps
    }
}

/// How long an end waits until it dials.
const fn turn(first: bool) -> Duration {
    if first { Duration::ZERO } else { TURN }
}

impl Gap {
    fn enter(&mut self, stage: Stage, due: Instant) {
        (self.stage, self.due, self.dials) = (stage, due, 0);
    }

    /// Counts a dial. Returns the pause before the next one.
    fn pause(&mut self, [first, longest]: [Duration; 2]) -> Duration {
        self.dials += 1;
        doubled(first, longest, self.dials)
    }

    /// True where the member lives, for all that this daemon knows. The last words of one that ended are
    /// older than the end of its link.
    fn lives(&self, heard: Option<Duration>, now: Instant) -> bool {
        let without = now.saturating_duration_since(self.since);
        match heard {
            Some(age) => age < LIVES && !(self.lost && age >= without),
            None => self.fresh && without < SILENT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn at() -> Vec<Multiaddr> {
        vec!["/ip4/192.0.2.1/udp/1/quic-v1".parse().unwrap()]
    }

    /// The steps that are due, if the member spoke this many seconds ago.
    fn due(gaps: &mut Gaps, spoke: u64, now: Instant) -> Vec<Step> {
        let due = gaps.due(|_| Some(S * spoke as u32), |_| true, now);
        due.into_iter().map(|(_, step)| step).collect()
    }

    #[test]
    fn a_member_that_speaks_and_cannot_be_dialled_is_reached_through_others_until_a_direct_dial_succeeds()
     {
        let (peer, start) = (PeerId::random(), Instant::now());
        let mut gaps = Gaps::default();
        gaps.sought(peer, at(), true, start);
        assert!(due(&mut gaps, 4, start + 2 * S).is_empty() && !gaps.need());
        let now = start + PATIENCE;
        assert_eq!(gaps.next_at(), Some(now));
        assert!(due(&mut gaps, 4, now).is_empty() && gaps.need());
        let now = now + HEAD_START;
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let now = gaps.next_at().unwrap();
            assert_eq!(due(&mut gaps, 4, now), [Step::Through(at())]);
            pauses.push(gaps.next_at().unwrap() - now);
        }
        assert_eq!(pauses[..3], [S, 2 * S, 4 * S]);
        assert_eq!(pauses.last(), Some(&CIRCUIT_PAUSES[1]));
        gaps.reserved(|_| true, now);
        assert_eq!(
            gaps.next_at(),
            Some(now),
            "a reservation makes it due at once"
        );
        gaps.relayed(&peer, true, now);
        assert!(gaps.need());
        let [first, _] = DIRECT_PAUSES;
        assert_eq!(gaps.next_at(), Some(now + first));
        gaps.relayed(&peer, true, now + S);
        assert_eq!(
            gaps.next_at(),
            Some(now + first),
            "said again, it changes nothing"
        );
        let later = now + first;
        assert_eq!(due(&mut gaps, 400, later), [Step::Directly(at())]);
        assert_eq!(gaps.next_at(), Some(later + first));
        assert!(gaps.over(&peer) && !gaps.need() && gaps.next_at().is_none());
    }

    #[test]
    fn a_member_that_ended_is_not_sought_through_others() {
        let (peer, start) = (PeerId::random(), Instant::now());
        let mut gaps = Gaps::default();
        gaps.lost(peer, start);
        let now = start + PATIENCE;
        assert!(
            due(&mut gaps, 1, now).is_empty() && !gaps.need(),
            "no one asked for it"
        );
        gaps.sought(peer, at(), true, now);
        let now = start + 5 * S;
        assert!(
            due(&mut gaps, 6, now).is_empty() && !gaps.need(),
            "its last words"
        );
        assert!(
            due(&mut gaps, 2, now + S).is_empty() && gaps.need(),
            "it spoke again"
        );
        assert!(
            due(&mut gaps, 16, now + 3 * S).is_empty() && !gaps.need(),
            "and ended"
        );
        assert!(due(&mut gaps, 400, now + 2 * SOUGHT).is_empty() && gaps.gaps.is_empty());
    }

    #[test]
    fn a_relayed_link_that_breaks_is_made_again_at_once() {
        let (peer, now) = (PeerId::random(), Instant::now());
        let mut gaps = Gaps::default();
        gaps.relayed(&peer, true, now);
        assert!(gaps.next_at().is_none(), "this end did not seek it");
        gaps.sought(peer, at(), true, now);
        assert!(!gaps.broken(&peer, now));
        gaps.relayed(&peer, false, now);
        let now = now + 9 * S;
        assert!(gaps.broken(&peer, now));
        // One that is never heard of is taken to live for a while.
        let steps = gaps.due(|_| None, |_| true, now);
        assert_eq!(steps, [(peer, Step::Through(at()))]);
        assert!(gaps.due(|_| None, |_| true, now + SILENT).is_empty() && !gaps.need());
    }

    #[test]
    fn where_the_other_end_has_reserved_this_one_reserves_only_if_a_dial_fails() {
        let (peer, now) = (PeerId::random(), Instant::now());
        let circuit: Multiaddr = "/ip4/192.0.2.1/udp/1/quic-v1/p2p-circuit".parse().unwrap();
        let mut gaps = Gaps::default();
        gaps.sought(peer, vec![circuit.clone()], true, now);
        let later = now + PATIENCE;
        assert!(due(&mut gaps, 1, later).is_empty() && !gaps.need());
        let later = later + HEAD_START;
        let through = [Step::Through(vec![circuit])];
        assert_eq!(due(&mut gaps, 1, later), through);
        assert!(!gaps.need());
        assert_eq!(due(&mut gaps, 1, later + S), through);
        assert!(gaps.need());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let now = Instant::now();
        let mut gaps = Gaps::default();
        for _ in 0..GAPS_MAX {
            gaps.sought(PeerId::random(), at(), true, now);
        }
        let lost = PeerId::random();
        gaps.lost(lost, now);
        gaps.sought(PeerId::random(), at(), true, now);
        assert_eq!(gaps.gaps.len(), GAPS_MAX);
        assert!(!gaps.gaps.contains_key(&lost), "no one asked for it");
    }
}
