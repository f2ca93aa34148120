//! Tensors that stay with their peer: they are trained, saved and exported here, and no other peer sees them. Where
//! the head of a model stays, each peer has one for its own data (Arivazhagan et al., "Federated learning with
//! personalization layers", 2019); where the scales and shifts of batch norms stay, data of other contrast or
//! brightness trains together (Li et al., "FedBN", ICLR 2021).
//!
//! A trainer is wrapped where a host takes it. To all others its layout has only the tensors that travel.

use crate::inner::{StepRule, fits};
use crate::state::{StateError, StateSink, StateSource, finite};
use crate::trainer::{Proceed, StepControl, TrainError, TrainReport, Trainer, Visit};
use crate::{DataReport, Layout, NamedScores, TensorSpec};
use murmurate_protocol::wire::{decode_value, encode_value};
use murmurate_protocol::{Blocks, Digest, Evaluation, InnerStep, Participants, Pool, Round};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The name of the list of tensors that stay, in a checkpoint.
const LIST: &str = "trainer.local";

/// Why tensors cannot stay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeptBackError {
    /// A pattern names none of them.
    #[error("`{key}`: no tensor's name fits `{pattern}`; a tensor of this model is `{example}`")]
    NoTensor {
        /// The key of the pattern.
        key: &'static str,
        /// The pattern.
        pattern: String,
        /// A name.
        example: String,
    },
    /// The patterns name all of them.
    #[error(
        "`architecture.local` names every tensor, so nothing would be exchanged: leave one out, or take preset = \
         \"none\""
    )]
    All,
}

/// A trainer some of whose tensors stay with this peer.
pub struct KeptBack {
    inner: Box<dyn Trainer>,
    /// The tensors that travel.
    layout: Layout,
    spans: Spans,
    /// Those that stay, with their places in the trainer's parameters.
    local: Vec<TensorSpec>,
    /// Places of tensors without weight decay in the trainer's parameters.
    undecayed: Arc<[Range<usize>]>,
}

/// Runs of the trainer's parameters that travel, in ascending order.
#[derive(Clone, Debug, Default)]
struct Spans(Vec<Span>);

#[derive(Clone, Copy, Debug)]
struct Span {
    /// In the trainer's parameters.
    start: usize,
    /// In those that travel.
    travels_at: usize,
    len: usize,
}

impl Spans {
    fn add(&mut self, range: Range<usize>) {
        let travels_at = self.0.last().map_or(0, |last| last.travels_at + last.len);
        match self.0.last_mut() {
            Some(last) if last.start + last.len == range.start => last.len += range.len(),
            _ => self.0.push(Span {
                start: range.start,
                travels_at,
                len: range.len(),
            }),
        }
    }

    /// The runs of a range of the parameters that travel: in these, and in the trainer's.
    fn of(&self, range: Range<usize>) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        self.0.iter().filter_map(move |span| {
            let from = range.start.max(span.travels_at);
            let to = range.end.min(span.travels_at + span.len);
            let own = |at: usize| at - span.travels_at + span.start;
            (from < to).then(|| (from..to, own(from)..own(to)))
        })
    }

    /// The place of a value of the trainer's among those that travel.
    fn place(&self, at: usize) -> Option<usize> {
        let inside = |span: &&Span| (span.start..span.start + span.len).contains(&at);
        let span = self.0.iter().find(inside)?;
        Some(at - span.start + span.travels_at)
    }
}

impl KeptBack {
    /// Wraps a trainer so that tensors whose names fit one of the patterns `local` stay with it. Tensors that fit
    /// one of `no_decay` have no weight decay, wherever they are.
    ///
    /// # Errors
    /// If a pattern names no tensor, or all of them stay.
    pub fn new(
        inner: Box<dyn Trainer>,
        local: &[String],
        no_decay: &[String],
    ) -> Result<Self, KeptBackError> {
        let tensors = inner.layout().tensors().to_vec();
        let any = |patterns: &[String], name: &str| patterns.iter().any(|it| fits(it, name));
        for (key, patterns) in [("architecture.local", local), ("inner.no_decay", no_decay)] {
            let fits_none =
                |pattern: &&String| !tensors.iter().any(|tensor| fits(pattern, &tensor.name));
            if let Some(pattern) = patterns.iter().find(fits_none) {
                let example = tensors.last().map_or("none", |tensor| &tensor.name);
                return Err(KeptBackError::NoTensor {
                    key,
                    pattern: pattern.clone(),
                    example: example.to_owned(),
                });
            }
        }
        let undecayed = tensors.iter().filter(|tensor| any(no_decay, &tensor.name));
        let undecayed = undecayed.map(TensorSpec::range).collect();
        let (kept, travel): (Vec<_>, Vec<_>) = tensors
            .into_iter()
            .partition(|tensor| any(local, &tensor.name));
        if travel.is_empty() {
            return Err(KeptBackError::All);
        }
        let mut spans = Spans::default();
        travel.iter().for_each(|tensor| spans.add(tensor.range()));
        let layout = travel.into_iter().map(|tensor| (tensor.name, tensor.shape));
        Ok(Self {
            layout: Layout::new(layout),
            inner,
            spans,
            local: kept,
            undecayed,
        })
    }

