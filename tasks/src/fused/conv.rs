//! Convolutions as products of matrices, and pooling.

use super::{Input, Op, add_up, apply, product, tensor, transposed, values};
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use rayon::prelude::*;

/// Fewest columns of a product. Small images share one.
const COLUMNS: usize = 512;

/// The place of a result that is zero.
const NONE: u32 = u32::MAX;

/// A convolution in two dimensions, without dilation or groups.
///
/// x: `[n, in, height, width]`; weight: `[out, in, kernel, kernel]`; bias: `[out]`.
///
/// **Source:** Chellapilla, Puri and Simard, High performance convolutional neural networks for document
/// processing, 2006, section 3.
pub(crate) fn conv(
    x: &Tensor<4>,
    weight: &Tensor<4>,
    bias: Option<&Tensor<1>>,
    stride: usize,
    padding: usize,
) -> Option<Tensor<4>> {
    let (conv, x, weight) = (Conv { stride, padding }, Input::of(x)?, Input::of(weight)?);
    Some(match bias {
        Some(bias) => apply(conv, [x, weight, Input::of(bias)?]),
        None => apply(conv, [x, weight]),
    })
}

/// `max(0, x)` and then the largest of each 2 x 2 places. A last row or column without a partner is left out.
///
/// x: `[n, channels, height, width]`; result: `[n, channels, height / 2, width / 2]`.
pub(crate) fn relu_pool(x: &Tensor<4>) -> Option<Tensor<4>> {
    Some(apply(ReluPool, [Input::of(x)?]))
}

#[derive(Clone, Copy, Debug)]
struct Conv {
    stride: usize,
    padding: usize,
}

/// The sizes of a convolution.
#[derive(Clone, Copy)]
struct Sizes {
    n: usize,
    /// Channels, rows and columns of an image.
    image: [usize; 3],
    out: usize,
    /// Rows and columns of a result.
    size: [usize; 2],
    kernel: usize,
    conv: Conv,
    /// Images of one product.
    group: usize,
}

impl Sizes {
    fn of(conv: Conv, x: &FlexTensor, weight: &FlexTensor) -> Self {
        let [n, input, height, width] = shape(x);
        let [out, _, kernel, _] = shape(weight);
        let side = |side: usize| (side + 2 * conv.padding - kernel) / conv.stride + 1;
        let size = [side(height), side(width)];
        Self {
            n,
            image: [input, height, width],
            out,
            size,
            kernel,
            conv,
            group: COLUMNS.div_ceil((size[0] * size[1]).max(1)).min(n.max(1)),
        }
    }

    /// Values of an image, of a result, places of a result, and weights of an output.
    fn lengths(&self) -> [usize; 4] {
        let [input, height, width] = self.image;
        let places = self.size[0] * self.size[1];
        let weights = input * self.kernel * self.kernel;
        [input * height * width, self.out * places, places, weights]
    }

    /// Calls `f(row of an image, range of its columns, row of the unfolded matrix)` for each row of places under
    /// each weight; the ranges have the stride.
    #[inline]
    fn each(&self, mut f: impl FnMut(usize, usize, usize, usize)) {
        let [input, height, width] = self.image;
        let (kernel, Conv { stride, padding }) = (self.kernel, self.conv);
        for weight in 0..input * kernel * kernel {
            let (line, dx) = (weight / kernel, weight % kernel);
            let (channel, dy) = (line / kernel, line % kernel);
            // The places whose column lies in the image.
            let first = padding.saturating_sub(dx).div_ceil(stride);
            let last = (width + padding).saturating_sub(dx).div_ceil(stride);
            let last = last.min(self.size[1]);
            for row in 0..self.size[0] {
                let y = row * stride + dy;
                if y < padding || y - padding >= height || first >= last {
                    continue;
                }
                let from = (channel * height + y - padding) * width + first * stride + dx - padding;
                f(from, weight, row * self.size[1] + first, last - first);
            }
        }
    }

    /// If a result has the places of its image, those under each weight lie in one run. Calls `f(weight, its channel,
    /// where the run begins in the image's map, and in the result)` for each weight; see [`Sizes::clear_wrapped`].
    fn each_map(&self, mut f: impl FnMut(usize, usize, usize, usize)) {
        let (kernel, width) = (self.kernel, self.image[2]);
        for weight in 0..self.image[0] * kernel * kernel {
            let (line, dx) = (weight / kernel, weight % kernel);
            let under = line % kernel * width + dx;
            let own = self.conv.padding * (width + 1);
            let (from, to) = (under.saturating_sub(own), own.saturating_sub(under));
            f(weight, line / kernel, from, to);
        }
    }

