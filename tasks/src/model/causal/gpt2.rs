//! GPT-2.

use super::parts::{Maker, Projection, Table};
use super::pass::{Cache, Output, Row};
use super::shape::CausalShape;
use crate::model::layers::{Norm, Sight, attention};
use crate::{Segments, fused};
use burn::module::Module;
use burn::tensor::activation::gelu_approximate;
use burn::tensor::{Tensor, TensorData};

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
        let output = || make.linear("lm_head", [shape.width, shape.vocabulary], false);
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

    /// Activations `[batch * context, width]` in front of the output.
    pub(super) fn hidden(
        &self,
        row: &Row,
        mut cache: Option<&mut Cache>,
        segments: &mut Segments,
    ) -> Tensor<2> {
        let [batch, context] = row.tokens.dims();
        let table = self.transformer.wte.weight.val();
        let x = table.select(0, row.tokens.clone().reshape([batch * context]));
        let sight = row.sight(cache.as_deref().map_or(0, Cache::len));
        let mut x = self.with_positions(x, [batch, context], &sight);
        x = segments.first(x, self.transformer.wte.weight.val().is_require_grad());
        for (layer, block) in self.transformer.h.iter().enumerate() {
            x = match cache.as_deref_mut() {
                Some(cache) => block.forward(x, batch, &sight, Some((cache, layer))),
                None => {
                    let sight = sight.clone();
                    segments.block(block, x, move |block, x| {
                        block.forward(x, batch, &sight, None)
                    })
                }
            };
        }
        self.transformer.ln_f.forward(segments.boundary(x))
    }

    fn with_positions(
        &self,
        x: Tensor<2>,
        [batch, context]: [usize; 2],
        sight: &Sight,
    ) -> Tensor<2> {
        let (table, [rows, width]) = (self.transformer.wpe.weight.val(), x.dims());
        let Some(starts) = &sight.starts else {
            let position = table.narrow(0, sight.before, context);
            let x = x.reshape([batch, context, width]) + position.unsqueeze();
            return x.reshape([rows, width]);
        };
        // A document begins at position zero, wherever in the row it is.
        let places = starts.iter().enumerate();
        let places: Vec<i32> = places
            .map(|(at, start)| (at % context) as i32 - *start as i32)
            .collect();
        let places = Tensor::from_data(TensorData::new(places, [rows]), &x.device());
        x + table.select(0, places)
    }

    pub(super) fn output(&self) -> Output {
        Output {
            weight: match &self.lm_head {
                Some(head) => head.weight(),
                None => self.transformer.wte.weight.val(),
            },
            cap: None,
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

    fn forward(
        &self,
        x: Tensor<2>,
        batch: usize,
        sight: &Sight,
        kept: Option<(&mut Cache, usize)>,
    ) -> Tensor<2> {
        let normed = self.ln_1.forward(x.clone());
        let mixed = self.attn.forward(normed, batch, sight, kept);
        let x = x + mixed;
        let h = self.mlp.c_fc.forward(self.ln_2.forward(x.clone()));
        let h = fused::gelu(&h).unwrap_or_else(|| gelu_approximate(h));
        x + self.mlp.c_proj.forward(h)
    }
}

impl JointAttention {
    fn forward(
        &self,
        x: Tensor<2>,
        batch: usize,
        sight: &Sight,
        kept: Option<(&mut Cache, usize)>,
    ) -> Tensor<2> {
        let [rows, width] = x.dims();
        let (heads, d) = (self.heads, width / self.heads);
        let joint = self.c_attn.forward(x);
        let fused = match kept {
            None => fused::joint_attention(&joint, [batch, d], sight),
            Some(_) => None,
        };
        let mixed = fused.unwrap_or_else(|| {
            let part = |index: usize| {
                let part = joint.clone().narrow(1, index * width, width);
                part.reshape([batch, rows / batch, heads, d])
                    .swap_dims(1, 2)
            };
            let q = part(0) * (d as f64).sqrt().recip();
            let [k, v] = match kept {
                Some((cache, layer)) => cache.extend(layer, [part(1), part(2)]),
                None => [part(1), part(2)],
            };
            let mixed = attention(q, k, v, sight, None);
            mixed.swap_dims(1, 2).reshape([rows, width])
        });
        self.c_proj.forward(mixed)
    }
}
