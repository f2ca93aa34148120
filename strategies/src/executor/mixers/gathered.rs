//! Contributions that every member gathers: each member computes the same move of the anchor from them.

use crate::aggregate::{Aggregator, RMS_MAX, quarantine};
use crate::compress::{Agreed, Bad, Contributed, Gathering};
use crate::executor::codecs::{bad_slice, bytes_of, seeds};
use crate::executor::frame::Held;
use crate::executor::host::{Host, WorkResult};
use crate::executor::mix_core::MixCore;
use crate::executor::mixer::{End, Inputs, Mixer, Rule, Work, foreign, total};
use bytes::Bytes;
use murmurate_protocol::{Combination, Done, Piece, SliceId, WorkError};

/// Moves that every member computes itself.
pub(super) struct Gathered {
    rule: Rule,
    /// Room for the move of the anchor.
    moved: Vec<f32>,
}

impl Gathered {
    pub(super) fn new(rule: Option<Box<dyn Aggregator>>) -> Self {
        Self {
            rule: Rule::new(rule),
            moved: Vec::new(),
        }
    }
}

impl Mixer for Gathered {
    fn combine(&mut self, _: Work<'_>, _: Piece, _: &Combination) -> WorkResult<Done> {
        Err(foreign("combine"))
    }

    fn apply(&mut self, mut work: Work<'_>, end: End, decided: &[SliceId]) -> WorkResult {
        work.apply_aggregates(end, decided)
    }

    fn gather(&mut self, work: Work<'_>, end: End, inputs: Inputs<'_>) -> WorkResult {
        let (core, host) = (work.core, work.host);
        // Only this peer lacks it. To leave it out, as bytes that are bad, would leave this peer with
        // another anchor than the others.
        if let Some((slice, _)) = inputs.iter().find(|(slice, _)| host.get(slice).is_none()) {
            return Err(WorkError::Gone { slice: *slice });
        }
        if inputs.is_empty() {
            // Members admitted no one: the anchor stays, and the trainer begins at it again.
            core.local.set(end.fragment, Held::TakeAnchor);
            return Ok(());
        }
        let moved = &mut self.moved;
        if core.contributions.common.is_some() {
            gather_in_common(core, end, inputs, moved, host)?;
        } else {
            let len = core.places.of(end.fragment).len();
            self.rule.reduce(&core.codecs, moved, len, inputs, host)?;
        }
        core.put_in_force(end, moved)
    }

    fn shards(&self) -> usize {
        self.rule.len() + self.moved.len()
    }
}

/// Combines a fragment's contributions into `moved` and updates the common state. If it fails,
/// nothing has changed.
fn gather_in_common(
    core: &mut MixCore,
    End {
        round, fragment, ..
    }: End,
    inputs: Inputs<'_>,
    moved: &mut Vec<f32>,
    host: &dyn Host,
) -> WorkResult {
    let Some(common) = &core.contributions.common else {
        return Ok(());
    };
    let range = core.places.of(fragment);
    let total = total(inputs);
    let bytes = inputs.iter().map(|(slice, _)| bytes_of(*slice, host));
    let bytes = bytes.collect::<Result<Vec<Bytes>, _>>()?;
    let given = inputs.iter().zip(&bytes);
    let contributions: Vec<Contributed<'_>> = given
        .map(|((slice, weight), bytes)| Contributed {
            bytes,
            share: (weight / total) as f32,
            held: common.known_of(fragment, slice.origin),
        })
        .collect();
    let plan = &core.codecs.plan;
    let shared_seed = inputs.first().map_or(0, |(slice, _)| seeds(plan, slice).1);
    let own = inputs
        .iter()
        .position(|(s, _)| core.contributions.is_own(s));
    let agreed = Agreed {
        contributions: &contributions,
        own,
        round: round.0,
        shared_seed,
        shared: common.shared(fragment),
    };
    let Some(codec) = core.codecs.contribution.of_mut(fragment).gathering() else {
        return Ok(());
    };
    gather_checked(codec, &agreed, range.len(), inputs, moved)?;
    if let Some(residual) = &mut core.contributions.residual {
        codec.take_back(&agreed, moved, &mut residual[range.clone()]);
    }
    let mut next = Vec::new();
    codec.settle(&agreed, moved, &mut next);
    if let Some(common) = &mut core.contributions.common {
        common.advance(codec, inputs, &bytes, next, range.len());
    }
    Ok(())
}

/// Gathers and checks the move. A move that fails the quarantine names the contribution that fails alone.
fn gather_checked(
    codec: &mut dyn Gathering,
    agreed: &Agreed<'_>,
    len: usize,
    inputs: Inputs<'_>,
    moved: &mut Vec<f32>,
) -> WorkResult {
    let of = |at: usize| inputs[at.min(inputs.len() - 1)].0;
    gather(codec, agreed, len, moved).map_err(|(at, reason)| bad_slice(of(at), reason))?;
    let Err(error) = quarantine(moved, RMS_MAX) else {
        return Ok(());
    };
    let alone = (0..inputs.len()).find(|at| {
        let one = [Contributed {
            share: 1.0,
            ..agreed.contributions[*at]
        }];
        let one = Agreed {
            contributions: &one,
            own: None,
            ..*agreed
        };
        gather(codec, &one, len, moved).is_err() || quarantine(moved, RMS_MAX).is_err()
    });
    // Where each passes alone, one of them has to be blamed: the last.
    Err(bad_slice(
        of(alone.unwrap_or(usize::MAX)),
        error.to_string(),
    ))
}

fn gather(
    codec: &mut dyn Gathering,
    agreed: &Agreed<'_>,
    len: usize,
    moved: &mut Vec<f32>,
) -> Result<(), (usize, String)> {
    moved.clear();
    moved.resize(len, 0.0);
    let gathered = codec.gather(agreed, moved);
    gathered.map_err(|Bad { at, error }| (at, error.to_string()))
}
