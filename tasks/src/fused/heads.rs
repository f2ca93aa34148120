//! The heads of attention: beside one another in a row of a projection, and each by itself for the products.

use super::attention::Attention;
use super::vector::kernel;
use super::{GRAIN, Input, Op, apply, tensor, values};
use crate::model::Sight;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use rayon::prelude::*;
use std::sync::Arc;

/// The heads `[batch, heads, context, d]` of rows `[batch * context, heads * d]`, times a factor. With angles
/// (cosines and sines, `[context, d / 2]`), the values i and `i + d / 2` of a head are rotated by its position's.
///
/// **Source:** the rotation: Su et al., RoFormer, 2021, eq. 34.
pub(crate) fn heads(
    x: &Tensor<2>,
    [batch, d]: [usize; 2],
    factor: f64,
    angles: Option<&[Tensor<2>; 2]>,
) -> Option<Tensor<4>> {
    let input = Input::of(x)?;
    let [rows, width] = x.dims();
    let table = |table: &Tensor<2>| table.clone().into_data().iter::<f32>().collect();
    let op = Heads {
        sizes: [batch, width / d, rows / batch, d],
        turn: Turn {
            factor: factor as f32,
            angles: angles.map(|tables| Arc::new(tables.each_ref().map(table))),
        },
        back: false,
    };
    Some(apply(op, [input]))
}

/// The rows of heads: the reverse of [`heads`] without angles.
pub(crate) fn rows(x: &Tensor<4>) -> Option<Tensor<2>> {
    let op = Heads {
        sizes: x.dims(),
        turn: Turn::NONE,
        back: true,
    };
    Some(apply(op, [Input::of(x)?]))
}

/// Attention of heads whose queries, keys and values lie beside one another in rows: `[batch * context, 3 width]` to
/// `[batch * context, width]`.
pub(crate) fn joint_attention(
    x: &Tensor<2>,
    [batch, d]: [usize; 2],
    sight: &Sight,
) -> Option<Tensor<2>> {
    let input = Input::of(x)?;
    let [rows, width] = x.dims();
    let sizes = [batch, width / 3 / d, rows / batch, d];
    let factor = (d as f32).sqrt().recip();
    let scale = Turn {
        factor,
        ..Turn::NONE
    };
    let turns = [scale, Turn::NONE, Turn::NONE];
    let attention = Attention::new(sight);
    let op = JointAttention {
        sizes,
        turns,
        attention,
    };
    Some(apply(op, [input]))
}

/// Batch, heads, context, d.
type Sizes = [usize; 4];

/// All of a row.
const WHOLE: [usize; 2] = [0, 1];

/// What happens to each value on its way.
#[derive(Clone, Debug)]
struct Turn {
    factor: f32,
    angles: Option<Arc<[Vec<f32>; 2]>>,
}

impl Turn {
    const NONE: Self = Self {
        factor: 1.0,
        angles: None,
    };

    /// One head at one position. The sign is that of the angle.
    #[inline(always)]
    fn put(&self, position: usize, sign: f32, x: &[f32], out: &mut [f32]) {
        let Some(tables) = &self.angles else {
            out.iter_mut()
                .zip(x)
                .for_each(|(out, x)| *out = x * self.factor);
            return;
        };
        let half = x.len() / 2;
        let [cosines, sines] = tables
            .each_ref()
            .map(|table| &table[position * half..][..half]);
        let ((a, b), (left, right)) = (x.split_at(half), out.split_at_mut(half));
        for i in 0..half {
            let (cosine, sine) = (cosines[i] * self.factor, sines[i] * self.factor * sign);
            left[i] = a[i] * cosine - b[i] * sine;
            right[i] = b[i] * cosine + a[i] * sine;
        }
    }
}

