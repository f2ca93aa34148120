//! Llama, and what descends from it: Mistral, Qwen and Gemma differ in parts of a block.

use super::parts::{Maker, Projection, Table};
use super::pass::{Cache, Output, Row};
use super::rope::{Rope, rotate};
use super::shape::{CausalShape, Gemma, LlamaShape, NearLayers};
use crate::model::layers::{Norm, Sight, attention};
use crate::{Segments, fused};
use burn::module::Module;
use burn::tensor::activation::{gelu_approximate, silu};
use burn::tensor::{Device, Tensor};

/// A Llama: rotary positions, RMS norms, grouped queries and gated feed-forward layers. Its
/// relatives have the further parts that [`LlamaShape`] names.
///
/// **Source:** Touvron et al., LLaMA, 2023, section 2.2, and Llama 2, 2023, section 2.2; names and
/// arithmetic as `transformers`, `modeling_llama.py`, `modeling_qwen3.py` and `modeling_gemma3.py`.
#[derive(Module, Debug)]
pub struct Llama {
    model: Decoder,
    /// Absent if the output uses the table of embeddings.
    lm_head: Option<Projection>,
    #[module(skip)]
    rope: Rope,
    #[module(skip)]
    near: Option<NearLayers>,
    #[module(skip)]
    gemma: Option<Gemma>,
}

#[derive(Module, Debug)]
struct Decoder {
    embed_tokens: Table,
    layers: Vec<LlamaBlock>,
    norm: Norm,
}

/// `x + attention(norm(x))`, then `x + feed(norm(x))`. A Gemma norms the two summands too.
#[derive(Module, Debug)]
struct LlamaBlock {
    input_layernorm: Norm,
    self_attn: GroupedAttention,
    /// In front of the feed-forward layer; in a Gemma behind the attention.
    post_attention_layernorm: Norm,
    pre_feedforward_layernorm: Option<Norm>,
    post_feedforward_layernorm: Option<Norm>,
    mlp: GatedFeed,
}

#[derive(Module, Debug)]
struct GroupedAttention {
    q_proj: Projection,
    k_proj: Projection,
    v_proj: Projection,
    o_proj: Projection,
    q_norm: Option<Norm>,
    k_norm: Option<Norm>,
    kv_heads: usize,
    head_width: usize,
    /// Divides scores.
    scale: f64,
    cap: Option<f64>,
    /// It has the sliding window.
    near: bool,
}

/// `down(silu(gate(x)) * up(x))`; a Gemma has GELU.
///
/// **Source:** Shazeer, GLU variants improve transformer, 2020, eq. 6.
#[derive(Module, Debug)]
struct GatedFeed {
    gate_proj: Projection,
    up_proj: Projection,
    down_proj: Projection,
    gelu: bool,
}

/// What all blocks of one forward pass share.
#[derive(Clone)]
struct Pass {
    batch: usize,
    /// Of layers that see everything. Tables record nothing.
    far: Angles,
    /// Of those with a window.
    near: Option<Angles>,
}

/// The positions of one kind of layers.
#[derive(Clone)]
struct Angles {
    tables: [Tensor<2>; 2],
    sight: Sight,
}

impl Llama {
    pub(super) fn zeros(shape: &CausalShape, own: &LlamaShape, make: &Maker<'_>) -> Self {
        let output = || make.linear("lm_head", [shape.width, shape.vocabulary], false);
        let make = &Maker {
            norms_from_one: own.gemma.is_some(),
            ..*make
        };
        Self {
            model: Decoder {
                embed_tokens: make.table(shape.vocabulary, shape.width),
                layers: (0..shape.layers)
                    .map(|layer| LlamaBlock::zeros(shape, own, layer, make))
                    .collect(),
                norm: make.norm(shape.width, shape.eps, false),
            },
            lm_head: (!shape.tied).then(output),
            rope: own.rope.clone(),
            near: own.near.clone(),
            gemma: own.gemma.clone(),
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
        let table = self.model.embed_tokens.weight.val();
        let (width, is_trained) = (table.dims()[1], table.is_require_grad());
        let mut x = table.select(0, row.tokens.clone().reshape([batch * context]));
        if self.gemma.is_some() {
            x = x * (width as f64).sqrt();
        }
        let before = cache.as_deref().map_or(0, Cache::len);
        let Some(block) = self.model.layers.first() else {
            return self.model.norm.forward(x);
        };
        let (sizes, sight) = ([batch, context], row.sight(before));
        let pass = self.pass(block.self_attn.head_width, sizes, sight, &x.device());
        x = segments.first(x, is_trained);
        for (layer, block) in self.model.layers.iter().enumerate() {
            x = match cache.as_deref_mut() {
                Some(cache) => block.forward(x, &pass, Some((cache, layer))),
                None => {
                    let pass = pass.clone();
                    segments.block(block, x, move |block, x| block.forward(x, &pass, None))
                }
            };
        }
        self.model.norm.forward(segments.boundary(x))
    }

    pub(super) fn output(&self) -> Output {
        Output {
            weight: match &self.lm_head {
                Some(head) => head.weight(),
                None => self.model.embed_tokens.weight.val(),
            },
            cap: self.gemma.as_ref().and_then(|gemma| gemma.logit_cap),
        }
    }

    fn pass(
        &self,
        head_width: usize,
        [batch, context]: [usize; 2],
        sight: Sight,
        device: &Device,
    ) -> Pass {
        let positions = sight.before..sight.before + context;
        let far = Angles {
            tables: self
                .rope
                .tables(positions.clone(), head_width, &device.clone().inner()),
            sight,
        };
        let near = self.near.as_ref().map(|near| Angles {
            tables: match &near.rope {
                Some(rope) => rope.tables(positions, head_width, &device.clone().inner()),
                None => far.tables.clone(),
            },
            sight: Sight {
                window: Some(near.window),
                ..far.sight.clone()
            },
        });
        Pass { batch, far, near }
    }
}

impl LlamaBlock {
    fn zeros(shape: &CausalShape, own: &LlamaShape, layer: usize, make: &Maker<'_>) -> Self {
        let CausalShape { width, hidden, .. } = *shape;
        let norm = || make.norm(width, shape.eps, false);
        let feed = own.biases.feed;
        Self {
            input_layernorm: norm(),
            self_attn: GroupedAttention::zeros(shape, own, layer, make),
            post_attention_layernorm: norm(),
            pre_feedforward_layernorm: own.gemma.is_some().then(norm),
            post_feedforward_layernorm: own.gemma.is_some().then(norm),
            mlp: GatedFeed {
                gate_proj: make.linear("gate_proj", [width, hidden], feed),
                up_proj: make.linear("up_proj", [width, hidden], feed),
                down_proj: make.linear("down_proj", [hidden, width], feed),
                gelu: own.gemma.is_some(),
            },
        }
    }