    fn value_name(name: &str) -> String {
        format!("{LIST}.{name}")
    }
}

/// The tensors of a checkpoint that stay with its peer, with their values; none where all travel.
///
/// # Errors
/// If the checkpoint cannot be read.
pub fn kept_back(source: &dyn StateSource) -> Result<Vec<(TensorSpec, Vec<f32>)>, StateError> {
    if !source.contains(LIST) {
        return Ok(Vec::new());
    }
    let listed = decode_value::<Vec<TensorSpec>>(&source.bytes(LIST)?);
    let listed = listed.map_err(|error| StateError::Malformed {
        name: LIST.to_owned(),
        reason: error.to_string(),
    })?;
    let values = |tensor: TensorSpec| {
        let name = KeptBack::value_name(&tensor.name);
        let values = finite(source, &name, tensor.len())?;
        Ok((tensor, values))
    };
    listed.into_iter().map(values).collect()
}

/// The control of those that know only the tensors that travel.
struct Mapped<'a> {
    control: &'a mut dyn StepControl,
    spans: &'a Spans,
    undecayed: &'a Arc<[Range<usize>]>,
}

impl StepControl for Mapped<'_> {
    fn before(&mut self, step: InnerStep) -> Proceed {
        self.control.before(step)
    }

    fn after(&mut self, step: InnerStep, samples: u64) {
        self.control.after(step, samples);
    }

    fn corrects(&self) -> bool {
        self.control.corrects()
    }

    fn correct(&mut self, offset: usize, values: &[f32], gradient: &mut [f32]) {
        if let Some(place) = self.spans.place(offset) {
            self.control.correct(place, values, gradient);
        }
    }

    fn rule(&self, step: InnerStep) -> StepRule {
        StepRule {
            rate: self.control.rule(step).rate,
            undecayed: Arc::clone(self.undecayed),
        }
    }
}

impl Trainer for KeptBack {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn steps(&mut self, control: &mut dyn StepControl) -> Result<TrainReport, TrainError> {
        self.inner.steps(&mut Mapped {
            control,
            spans: &self.spans,
            undecayed: &self.undecayed,
        })
    }

    fn deal(&mut self, participants: &Participants) {
        self.inner.deal(participants);
    }

    fn pool(&self) -> Option<Pool> {
        self.inner.pool()
    }

    fn train_blocks(&mut self, blocks: &Blocks) {
        self.inner.train_blocks(blocks);
    }

    fn finished_blocks(&self) -> u64 {
        self.inner.finished_blocks()
    }

    fn data_reports(&self) -> Vec<Arc<DataReport>> {
        self.inner.data_reports()
    }

    fn named_scores(&self) -> NamedScores {
        self.inner.named_scores()
    }

    fn batch(&self) -> u64 {
        self.inner.batch()
    }

    fn gradients(&mut self, _: Visit<'_>) -> Result<TrainReport, TrainError> {
        unreachable!("`architecture.local` is refused where gradients travel")
    }

    fn visit(&mut self, range: Range<usize>, f: Visit<'_>) {
        for (travels, own) in self.spans.of(range) {
            let (to, from) = (travels.start, own.start);
            self.inner
                .visit(own, &mut |at, piece| f(at - from + to, piece));
        }
    }

    fn view(&mut self, range: Range<usize>, f: &mut dyn FnMut(usize, &[f32])) {
        for (travels, own) in self.spans.of(range) {
            let (to, from) = (travels.start, own.start);
            self.inner
                .view(own, &mut |at, piece| f(at - from + to, piece));
        }
    }

    fn is_at_hand(&self) -> bool {
        self.inner.is_at_hand()
    }

    fn read(&mut self, offset: usize, into: &mut [f32]) {
        for (travels, own) in self.spans.of(offset..offset + into.len()) {
            let into = &mut into[travels.start - offset..travels.end - offset];
            self.inner.read(own.start, into);
        }
    }

    fn write(&mut self, offset: usize, values: &[f32]) {
        for (travels, own) in self.spans.of(offset..offset + values.len()) {
            let values = &values[travels.start - offset..travels.end - offset];
            self.inner.write(own.start, values);
        }
    }

