//! Llama.

use super::parts::{Maker, Projection, Table, linear};
use super::rope::{Rope, rotate};
use super::shape::{CausalShape, LlamaHeads};
use crate::model::layers::{Norm, attention};
use crate::{Segments, fused};
use burn::module::Module;
use burn::tensor::activation::silu;
use burn::tensor::{Int, Tensor};

/// A Llama: rotary positions, RMS norms, grouped queries and gated feed-forward layers.
///
/// **Source:** Touvron et al., LLaMA, 2023, section 2.2, and Llama 2, 2023, section 2.2; names and
/// arithmetic as `transformers`, `modeling_llama.py`.
#[derive(Module, Debug)]
pub struct Llama {
    model: Decoder,
    /// Absent if the output uses the table of embeddings.
    lm_head: Option<Projection>,
    #[module(skip)]
    rope: Rope,
}

#[derive(Module, Debug)]
struct Decoder {
    embed_tokens: Table,
    layers: Vec<LlamaBlock>,
    norm: Norm,
}

/// `x + attention(norm(x))`, then `x + feed(norm(x))`.
#[derive(Module, Debug)]
struct LlamaBlock {
    input_layernorm: Norm,
    self_attn: GroupedAttention,
    post_attention_layernorm: Norm,
    mlp: GatedFeed,
}

#[derive(Module, Debug)]
struct GroupedAttention {
    q_proj: Projection,
    k_proj: Projection,
    v_proj: Projection,
    o_proj: Projection,
    kv_heads: usize,
    head_width: usize,
}

/// `down(silu(gate(x)) * up(x))`.
///
/// **Source:** Shazeer, GLU variants improve transformer, 2020, eq. 6.
#[derive(Module, Debug)]
struct GatedFeed {
    gate_proj: Projection,
    up_proj: Projection,
    down_proj: Projection,
}

/// Tables that all blocks of one forward pass share.
struct Pass {
    batch: usize,
    angles: [Tensor<2>; 2],
}

impl Llama {
    pub(super) fn zeros(shape: &CausalShape, heads: &LlamaHeads, make: &Maker<'_>) -> Self {
        let output = || make.linear("lm_head", shape.width, shape.vocabulary);
        Self {
            model: Decoder {
                embed_tokens: make.table(shape.vocabulary, shape.width),
                layers: (0..shape.layers)
                    .map(|_| LlamaBlock::zeros(shape, heads, make))
                    .collect(),
                norm: make.norm(shape.width, shape.eps, false),
            },
            lm_head: (!shape.tied).then(output),
            rope: heads.rope.clone(),
        }
    }

    /// Logits `[batch * context, vocabulary]`; tokens: `[batch, context]`.
    pub(super) fn segmented(&self, tokens: Tensor<2, Int>, segments: &mut Segments) -> Tensor<2> {
        let [batch, context] = tokens.dims();
        let table = self.model.embed_tokens.weight.val();
        let mut x = table.clone().select(0, tokens.reshape([batch * context]));
        if let Some(block) = self.model.layers.first() {
            let attention = &block.self_attn;
            let pass = attention.pass(&self.rope, batch, &x);
            for block in &self.model.layers {
                x = block.forward(segments.boundary(x), &pass);
            }
        }
        let x = self.model.norm.forward(segments.boundary(x));
        match &self.lm_head {
            Some(head) => head.forward(x),
            None => linear(&x, table),
        }
    }
}

impl LlamaBlock {
    fn zeros(shape: &CausalShape, heads: &LlamaHeads, make: &Maker<'_>) -> Self {
        let CausalShape { width, hidden, .. } = *shape;
        let queries = shape.heads * heads.head_width;
        let others = heads.kv_heads * heads.head_width;
        Self {
            input_layernorm: make.norm(width, shape.eps, false),
            self_attn: GroupedAttention {
                q_proj: make.linear("q_proj", width, queries),
                k_proj: make.linear("k_proj", width, others),
                v_proj: make.linear("v_proj", width, others),
                o_proj: make.linear("o_proj", queries, width),
                kv_heads: heads.kv_heads,
                head_width: heads.head_width,
            },
            post_attention_layernorm: make.norm(width, shape.eps, false),
            mlp: GatedFeed {
                gate_proj: make.linear("gate_proj", width, hidden),
                up_proj: make.linear("up_proj", width, hidden),
                down_proj: make.linear("down_proj", hidden, width),
            },
        }
    }

    fn forward(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        let mixed = self
            .self_attn
            .forward(self.input_layernorm.forward(x.clone()), pass);
        let x = x + mixed;
        let h = self.post_attention_layernorm.forward(x.clone());
        let gate = self.mlp.gate_proj.forward(h.clone());
        let up = self.mlp.up_proj.forward(h);
        let h = fused::gated(&gate, &up).unwrap_or_else(|| silu(gate) * up);
        x + self.mlp.down_proj.forward(h)
    }
}

impl GroupedAttention {
    fn pass(&self, rope: &Rope, batch: usize, x: &Tensor<2>) -> Pass {
        let device = x.device();
        let context = x.dims()[0] / batch;
        Pass {
            batch,
            angles: rope.tables(context, self.head_width, &device),
        }
    }

    fn forward(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        let [rows, _] = x.dims();
        let (batch, d, context) = (pass.batch, self.head_width, rows / pass.batch);
        let split = |x: Tensor<2>, factor: f64, angles: Option<&[Tensor<2>; 2]>| {
            fused::heads(&x, [batch, d], factor, angles).unwrap_or_else(|| {
                let heads = x.dims()[1] / d;
                let x = (x * factor).reshape([batch, context, heads, d]);
                let x = x.swap_dims(1, 2);
                angles.map_or(x.clone(), |angles| rotate(x, angles))
            })
        };
        let angles = Some(&pass.angles);
        let scale = (d as f64).sqrt().recip();
        let q = split(self.q_proj.forward(x.clone()), scale, angles);
        let k = split(self.k_proj.forward(x.clone()), 1.0, angles);
        let v = split(self.v_proj.forward(x), 1.0, None);
        // The query heads of a group share keys and values: they become further rows of one head,
        // which saves copies of keys and values.
        let heads = q.dims()[1];
        let stacked = [batch, self.kv_heads, heads / self.kv_heads * context, d];
        let mixed = attention(q.reshape(stacked), k, v).reshape([batch, heads, context, d]);
        let mixed =
            fused::rows(&mixed).unwrap_or_else(|| mixed.swap_dims(1, 2).reshape([rows, heads * d]));
        self.o_proj.forward(mixed)
    }
}
