//! Copies of flat parameters between the host and a device whose memory the host cannot access, and what all
//! code of the trainer assumes of a model's tensors. Each value crosses the bus once.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData, Transaction};
use murmurate_strategies::Layout;
use std::ops::Range;

/// Why a tensor of a model cannot be accessed. This is a bug of the task.
pub(super) const FLOATS: &str = "parameters are f32: build the model on the device it is given";

/// Tells trained tensors from frozen ones, which are not in the layout: they neither travel nor are they
/// stored. Devices without autodiff do not know, so there all are trained.
pub(super) fn is_trained<const D: usize>(param: &Param<Tensor<D>>) -> bool {
    !param.lazy_device().is_autodiff() || param.val().is_require_grad()
}

/// Bytes of tensors that are read with one synchronization of the device.
const AT_ONCE: usize = 256 << 20;

/// The part of a tensor that lies in a range of the flat parameters: where in the tensor, and where in
/// the range.
pub(super) fn overlap(tensor: Range<usize>, range: &Range<usize>) -> Option<(Range<usize>, usize)> {
    let start = tensor.start.max(range.start);
    let end = tensor.end.min(range.end);
    (start < end).then(|| {
        (
            start - tensor.start..end - tensor.start,
            start - range.start,
        )
    })
}

/// Copies the parameters from `offset` on to the host.
pub(super) fn read(model: &impl Module, layout: &Layout, offset: usize, into: &mut [f32]) {
    let range = offset..offset + into.len();
    let mut reading = Reading {
        layout,
        range,
        into,
        place: 0,
        bytes: 0,
        waiting: Vec::new(),
        transaction: Transaction::default(),
    };
    model.visit(&mut reading);
    reading.flush();
}

struct Reading<'a> {
    layout: &'a Layout,
    range: Range<usize>,
    into: &'a mut [f32],
    place: usize,
    bytes: usize,
    /// Of each tensor of the transaction its wanted part and the place of that part.
    waiting: Vec<(Range<usize>, usize)>,
    transaction: Transaction,
}

impl Reading<'_> {
    fn flush(&mut self) {
        let transaction = std::mem::take(&mut self.transaction);
        if self.waiting.is_empty() {
            return;
        }
        for (data, (part, to)) in transaction
            .execute()
            .into_iter()
            .zip(self.waiting.drain(..))
        {
            let values = data.as_slice::<f32>().expect(FLOATS);
            self.into[to..to + part.len()].copy_from_slice(&values[part]);
        }
        self.bytes = 0;
    }
}

impl ModuleVisitor for Reading<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if !is_trained(param) {
            return;
        }
        let spec = &self.layout.tensors()[self.place];
        self.place += 1;
        let Some(part) = overlap(spec.range(), &self.range) else {
            return;
        };
        let transaction = std::mem::take(&mut self.transaction);
        self.transaction = transaction.register(param.val().inner());
        self.waiting.push(part);
        self.bytes += spec.len() * size_of::<f32>();
        if self.bytes >= AT_ONCE {
            self.flush();
        }
    }
}

/// Replaces the parameters from `offset` on.
pub(super) fn write<M: Module>(model: M, layout: &Layout, offset: usize, values: &[f32]) -> M {
    model.map(&mut Writing {
        layout,
        range: offset..offset + values.len(),
        values,
        place: 0,
    })
}

struct Writing<'a> {
    layout: &'a Layout,
    range: Range<usize>,
    values: &'a [f32],
    place: usize,
}

impl ModuleMapper for Writing<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if !is_trained(&param) {
            return param;
        }
        let spec = &self.layout.tensors()[self.place];
        self.place += 1;
        let Some((part, from)) = overlap(spec.range(), &self.range) else {
            return param;
        };
        let values = &self.values[from..from + part.len()];
        param.map(|tensor| {
            let (device, shape) = (tensor.device(), tensor.shape());
            let tracked = tensor.is_require_grad();
            let data = if part.len() == spec.len() {
                TensorData::new(values.to_vec(), shape)
            } else {
                let mut data = tensor.inner().into_data();
                data.as_mut_slice::<f32>().expect(FLOATS)[part].copy_from_slice(values);
                data
            };
            Tensor::from_data(data, &device).set_require_grad(tracked)
        })
    }
}
