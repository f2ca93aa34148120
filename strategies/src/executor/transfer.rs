//! The swarm's state as bytes: for newcomers (pin, load) and for checkpoints (save, restore).
//!
//! A transferred state is a header (magic, plan hash, round, inner steps), then little-endian f32:
//! anchor, outer optimizer, shared inner optimizer; then what the codec keeps in common, if anything. All
//! donors of one round make the same bytes.

use super::codec_state::CodecState;
use super::gathered::Common;
use super::host::{Host, manifest_of};
use super::mix_lane::{Local, MixLane};
use crate::correct::Companion;
use crate::state::{StateError, StateSink, StateSource};
use bytes::Bytes;
use murmurate_protocol::{Digest, Done, Round, StateId, WorkError};

/// Opens every transferred state; the digit is the layout's version.
const MAGIC: &[u8; 8] = b"MURMUR01";

/// What the trainer has yet to take over of each fragment, and the values for it.
const PENDING: &str = "overlap.pending";
const PENDING_VALUES: &str = "overlap.values";

/// Bytes before the values.
const HEADER_BYTES: usize = 8 + 32 + 8 + 8;

impl MixLane {
    /// Bytes of a transferred state, but for what the codec keeps in common.
    pub fn state_bytes(&self) -> u64 {
        let inner = self.inner.as_ref().map_or(0, |inner| inner.state().len());
        let values = self.anchor.len() + self.outer.state().len() + inner;
        (HEADER_BYTES + size_of::<f32>() * values) as u64
    }

    /// Keeps the state for newcomers.
    pub(super) fn pin(&mut self, round: Round, host: &dyn Host) -> Done {
        let mut out = Vec::with_capacity(self.state_bytes() as usize);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(self.plan.as_bytes());
        out.extend_from_slice(&round.0.to_le_bytes());
        let steps = self.inner.as_ref().map_or(0, |inner| inner.step_count());
        out.extend_from_slice(&steps.to_le_bytes());
        out.extend_from_slice(bytemuck::cast_slice(&self.anchor));
        out.extend_from_slice(bytemuck::cast_slice(self.outer.state()));
        if let Some(inner) = &self.inner {
            out.extend_from_slice(bytemuck::cast_slice(inner.state()));
        }
        if let Some(common) = &self.common {
            common.write(&mut out);
        }
        let manifest = manifest_of(&out);
        let state = StateId {
            round,
            root: Digest::of(&manifest),
            bytes: out.len() as u64,
        };
        host.pin(state, Bytes::from(manifest), Bytes::from(out));
        Done::Pinned(state)
    }

    /// Takes a fetched state over.
    pub(super) fn load_state(
        &mut self,
        state: &StateId,
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        let bad = |reason: &str| WorkError::BadState {
            reason: reason.to_owned(),
        };
        let bytes = host.take(state).ok_or_else(|| bad("it is not here"))?;
        let values = usize::try_from(self.state_bytes()).ok();
        let split = values.and_then(|len| bytes.split_at_checked(len));
        let (values, rest) = split.ok_or_else(|| bad("its size is not this model's"))?;
        let common = match &self.common {
            Some(_) => Some(
                Common::read(rest, &self.fragments)
                    .ok_or_else(|| bad("what the codec keeps in common is malformed"))?,
            ),
            None if rest.is_empty() => None,
            None => return Err(bad("its size is not this model's")),
        };
        let (header, values) = values.split_at(HEADER_BYTES);
        if header[..8] != *MAGIC {
            return Err(bad("it does not open like a state"));
        }
        if header[8..40] != *self.plan.as_bytes() {
            return Err(bad("it belongs to another plan"));
        }
        let number = |at: usize| {
            let mut eight = [0u8; 8];
            eight.copy_from_slice(&header[at..at + 8]);
            u64::from_le_bytes(eight)
        };
        if number(40) != state.round.0 {
            return Err(bad("it opens another round"));
        }
        let finite = values
            .chunks_exact(4)
            .all(|v| f32::from_le_bytes([v[0], v[1], v[2], v[3]]).is_finite());
        if !finite {
            return Err(bad("a value is not finite"));
        }
        let outer_len = size_of_val(self.outer.state());
        let (anchor, rest) = values.split_at(size_of_val(self.anchor.as_slice()));
        let (outer, inner) = rest.split_at(outer_len);
        fill(&mut self.anchor, anchor);
        fill(self.outer.state_mut(), outer);
        if let Some(optimizer) = &mut self.inner {
            fill(optimizer.state_mut(), inner);
            optimizer.set_step_count(number(48));
        }
        self.collect();
        self.start_over();
        self.common = common;
        Ok(Done::Loaded {
            digests: self.digests(),
        })
    }

