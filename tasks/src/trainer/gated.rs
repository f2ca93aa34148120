//! A forward pass whose parameters come through gates: burn makes the value of a lazy parameter when it is
//! first used, and here that is when a gate opens. So each layer waits for its own parameters, whatever the
//! model.

use super::transfer::is_trained;
use burn::module::{Module, ModuleMapper, Param, ParamMapper};
use burn::tensor::{Tensor, TensorData};
use murmurate_strategies::{Gate, Layout};
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Parameters that wait behind gates.
#[derive(Default)]
pub(super) struct Closed {
    /// Set once a gate did not open. Its parameters are as they were.
    given_up: Arc<AtomicBool>,
    /// burn's mappers of the parameters, in their order.
    mappers: VecDeque<Box<dyn Any>>,
}

impl Closed {
    /// A gate did not open: the pass is of no use.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }
}

/// Puts every trained tensor behind a gate.
pub(super) fn close<M: Module>(model: M, layout: &Layout, gate: &Arc<dyn Gate>) -> (M, Closed) {
    let mut closing = Closing {
        layout,
        gate,
        place: 0,
        closed: Closed::default(),
    };
    let model = model.map(&mut closing);
    (model, closing.closed)
}

/// Waits for the tensors that no layer has used. All are parameters like others again.
pub(super) fn open<M: Module>(model: M, closed: &mut Closed) -> M {
    model.map(&mut Opening { closed })
}

struct Closing<'a> {
    layout: &'a Layout,
    gate: &'a Arc<dyn Gate>,
    place: usize,
    closed: Closed,
}

impl ModuleMapper for Closing<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if !is_trained(&param) {
            return param;
        }
        let range = self.layout.tensors()[self.place].range();
        self.place += 1;
        let (id, before, mapper) = param.consume();
        self.closed.mappers.push_back(Box::new(mapper));
        let (shape, device) = (before.shape(), before.device());
        let tracked = before.is_require_grad();
        let (gate, given_up) = (Arc::clone(self.gate), Arc::clone(&self.closed.given_up));
        let lengths = shape.clone();
        let value = move |device: &_, _| {
            let mut values = vec![0.0; range.len()];
            if !gate.read(range, &mut values) {
                given_up.store(true, Ordering::Relaxed);
                return before;
            }
            let data = TensorData::new(values, lengths);
            Tensor::from_data(data, device).set_require_grad(tracked)
        };
        Param::uninitialized(id, value, device, tracked, shape)
    }
}

struct Opening<'a> {
    closed: &'a mut Closed,
}

impl ModuleMapper for Opening<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if !is_trained(&param) {
            return param;
        }
        let mapper = self.closed.mappers.pop_front();
        let mapper = mapper.and_then(|m| m.downcast::<ParamMapper<Tensor<D>>>().ok());
        let (id, value, fresh) = param.consume();
        Param::from_mapped_value(id, value, mapper.map_or(fresh, |mapper| *mapper))
    }
}
