//! GPT-2.

use super::parts::{Maker, Projection, Table, linear};
use super::shape::CausalShape;
use crate::model::layers::{Norm, attention};
use crate::{Segments, fused};
use burn::module::Module;
use burn::tensor::activation::gelu_approximate;
use burn::tensor::{Int, Tensor};

/// A GPT-2: a table of positions, layer norms and biases. Without dropout.
///
/// **Source:** Radford et al., Language models are unsupervised multitask learners, 2019; names and
/// arithmetic as `transformers`, `modeling_gpt2.py`.
#[derive(Module, Debug)]
pub struct Gpt2 {
    transformer: Decoder,
    /// Absent if the output uses the table of embeddings.
    lm_head: Option<Projection>,
}

#[derive(Module, Debug)]
struct Decoder {
    wte: Table,
    wpe: Table,
    h: Vec<Gpt2Block>,
    ln_f: Norm,
}

/// `x + attention(norm(x))`, then `x + feed(norm(x))`.
#[derive(Module, Debug)]
struct Gpt2Block {
    ln_1: Norm,
    attn: JointAttention,
    ln_2: Norm,
    mlp: Feed,
}

/// Attention whose queries, keys and values are one projection.
#[derive(Module, Debug)]
struct JointAttention {
    c_attn: Projection,
    c_proj: Projection,
    heads: usize,
}

#[derive(Module, Debug)]
struct Feed {
    c_fc: Projection,
    c_proj: Projection,
}

impl Gpt2 {
    pub(super) fn zeros(shape: &CausalShape, make: &Maker<'_>) -> Self {
        let output = || make.linear("lm_head", shape.width, shape.vocabulary);
        Self {
            transformer: Decoder {
                wte: make.table(shape.vocabulary, shape.width),
                wpe: make.table(shape.positions, shape.width),
                h: (0..shape.layers)
                    .map(|_| Gpt2Block::zeros(shape, make))
                    .collect(),
                ln_f: make.norm(shape.width, shape.eps, true),
            },
            lm_head: (!shape.tied).then(output),
        }
    }

    /// Logits `[batch * context, vocabulary]`; tokens: `[batch, context]`.
    pub(super) fn segmented(&self, tokens: Tensor<2, Int>, segments: &mut Segments) -> Tensor<2> {
        let [batch, context] = tokens.dims();
        let table = self.transformer.wte.weight.val();
        let x = table.clone().select(0, tokens.reshape([batch * context]));
        let [rows, width] = x.dims();
        let position = self.transformer.wpe.weight.val().narrow(0, 0, context);
        let x = x.reshape([batch, context, width]) + position.unsqueeze();
        let mut x = x.reshape([rows, width]);
        for block in &self.transformer.h {
            x = block.forward(segments.boundary(x), batch);
        }
        let x = self.transformer.ln_f.forward(segments.boundary(x));
        match &self.lm_head {
            Some(head) => head.forward(x),
            None => linear(&x, table),
        }
    }
}

impl Gpt2Block {
    fn zeros(shape: &CausalShape, make: &Maker<'_>) -> Self {
        let CausalShape { width, hidden, .. } = *shape;
        Self {
            ln_1: make.norm(width, shape.eps, true),
            attn: JointAttention {
                c_attn: make.conv1d("c_attn", width, 3 * width),
                c_proj: make.conv1d("c_proj", width, width),
                heads: shape.heads,
            },
            ln_2: make.norm(width, shape.eps, true),
            mlp: Feed {
                c_fc: make.conv1d("c_fc", width, hidden),
                c_proj: make.conv1d("c_proj", hidden, width),
            },
        }
    }

    fn forward(&self, x: Tensor<2>, batch: usize) -> Tensor<2> {
        let mixed = self.attn.forward(self.ln_1.forward(x.clone()), batch);
        let x = x + mixed;
        let h = self.mlp.c_fc.forward(self.ln_2.forward(x.clone()));
        let h = fused::gelu(&h).unwrap_or_else(|| gelu_approximate(h));
        x + self.mlp.c_proj.forward(h)
    }
}

impl JointAttention {
    fn forward(&self, x: Tensor<2>, batch: usize) -> Tensor<2> {
        let [rows, width] = x.dims();
        let (heads, d) = (self.heads, width / self.heads);
        let joint = self.c_attn.forward(x);
        let mixed = fused::joint_attention(&joint, [batch, d]).unwrap_or_else(|| {
            let part = |index: usize| {
                let part = joint.clone().narrow(1, index * width, width);
                part.reshape([batch, rows / batch, heads, d])
                    .swap_dims(1, 2)
            };
            let q = part(0) * (d as f64).sqrt().recip();
            let mixed = attention(q, part(1), part(2));
            mixed.swap_dims(1, 2).reshape([rows, width])
        });
        self.c_proj.forward(mixed)
    }
}