    /// The anchor is another: the trainer takes it over and nothing of before counts any more.
    fn start_over(&mut self) {
        self.local.fill(Local::TakeAnchor);
        self.mixed.fill(false);
        self.landed.fill(false);
        self.encoded.clear();
        self.centers.clear();
        self.versions.clear();
        if let Some(residual) = &mut self.residual {
            residual.fill(0.0);
        }
        self.codec_state.clear();
        if let Some(common) = &mut self.common {
            common.clear();
        }
        if let Some(squeezed) = &mut self.squeezed {
            squeezed.clear();
        }
        if let Some(eager) = &mut self.eager {
            eager.start_over();
        }
        if self.companion == Companion::Flows {
            // What flowed along another's links, or along those of a life before, is known to nobody here.
            self.anchor[self.parameters..].fill(0.0);
            self.sum_flows();
        }
    }

    /// Writes what a resumed peer needs: `anchor`, `companion`, `residual`, the codec's and the optimizers' states.
    ///
    /// # Errors
    /// The sink's.
    pub fn save(&self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        let (anchor, companion) = self.anchor.split_at(self.parameters);
        sink.tensor("anchor", anchor)?;
        if !companion.is_empty() {
            sink.tensor("companion", companion)?;
        }
        if let Some(residual) = &self.residual {
            sink.tensor("residual", residual)?;
        }
        self.codec_state.save(sink)?;
        if let Some(common) = &self.common {
            common.save(sink)?;
        }
        self.outer.save(sink)?;
        if let Some(eager) = &self.eager {
            eager.save(sink)?;
        }
        self.save_pending(sink)?;
        match &self.inner {
            Some(inner) => inner.save("inner", sink),
            None => Ok(()),
        }
    }

    /// Takes back what [`MixLane::save`] wrote.
    ///
    /// # Errors
    /// When something is missing, does not fit or is not finite; nothing has changed then.
    pub fn restore(&mut self, source: &dyn StateSource) -> Result<(), StateError> {
        let saved = self.read(source)?;
        self.take(saved);
        Ok(())
    }

    /// Reads and checks all of what [`MixLane::save`] wrote, without a change.
    pub(super) fn read(&self, source: &dyn StateSource) -> Result<Saved, StateError> {
        let values = |name: &str, len: usize| {
            let mut values = vec![0.0; len];
            if len > 0 {
                source.tensor(name, &mut values)?;
            }
            match values.iter().all(|v| v.is_finite()) {
                true => Ok(values),
                false => Err(StateError::Malformed {
                    name: name.to_owned(),
                    reason: "a value is not finite".to_owned(),
                }),
            }
        };
        let inner = match &self.inner {
            Some(inner) => Some((steps(source)?, values("inner.state", inner.state().len())?)),
            None => None,
        };
        let mut anchor = values("anchor", self.parameters)?;
        anchor.append(&mut values(
            "companion",
            self.anchor.len() - self.parameters,
        )?);
        Ok(Saved {
            anchor,
            outer: values("outer.state", self.outer.state().len())?,
            residual: match &self.residual {
                Some(residual) => Some(values("residual", residual.len())?),
                None => None,
            },
            inner,
            codec: self.codec_state.read(source)?,
            pending: self.read_pending(source)?,
            eager: match &self.eager {
                Some(eager) => Some(eager.read(source)?),
                None => None,
            },
            common: match &self.common {
                Some(_) => Some(Common::load(source, &self.fragments)?),
                None => None,
            },
        })
    }

