//! What the peers of a round agree on about the rates of their links, for topologies that choose by it.

/// The class of every link among `count` peers, by rank; symmetric.
///
/// Class c from 1 to 64 is a rate of at least `2^(c - 1)` and less than `2^c` bytes per second. Class 0
/// is a link that neither end has measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRates {
    count: usize,
    classes: Vec<u8>,
}

impl LinkRates {
    /// The fastest class.
    pub const CLASS_MAX: u8 = u64::BITS as u8;

    /// Asks for the class of every pair of different ranks, the lower one first.
    pub fn new(count: usize, class: impl Fn(usize, usize) -> u8) -> Self {
        let mut classes = vec![0; count * count];
        for a in 0..count {
            for b in a + 1..count {
                let class = class(a, b);
                classes[a * count + b] = class;
                classes[b * count + a] = class;
            }
        }
        Self { count, classes }
    }

    /// How many peers there are.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The class of the link between two ranks; 0 beyond the last rank.
    pub fn class(&self, a: usize, b: usize) -> u8 {
        match b < self.count {
            true => self.classes.get(a * self.count + b).copied().unwrap_or(0),
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_symmetric_and_none_beyond_the_last_rank() {
        let rates = LinkRates::new(3, |a, b| (10 * a + b) as u8);
        for (a, b, class) in [(0, 1, 1), (2, 0, 2), (1, 2, 12), (2, 1, 12), (1, 1, 0)] {
            assert_eq!(rates.class(a, b), class);
        }
        assert_eq!((rates.class(0, 3), rates.class(3, 0)), (0, 0));
    }
}
