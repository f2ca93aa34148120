//! What all code of the trainer assumes of a model's tensors.

use burn::module::Param;
use burn::tensor::Tensor;

/// Why a tensor of a model cannot be accessed. This is a bug of the task.
pub(super) const FLOATS: &str = "parameters are f32: build the model on the device it is given";

/// Whether a tensor is trained. Others are not in the layout: they neither travel nor are they
/// stored. Devices without autodiff do not know, so there all are.
pub(super) fn is_trained<const D: usize>(param: &Param<Tensor<D>>) -> bool {
    !param.lazy_device().is_autodiff() || param.val().is_require_grad()
}
