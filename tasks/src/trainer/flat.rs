//! The flat parameters of a burn model: burn's visitors by position in the layout. On `flex` a
//! tensor without other owners is accessed in place; on other devices an edit copies it to the host
//! and back.

use super::gradients::Gradients;
use super::inner::Inner;
use super::transfer::{FLOATS, is_trained, overlap};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData};
use murmurate_protocol::Digest;
use murmurate_strategies::{Layout, StepControl};
use std::ops::Range;

/// Names and shapes of the trained tensors, without reading values. The model must be on an autodiff
/// device if some of its tensors are frozen.
pub(crate) fn layout(model: &impl Module) -> Layout {
    let mut names = Names::default();
    model.visit(&mut names);
    let trained = names.tensors.into_iter().filter(|(.., trained)| *trained);
    Layout::new(trained.map(|(name, shape, _)| (name, shape)))
}

/// The names of all tensors, those that are not trained included.
pub(crate) fn names(model: &impl Module) -> Vec<String> {
    let mut names = Names::default();
    model.visit(&mut names);
    names.tensors.into_iter().map(|(name, ..)| name).collect()
}

/// The variant of an enum is not part of a name, so the names of tensors do not depend on it.
fn is_variant(container: &str) -> bool {
    container.starts_with("Enum:")
}

#[derive(Default)]
struct Names {
    path: Vec<String>,
    tensors: Vec<(String, Vec<u64>, bool)>,
}

impl ModuleVisitor for Names {
    fn enter_module(&mut self, name: &str, container: &str) {
        if !is_variant(container) {
            self.path.push(name.to_owned());
        }
    }

    fn exit_module(&mut self, _: &str, container: &str) {
        if !is_variant(container) {
            self.path.pop();
        }
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let shape = param.lazy_shape();
        let shape = shape.iter().map(|&length| length as u64).collect();
        let trained = is_trained(param);
        self.tensors.push((self.path.join("."), shape, trained));
    }
}

/// Hash of the values of the tensors that are not trained; `None` if all are.
pub(super) fn frozen(model: &impl Module) -> Option<Digest> {
    let mut frozen = Frozen::default();
    model.visit(&mut frozen);
    frozen
        .any
        .then(|| Digest::from_bytes(*frozen.hasher.finalize().as_bytes()))
}

#[derive(Default)]
struct Frozen {
    hasher: blake3::Hasher,
    any: bool,
}

impl ModuleVisitor for Frozen {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if is_trained(param) {
            return;
        }
        self.any = true;
        let data = param.val().inner().into_data();
        let bytes: &[u8] = data.bytes();
        self.hasher.update(&(bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
    }
}

/// Calls `f(place, offset, values)` for the part of each tensor that lies in a range of the flat parameters,
/// in the order of the layout. What `f` leaves becomes the parameters.
pub(crate) fn edit<M: Module>(
    model: M,
    layout: &Layout,
    range: Range<usize>,
    f: &mut dyn FnMut(usize, usize, &mut [f32]),
) -> M {
    model.map(&mut Editor {
        layout,
        range,
        f,
        place: 0,
    })
}

struct Editor<'a> {
    layout: &'a Layout,
    range: Range<usize>,
    f: &'a mut dyn FnMut(usize, usize, &mut [f32]),
    place: usize,
}

impl ModuleMapper for Editor<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if !is_trained(&param) {
            return param;
        }
        let (place, spec) = (self.place, &self.layout.tensors()[self.place]);
        self.place += 1;
        let Some((part, from)) = overlap(spec.range(), &self.range) else {
            return param;
        };
        param.map(|tensor| {
            let (device, tracked) = (tensor.device(), tensor.is_require_grad());
            let mut data = tensor.inner().into_data();
            let values = data.as_mut_slice::<f32>().expect(FLOATS);
            (self.f)(place, self.range.start + from, &mut values[part]);
            Tensor::from_data(data, &device).set_require_grad(tracked)
        })
    }
}

/// Applies an inner optimizer that has begun its step to every tensor of a model and its gradient,
/// which `control` corrects first. Skips tensors that the loss does not depend on.
pub(super) fn descend<M: Module>(
    model: M,
    layout: &Layout,
    gradients: Gradients,
    control: &mut dyn StepControl,
    inner: &mut Inner,
) -> M {
    model.map(&mut Descent {
        layout,
        gradients,
        control,
        inner,
        place: 0,
    })
}

