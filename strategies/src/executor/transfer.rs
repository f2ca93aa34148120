//! The mix lane's state as bytes: for newcomers (pin, load) and for checkpoints (save, restore).
//!
//! A transferred state is a header (magic, plan hash, round, inner steps), then little-endian f32:
//! anchor, outer optimizer (bf16 where it keeps that), shared inner optimizer, first halves of steps; then the common state of
//! the codec, if it has one, or the note that the peer gave. All donors of one round produce the same
//! bytes.

use super::anchor::SavedAnchor;
use super::codecs::CodecState;
use super::common::Common;
use super::frame::Held;
use super::host::{Host, WorkResult};
use super::mix_lane::MixLane;
use crate::state::{StateError, StateSink, StateSource, finite};
use murmurate_protocol::{Done, Round, StateId, WorkError};
use std::io::{self, Write};

/// Opens every transferred state; the digit is the layout's version.
const MAGIC: &[u8; 8] = b"MURMUR01";

/// What the trainer has yet to take over of each fragment, and the values for it.
const PENDING: &str = "overlap.pending";
const PENDING_VALUES: &str = "overlap.values";

/// What error feedback keeps.
const RESIDUAL: &str = "residual";

/// Bytes of a transferred state before its values.
pub const STATE_HEADER_BYTES: usize = 8 + 32 + 8 + 8;

/// The note at the end of a state: nothing, or its bytes and their number.
fn noted(rest: &[u8]) -> Option<&[u8]> {
    if rest.is_empty() {
        return Some(rest);
    }
    let (note, length) = rest.split_last_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    (!note.is_empty() && length == note.len()).then_some(note)
}

impl MixLane {
    /// Bytes of a transferred state, without what the codec keeps in common.
    pub fn state_bytes(&self) -> u64 {
        (STATE_HEADER_BYTES + self.core.anchor.bytes()) as u64
    }

    /// Keeps the state for newcomers.
    pub(super) fn pin(&self, round: Round, note: &[u8], host: &dyn Host) -> WorkResult<Done> {
        let pinned = host.pin(round, &mut |out| self.write_state(round, note, out));
        pinned.map(Done::Pinned).map_err(|error| WorkError::Pin {
            reason: error.to_string(),
        })
    }

    fn write_state(&self, round: Round, note: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let core = &self.core;
        out.write_all(MAGIC)?;
        out.write_all(core.codecs.plan.as_bytes())?;
        out.write_all(&round.0.to_le_bytes())?;
        out.write_all(&core.anchor.inner_steps().to_le_bytes())?;
        core.anchor.write(out)?;
        if let Some(common) = &core.contributions.common {
            let mut bytes = Vec::new();
            common.write(&mut bytes);
            out.write_all(&bytes)?;
        }
        if !note.is_empty() {
            out.write_all(note)?;
            out.write_all(&(note.len() as u32).to_le_bytes())?;
        }
        Ok(())
    }

