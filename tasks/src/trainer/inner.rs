//! The inner optimizer of a trainer: as tensor operations for devices whose memory the host cannot access, if
//! its equations are known there, on the host otherwise. On a device parameters, gradients and moments stay
//! there. Moments are stored in the flat order of the host's optimizers, so a checkpoint moves from one
//! device to another.

use super::transfer::FLOATS;
use burn::tensor::{Device, Tensor, TensorData};
use murmurate_strategies::Layout;
use murmurate_strategies::inner::{InnerKind, InnerOptimizer, StepRule};
use murmurate_strategies::state::{StateError, StateSink, StateSource, number};
use std::ops::Range;

/// An inner optimizer with its state.
pub(super) enum Inner {
    /// Works on slices in the host's memory.
    Host(InnerOptimizer),
    /// Works on tensors in the device's memory.
    Device(Box<OnDevice>),
}

impl Inner {
    /// `in_place` says that the host can access the device's memory.
    pub(super) fn new(kind: &InnerKind, layout: &Layout, device: &Device, in_place: bool) -> Self {
        let on_device = (!in_place).then(|| OnDevice::new(kind, layout, device));
        match on_device.flatten() {
            Some(optimizer) => Self::Device(Box::new(optimizer)),
            None => Self::Host(kind.build_for(layout)),
        }
    }

    /// Sets the rule of the inner steps from here on.
    pub(super) fn set_rule(&mut self, rule: StepRule) {
        match self {
            Self::Host(optimizer) => optimizer.set_rule(rule),
            Self::Device(optimizer) => optimizer.rule = rule,
        }
    }

    /// Opens the next inner step.
    pub(super) fn begin_step(&mut self) {
        match self {
            Self::Host(optimizer) => optimizer.begin_step(),
            Self::Device(optimizer) => optimizer.steps += 1,
        }
    }

    /// Writes state and count of inner steps, in the same form for both.
    pub(super) fn save(
        &self,
        prefix: &str,
        layout: &Layout,
        sink: &mut dyn StateSink,
    ) -> Result<(), StateError> {
        match self {
            Self::Host(optimizer) => optimizer.save(prefix, sink),
            Self::Device(optimizer) => optimizer.save(prefix, layout, sink),
        }
    }

    /// Takes back what [`Inner::save`] wrote, on whichever device.
    pub(super) fn load(
        &mut self,
        prefix: &str,
        layout: &Layout,
        source: &dyn StateSource,
    ) -> Result<(), StateError> {
        match self {
            Self::Host(optimizer) => optimizer.load(prefix, source),
            Self::Device(optimizer) => optimizer.load(prefix, layout, source),
        }
    }
}

/// An inner optimizer whose state is on the trainer's device.
pub(super) struct OnDevice {
    kind: InnerKind,
    rule: StepRule,
    /// Places of the tensors in the flat parameters.
    places: Vec<Range<usize>>,
    /// Values that it keeps for each parameter.
    multiple: usize,
    steps: u64,
    /// For each tensor of the layout the moments as vectors; none before its first gradient.
    moments: Vec<Vec<Tensor<1>>>,
    /// The device, without autodiff.
    device: Device,
}

impl OnDevice {
    /// `None` for an optimizer that needs shapes or whole norms: it works on the host.
    pub(super) fn new(kind: &InnerKind, layout: &Layout, device: &Device) -> Option<Self> {
        if !["sgd", "adam-w", "signum"].contains(&kind.name()) {
            return None;
        }
        let tensors = layout.tensors().iter();
        Some(Self {
            kind: *kind,
            rule: StepRule::default(),
            places: tensors.map(|spec| spec.range()).collect(),
            multiple: kind.state_multiple(),
            steps: 0,
            moments: vec![Vec::new(); layout.tensors().len()],
            device: device.clone().inner(),
        })
    }

    /// The parameters of the tensor at this place of the layout after its gradient. Both are without
    /// autodiff.
    pub(super) fn apply<const D: usize>(
        &mut self,
        place: usize,
        params: Tensor<D>,
        gradient: Tensor<D>,
    ) -> Tensor<D> {
        let shape = params.shape();
        let len = shape.num_elements();
        let (x, g) = (params.reshape([len]), gradient.reshape([len]));
        let (x, moments) = self.step(place, x, g);
        self.moments[place] = moments;
        x.reshape(shape)
    }

