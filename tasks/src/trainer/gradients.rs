//! The gradients of one inner step. burn's own map of them is a part of its optimizers, which nothing here uses.

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::container::TensorContainer;
use burn::tensor::{self, Tensor};

/// Gradients by parameter, with the factor that their values still need.
pub(crate) struct Gradients {
    tensors: TensorContainer<ParamId>,
    pub(crate) factor: f32,
}

impl Gradients {
    pub(crate) fn none() -> Self {
        Self {
            tensors: TensorContainer::new(),
            factor: 1.0,
        }
    }

    /// Adds the gradients of a backward pass. Tensors that are not trained have none.
    pub(crate) fn with(mut self, model: &impl Module, pass: tensor::Gradients) -> Self {
        let all = &mut self;
        model.visit(&mut Adding { all, pass });
        self
    }

    /// Removes the gradient of a parameter; none if the loss does not depend on it.
    pub(crate) fn take<const D: usize>(&mut self, param: ParamId) -> Option<Tensor<D>> {
        self.tensors.remove(&param)
    }

    pub(crate) fn scale(&self, values: &mut [f32]) {
        if self.factor != 1.0 {
            values.iter_mut().for_each(|value| *value *= self.factor);
        }
    }

    /// The norm of all together, without the factor: summed in f64 where the host can access them in place,
    /// otherwise in f32 on the device.
    pub(crate) fn norm(&self, model: &impl Module, in_place: bool) -> f64 {
        let mut norm = Norm {
            gradients: self,
            in_place,
            squares: 0.0,
            on_device: None,
        };
        model.visit(&mut norm);
        let on_device = norm.on_device.map_or(0.0, Tensor::into_scalar::<f32>);
        (norm.squares + f64::from(on_device)).sqrt()
    }
}

struct Adding<'a> {
    all: &'a mut Gradients,
    pass: tensor::Gradients,
}

impl ModuleVisitor for Adding<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        // One that is not trained is not on the tape: asking for its gradient would panic.
        if !param.is_require_grad() {
            return;
        }
        let Some(gradient) = param.val().grad_remove(&mut self.pass) else {
            return;
        };
        let others = self.all.take(param.id).into_iter();
        let sum = others.fold(gradient, Tensor::add);
        self.all.tensors.register(param.id, sum);
    }
}

struct Norm<'a> {
    gradients: &'a Gradients,
    in_place: bool,
    squares: f64,
    on_device: Option<Tensor<1>>,
}

impl ModuleVisitor for Norm<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.tensors.get::<Tensor<D>>(&param.id) {
            if !self.in_place {
                let squares = gradient.square().sum();
                self.on_device = Some(match self.on_device.take() {
                    Some(others) => others + squares,
                    None => squares,
                });
                return;
            }
            let data = gradient.into_data();
            let squares = data.iter::<f32>().map(|g| f64::from(g) * f64::from(g));
            self.squares += squares.sum::<f64>();
        }
    }
}
