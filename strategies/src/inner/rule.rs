//! What the plan says of one inner step beside its gradient: the factor on the learning rate, and the
//! tensors that do not decay.

use std::ops::Range;
use std::sync::Arc;

/// The rule of an inner step.
#[derive(Clone, Debug)]
pub struct StepRule {
    /// The factor on the learning rate.
    pub rate: f64,
    /// Places of the tensors without weight decay: whole tensors, in ascending order.
    pub undecayed: Arc<[Range<usize>]>,
}

impl Default for StepRule {
    fn default() -> Self {
        Self {
            rate: 1.0,
            undecayed: Arc::from([]),
        }
    }
}

impl StepRule {
    /// Set where the tensor at this place of the flat parameters decays.
    pub fn decays(&self, tensor: &Range<usize>) -> bool {
        let first = self.undecayed.partition_point(|r| r.end <= tensor.start);
        let next = self.undecayed.get(first);
        next.is_none_or(|range| range.start >= tensor.end)
    }

    /// Cuts a piece of the parameters where decay begins or ends: each part with whether it decays.
    pub(super) fn parts(&self, piece: &Range<usize>) -> Vec<(Range<usize>, bool)> {
        let mut parts = Vec::new();
        let mut at = piece.start;
        let first = self.undecayed.partition_point(|r| r.end <= piece.start);
        for range in &self.undecayed[first..] {
            if range.start >= piece.end {
                break;
            }
            let (start, end) = (range.start.max(at), range.end.min(piece.end));
            if at < start {
                parts.push((at..start, true));
            }
            parts.push((start..end, false));
            at = end;
        }
        if at < piece.end {
            parts.push((at..piece.end, true));
        }
        parts
    }
}

/// Match of a name with a pattern, in which `*` stands for any characters, also none.
pub fn fits(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(pieces.next().unwrap_or("")) else {
        return false;
    };
    let mut last = None;
    for piece in pieces {
        // The piece before this one was not the last: its first occurrence leaves the most.
        if let Some(before) = last.replace(piece) {
            let Some(at) = rest.find(before) else {
                return false;
            };
            rest = &rest[at + before.len()..];
        }
    }
    match last {
        None => rest.is_empty(),
        Some(end) => rest.ends_with(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_cut_where_decay_changes() {
        let rule = StepRule {
            undecayed: Arc::from([2..4, 4..5, 8..10]),
            ..StepRule::default()
        };
        let parts = |piece: Range<usize>| rule.parts(&piece);
        assert_eq!(
            parts(0..12),
            [
                (0..2, true),
                (2..4, false),
                (4..5, false),
                (5..8, true),
                (8..10, false),
                (10..12, true)
            ]
        );
        assert_eq!(
            parts(3..9),
            [(3..4, false), (4..5, false), (5..8, true), (8..9, false)]
        );
        assert_eq!(parts(5..8), [(5..8, true)]);
        assert_eq!(parts(6..6), []);
        assert_eq!(StepRule::default().parts(&(0..7)), [(0..7, true)]);
        let decays = |tensor: Range<usize>| rule.decays(&tensor);
        assert!(decays(0..2) && decays(5..8) && decays(10..12));
        assert!(!decays(2..4) && !decays(4..5) && !decays(8..10));
    }

    #[test]
    fn patterns_fit_by_their_stars() {
        for (pattern, name) in [
            ("*.bias", "layers.0.bias"),
            ("*norm*", "blocks.3.norm_1.gamma"),
            ("*norm*", "norm"),
            ("out.weight", "out.weight"),
            ("a*b*c", "aXbXbXc"),
            ("*", ""),
            ("a*a", "aa"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*.bias", "bias"),
            ("*.bias", "layers.0.bias.x"),
            ("out", "outer"),
            ("a*b*c", "acb"),
            ("a*a", "a"),
            ("", "x"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}