    /// Puts in force what [`MixLane::read`] found.
    pub(super) fn take(&mut self, saved: Saved) {
        self.anchor = saved.anchor;
        self.outer.state_mut().copy_from_slice(&saved.outer);
        if let (Some(inner), Some((steps, state))) = (&mut self.inner, saved.inner) {
            inner.state_mut().copy_from_slice(&state);
            inner.set_step_count(steps);
        }
        self.start_over();
        self.residual = saved.residual;
        self.codec_state = saved.codec;
        self.common = saved.common;
        if let (Some(eager), Some(state)) = (&mut self.eager, &saved.eager) {
            eager.take(state);
        }
        if let Some((local, values)) = saved.pending {
            self.local = local;
            self.put_local(values);
        }
    }

    /// Writes what the trainer has yet to take over, where its parameters are more than the anchor.
    fn save_pending(&self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        if !self.goes_on {
            return Ok(());
        }
        let mut codes: Vec<u8> = self.local.iter().map(|local| local.code()).collect();
        let left = self
            .late
            .map_or_else(Vec::new, |late| self.left_behind(late));
        for (index, _) in &left {
            codes[*index] = Local::Shift.code();
        }
        sink.bytes(PENDING, &codes)?;
        if !codes.iter().any(|code| needs_values(*code)) {
            return Ok(());
        }
        match (self.buffer.as_deref(), left.is_empty()) {
            (Some(values), true) => sink.tensor(PENDING_VALUES, values),
            (Some(values), false) => {
                let mut values = values.to_vec();
                for (index, left) in left {
                    values[self.fragments[index].clone()].copy_from_slice(&left);
                }
                sink.tensor(PENDING_VALUES, &values)
            }
            (None, _) => Ok(()),
        }
    }

    /// Reads what [`MixLane::save_pending`] wrote.
    fn read_pending(&self, source: &dyn StateSource) -> Result<Option<Pending>, StateError> {
        if !self.goes_on {
            return Ok(None);
        }
        let codes = source.bytes(PENDING)?;
        let local: Option<Vec<Local>> = codes.iter().map(|code| Local::from_code(*code)).collect();
        let local = local.filter(|local| local.len() == self.fragments.len());
        let mut values = vec![0.0; self.anchor.len()];
        if codes.iter().any(|code| needs_values(*code)) {
            source.tensor(PENDING_VALUES, &mut values)?;
        }
        match local.filter(|_| values.iter().all(|value| value.is_finite())) {
            Some(local) => Ok(Some((local, values))),
            None => Err(StateError::Malformed {
                name: PENDING.to_owned(),
                reason: "it is not what the trainer takes over of each fragment".to_owned(),
            }),
        }
    }
}

/// What a checkpoint holds of the mix lane, read and checked.
pub(super) struct Saved {
    anchor: Vec<f32>,
    outer: Vec<f32>,
    residual: Option<Vec<f32>>,
    /// The shared inner optimizer: steps and state.
    inner: Option<(u64, Vec<f32>)>,
    codec: CodecState,
    common: Option<Common>,
    /// Where parameters are more than the anchor between rounds.
    pending: Option<Pending>,
    /// The own optimizer's state, where a part of the outer step is put in force at once.
    eager: Option<Vec<f32>>,
}

/// What the trainer has yet to take over of each fragment, and the values for it.
type Pending = (Vec<Local>, Vec<f32>);

/// Whether what a fragment's code stands for lies in the local buffer.
const fn needs_values(code: u8) -> bool {
    matches!(code, 2 | 3)
}

/// The inner steps that the shared inner optimizer has taken.
fn steps(source: &dyn StateSource) -> Result<u64, StateError> {
    let name = "inner.steps";
    let bytes = source.bytes(name)?;
    let steps = <[u8; 8]>::try_from(bytes.as_slice()).map_err(|_| StateError::Malformed {
        name: name.to_owned(),
        reason: format!("{} bytes instead of 8", bytes.len()),
    })?;
    Ok(u64::from_le_bytes(steps))
}

fn fill(into: &mut [f32], bytes: &[u8]) {
    for (value, four) in into.iter_mut().zip(bytes.chunks_exact(4)) {
        *value = f32::from_le_bytes([four[0], four[1], four[2], four[3]]);
    }
}
