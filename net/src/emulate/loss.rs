//! Chooses which datagrams a link loses: independently, or in bursts. The choice is seeded, so it
//! repeats.

use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

/// A number evenly distributed over `[0, 1)`.
pub(super) fn share(rng: &mut ChaCha8Rng) -> f64 {
    // 53 bits fill an f64's mantissa.
    (rng.next_u64() >> 11) as f64 * 2f64.powi(-53)
}

/// Decides the fate of one datagram after the other.
///
/// With a mean burst length `L`, a two-state Markov chain that loses nothing in its good state and
/// everything in its bad one (Gilbert, "Capacity of a burst-noise channel", 1960, with h = 0): it
/// leaves the bad state with probability `r = 1/L` and the good one with `p = r loss / (1 - loss)`,
/// so that the stationary share of the bad state, `p / (p + r)`, is `loss`. Without a burst length,
/// losses are independent.
#[derive(Clone, Debug)]
pub(super) struct LossModel {
    begin: f64,
    stay: f64,
    bad: bool,
}

impl LossModel {
    /// Loses the fraction `loss`, in bursts of mean length `burst`, which is at least 1. If `loss`
    /// is 1, everything is lost.
    pub(super) fn new(loss: f64, burst: Option<f64>) -> Self {
        let (begin, stay) = match burst {
            _ if loss >= 1.0 => (1.0, 1.0),
            None => (loss, loss),
            Some(length) => {
                let leave = 1.0 / length.max(1.0);
                ((leave * loss / (1.0 - loss)).min(1.0), 1.0 - leave)
            }
        };
        Self {
            begin,
            stay,
            bad: false,
        }
    }

    /// Decides if the next datagram is lost. Draws exactly one random number.
    pub(super) fn next(&mut self, rng: &mut ChaCha8Rng) -> bool {
        let chance = if self.bad { self.stay } else { self.begin };
        self.bad = share(rng) < chance;
        self.bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    const DRAWS: usize = 400_000;

    /// The fraction lost, and the mean length of runs of losses.
    fn measure(loss: f64, burst: Option<f64>) -> (f64, f64) {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut model = LossModel::new(loss, burst);
        let (mut lost, mut bursts, mut before) = (0usize, 0usize, false);
        for _ in 0..DRAWS {
            let now = model.next(&mut rng);
            lost += usize::from(now);
            bursts += usize::from(now && !before);
            before = now;
        }
        (
            lost as f64 / DRAWS as f64,
            lost as f64 / bursts.max(1) as f64,
        )
    }

    #[test]
    fn random_loss_has_its_share_and_the_bursts_of_chance() {
        let (share, length) = measure(0.03, None);
        // Four standard deviations of a binomial fraction.
        assert!((share - 0.03).abs() < 4.0 * (0.03 * 0.97 / DRAWS as f64).sqrt());
        assert!((length - 1.0 / 0.97).abs() < 0.02, "{length}");
    }

    #[test]
    fn burst_loss_has_its_share_and_its_length() {
        let (share, length) = measure(0.02, Some(8.0));
        assert!((share - 0.02).abs() < 0.003, "{share}");
        assert!((length - 8.0).abs() < 0.5, "{length}");
    }

    #[test]
    fn nothing_and_everything() {
        assert_eq!(measure(0.0, None).0, 0.0);
        assert_eq!(measure(0.0, Some(8.0)).0, 0.0);
        assert_eq!(measure(1.0, None).0, 1.0);
        assert_eq!(measure(1.0, Some(8.0)).0, 1.0);
    }
}