    fn frozen(&self) -> Option<Digest> {
        self.inner.frozen()
    }

    fn leaving(&mut self, leaving: Arc<AtomicBool>) {
        self.inner.leaving(leaving);
    }

    fn finish(&mut self, agreed: &[f32]) {
        let mut whole = vec![0.0; self.inner.layout().len()];
        self.inner.read(0, &mut whole);
        for (travels, own) in self.spans.of(0..agreed.len()) {
            whole[own].copy_from_slice(&agreed[travels]);
        }
        self.inner.finish(&whole);
    }

    fn evaluate(&mut self) -> Result<Evaluation, TrainError> {
        self.inner.evaluate()
    }

    fn holds_a_sample(&self) -> bool {
        self.inner.holds_a_sample()
    }

    fn held_loss(&mut self, round: Round, batches: u16) -> Result<f64, TrainError> {
        self.inner.held_loss(round, batches)
    }

    fn save(&mut self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        self.inner.save(sink)?;
        let list = encode_value(&self.local);
        sink.bytes(LIST, &list)?;
        for tensor in self.local.clone() {
            let mut values = vec![0.0; tensor.len()];
            self.inner.read(tensor.range().start, &mut values);
            sink.tensor(&Self::value_name(&tensor.name), &values)?;
        }
        Ok(())
    }

