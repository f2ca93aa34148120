//! Operations of the processor that burn would record as a dozen, each with a backward pass of its own. On
//! other devices they do not exist, and the caller takes burn's operations.
//!
//! Shapes alone divide the work, and partial sums are added in a fixed order, so results do not depend on the
//! number of threads; outside the matrix products there is no fused multiply-add, so neither on the processor.

mod attention;
mod conv;
mod elementwise;
mod heads;
mod output;
mod rows;
mod vector;

pub(crate) use attention::attention;
pub(crate) use conv::{conv, relu_pool};
pub(crate) use elementwise::{gated, gelu};
pub(crate) use heads::{heads, joint_attention, rows};
pub(crate) use output::output_loss;
pub(crate) use rows::{linear, norm};

use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::NoCheckpointing};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::{Autodiff, BackendTypes, Flex};
use burn::tensor::{DType, Tensor, TensorData};
use burn_flex::FlexTensor;
use murmurate_native::{Matrices, products};
use std::fmt::Debug;

/// Values in one task of a loop over threads. Waking a thread costs about as much as computing these.
const GRAIN: usize = 1 << 14;

type Recorded = <Autodiff<Flex> as BackendTypes>::FloatTensorPrimitive;

/// An operation on N tensors.
trait Op<const N: usize>: Clone + Debug + Send + 'static {
    /// What the backward pass needs.
    type Kept: Clone + Debug + Send + 'static;

    /// The result. Inputs are contiguous.
    fn forward(&self, inputs: [FlexTensor; N]) -> (FlexTensor, Self::Kept);

    /// The gradients of the inputs that are wanted, by the gradient of the result. It is contiguous.
    fn backward(
        &self,
        kept: Self::Kept,
        gradient: FlexTensor,
        wanted: [bool; N],
    ) -> [Option<FlexTensor>; N];
}

/// A tensor of the processor, with or without a tape.
enum Input {
    Plain(FlexTensor),
    Recorded(Recorded),
}

impl Input {
    /// None on other devices.
    fn of<const D: usize>(x: &Tensor<D>) -> Option<Self> {
        let (dtype, recorded, x) = (x.dtype(), x.device().is_autodiff(), x.clone());
        match (dtype, recorded) {
            (DType::F32, true) => x
                .try_into_primitive::<Autodiff<Flex>>()
                .ok()
                .map(Self::Recorded),
            (DType::F32, false) => x.try_into_primitive::<Flex>().ok().map(Self::Plain),
            _ => None,
        }
    }

    fn value(&self) -> FlexTensor {
        match self {
            Self::Plain(x) => x.to_contiguous(),
            Self::Recorded(x) => x.primitive().to_contiguous(),
        }
    }
}

/// The result of an operation, recorded if its inputs are.
fn apply<O: Op<N>, const N: usize, const D: usize>(op: O, inputs: [Input; N]) -> Tensor<D> {
    let values = inputs.each_ref().map(Input::value);
    if inputs.iter().any(|input| matches!(input, Input::Plain(_))) {
        return Tensor::from_primitive::<Flex>(op.forward(values).0);
    }
    let guards = inputs.map(|input| match input {
        Input::Recorded(x) => x.into_parts().1,
        Input::Plain(_) => unreachable!("all are recorded"),
    });
    let prepared = Step(op.clone()).prepare::<NoCheckpointing>(guards);
    let out = match prepared.compute_bound().stateful() {
        OpsKind::Tracked(prepared) => {
            let (out, kept) = op.forward(values);
            prepared.finish(kept, out)
        }
        OpsKind::UnTracked(prepared) => prepared.finish(op.forward(values).0),
    };
    Tensor::from_primitive::<Autodiff<Flex>>(out)
}

#[derive(Debug)]
struct Step<O>(O);

impl<O: Op<N>, const N: usize> Backward<Flex, N> for Step<O> {
    type State = O::Kept;

    fn backward(self, ops: Ops<O::Kept, N>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<Flex>(&ops.node).to_contiguous();
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let found = self.0.backward(ops.state, gradient, wanted);
        for (parent, gradient) in ops.parents.into_iter().zip(found) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                gradients.register::<Flex>(parent.id, gradient);
            }
        }
    }
}

/// The values of a contiguous tensor.
fn values(x: &FlexTensor) -> &[f32] {
    x.as_slice().expect("contiguous f32")
}

fn tensor<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape))
}

/// `a b` over the last two axes. The axes before them are those of both.
fn product(a: &FlexTensor, b: &FlexTensor) -> FlexTensor {
    let last = a.layout().num_dims() - 1;
    let [mut shape, of_b] = [a, b].map(|x| x.layout().shape().to_vec());
    assert_eq!(shape[..last - 1], of_b[..last - 1], "pairs of matrices");
    let pairs = starts(a).into_iter().zip(starts(b));
    let pairs: Vec<[usize; 2]> = pairs.map(Into::into).collect();
    let values = products(&matrices(a), &matrices(b), &pairs);
    shape[last] = of_b[last];
    FlexTensor::from_data(TensorData::new(values, shape))
}

/// The last two axes of a tensor.
fn matrices(x: &FlexTensor) -> Matrices<'_> {
    let last = x.layout().num_dims() - 1;
    let axes = [last - 1, last];
    let shape = axes.map(|axis| x.layout().shape()[axis]);
    Matrices::new(x.storage(), shape, axes.map(|axis| stride(x, axis)))
}

/// Where the matrices of a tensor begin.
fn starts(x: &FlexTensor) -> Vec<usize> {
    let before = 0..x.layout().num_dims() - 2;
    before.fold(vec![x.layout().start_offset()], |starts, axis| {
        let along = (0..x.layout().shape()[axis]).map(|at| at * stride(x, axis));
        let each = starts
            .iter()
            .flat_map(|start| along.clone().map(move |at| start + at));
        each.collect()
    })
}

fn stride(x: &FlexTensor, axis: usize) -> usize {
    usize::try_from(x.layout().strides()[axis]).expect("no axis is reversed")
}

/// A tensor with these values that shares them with no other.
fn own(x: &FlexTensor) -> FlexTensor {
    let values = values(x).to_vec();
    FlexTensor::from_data(TensorData::new(values, x.layout().shape().to_vec()))
}

/// The transpose of the last two axes.
fn transposed(x: &FlexTensor) -> FlexTensor {
    let last = x.layout().num_dims() - 1;
    let layout = x.layout().transpose(last - 1, last);
    x.clone().with_layout(layout)
}

/// The sum of parts, in their order.
fn add_up(parts: Vec<Vec<f32>>) -> Vec<f32> {
    let mut parts = parts.into_iter();
    let mut sums = parts.next().unwrap_or_default();
    for part in parts {
        sums.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
    }
    sums
}

#[cfg(test)]
mod tests;
