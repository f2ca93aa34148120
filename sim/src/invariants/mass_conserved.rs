//! Gossip: the sum of push-sum weight over live peers and transfers in flight is conserved.
//!
//! The expected sum changes only through external events: a crash, a start, a state taken over, or
//! a transfer lost with its link.

/// Tolerance relative to the number of peers: the rounding of a few million additions in f64, each
/// with an error of at most 2^-53 of the sum.
const TOLERANCE: f64 = 1e-9;

/// The expected and the actual sum.
#[derive(Debug)]
pub(super) struct MassConserved {
    held: Vec<f64>,
    held_sum: f64,
    flying: f64,
    expected: f64,
    checks: u64,
}

impl MassConserved {
    pub(super) fn new(peers: usize) -> Self {
        Self {
            held: vec![0.0; peers],
            held_sum: 0.0,
            flying: 0.0,
            expected: 0.0,
            checks: 0,
        }
    }

    fn set(&mut self, index: usize, held: f64) -> f64 {
        let change = held - std::mem::replace(&mut self.held[index], held);
        self.held_sum += change;
        change
    }

    /// An external event gave weight to a peer or took it away.
    pub(super) fn rebase(&mut self, index: usize, held: f64) {
        self.expected += self.set(index, held);
    }

    pub(super) fn leaves(&mut self, mass: f64) -> f64 {
        self.flying += mass;
        mass
    }

    pub(super) fn lands(&mut self, mass: f64) {
        self.flying -= mass;
    }

    pub(super) fn vanishes(&mut self, mass: f64) {
        self.flying -= mass;
        self.expected -= mass;
    }

    pub(super) fn check(&mut self, index: usize, held: f64) -> Result<(), String> {
        self.set(index, held);
        self.checks += 1;
        if self.checks.is_multiple_of(1 << 16) {
            // Adding differences accumulates rounding, so sum up all peers from time to time.
            self.held_sum = self.held.iter().sum();
        }
        let there = self.held_sum + self.flying;
        let apart = (there - self.expected).abs();
        if apart <= TOLERANCE * self.held.len() as f64 {
            Ok(())
        } else {
            Err(format!(
                "push-sum weight is not conserved: {there} is there ({} of it under way), \
                 {} should be",
                self.flying, self.expected
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_conserves_and_losing_is_found() {
        let mut books = MassConserved::new(2);
        books.rebase(0, 1.0);
        books.rebase(1, 1.0);
        let mass = books.leaves(0.5);
        assert!(books.check(0, 0.5).is_ok());
        books.lands(mass);
        assert!(books.check(1, 1.5).is_ok());
        books.leaves(0.25);
        assert!(books.check(0, 0.25).is_ok());
        books.vanishes(0.25);
        assert!(books.check(0, 0.25).is_ok());
        assert!(books.check(1, 1.4).is_err());
    }
}
