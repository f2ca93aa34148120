//! Where a peer is in its data, as checkpoints keep it.

use super::course::Leg;

/// The place of the next window. It names the passages of its leg, so that a leg that was begun is
/// finished also after the data was dealt again.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Position {
    /// The leg; it has no passages before the first one.
    pub(super) leg: Leg,
    /// The next window of the leg's shuffled windows.
    pub(super) window: u64,
}

impl Position {
    /// Before the first leg of a pass.
    pub(super) const fn start_of(pass: u64) -> Self {
        Self {
            leg: Leg {
                pass,
                end: 0,
                passages: Vec::new(),
            },
            window: 0,
        }
    }

    /// Its bytes, for data of this many passages: integers with the least byte first.
    ///
    /// ```text
    /// u64 passages of the data   u64 pass   u64 end of the leg   u64 window   u32 each passage
    /// ```
    pub(super) fn to_bytes(&self, of: usize) -> Vec<u8> {
        let Leg {
            pass,
            end,
            passages,
        } = &self.leg;
        let mut bytes = Vec::with_capacity(32 + 4 * passages.len());
        for number in [of as u64, *pass, *end, self.window] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(passages.iter().flat_map(|passage| passage.to_le_bytes()));
        bytes
    }

    /// The position of [`Position::to_bytes`]. If the data has another number of passages, files were
    /// added or removed: then it is the start of the same pass. `None` if the bytes are not a position.
    pub(super) fn from_bytes(bytes: &[u8], of: usize) -> Option<Self> {
        let (numbers, rest) = bytes.split_at_checked(32)?;
        let (numbers, []) = numbers.as_chunks::<8>() else {
            return None;
        };
        let (passages, []) = rest.as_chunks::<4>() else {
            return None;
        };
        let numbers: Vec<u64> = numbers.iter().map(|n| u64::from_le_bytes(*n)).collect();
        let passages: Vec<u32> = passages.iter().map(|n| u32::from_le_bytes(*n)).collect();
        let (pass, end, window) = (numbers[1], numbers[2], numbers[3]);
        if numbers[0] != of as u64 {
            return Some(Self::start_of(pass));
        }
        let fits = end <= of as u64 && passages.iter().all(|&passage| (passage as usize) < of);
        let leg = Leg {
            pass,
            end,
            passages,
        };
        fits.then_some(Self { leg, window })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let leg = Leg {
            pass: 3,
            end: 7,
            passages: vec![1, 4, 6],
        };
        let position = Position { leg, window: 99 };
        let bytes = position.to_bytes(9);
        assert_eq!(Position::from_bytes(&bytes, 9), Some(position));
        assert_eq!(
            Position::from_bytes(&bytes, 10),
            Some(Position::start_of(3))
        );
        assert_eq!(Position::from_bytes(&bytes[..43], 9), None);
        assert_eq!(Position::from_bytes(&bytes[..31], 9), None);
        let start = Position::start_of(0);
        assert_eq!(Position::from_bytes(&start.to_bytes(2), 2), Some(start));
    }
}