/// The heads of one of the parts that lie beside one another in a row.
fn apart(x: &[f32], sizes: Sizes, [part, parts]: [usize; 2], turn: &Turn) -> FlexTensor {
    let [_, heads, context, d] = sizes;
    let mut out = vec![0.0; x.len() / parts];
    let (width, column) = (parts * heads * d, part * heads * d);
    let all = out.par_chunks_mut(context * d).enumerate();
    all.for_each(|(index, out)| {
        let first = index / heads * context * width + column + index % heads * d;
        head(&x[first..], width, d, turn, out);
    });
    tensor(out, sizes)
}

/// The parts beside one another in rows.
fn together<const N: usize>(parts: [(&FlexTensor, &Turn); N], sizes: Sizes) -> FlexTensor {
    let [batch, heads, context, d] = sizes;
    let width = N * heads * d;
    let mut out = vec![0.0; batch * context * width];
    let lines = (GRAIN / width.max(1)).max(1);
    let all = out.par_chunks_mut(lines * width).enumerate();
    all.for_each(|(chunk, out)| {
        for (index, (part, turn)) in parts.iter().enumerate() {
            let place = [chunk * lines, index * heads * d, width];
            lines_of(values(part), place, sizes, turn, out);
        }
    });
    tensor(out, [batch * context, width])
}

kernel! {
    /// One head, of rows of this width.
    fn head<'a>(x: &'a [f32], width: usize, d: usize, turn: &'a Turn, out: &'a mut [f32]) {
        for (position, out) in out.chunks_exact_mut(d).enumerate() {
            turn.put(position, 1.0, &x[position * width..][..d], out);
        }
    }

    /// Some rows of this width from the first one on, beginning at this column; rotated back.
    fn lines_of<'a>(
        x: &'a [f32],
        place: [usize; 3],
        sizes: Sizes,
        turn: &'a Turn,
        out: &'a mut [f32],
    ) {
        let ([first, column, width], [_, heads, context, d]) = (place, sizes);
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            let (batch, position) = ((first + row) / context, (first + row) % context);
            let out = &mut out[column..][..heads * d];
            for (head, out) in out.chunks_exact_mut(d).enumerate() {
                let at = ((batch * heads + head) * context + position) * d;
                turn.put(position, -1.0, &x[at..][..d], out);
            }
        }
    }
}

/// Between heads and rows.
#[derive(Clone, Debug)]
struct Heads {
    sizes: Sizes,
    turn: Turn,
    /// From heads to rows.
    back: bool,
}

impl Heads {
    fn moved(&self, x: &FlexTensor, back: bool) -> FlexTensor {
        if back {
            together([(x, &self.turn)], self.sizes)
        } else {
            apart(values(x), self.sizes, WHOLE, &self.turn)
        }
    }
}

impl Op<1> for Heads {
    type Kept = ();

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, ()) {
        (self.moved(&x, self.back), ())
    }

    fn backward(&self, (): (), up: FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        [Some(self.moved(&up, !self.back))]
    }
}

#[derive(Clone, Debug)]
struct JointAttention {
    sizes: Sizes,
    turns: [Turn; 3],
    attention: Attention,
}

impl Op<1> for JointAttention {
    type Kept = <Attention as Op<3>>::Kept;

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, Self::Kept) {
        let part = |part: usize| apart(values(&x), self.sizes, [part, 3], &self.turns[part]);
        let (mixed, kept) = self.attention.forward([0, 1, 2].map(part));
        (together([(&mixed, &Turn::NONE)], self.sizes), kept)
    }

    fn backward(&self, kept: Self::Kept, up: FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        let up = apart(values(&up), self.sizes, WHOLE, &Turn::NONE);
        let found = self.attention.backward(kept, up, [true; 3]);
        let [Some(q), Some(k), Some(v)] = &found else {
            unreachable!("all are wanted");
        };
        let [by_q, by_k, by_v] = &self.turns;
        [Some(together(
            [(q, by_q), (k, by_k), (v, by_v)],
            self.sizes,
        ))]
    }
}
