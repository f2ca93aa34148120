//! The layers of causal language models. Their fields have the names of `transformers`, so that the
//! names of the tensors are those of its files.

use crate::model::layers::Norm;
use crate::{fused, rng};
use burn::module::{Initializer, Module, Param};
use burn::tensor::{Device, Tensor};

/// A low-rank adapter beside a frozen weight: `y = x W + (alpha / rank) x A B`.
///
/// **Source:** Hu et al., LoRA: Low-rank adaptation of large language models, 2021, section 4.1.
#[derive(Clone, Debug, PartialEq)]
pub struct Lora {
    /// Columns of A.
    pub rank: usize,
    /// Numerator of the scale.
    pub alpha: f64,
    /// Layers that have one, by the last part of their name, such as `q_proj`.
    pub targets: Vec<String>,
}

/// How layers of a model are made.
pub(super) struct Maker<'a> {
    pub(super) lora: Option<&'a Lora>,
    pub(super) device: &'a Device,
    /// Weights of norms are kept as their distance from 1.
    pub(super) norms_from_one: bool,
}

impl Maker<'_> {
    /// A parameter of zeros. With adapters it is not trained.
    pub(super) fn zeros<const D: usize>(&self, shape: [usize; D]) -> Param<Tensor<D>> {
        let param = Initializer::Zeros.init(shape, self.device);
        match self.lora {
            Some(_) => param.set_require_grad(false),
            None => param,
        }
    }

    /// The norm of each row, centred if it has a bias.
    pub(super) fn norm(&self, width: usize, eps: f64, biased: bool) -> Norm {
        Norm {
            weight: self.zeros([width]),
            bias: biased.then(|| self.zeros([width])),
            groups: 1,
            offset: f32::from(u8::from(self.norms_from_one)),
            eps,
        }
    }

    pub(super) fn table(&self, rows: usize, width: usize) -> Table {
        Table {
            weight: self.zeros([rows, width]),
        }
    }

    /// A layer with the weight `[output, input]`, as `torch.nn.Linear` has it.
    pub(super) fn linear(
        &self,
        name: &str,
        [input, output]: [usize; 2],
        biased: bool,
    ) -> Projection {
        Projection {
            weight: self.zeros([output, input]),
            bias: biased.then(|| self.zeros([output])),
            lora_a: self.factor(name, [input, output], 0),
            lora_b: self.factor(name, [input, output], 1),
            scale: self.scale(),
            input_first: false,
        }
    }

    /// A layer with the weight `[input, output]`, as GPT-2's `Conv1D` has it, with bias.
    pub(super) fn conv1d(&self, name: &str, input: usize, output: usize) -> Projection {
        Projection {
            weight: self.zeros([input, output]),
            bias: Some(self.zeros([output])),
            lora_a: self.factor(name, [input, output], 0),
            lora_b: self.factor(name, [input, output], 1),
            scale: self.scale(),
            input_first: true,
        }
    }

    fn scale(&self) -> f64 {
        self.lora.map_or(0.0, |lora| lora.alpha / lora.rank as f64)
    }

    /// A `[rank, input]` or B `[output, rank]`.
    fn factor(&self, name: &str, [input, output]: [usize; 2], which: usize) -> Option<Factor> {
        let lora = self.lora?;
        if !lora.targets.iter().any(|target| target == name) {
            return None;
        }
        let shape = [[lora.rank, input], [output, lora.rank]][which];
        let weight = Initializer::Zeros.init(shape, self.device);
        Some(Factor { weight })
    }
}

/// A table with one row for each token or position.
#[derive(Module, Debug)]
pub(super) struct Table {
    pub(super) weight: Param<Tensor<2>>,
}

/// One of the two factors of an adapter.
#[derive(Module, Debug)]
pub(super) struct Factor {
    weight: Param<Tensor<2>>,
}

/// A linear layer, perhaps with an adapter.
#[derive(Module, Debug)]
pub(super) struct Projection {
    weight: Param<Tensor<2>>,
    bias: Option<Param<Tensor<1>>>,
    lora_a: Option<Factor>,
    lora_b: Option<Factor>,
    scale: f64,
    input_first: bool,
}

/// `x weight^T`.
pub(super) fn linear(x: &Tensor<2>, weight: Tensor<2>) -> Tensor<2> {
    fused::linear(x, &weight, None, false).unwrap_or_else(|| x.clone().matmul(weight.transpose()))
}

impl Projection {
    /// `[output, input]`, or `[input, output]` of GPT-2's.
    pub(super) fn weight(&self) -> Tensor<2> {
        self.weight.val()
    }

    /// x: `[rows, input]`; result: `[rows, output]`.
    pub(super) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let weight = self.weight.val();
        let bias = self.bias.as_ref().map(Param::val);
        let y = fused::linear(&x, &weight, bias.as_ref(), self.input_first).unwrap_or_else(|| {
            let weight = if self.input_first {
                weight
            } else {
                weight.transpose()
            };
            let y = x.clone().matmul(weight);
            bias.map_or(y.clone(), |bias| y + bias.unsqueeze())
        });
        match (&self.lora_a, &self.lora_b) {
            (Some(a), Some(b)) => {
                let low = linear(&x, a.weight.val()) * self.scale;
                y + linear(&low, b.weight.val())
            }
            _ => y,
        }
    }
}

/// Random values of one tensor of a new model or a new adapter, by its name and shape.
///
/// Weights are uniform with the standard deviation 0.02, as GPT-2's are, those that end a residual
/// branch with `0.02 / sqrt(2 layers)`. Adapters: A as PyTorch's linear layers, B zero.
///
/// The output of a model is no exception. If it starts at zero, the first deltas of all peers point the
/// same way and outer momentum overshoots (docs/language-models.md, "Nesterov momentum in short runs").
///
/// **Source:** Radford et al., Language models are unsupervised multitask learners, 2019, section
/// 2.3.
pub(crate) fn initial(
    spec: &murmurate_strategies::TensorSpec,
    layers: usize,
    values: &mut [f32],
    rng: &mut rand_chacha::ChaCha8Rng,
) {
    const DEVIATION: f32 = 0.02;
    let name = spec.name.as_str();
    let ends = |all: &[&str]| all.iter().any(|end| name.ends_with(end));
    let [rows, columns] = match *spec.shape.as_slice() {
        [rows, columns] => [rows, columns],
        _ if ends(&["norm.weight", "ln_1.weight", "ln_2.weight", "ln_f.weight"])
            || ends(&["layernorm.weight"]) =>
        {
            return values.fill(1.0);
        }
        _ => return values.fill(0.0),
    };
    if ends(&["lora_b.weight"]) {
        return values.fill(0.0);
    }
    if ends(&["lora_a.weight"]) {
        // PyTorch's default: uniform in (-1 / sqrt(input), 1 / sqrt(input)).
        let gain = (rows as f32 / columns as f32 / 3.0).sqrt();
        return rng::fan_in(spec, gain, values, rng);
    }
    let last = ends(&["o_proj.weight", "down_proj.weight", "c_proj.weight"]);
    let branch = if last {
        (2.0 * layers as f32).sqrt()
    } else {
        1.0
    };
    rng::fan_in(spec, DEVIATION * (rows as f32).sqrt() / branch, values, rng);
}
