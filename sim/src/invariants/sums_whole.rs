//! Where contributions are masked, what an observer of all owners and all sums learns. A peer masks a round's delta
//! for one group, and a sum is of all members for which its contributions are masked. So two sums of a
//! round have all members in common or none, and their difference tells not what one member contributed.

use murmurate_protocol::{
    Combination, FragmentId, Order, PeerId, Piece, Round, SliceId, SortedMap, Source,
};

/// Rounds to remember: no order is about an older one.
const WINDOW: u64 = 256;

/// Members of a sum with their weights.
type Of = Vec<(PeerId, f64)>;

/// Masked deltas, and sums of them.
#[derive(Debug)]
pub(super) struct SumsWhole {
    /// The fewest members of a sum.
    least: usize,
    masked: SortedMap<(Round, FragmentId, PeerId), Of>,
    broken: Option<String>,
}

impl SumsWhole {
    pub(super) fn new(least: usize) -> Self {
        Self {
            least,
            masked: SortedMap::new(),
            broken: None,
        }
    }

    /// Notes what a peer's Executor did.
    pub(super) fn worked(&mut self, me: PeerId, order: &Order) {
        match order {
            Order::Encode {
                slice,
                from: Source::Masked(members),
                ..
            } => self.masks(me, slice, members),
            Order::Combine {
                piece,
                how: Combination::Reduce(inputs),
            } => self.sums(*piece, inputs),
            _ => {}
        }
    }

    /// The first rule that was broken.
    pub(super) fn check(&self) -> Result<(), String> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    fn masks(&mut self, me: PeerId, slice: &SliceId, members: &Of) {
        let place = (slice.round, slice.fragment, me);
        let known = self.masked.entry(place).or_insert_with(|| members.clone());
        if known != members {
            self.broken = Some(format!("masks one delta for two groups in {}", slice.round));
        }
        let oldest = Round(slice.round.0.saturating_sub(WINDOW));
        self.masked.retain(|(round, ..), _| *round >= oldest);
    }

    fn sums(&mut self, piece: Piece, inputs: &[(SliceId, f64)]) {
        let Some((first, _)) = inputs.first() else {
            return;
        };
        let of: Of = inputs
            .iter()
            .map(|(s, weight)| (s.origin, *weight))
            .collect();
        let masked = |peer: &PeerId| self.masked.get(&(first.round, piece.fragment, *peer));
        let others = of.iter().filter(|(peer, _)| masked(peer) != Some(&of));
        if let Some((other, _)) = others.into_iter().next() {
            self.broken = Some(format!("sums what {other} masked for another group"));
        }
        if of.len() < self.least {
            self.broken = Some(format!("opens a sum of {} members", of.len()));
        }
    }
}
