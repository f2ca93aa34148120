//! The heads of attention: beside one another in a row of a projection, and each by itself for the products.

use super::vector::kernel;
use super::{GRAIN, Input, Op, apply, tensor, values};
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
    };
    Some(apply(op, [input]))
}

/// The rows of heads: the reverse of [`heads`] without angles.
pub(crate) fn rows(x: &Tensor<4>) -> Option<Tensor<2>> {
    let op = Rows { sizes: x.dims() };
    Some(apply(op, [Input::of(x)?]))
}

/// Batch, heads, context, d.
type Sizes = [usize; 4];

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

fn apart(x: &[f32], sizes: Sizes, turn: &Turn) -> FlexTensor {
    let [_, heads, context, d] = sizes;
    let mut out = vec![0.0; x.len()];
    let all = out.par_chunks_mut(context * d).enumerate();
    all.for_each(|(index, out)| {
        let first = index / heads * context * heads * d + index % heads * d;
        head(&x[first..], heads * d, d, turn, out);
    });
    tensor(out, sizes)
}

fn together(x: &[f32], sizes: Sizes, turn: &Turn) -> FlexTensor {
    let [batch, heads, context, d] = sizes;
    let mut out = vec![0.0; x.len()];
    let lines = (GRAIN / (heads * d).max(1)).max(1);
    let all = out.par_chunks_mut(lines * heads * d).enumerate();
    all.for_each(|(chunk, out)| lines_of(x, chunk * lines, sizes, turn, out));
    tensor(out, [batch * context, heads * d])
}

kernel! {
    /// One head, of rows of this width.
    fn head<'a>(x: &'a [f32], width: usize, d: usize, turn: &'a Turn, out: &'a mut [f32]) {
        for (position, out) in out.chunks_exact_mut(d).enumerate() {
            turn.put(position, 1.0, &x[position * width..][..d], out);
        }
    }

    /// Some rows from this one on, rotated back.
    fn lines_of<'a>(x: &'a [f32], first: usize, sizes: Sizes, turn: &'a Turn, out: &'a mut [f32]) {
        let [_, heads, context, d] = sizes;
        for (row, out) in out.chunks_exact_mut(heads * d).enumerate() {
            let (batch, position) = ((first + row) / context, (first + row) % context);
            for (head, out) in out.chunks_exact_mut(d).enumerate() {
                let at = ((batch * heads + head) * context + position) * d;
                turn.put(position, -1.0, &x[at..][..d], out);
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Heads {
    sizes: Sizes,
    turn: Turn,
}

impl Op<1> for Heads {
    type Kept = ();

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, ()) {
        (apart(values(&x), self.sizes, &self.turn), ())
    }

    fn backward(&self, (): (), up: FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        [Some(together(values(&up), self.sizes, &self.turn))]
    }
}

#[derive(Clone, Debug)]
struct Rows {
    sizes: Sizes,
}

impl Op<1> for Rows {
    type Kept = ();

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, ()) {
        (together(values(&x), self.sizes, &Turn::NONE), ())
    }

    fn backward(&self, (): (), up: FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        [Some(apart(values(&up), self.sizes, &Turn::NONE))]
    }
}