    /// One tensor as a vector, and its moments, after its gradient. The equations are those of
    /// [`murmurate_strategies::inner`].
    fn step(&mut self, place: usize, x: Tensor<1>, g: Tensor<1>) -> (Tensor<1>, Vec<Tensor<1>>) {
        let zeros = || x.zeros_like();
        let mut moments = std::mem::take(&mut self.moments[place]).into_iter();
        let mut next = || moments.next().unwrap_or_else(zeros);
        let lr = self.kind.lr() as f32 * self.rule.rate as f32;
        let decays = self.rule.decays(&self.places[place]);
        let single = |key: &str| self.kind.number(key) as f32;
        let decay = if decays { single("weight_decay") } else { 0.0 };
        match self.kind.name() {
            "sgd" => {
                let momentum = single("momentum");
                let g = match decay {
                    0.0 => g,
                    decay => g + x.clone().mul_scalar(decay),
                };
                if momentum == 0.0 {
                    return (x - g.mul_scalar(lr), Vec::new());
                }
                let v = next().mul_scalar(momentum) + g;
                (x - v.clone().mul_scalar(lr), vec![v])
            }
            "adam-w" => {
                let [beta_1, beta_2] = self.kind.pair("betas").map(|beta| beta as f32);
                let m = next().mul_scalar(beta_1) + g.clone().mul_scalar(1.0 - beta_1);
                let v = next().mul_scalar(beta_2) + g.square().mul_scalar(1.0 - beta_2);
                let step_size = (f64::from(lr) / correction(beta_1, self.steps)) as f32;
                let root_scale = (1.0 / correction(beta_2, self.steps).sqrt()) as f32;
                let below = v.clone().sqrt().mul_scalar(root_scale);
                let way = m.clone().mul_scalar(step_size) / below.add_scalar(single("eps"));
                let shrink = 1.0 - lr * decay;
                (x.mul_scalar(shrink) - way, vec![m, v])
            }
            "signum" => {
                let momentum = single("momentum");
                let m = next().mul_scalar(momentum) + g.mul_scalar(1.0 - momentum);
                let way = m.clone().sign() + x.clone().mul_scalar(decay);
                (x - way.mul_scalar(lr), vec![m])
            }
            _ => unreachable!("the other optimizers work on the host"),
        }
    }

    /// Writes state and count of inner steps as
    /// [`InnerOptimizer::save`](murmurate_strategies::inner::InnerOptimizer::save) does.
    pub(super) fn save(
        &self,
        prefix: &str,
        layout: &Layout,
        sink: &mut dyn StateSink,
    ) -> Result<(), StateError> {
        sink.bytes(&format!("{prefix}.steps"), &self.steps.to_le_bytes())?;
        if self.multiple == 0 {
            return Ok(());
        }
        let mut state = vec![0.0; self.multiple * layout.len()];
        for (spec, moments) in layout.tensors().iter().zip(&self.moments) {
            for (run, moment) in moments.iter().enumerate() {
                let start = run * layout.len();
                let at = start + spec.range().start..start + spec.range().end;
                let data = moment.clone().into_data();
                let values = data.as_slice::<f32>().expect(FLOATS);
                state[at].copy_from_slice(values);
            }
        }
        sink.tensor(&format!("{prefix}.state"), &state)
    }

    /// Takes back what [`OnDevice::save`] or an optimizer of the host wrote.
    pub(super) fn load(
        &mut self,
        prefix: &str,
        layout: &Layout,
        source: &dyn StateSource,
    ) -> Result<(), StateError> {
        let steps = number(source, &format!("{prefix}.steps"))?;
        let mut state = vec![0.0; self.multiple * layout.len()];
        if !state.is_empty() {
            source.tensor(&format!("{prefix}.state"), &mut state)?;
        }
        for (spec, moments) in layout.tensors().iter().zip(&mut self.moments) {
            let runs = (0..self.multiple).map(|run| {
                let start = run * layout.len();
                let at = start + spec.range().start..start + spec.range().end;
                let data = TensorData::new(state[at].to_vec(), [spec.len()]);
                Tensor::from_data(data, &self.device)
            });
            *moments = runs.collect();
        }
        self.steps = steps;
        Ok(())
    }
}

/// `1 - beta^t`, Adam's correction of the bias towards zero.
fn correction(beta: f32, steps: u64) -> f64 {
    let exponent = i32::try_from(steps.max(1)).unwrap_or(i32::MAX);
    1.0 - f64::from(beta).powi(exponent)
}