    fn forward(&self, x: Tensor<2>, pass: &Pass, kept: Option<(&mut Cache, usize)>) -> Tensor<2> {
        let normed = self.input_layernorm.forward(x.clone());
        let mixed = self.self_attn.forward(normed, pass, kept);
        let Some(before_feed) = &self.pre_feedforward_layernorm else {
            let x = x + mixed;
            let h = self.post_attention_layernorm.forward(x.clone());
            return x + self.mlp.forward(h);
        };
        let x = x + self.post_attention_layernorm.forward(mixed);
        let fed = self.mlp.forward(before_feed.forward(x.clone()));
        let after = self.post_feedforward_layernorm.as_ref();
        x + after.map_or(fed.clone(), |norm| norm.forward(fed))
    }
}

impl GatedFeed {
    fn forward(&self, h: Tensor<2>) -> Tensor<2> {
        let gate = self.gate_proj.forward(h.clone());
        let up = self.up_proj.forward(h);
        let gated = if self.gelu {
            fused::gelu(&gate).unwrap_or_else(|| gelu_approximate(gate)) * up
        } else {
            fused::gated(&gate, &up).unwrap_or_else(|| silu(gate) * up)
        };
        self.down_proj.forward(gated)
    }
}

impl GroupedAttention {
    fn zeros(shape: &CausalShape, own: &LlamaShape, layer: usize, make: &Maker<'_>) -> Self {
        let (width, d) = (shape.width, own.head_width);
        let (queries, others) = (shape.heads * d, own.kv_heads * d);
        let norm = || make.norm(d, shape.eps, false);
        let scalar = own.gemma.as_ref().map_or(d as f64, |it| it.query_scalar);
        Self {
            q_proj: make.linear("q_proj", [width, queries], own.biases.inputs),
            k_proj: make.linear("k_proj", [width, others], own.biases.inputs),
            v_proj: make.linear("v_proj", [width, others], own.biases.inputs),
            o_proj: make.linear("o_proj", [queries, width], own.biases.output),
            q_norm: own.head_norms.then(norm),
            k_norm: own.head_norms.then(norm),
            kv_heads: own.kv_heads,
            head_width: d,
            scale: scalar.sqrt().recip(),
            cap: own.gemma.as_ref().and_then(|gemma| gemma.score_cap),
            near: own.near.as_ref().is_some_and(|near| near.layers[layer]),
        }
    }

    fn forward(&self, x: Tensor<2>, pass: &Pass, kept: Option<(&mut Cache, usize)>) -> Tensor<2> {
        let [rows, _] = x.dims();
        let (batch, d, context) = (pass.batch, self.head_width, rows / pass.batch);
        let Angles { tables, sight } = match &pass.near {
            Some(near) if self.near => near,
            _ => &pass.far,
        };
        let split = |x: Tensor<2>, factor: f64, angles: Option<&[Tensor<2>; 2]>| {
            fused::heads(&x, [batch, d], factor, angles).unwrap_or_else(|| {
                let heads = x.dims()[1] / d;
                let x = (x * factor).reshape([batch, context, heads, d]);
                let x = x.swap_dims(1, 2);
                angles.map_or(x.clone(), |angles| rotate(x, angles))
            })
        };
        let normed = |x: Tensor<2>, norm: &Option<Norm>| match norm {
            Some(norm) => {
                let dims = x.dims();
                let heads = x.reshape([rows * dims[1] / d, d]);
                norm.forward(heads).reshape(dims)
            }
            None => x,
        };
        let q = normed(self.q_proj.forward(x.clone()), &self.q_norm);
        let k = normed(self.k_proj.forward(x.clone()), &self.k_norm);
        let q = split(q, self.scale, Some(tables));
        let k = split(k, 1.0, Some(tables));
        let v = split(self.v_proj.forward(x), 1.0, None);
        let [k, v] = match kept {
            Some((cache, layer)) => cache.extend(layer, [k, v]),
            None => [k, v],
        };
        // The query heads of a group share keys and values: they become further rows of one head,
        // which saves copies of keys and values.
        let heads = q.dims()[1];
        let stacked = [batch, self.kv_heads, heads / self.kv_heads * context, d];
        let mixed = attention(q.reshape(stacked), k, v, sight, self.cap);
        let mixed = mixed.reshape([batch, heads, context, d]);
        let mixed =
            fused::rows(&mixed).unwrap_or_else(|| mixed.swap_dims(1, 2).reshape([rows, heads * d]));
        self.o_proj.forward(mixed)
    }
}