    fn load(&mut self, source: &dyn StateSource) -> Result<(), StateError> {
        let mut kept = Vec::new();
        for tensor in &self.local {
            let name = Self::value_name(&tensor.name);
            kept.push(finite(source, &name, tensor.len())?);
        }
        self.inner.load(source)?;
        for (tensor, values) in self.local.iter().zip(kept) {
            self.inner.write(tensor.range().start, &values);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::MemoryState;

    /// Its gradient is the parameter; decayed tensors also lose a tenth.
    struct Plain {
        layout: Layout,
        values: Vec<f32>,
        finished: Arc<std::sync::Mutex<Vec<f32>>>,
    }

    impl Trainer for Plain {
        fn layout(&self) -> &Layout {
            &self.layout
        }

        fn steps(&mut self, control: &mut dyn StepControl) -> Result<TrainReport, TrainError> {
            let rule = control.rule(InnerStep(0));
            for tensor in self.layout.tensors() {
                let range = tensor.range();
                let mut gradient = self.values[range.clone()].to_vec();
                control.correct(range.start, &self.values[range.clone()], &mut gradient);
                let decay = if rule.decays(&range) { 0.1 } else { 0.0 };
                for (value, gradient) in self.values[range].iter_mut().zip(gradient) {
                    *value = gradient - decay * *value;
                }
            }
            Ok(TrainReport::default())
        }

        fn batch(&self) -> u64 {
            1
        }

        fn gradients(&mut self, _: Visit<'_>) -> Result<TrainReport, TrainError> {
            unreachable!("no test exchanges gradients")
        }

        fn visit(&mut self, range: Range<usize>, f: Visit<'_>) {
            f(range.start, &mut self.values[range]);
        }

        fn finish(&mut self, agreed: &[f32]) {
            *self.finished.lock().unwrap() = agreed.to_vec();
        }

        fn evaluate(&mut self) -> Result<Evaluation, TrainError> {
            Ok(Evaluation::default())
        }

        fn save(&mut self, sink: &mut dyn StateSink) -> Result<(), StateError> {
            sink.bytes("trainer.plain", b"plain")
        }

        fn load(&mut self, source: &dyn StateSource) -> Result<(), StateError> {
            source.bytes("trainer.plain").map(drop)
        }
    }

    /// Adds ten times the place to a gradient.
    struct AddsPlaces;

    impl StepControl for AddsPlaces {
        fn before(&mut self, _: InnerStep) -> Proceed {
            Proceed::Go
        }

        fn correct(&mut self, offset: usize, _: &[f32], gradient: &mut [f32]) {
            for (at, value) in gradient.iter_mut().enumerate() {
                *value += 10.0 * (offset + at) as f32;
            }
        }
    }

    fn patterns(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    /// Values 1, 2, .. in tensors of which the second, the third and the last stay.
    fn kept(no_decay: &[&str]) -> (KeptBack, Arc<std::sync::Mutex<Vec<f32>>>) {
        let finished = Arc::default();
        let sizes = [
            ("a.weight", 3),
            ("bn.scale", 2),
            ("bn.shift", 1),
            ("b.weight", 2),
            ("b.bias", 1),
            ("head", 4),
        ];
        let layout = Layout::new(sizes.map(|(name, len)| (name, vec![len])));
        let values = (1..=layout.len()).map(|value| value as f32).collect();
        let plain = Plain {
            layout,
            values,
            finished: Arc::clone(&finished),
        };
        let local = patterns(&["bn.*", "head"]);
        let kept = KeptBack::new(Box::new(plain), &local, &patterns(no_decay)).unwrap();
        (kept, finished)
    }

    fn all(trainer: &mut dyn Trainer) -> Vec<f32> {
        let mut values = vec![0.0; trainer.layout().len()];
        trainer.read(0, &mut values);
        values
    }

    #[test]
    fn only_the_others_travel_in_any_range() {
        let (mut trainer, _) = kept(&[]);
        let names: Vec<_> = trainer
            .layout()
            .tensors()
            .iter()
            .map(|t| &*t.name)
            .collect();
        assert_eq!(names, ["a.weight", "b.weight", "b.bias"]);
        let wanted = [1.0, 2.0, 3.0, 7.0, 8.0, 9.0];
        for start in 0..6 {
            for end in start..=6 {
                let mut read = vec![0.0; end - start];
                trainer.read(start, &mut read);
                assert_eq!(read, wanted[start..end]);
                let mut seen = Vec::new();
                trainer.visit(start..end, &mut |at, piece| {
                    seen.extend(piece.iter().enumerate().map(|(i, v)| (at + i, *v)));
                });
                let pairs: Vec<_> = (start..end).map(|at| (at, wanted[at])).collect();
                assert_eq!(seen, pairs);
            }
        }
        trainer.write(2, &[30.0, 70.0]);
        assert_eq!(all(&mut trainer), [1.0, 2.0, 30.0, 70.0, 8.0, 9.0]);
        let own = all(&mut *trainer.inner);
        assert_eq!(own[2..7], [30.0, 4.0, 5.0, 6.0, 70.0]);
    }

    #[test]
    fn corrections_and_decay_go_to_the_right_tensors() {
        let (mut trainer, _) = kept(&["*.bias", "head"]);
        trainer.steps(&mut AddsPlaces).unwrap();
        let own = all(&mut *trainer.inner);
        let wanted = [
            0.9, 11.8, 22.7, // corrected and decayed
            3.6, 4.5, 5.4, // decayed
            36.3, 47.2, 59.0, // corrected; the bias is not decayed
            10.0, 11.0, 12.0, 13.0,
        ];
        let near = |(found, wanted): (&f32, &f32)| (found - wanted).abs() < 1e-5;
        assert!(own.iter().zip(&wanted).all(near), "{own:?}");
    }

    #[test]
    fn a_checkpoint_keeps_what_stays_and_a_run_ends_with_both() {
        let (mut trainer, finished) = kept(&[]);
        let mut state = MemoryState::default();
        trainer.save(&mut state).unwrap();
        let listed = kept_back(&state).unwrap();
        let listed: Vec<_> = listed.into_iter().map(|(t, v)| (t.name, v)).collect();
        let wanted = [
            ("bn.scale", vec![4.0, 5.0]),
            ("bn.shift", vec![6.0]),
            ("head", vec![10.0, 11.0, 12.0, 13.0]),
        ];
        assert_eq!(listed, wanted.map(|(name, v)| (name.to_owned(), v)));
        let (mut other, _) = kept(&[]);
        other.inner.write(0, &[0.0; 13]);
        other.load(&state).unwrap();
        let own = all(&mut *other.inner);
        assert_eq!(own[3..6], [4.0, 5.0, 6.0]);
        assert_eq!(own[..3], [0.0; 3], "the host writes what travels");
        assert!(kept_back(&MemoryState::default()).unwrap().is_empty());
        let mut fresh = kept(&[]).0;
        assert!(fresh.load(&MemoryState::default()).is_err());
        trainer.finish(&[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]);
        let whole = finished.lock().unwrap().clone();
        assert_eq!(
            whole[..9],
            [-1.0, -2.0, -3.0, 4.0, 5.0, 6.0, -4.0, -5.0, -6.0]
        );
        assert_eq!(whole[9..], [10.0, 11.0, 12.0, 13.0]);
    }

    #[test]
    fn patterns_that_name_nothing_or_everything_are_refused() {
        let of = |list: &[&str]| {
            let trainer = kept(&[]).0.inner;
            KeptBack::new(trainer, &patterns(list), &[]).map(drop)
        };
        assert_eq!(of(&["bn.*"]), Ok(()));
        assert_eq!(of(&["*"]), Err(KeptBackError::All));
        let error = of(&["bn.*", "tail"]).unwrap_err().to_string();
        assert!(
            error.contains("`tail`") && error.contains("`head`"),
            "{error}"
        );
    }
}