    /// A result has the places of its image.
    fn is_same(&self) -> bool {
        let [_, height, width] = self.image;
        self.conv.stride == 1 && self.size == [height, width]
    }

    /// Zeros in a map of one weight where its column lies outside of the image: a run has the next line's there.
    fn clear_wrapped(&self, weight: usize, map: &mut [f32]) {
        let (dx, padding, width) = (weight % self.kernel, self.conv.padding, self.image[2]);
        let outside = if dx < padding {
            0..width.min(padding - dx)
        } else {
            width.saturating_sub(dx - padding)..width
        };
        if !outside.is_empty() {
            let lines = map.chunks_exact_mut(width);
            lines.for_each(|line| line[outside.clone()].fill(0.0));
        }
    }

    /// [`Sizes::unfold`] where a result has the places of its image.
    fn unfold_maps(&self, images: &[f32]) -> FlexTensor {
        let [length, _, places, weights] = self.lengths();
        let columns = images.len() / length * places;
        let mut matrix = Vec::with_capacity(weights * columns);
        self.each_map(|weight, channel, from, to| {
            for image in images.chunks_exact(length) {
                let (map, begin) = (&image[channel * places..][..places], matrix.len());
                matrix.resize(begin + to.min(places), 0.0);
                matrix.extend_from_slice(&map[from.min(places)..places - to.min(places)]);
                matrix.resize(begin + places, 0.0);
                self.clear_wrapped(weight, &mut matrix[begin..]);
            }
        });
        tensor(matrix, [weights, columns])
    }

    /// The values under each weight `[weights, images * places]`, zeros outside.
    fn unfold(&self, images: &[f32]) -> FlexTensor {
        if self.is_same() {
            return self.unfold_maps(images);
        }
        let [length, _, places, weights] = self.lengths();
        let columns = images.len() / length * places;
        let mut matrix = vec![0.0; weights * columns];
        for (index, image) in images.chunks_exact(length).enumerate() {
            self.each(|from, weight, place, count| {
                let to = &mut matrix[weight * columns + index * places + place..][..count];
                if self.conv.stride == 1 {
                    to.copy_from_slice(&image[from..from + count]);
                } else {
                    let from = image[from..].iter().step_by(self.conv.stride);
                    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
                }
            });
        }
        tensor(matrix, [weights, columns])
    }

    /// Adds to images the values that came from theirs.
    fn fold(&self, mut matrix: FlexTensor, images: &mut [f32]) {
        let [length, _, places, _] = self.lengths();
        let columns = matrix.layout().shape()[1];
        let matrix = matrix.storage_mut::<f32>();
        if self.is_same() {
            return self.each_map(|weight, channel, to, from| {
                let maps = matrix[weight * columns..][..columns].chunks_exact_mut(places);
                for (map, image) in maps.zip(images.chunks_exact_mut(length)) {
                    self.clear_wrapped(weight, map);
                    let image = &mut image[channel * places..][..places];
                    let (to, from) = (&mut image[to.min(places)..], &map[from.min(places)..]);
                    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
                }
            });
        }
        for (index, image) in images.chunks_exact_mut(length).enumerate() {
            self.each(|to, weight, place, count| {
                let from = &matrix[weight * columns + index * places + place..][..count];
                if self.conv.stride == 1 {
                    let to = &mut image[to..to + count];
                    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
                } else {
                    let to = image[to..].iter_mut().step_by(self.conv.stride);
                    to.zip(from).for_each(|(to, from)| *to += from);
                }
            });
        }
    }

    /// `[images, out, places]` as `[out, images * places]`.
    fn by_output(&self, images: &[f32]) -> FlexTensor {
        let [_, length, places, _] = self.lengths();
        let mut values = Vec::with_capacity(images.len());
        for out in 0..self.out {
            for image in images.chunks_exact(length) {
                values.extend_from_slice(&image[out * places..][..places]);
            }
        }
        tensor(values, [self.out, images.len() / length * places])
    }
}

impl<const N: usize> Op<N> for Conv {
    /// x and weight.
    type Kept = [FlexTensor; 2];

