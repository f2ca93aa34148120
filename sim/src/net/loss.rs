//! Loss: each control message and each attempt at a slice is lost with the same probability.
//!
//! Real links retransmit packets. A peer notices a bad link by messages dropped from a full queue
//! and by broken streams, which this models.

use crate::random::Random;

/// Independent loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// In `[0, 1)`.
    pub(crate) probability: f64,
}

/// The fate of one push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Arrives, and so does its acknowledgement.
    Arrives,
    /// Never arrives; the sender notices after its time-out.
    Lost,
    /// Arrives, but this number of acknowledgements is lost before one arrives.
    Unheard(u32),
}

impl Loss {
    /// Draws the loss of one message.
    pub(crate) fn strikes(&self, random: &mut Random) -> bool {
        random.chance(self.probability)
    }

    /// Draws the fate of one push.
    pub(crate) fn fate(&self, random: &mut Random) -> Fate {
        if self.strikes(random) {
            return Fate::Lost;
        }
        let mut lost = 0;
        while self.strikes(random) {
            lost += 1;
        }
        match lost {
            0 => Fate::Arrives,
            lost => Fate::Unheard(lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    #[test]
    fn fates_come_with_their_probabilities() {
        let loss = Loss { probability: 0.2 };
        let mut random = Random::new(3, Purpose::Network);
        let fates: Vec<_> = (0..20_000).map(|_| loss.fate(&mut random)).collect();
        let share = |wanted: fn(&Fate) -> bool| {
            fates.iter().filter(|fate| wanted(fate)).count() as f64 / fates.len() as f64
        };
        // Five standard errors of a share of 0.2 over 20,000 draws are 0.015.
        assert!((share(|f| *f == Fate::Lost) - 0.2).abs() < 0.015);
        assert!((share(|f| matches!(f, Fate::Unheard(_))) - 0.16).abs() < 0.015);
    }

    #[test]
    fn a_perfect_network_loses_nothing() {
        let mut random = Random::new(3, Purpose::Network);
        assert_eq!(Loss { probability: 0.0 }.fate(&mut random), Fate::Arrives);
    }
}
