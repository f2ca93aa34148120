//! Exchanges between two: both ends of a link have mixed the same exchanges with the same weights,
//! but for one that one of them has not come to yet. What one gained the other has lost, or will
//! have.

use murmurate_protocol::{FragmentId, PeerId, Standing};
use std::collections::BTreeMap;

/// What every peer has mixed with every neighbour.
#[derive(Debug, Default)]
pub(super) struct EdgesAgree {
    ends: BTreeMap<(PeerId, PeerId, FragmentId), Standing>,
}

impl EdgesAgree {
    /// A peer is gone, and with it its record of exchanges.
    pub(super) fn gone(&mut self, peer: PeerId) {
        self.ends.retain(|(of, _, _), _| *of != peer);
    }

    pub(super) fn check(&mut self, me: PeerId, standings: &[Standing]) -> Result<(), String> {
        let first = (me, PeerId::from_bytes([0; 32]), FragmentId(0));
        let mine: Vec<_> = self.ends.range(first..).map(|(key, _)| *key).collect();
        for key in mine.into_iter().take_while(|(of, _, _)| *of == me) {
            self.ends.remove(&key);
        }
        for standing in standings {
            self.ends
                .insert((me, standing.peer, standing.fragment), *standing);
            let theirs = self.ends.get(&(standing.peer, me, standing.fragment));
            if let Some(theirs) = theirs.filter(|theirs| theirs.session == standing.session) {
                compare(standing, theirs)?;
            }
        }
        Ok(())
    }
}

fn compare(mine: &Standing, theirs: &Standing) -> Result<(), String> {
    let same = mine.weight.to_bits() == theirs.weight.to_bits();
    match mine.exchanges.abs_diff(theirs.exchanges) {
        0 if same => Ok(()),
        1 => Ok(()),
        _ => Err(format!(
            "two ends of a link have not mixed the same: {mine:?} and {theirs:?}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(id: u8) -> PeerId {
        PeerId::from_bytes([id; 32])
    }

    fn standing(peer: PeerId, session: u32, exchanges: u32, weight: f64) -> [Standing; 1] {
        [Standing {
            peer,
            fragment: FragmentId(0),
            session,
            exchanges,
            weight,
        }]
    }

    #[test]
    fn ends_may_be_one_apart_and_no_more() {
        let (a, b) = (peer(1), peer(2));
        let mut edges = EdgesAgree::default();
        assert!(edges.check(a, &standing(b, 1, 1, 0.5)).is_ok());
        assert!(edges.check(b, &standing(a, 1, 0, 0.0)).is_ok());
        assert!(edges.check(b, &standing(a, 1, 1, 0.5)).is_ok());
        assert!(edges.check(b, &standing(a, 1, 1, 0.25)).is_err());
        assert!(edges.check(a, &standing(b, 1, 3, 1.5)).is_err());
        assert!(edges.check(a, &standing(b, 2, 0, 0.0)).is_ok());
        assert!(edges.check(a, &[]).is_ok());
        assert!(edges.check(b, &standing(a, 1, 9, 2.0)).is_ok());
        edges.gone(b);
        assert!(edges.check(a, &standing(b, 1, 0, 0.0)).is_ok());
    }
}