    fn forward(&self, inputs: [FlexTensor; N]) -> (FlexTensor, Self::Kept) {
        let sizes = Sizes::of(*self, &inputs[0], &inputs[1]);
        let [length, out_length, places, weights] = sizes.lengths();
        let weight = tensor(values(&inputs[1]).to_vec(), [sizes.out, weights]);
        let bias = inputs.get(2).map(values);
        let mut out = vec![0.0; sizes.n * out_length];
        let groups = values(&inputs[0]).par_chunks(sizes.group * length);
        let outs = out.par_chunks_mut(sizes.group * out_length);
        groups.zip(outs).for_each(|(images, outs)| {
            let found = product(&weight, &sizes.unfold(images));
            let columns = found.layout().shape()[1];
            for (index, out) in outs.chunks_exact_mut(out_length).enumerate() {
                for (output, out) in out.chunks_exact_mut(places).enumerate() {
                    let bias = bias.map_or(0.0, |bias| bias[output]);
                    let row = &values(&found)[output * columns + index * places..][..places];
                    out.iter_mut().zip(row).for_each(|(out, x)| *out = x + bias);
                }
            }
        });
        let [height, width] = sizes.size;
        let out = tensor(out, [sizes.n, sizes.out, height, width]);
        (out, [inputs[0].clone(), inputs[1].clone()])
    }

    fn backward(
        &self,
        [x, weight]: Self::Kept,
        gradient: FlexTensor,
        wanted: [bool; N],
    ) -> [Option<FlexTensor>; N] {
        let sizes = Sizes::of(*self, &x, &weight);
        let [length, out_length, _, weights] = sizes.lengths();
        let matrix = tensor(values(&weight).to_vec(), [sizes.out, weights]);
        let groups = values(&x).par_chunks(sizes.group * length);
        let ups = values(&gradient).par_chunks(sizes.group * out_length);
        let mut dx = vec![0.0; if wanted[0] { values(&x).len() } else { 0 }];
        let mut slots: Vec<&mut [f32]> = dx.chunks_mut(sizes.group * length).collect();
        slots.resize_with(groups.len(), Default::default);
        let parts = groups.zip(ups).zip(slots).map(|((images, up), dx)| {
            let up = sizes.by_output(up);
            if !dx.is_empty() {
                sizes.fold(product(&transposed(&matrix), &up), dx);
            }
            let by_weight = product(&up, &transposed(&sizes.unfold(images)));
            let rows = values(&up).chunks_exact(up.layout().shape()[1]);
            let by_bias: Vec<f32> = rows.map(|row| row.iter().sum()).collect();
            (values(&by_weight).to_vec(), by_bias)
        });
        let parts: Vec<_> = parts.collect();
        let (by_weight, by_bias): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let mut all = [const { None }; N];
        all[0] = wanted[0].then(|| tensor(dx, shape(&x)));
        all[1] = Some(tensor(add_up(by_weight), shape(&weight)));
        if N == 3 {
            all[2] = Some(tensor(add_up(by_bias), [sizes.out]));
        }
        all
    }
}

#[derive(Clone, Debug)]
struct ReluPool;

impl Op<1> for ReluPool {
    /// The shape of the input, and for each result its place in its map, or `NONE` where it is zero.
    type Kept = ([usize; 4], Vec<u32>);

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, Self::Kept) {
        let shape = shape(&x);
        let [n, channels, height, width] = shape;
        let (rows, columns) = (height / 2, width / 2);
        let mut out = vec![0.0; n * channels * rows * columns];
        let mut places = vec![NONE; out.len()];
        let outs = out
            .par_chunks_mut(rows * columns)
            .zip(places.par_chunks_mut(rows * columns));
        let maps = values(&x).par_chunks(height * width);
        maps.zip(outs)
            .with_min_len(32)
            .for_each(|(map, (out, places))| {
                for (index, (out, place)) in out.iter_mut().zip(places).enumerate() {
                    let corner = index / columns * 2 * width + index % columns * 2;
                    for at in [corner, corner + 1, corner + width, corner + width + 1] {
                        // NaN is more, so that the loss shows it.
                        let more = map[at] > *out || map[at].is_nan();
                        *out = if more { map[at] } else { *out };
                        *place = if more { at as u32 } else { *place };
                    }
                }
            });
        (tensor(out, [n, channels, rows, columns]), (shape, places))
    }

    fn backward(
        &self,
        (shape, places): Self::Kept,
        up: FlexTensor,
        _: [bool; 1],
    ) -> [Option<FlexTensor>; 1] {
        let [_, _, height, width] = shape;
        let (area, pooled) = (height * width, (height / 2) * (width / 2));
        let mut dx = vec![0.0; shape.iter().product()];
        let ups = values(&up)
            .par_chunks(pooled)
            .zip(places.par_chunks(pooled));
        let maps = dx.par_chunks_mut(area).zip(ups).with_min_len(32);
        maps.for_each(|(map, (up, places))| {
            for (up, &place) in up.iter().zip(places).filter(|(_, place)| **place != NONE) {
                map[place as usize] = *up;
            }
        });
        [Some(tensor(dx, shape))]
    }
}

fn shape(x: &FlexTensor) -> [usize; 4] {
    std::array::from_fn(|axis| x.layout().shape()[axis])
}
