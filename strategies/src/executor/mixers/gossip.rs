//! Gossip, push, pull and pairs: each round ends with a weighted mean of parameters. Without any
//! exchange the mean is of this peer's parameters alone.

use super::mixed::{mean, mean_of_parts};
use crate::aggregate::Aggregator;
use crate::correct::Companion;
use crate::executor::frame::Held;
use crate::executor::host::WorkResult;
use crate::executor::mix_core::MixCore;
use crate::executor::mixer::{End, Mixer, Rule, Work};
use murmurate_protocol::{Combination, Done, FragmentId, Piece, SliceId};

/// Means of parameters.
pub(super) struct Gossip {
    rule: Rule,
    /// Room for a slice, where slices are parts of the parameters.
    part: Option<Vec<f32>>,
    anchors: Option<Anchors>,
}

/// Anchors that travel beside the parameters: [`Companion::Anchors`].
struct Anchors {
    lr: f32,
    pull: f32,
    /// Fragments whose round has ended; the anchor moves once both of a pair have.
    ended: Vec<bool>,
}

impl Gossip {
    pub(super) fn new(
        fragments: usize,
        companion: Companion,
        rule: Option<Box<dyn Aggregator>>,
        parts: bool,
    ) -> Self {
        let anchors = match companion {
            Companion::Anchors { lr, pull } => Some(Anchors {
                lr,
                pull,
                ended: vec![false; fragments],
            }),
            _ => None,
        };
        Self {
            rule: Rule::new(rule),
            part: parts.then(Vec::new),
            anchors,
        }
    }
}

impl Mixer for Gossip {
    fn combine(&mut self, work: Work<'_>, piece: Piece, how: &Combination) -> WorkResult<Done> {
        work.mix_by(piece, how, |of| {
            let own = Some((of.local, of.keep as f32));
            let rule = &mut self.rule;
            let compared = rule.compare(of.codecs, own, of.mix, of.inputs, of.host);
            compared.unwrap_or_else(|| match &mut self.part {
                Some(part) => mean_of_parts(of, part),
                None => mean(of),
            })
        })
    }

    fn apply(&mut self, work: Work<'_>, end: End, _decided: &[SliceId]) -> WorkResult {
        work.core.end_mixed(end.fragment, false);
        if let Some(anchors) = &mut self.anchors {
            anchors.end(work.core, end.fragment);
        }
        Ok(())
    }

    fn cut(&mut self, core: &mut MixCore) {
        if let Some(anchors) = &mut self.anchors {
            // The second half of the contribution is the anchor itself.
            let parameters = core.places.parameters();
            let companion = &core.anchor.values[parameters..];
            core.local.values()[parameters..].copy_from_slice(companion);
            anchors.ended.fill(false);
        }
    }

    fn start_over(&mut self, _core: &mut MixCore) {
        if let Some(anchors) = &mut self.anchors {
            anchors.ended.fill(false);
        }
    }

    fn shards(&self) -> usize {
        self.rule.len() + self.part.as_ref().map_or(0, Vec::len)
    }
}

impl Anchors {
    /// A fragment's round has ended. Once the mixes of the parameters and of the anchor are both
    /// there, the outer optimizer moves the anchor, and the parameters become the anchor.
    fn end(&mut self, core: &mut MixCore, fragment: FragmentId) {
        let (half, index) = (core.places.count() / 2, usize::from(fragment.0));
        self.ended[index] = true;
        let (of_parameters, of_anchor) = (index % half, index % half + half);
        if !(self.ended[of_parameters] && self.ended[of_anchor]) {
            return;
        }
        let ranges = core.places.ranges();
        let (range, beside) = (ranges[of_parameters].clone(), ranges[of_anchor].clone());
        let before = &core.local.values()[beside];
        let (parameters, anchors, outer) = core.anchor.split();
        let (mixed, anchor) = (&mut parameters[range.clone()], &mut anchors[range.clone()]);
        for ((x, a), before) in mixed.iter_mut().zip(&mut *anchor).zip(before) {
            *x = self.lr * (*x - *a) + self.pull * (*a - before);
            *a = *before;
        }
        outer.apply(range, anchor, mixed);
        mixed.copy_from_slice(anchor);
        core.local.held[of_parameters] = Held::TakeAnchor;
        core.local.held[of_anchor] = Held::TakeAnchor;
    }
}
