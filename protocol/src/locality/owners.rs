//! Which members of a group are fast enough to own parts.

use super::RateClass;

/// A member this many octaves below the fastest is slow.
const SLOW_OCTAVES: u8 = 2;

/// At least one member in this many owns parts, however slow it is: each of few owners sends the result
/// to all.
const OWNERS_AT_LEAST: usize = 4;

/// Which of some members own parts. An owner of one of o parts among c members sends c/o times what a
/// member does that owns none, so a member is left out only if it is slow beside others that are enough.
/// A member whose rate is not known is not slow.
pub(crate) fn fast_enough(rates: &[Option<RateClass>]) -> Vec<bool> {
    let best = rates.iter().flatten().max();
    let mut bar = best.map_or(0, |best| best.number().saturating_sub(SLOW_OCTAVES - 1));
    let least = rates.len().div_ceil(OWNERS_AT_LEAST);
    loop {
        let is_fast = |rate: &Option<RateClass>| rate.is_none_or(|rate| rate.number() >= bar);
        let fast: Vec<bool> = rates.iter().map(is_fast).collect();
        if bar == 0 || fast.iter().filter(|fast| **fast).count() >= least {
            return fast;
        }
        bar -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fast(rates: &[Option<u32>]) -> Vec<bool> {
        let rates: Vec<Option<RateClass>> = rates
            .iter()
            .map(|rate| rate.map(|octave| RateClass::of(1024 << octave)))
            .collect();
        fast_enough(&rates)
    }

    #[test]
    fn the_slow_own_nothing_and_the_unknown_are_not_slow() {
        assert_eq!(
            fast(&[Some(9), Some(8), Some(7), None]),
            [true, true, false, true]
        );
        assert_eq!(fast(&[None, None]), [true, true]);
        assert_eq!(fast(&[Some(0), Some(1)]), [true, true]);
        assert!(fast(&[]).is_empty());
    }

    #[test]
    fn a_quarter_owns_parts_however_slow() {
        let one_fast = [
            Some(20),
            Some(3),
            Some(3),
            Some(5),
            Some(2),
            Some(2),
            Some(2),
        ];
        assert_eq!(
            fast(&one_fast),
            [true, false, false, true, false, false, false]
        );
        // Members of one class are alike.
        let one_fast = [Some(20), Some(3), Some(3), Some(3), Some(3)];
        assert_eq!(fast(&one_fast), [true; 5]);
        assert_eq!(
            fast(&[Some(20), Some(3), Some(3), Some(3)]),
            [true, false, false, false]
        );
    }
}