struct Descent<'a> {
    layout: &'a Layout,
    gradients: Gradients,
    control: &'a mut dyn StepControl,
    inner: &'a mut Inner,
    place: usize,
}

impl ModuleMapper for Descent<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if !is_trained(&param) {
            return param;
        }
        let place = self.place;
        self.place += 1;
        let Some(gradient) = self.gradients.take::<D>(param.id) else {
            return param;
        };
        param.map(|tensor| match self.inner {
            Inner::Host(_) => self.on_host(place, tensor, gradient),
            Inner::Device(_) => self.on_device(place, tensor, gradient),
        })
    }
}

impl Descent<'_> {
    fn on_host<const D: usize>(
        &mut self,
        place: usize,
        tensor: Tensor<D>,
        gradient: Tensor<D>,
    ) -> Tensor<D> {
        let range = self.layout.tensors()[place].range();
        let (device, mut gradient) = (tensor.device(), gradient.into_data());
        let mut data = tensor.inner().into_data();
        let values = data.as_mut_slice::<f32>().expect(FLOATS);
        let gradient = gradient.as_mut_slice::<f32>().expect(FLOATS);
        self.gradients.scale(gradient);
        self.control.correct(range.start, values, gradient);
        if let Inner::Host(inner) = self.inner {
            inner.apply(range, values, gradient);
        }
        Tensor::from_data(data, &device).require_grad()
    }

    /// Parameters and gradient stay on the device, unless the gradient is corrected.
    fn on_device<const D: usize>(
        &mut self,
        place: usize,
        tensor: Tensor<D>,
        mut gradient: Tensor<D>,
    ) -> Tensor<D> {
        let tensor = tensor.inner();
        if self.gradients.factor != 1.0 {
            gradient = gradient.mul_scalar(self.gradients.factor);
        }
        if self.control.corrects() {
            let offset = self.layout.tensors()[place].range().start;
            let (device, mut data) = (gradient.device(), gradient.into_data());
            let values = tensor.clone().into_data();
            self.control.correct(
                offset,
                values.as_slice::<f32>().expect(FLOATS),
                data.as_mut_slice::<f32>().expect(FLOATS),
            );
            gradient = Tensor::from_data(data, &device);
        }
        let tensor = match self.inner {
            Inner::Device(inner) => inner.apply(place, tensor, gradient),
            Inner::Host(_) => tensor,
        };
        Tensor::from_inner(tensor).require_grad()
    }
}

/// Passes on the gradients of a segmented backward pass as they are computed, once for each tensor.
pub(crate) struct Handout<'a> {
    layout: &'a Layout,
    left: Vec<bool>,
    f: &'a mut dyn FnMut(usize, &mut [f32]),
    gradients: Gradients,
    last: bool,
    place: usize,
}

impl<'a> Handout<'a> {
    /// Passes gradients to `f(offset, gradient)`.
    pub(crate) fn new(layout: &'a Layout, f: &'a mut dyn FnMut(usize, &mut [f32])) -> Self {
        Self {
            layout,
            left: vec![true; layout.tensors().len()],
            f,
            gradients: Gradients::none(),
            last: false,
            place: 0,
        }
    }

    /// Passes on the gradients of a segment.
    pub(crate) fn some(&mut self, model: &impl Module, gradients: Gradients) {
        (self.gradients, self.place) = (gradients, 0);
        model.visit(self);
    }

    /// Passes on the gradients that are left, and zeros for tensors that the loss does not depend
    /// on.
    pub(crate) fn rest(mut self, model: &impl Module, gradients: Gradients) {
        self.last = true;
        self.some(model, gradients);
    }
}

impl ModuleVisitor for Handout<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if !is_trained(param) {
            return;
        }
        let place = self.place;
        self.place += 1;
        if !self.left[place] {
            return;
        }
        let mut data = match self.gradients.take::<D>(param.id) {
            Some(gradient) => gradient.into_data(),
            None if self.last => TensorData::zeros::<f32, _>(param.lazy_shape()),
            None => return,
        };
        self.left[place] = false;
        let values = data.as_mut_slice::<f32>().expect(FLOATS);
        self.gradients.scale(values);
        (self.f)(self.layout.tensors()[place].range().start, values);
    }
}