    /// Takes a fetched state over. A wrong one changes nothing. If its bytes can no longer be read
    /// once they have been checked, the anchor is a mixture that no digest names, and the peer
    /// fetches a state again.
    pub(super) fn load_state(&mut self, state: &StateId, host: &dyn Host) -> WorkResult<Done> {
        let bad = |reason: &str| WorkError::BadState {
            reason: reason.to_owned(),
        };
        let unread = |error: io::Error| bad(&format!("it cannot be read: {error}"));
        let bytes = host.take(state).ok_or_else(|| bad("it is not here"))?;
        let values = self.state_bytes();
        let rest = bytes.bytes().checked_sub(values);
        let rest = rest.and_then(|rest| usize::try_from(rest).ok());
        // What follows the values is small: a note, or what a codec keeps in common.
        let mut room = vec![0; rest.ok_or_else(|| bad("its size is not this model's"))?];
        bytes.read_at(values, &mut room).map_err(unread)?;
        let rest = &room[..];
        // No grid has a codec that keeps something in common, so what follows the values is the one or the other.
        let (common, note) = match self.core.contributions.common.as_ref() {
            Some(_) => {
                let common = Common::read(rest, self.core.places.ranges())
                    .ok_or_else(|| bad("what the codec keeps in common is malformed"))?;
                (Some(common), Vec::new())
            }
            None => {
                let note = noted(rest).ok_or_else(|| bad("its size is not this model's"))?;
                (None, note.to_vec())
            }
        };
        let mut header = [0; STATE_HEADER_BYTES];
        bytes.read_at(0, &mut header).map_err(unread)?;
        if header[..8] != *MAGIC {
            return Err(bad("it does not open like a state"));
        }
        if header[8..40] != *self.core.codecs.plan.as_bytes() {
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
        let (anchor, at) = (&mut self.core.anchor, STATE_HEADER_BYTES as u64);
        if !anchor.all_finite(&*bytes, at).map_err(unread)? {
            return Err(bad("a value is not finite"));
        }
        let read = anchor.overwrite(&*bytes, at, number(48));
        read.map_err(unread)?;
        self.collect();
        self.start_over();
        self.core.contributions.common = common;
        Ok(Done::Loaded {
            digests: self.digests(),
            note,
        })
    }

    /// The anchor was replaced: the trainer takes it over, and what belonged to the old one is dropped.
    pub(super) fn start_over(&mut self) {
        self.core.start_over();
        self.mixer.start_over(&mut self.core);
    }

    /// Writes what a resumed peer needs: `anchor`, `companion`, `residual`, the codec's and the
    /// optimizers' states.
    ///
    /// # Errors
    /// The sink's.
    pub fn save(&self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        let core = &self.core;
        core.anchor.save_values(sink)?;
        if let Some(residual) = &core.contributions.residual {
            sink.tensor(RESIDUAL, residual)?;
        }
        core.contributions.state.save(sink)?;
        if let Some(common) = &core.contributions.common {
            common.save(sink)?;
        }
        core.anchor.save_outer(sink)?;
        if let Some(eager) = &core.ahead.eager {
            eager.save(sink)?;
        }
        if let Some(ema) = &core.ema {
            ema.save(sink)?;
        }
        self.save_pending(sink)?;
        core.anchor.save_inner(sink)
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
        let core = &self.core;
        let residual = core.contributions.residual.as_ref();
        let residual = residual.map(|residual| finite(source, RESIDUAL, residual.len()));
        let eager = core.ahead.eager.as_ref().map(|eager| eager.read(source));
        let ema = core.ema.as_ref().map(|ema| ema.read(source));
        let fragments = core.places.ranges();
        let common = core.contributions.common.as_ref();
        let common = common.map(|_| Common::load(source, fragments));
        Ok(Saved {
            anchor: core.anchor.read(source)?,
            residual: residual.transpose()?,
            codec: core.contributions.state.read(source)?,
            pending: self.read_pending(source)?,
            eager: eager.transpose()?,
            ema: ema.transpose()?.flatten(),
            common: common.transpose()?,
        })
    }

    /// Applies the state that [`MixLane::read`] returned.
    pub(super) fn take(&mut self, saved: Saved) {
        self.core.anchor.restore(saved.anchor);
        self.start_over();
        let core = &mut self.core;
        core.contributions.residual = saved.residual;
        core.contributions.state = saved.codec;
        core.contributions.common = saved.common;
        if let (Some(ema), Some(values)) = (&mut core.ema, saved.ema) {
            ema.restore(values);
        }
        if let (Some(eager), Some(state)) = (&mut core.ahead.eager, &saved.eager) {
            eager.take(state);
        }
        if let Some((held, values)) = saved.pending {
            core.local.held = held;
            core.local.put(values);
        }
    }

    /// Writes what the trainer has yet to take over, where it continues past the anchor.
    fn save_pending(&self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        let (ahead, local) = (&self.core.ahead, &self.core.local);
        if !ahead.trains_ahead {
            return Ok(());
        }
        let mut held = local.held.clone();
        let fragments = self.core.places.ranges();
        // After a restart the result that an eager update waits for never arrives: what is written is
        // the shift that puts the rest of the delta back.
        let left = match (ahead.eagerly(), &ahead.eager, local.here()) {
            (Some(_), Some(eager), Some(values)) => eager.left_behind(fragments, values),
            _ => Vec::new(),
        };
        for (index, _) in &left {
            held[*index] = Held::Shift;
        }
        let codes: Vec<u8> = held.iter().map(|held| held.code()).collect();
        sink.bytes(PENDING, &codes)?;
        if !held.iter().any(|held| held.needs_values()) {
            return Ok(());
        }
        match (local.here(), left.is_empty()) {
            (Some(values), true) => sink.tensor(PENDING_VALUES, values),
            (Some(values), false) => {
                let mut values = values.to_vec();
                for (index, left) in left {
                    values[fragments[index].clone()].copy_from_slice(&left);
                }
                sink.tensor(PENDING_VALUES, &values)
            }
            (None, _) => Ok(()),
        }
    }

    fn read_pending(&self, source: &dyn StateSource) -> Result<Option<Pending>, StateError> {
        if !self.core.ahead.trains_ahead {
            return Ok(None);
        }
        let codes = source.bytes(PENDING)?;
        let held: Option<Vec<Held>> = codes.iter().map(|code| Held::from_code(*code)).collect();
        let held = held.filter(|held| held.len() == self.core.places.count());
        let held = held.ok_or_else(|| StateError::Malformed {
            name: PENDING.to_owned(),
            reason: "it does not say of each fragment what the trainer takes over".to_owned(),
        })?;
        let len = self.core.anchor.values.len();
        let values = if held.iter().any(|held| held.needs_values()) {
            finite(source, PENDING_VALUES, len)?
        } else {
            vec![0.0; len]
        };
        Ok(Some((held, values)))
    }
}

/// What a checkpoint holds of the mix lane, read and checked.
pub(super) struct Saved {
    anchor: SavedAnchor,
    residual: Option<Vec<f32>>,
    codec: CodecState,
    common: Option<Common>,
    /// Only where the trainer continues past the anchor between rounds.
    pending: Option<Pending>,
    /// The state of the optimizer behind eager updates.
    eager: Option<Vec<f32>>,
    /// The moving average of the anchor.
    ema: Option<Vec<f32>>,
}

type Pending = (Vec<Held>, Vec<f32>);
