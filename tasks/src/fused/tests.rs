//! Results and gradients against those of burn's operations, and gradients against differences.

use super::*;
use crate::model::Sight;
use burn::tensor::Device;
use burn::tensor::activation::{gelu_approximate, relu, silu, softmax};
use burn::tensor::module::{conv2d, max_pool2d};
use burn::tensor::ops::{ConvOptions, MaxPoolOptions};

/// Values in (-2, 2) by a generator of their own.
fn noise(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / 4_194_304.0 - 2.0
    };
    std::iter::repeat_with(next).take(count).collect()
}

fn fixed<const D: usize>(seed: u64, shape: [usize; D]) -> Tensor<D> {
    let data = TensorData::new(noise(seed, shape.iter().product()), shape);
    Tensor::from_data(data, &Device::flex().autodiff())
}

fn leaf<const D: usize>(seed: u64, shape: [usize; D]) -> Tensor<D> {
    fixed(seed, shape).require_grad()
}

fn list<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().iter::<f32>().collect()
}

/// A result and the gradients of these leaves, by a loss with a weight of its own for each value.
macro_rules! outcome {
    ($out:expr, $($leaf:expr),*) => {{
        let out = $out;
        let weight = fixed(99, out.dims());
        let gradients = (out.clone() * weight).sum().backward();
        vec![list(out), $(list($leaf.grad(&gradients).unwrap())),*]
    }};
}

fn close(name: &str, ours: &[Vec<f32>], theirs: &[Vec<f32>], tolerance: f32) {
    for (index, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert_eq!(a.len(), b.len(), "{name} {index}");
        let size = b.iter().fold(1.0_f32, |size, x| size.max(x.abs()));
        let pairs = a.iter().zip(b);
        let gap = pairs.fold(0.0_f32, |gap, (x, y)| gap.max((x - y).abs()));
        assert!(gap <= tolerance * size, "{name} {index}: {gap} of {size}");
    }
}

/// Compares the gradient of x with central differences, which f32 gives within a percent.
fn differences<const D: usize, const E: usize>(
    name: &str,
    shape: [usize; D],
    f: impl Fn(Tensor<D>) -> Tensor<E>,
) {
    let x = leaf(5, shape);
    let found = outcome!(f(x.clone()), x).remove(1);
    let start = noise(5, found.len());
    let loss = |values: Vec<f32>| {
        let x = Tensor::from_data(TensorData::new(values, shape), &Device::flex().autodiff());
        let out = f(x);
        let pairs = list(out.clone())
            .into_iter()
            .zip(list(fixed(99, out.dims())));
        pairs.map(|(a, b)| f64::from(a) * f64::from(b)).sum::<f64>()
    };
    for place in (0..start.len()).step_by(start.len().div_ceil(40)) {
        let moved = |by: f32| {
            let mut values = start.clone();
            values[place] += by;
            loss(values)
        };
        let step = 4e-3;
        let slope = ((moved(step) - moved(-step)) / f64::from(2.0 * step)) as f32;
        let gap = (slope - found[place]).abs();
        assert!(
            gap < 0.01 * slope.abs().max(1.0),
            "{name} {place}: {slope} {}",
            found[place]
        );
    }
}

#[test]
fn activations() {
    for shape in [[1, 1], [3, 37], [90, 200]] {
        let x = leaf(1, shape);
        let wide = || x.clone() * 4.0;
        let ours = outcome!(gelu(&wide()).unwrap(), x);
        let theirs = outcome!(gelu_approximate(wide()), x);
        close("gelu", &ours, &theirs, 2e-6);
    }
    differences("gelu", [3, 8], |x| gelu(&x).unwrap());
    for shape in [[1, 1], [3, 37], [90, 200]] {
        let (x, up) = (leaf(1, shape), leaf(2, shape));
        let ours = outcome!(gated(&x, &up).unwrap(), x, up);
        let theirs = outcome!(silu(x.clone()) * up.clone(), x, up);
        close("gated", &ours, &theirs, 2e-6);
    }
    let (x, up) = (fixed(3, [3, 8]), fixed(4, [3, 8]));
    differences("gate", [3, 8], |x| gated(&x, &up).unwrap());
    differences("up", [3, 8], |up| gated(&x, &up).unwrap());
}

#[test]
fn linear_layers() {
    for [rows, input, output] in [[1, 1, 1], [3, 37, 5], [300, 130, 90]] {
        let (x, bias) = (leaf(1, [rows, input]), leaf(3, [output]));
        for input_first in [true, false] {
            let shape = if input_first {
                [input, output]
            } else {
                [output, input]
            };
            let weight = leaf(2, shape);
            let matrix = || {
                if input_first {
                    weight.clone()
                } else {
                    weight.clone().transpose()
                }
            };
            let theirs = || x.clone().matmul(matrix());
            let ours = outcome!(linear(&x, &weight, None, input_first).unwrap(), x, weight);
            close("linear", &ours, &outcome!(theirs(), x, weight), 1e-5);
            let ours = linear(&x, &weight, Some(&bias), input_first).unwrap();
            let ours = outcome!(ours, x, weight, bias);
            let theirs = theirs() + bias.clone().unsqueeze();
            close("bias", &ours, &outcome!(theirs, x, weight, bias), 1e-5);
        }
    }
}

#[test]
fn norms() {
    for [rows, width] in [[1, 1], [3, 37], [70, 300]] {
        let (x, weight, bias) = (leaf(1, [rows, width]), leaf(3, [width]), leaf(4, [width]));
        let scaled = |x: Tensor<2>| {
            let scale = (x.clone().square().mean_dim(1) + 1e-5).sqrt().recip();
            x * scale * weight.clone().unsqueeze()
        };
        let ours = outcome!(norm(&x, &weight, None, 1, 1e-5).unwrap(), x, weight);
        close("norm", &ours, &outcome!(scaled(x.clone()), x, weight), 1e-5);
        if width > 1 {
            let ours = norm(&x, &weight, Some(&bias), 1, 1e-5).unwrap();
            let ours = outcome!(ours, x, weight, bias);
            let centred = x.clone() - x.clone().mean_dim(1);
            let theirs = scaled(centred) + bias.clone().unsqueeze();
            close(
                "layer norm",
                &ours,
                &outcome!(theirs, x, weight, bias),
                1e-5,
            );
        }
    }
    for ([n, channels, height, width], groups) in
        [([2, 6, 3, 5], 2), ([40, 32, 7, 7], 2), ([3, 4, 1, 2], 4)]
    {
        let x = leaf(1, [n, channels, height, width]);
        let (weight, bias) = (leaf(3, [channels]), leaf(4, [channels]));
        let flat = x
            .clone()
            .reshape([n, groups, channels / groups * height * width]);
        let centred = flat.clone() - flat.mean_dim(2);
        let scale = (centred.clone().square().mean_dim(2) + 1e-5).sqrt();
        let wide = |x: &Tensor<1>| x.clone().reshape([1, channels, 1, 1]);
        let theirs =
            (centred / scale).reshape([n, channels, height, width]) * wide(&weight) + wide(&bias);
        let ours = norm(&x, &weight, Some(&bias), groups, 1e-5).unwrap();
        let ours = outcome!(ours, x, weight, bias);
        close(
            "group norm",
            &ours,
            &outcome!(theirs, x, weight, bias),
            1e-5,
        );
    }
    let (x, weight, bias) = (fixed(3, [3, 20]), fixed(4, [20]), fixed(5, [20]));
    differences("rows", [3, 20], |x| {
        norm(&x, &weight, None, 1, 1e-5).unwrap()
    });
    differences("centred rows", [3, 20], |x| {
        norm(&x, &weight, Some(&bias), 1, 1e-5).unwrap()
    });
    differences("weight", [20], |w| {
        norm(&x, &w, Some(&bias), 1, 1e-5).unwrap()
    });
    differences("groups", [2, 4, 3, 2], |x| {
        norm(&x, &fixed(6, [4]), Some(&fixed(7, [4])), 2, 1e-5).unwrap()
    });
}

#[test]
fn what_is_not_finite_stays_so() {
    let device = Device::flex().autodiff();
    for bad in [f32::NAN, f32::INFINITY] {
        let x = Tensor::<4>::from_data([[[[0.5, bad], [0.0, 0.1]]]], &device);
        let all = [
            list(relu_pool(&x).unwrap()),
            list(attention(&x, &x, &x, &Sight::default(), None).unwrap()),
            list(gelu(&x.clone().reshape([2, 2])).unwrap()),
            list(norm(&x.clone().reshape([2, 2]), &fixed(1, [2]), None, 1, 1e-5).unwrap()),
            list(norm(&x, &fixed(1, [1]), Some(&fixed(2, [1])), 1, 1e-5).unwrap()),
        ];
        assert!(
            all.iter().all(|out| out.iter().any(|x| !x.is_finite())),
            "{bad} {all:?}"
        );
    }
}

/// Attention by burn's operations.
fn by_burn(q: &Tensor<4>, k: &Tensor<4>, v: &Tensor<4>) -> Tensor<4> {
    let ([_, _, rows, _], [_, _, context, _]) = (q.dims(), k.dims());
    let later = Tensor::<2>::full([context, context], -1e9, &q.device()).triu(1);
    let mask = later.repeat_dim(0, rows / context).unsqueeze();
    softmax(q.clone().matmul(k.clone().swap_dims(2, 3)) + mask, 3).matmul(v.clone())
}

#[test]
fn attentions() {
    let cases = [
        [1, 1, 1, 1, 2],
        [2, 2, 1, 5, 6],
        [2, 3, 2, 64, 8],
        [3, 1, 4, 130, 3],
    ];
    for [batch, heads, groups, context, d] in cases {
        let q = leaf(1, [batch, heads, groups * context, d]);
        let [k, v] = [2, 3].map(|seed| leaf(seed, [batch, heads, context, d]));
        let ours = outcome!(
            attention(&q, &k, &v, &Sight::default(), None).unwrap(),
            q,
            k,
            v
        );
        let theirs = outcome!(by_burn(&q, &k, &v), q, k, v);
        close(&format!("{groups} {context}"), &ours, &theirs, 1e-5);
        // Heads that lie behind one another in a row, as models have them.
        let apart = |x: &Tensor<4>| x.clone().swap_dims(1, 2).clone() * 1.0;
        let back = |x: Tensor<4>| x.swap_dims(1, 2);
        let [q2, k2, v2] = [&q, &k, &v].map(|x| back(apart(x)));
        let ours = outcome!(
            attention(&q2, &k2, &v2, &Sight::default(), None).unwrap(),
            q,
            k,
            v
        );
        close("strided", &ours, &theirs, 1e-5);
    }
    let [q, k] = [fixed(8, [1, 2, 6, 4]), fixed(9, [1, 2, 3, 4])];
    differences("queries", [1, 2, 6, 4], |q| {
        attention(&q, &k, &k, &Sight::default(), None).unwrap()
    });
    differences("keys", [1, 2, 3, 4], |x| {
        attention(&q, &x, &k, &Sight::default(), None).unwrap()
    });
    differences("values", [1, 2, 3, 4], |x| {
        attention(&q, &k, &x, &Sight::default(), None).unwrap()
    });
}

#[test]
fn heads_and_rows() {
    for [batch, count, context, d] in [[1, 1, 1, 2], [2, 3, 5, 6], [3, 2, 70, 16]] {
        let x = leaf(1, [batch * context, count * d]);
        let angles = [4, 5].map(|seed| fixed(seed, [context, d / 2]));
        let apart = || {
            x.clone()
                .reshape([batch, context, count, d])
                .swap_dims(1, 2)
        };
        let ours = outcome!(heads(&x, [batch, d], 1.0, None).unwrap(), x);
        close("heads", &ours, &outcome!(apart(), x), 0.0);
        let turned = || {
            let (a, b) = (apart().narrow(3, 0, d / 2), apart().narrow(3, d / 2, d / 2));
            let [c, s] = angles.each_ref().map(|table| table.clone().unsqueeze());
            let first = a.clone() * c.clone() - b.clone() * s.clone();
            Tensor::cat(vec![first, b * c + a * s], 3) * 0.3
        };
        let ours = outcome!(heads(&x, [batch, d], 0.3, Some(&angles)).unwrap(), x);
        close("turned", &ours, &outcome!(turned(), x), 1e-6);
        let width = count * d;
        let x = leaf(3, [batch * context, 3 * width]);
        let part = |index: usize| {
            let part = x.clone().narrow(1, index * width, width);
            part.reshape([batch, context, count, d]).swap_dims(1, 2)
        };
        let q = part(0) * (d as f64).sqrt().recip();
        let theirs = by_burn(&q, &part(1), &part(2)).swap_dims(1, 2);
        let theirs = outcome!(theirs.reshape([batch * context, width]), x);
        let ours = outcome!(
            joint_attention(&x, [batch, d], &Sight::default()).unwrap(),
            x
        );
        close("joint", &ours, &theirs, 1e-5);
        let x = leaf(2, [batch, count, context, d]);
        let together = x
            .clone()
            .swap_dims(1, 2)
            .reshape([batch * context, count * d]);
        let ours = outcome!(super::rows(&x).unwrap(), x);
        close("rows", &ours, &outcome!(together, x), 0.0);
    }
}

#[test]
fn convolutions() {
    let cases = [
        ([1, 1, 1, 1], [1, 1, 1], 1, 0),
        ([3, 1, 6, 7], [4, 3, 1], 1, 1),
        ([5, 3, 9, 8], [6, 3, 2], 2, 1),
        ([2, 4, 28, 28], [3, 3, 1], 1, 1),
        ([4, 3, 15, 11], [5, 7, 2], 2, 3),
        ([70, 2, 4, 4], [3, 1, 2], 2, 0),
        ([3, 2, 5, 4], [2, 5, 1], 1, 2),
        ([2, 3, 2, 2], [3, 7, 1], 1, 3),
    ];
    for (shape, [out, side, _], stride, padding) in cases {
        let x = leaf(1, shape);
        let (weight, bias) = (leaf(2, [out, shape[1], side, side]), leaf(3, [out]));
        let options = || ConvOptions::new([stride, stride], [padding, padding], [1, 1], 1);
        let ours = conv(&x, &weight, Some(&bias), stride, padding).unwrap();
        let ours = outcome!(ours, x, weight, bias);
        let theirs = conv2d(x.clone(), weight.clone(), Some(bias.clone()), options());
        close("conv", &ours, &outcome!(theirs, x, weight, bias), 2e-5);
        let plain = conv(&x.clone().detach(), &weight, None, stride, padding).unwrap();
        let theirs = conv2d(x.clone(), weight.clone(), None, options());
        close(
            "weights",
            &outcome!(plain, weight),
            &outcome!(theirs, weight),
            2e-5,
        );
    }
    let weight = fixed(1, [2, 2, 3, 3]);
    differences("images", [2, 2, 5, 4], |x| {
        conv(&x, &weight, None, 2, 1).unwrap()
    });
    differences("weights", [2, 2, 3, 3], |w| {
        conv(&fixed(2, [2, 2, 5, 4]), &w, None, 1, 1).unwrap()
    });
}

#[test]
fn poolings() {
    for shape in [[1, 1, 2, 2], [2, 3, 5, 7], [40, 8, 28, 28]] {
        let x = leaf(1, shape);
        let ours = outcome!(relu_pool(&x).unwrap(), x);
        let options = MaxPoolOptions::new([2, 2]).with_stride([2, 2]);
        let theirs = outcome!(max_pool2d(relu(x.clone()), options), x);
        close("pool", &ours, &theirs, 0.0);
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let all = || {
        let [q, k, v] = [1, 2, 3].map(|seed| leaf(seed, [2, 4, 130, 16]));
        let mut all = outcome!(
            attention(&q, &k, &v, &Sight::default(), None).unwrap(),
            q,
            k,
            v
        );
        let (x, weight) = (leaf(6, [30, 3, 28, 28]), leaf(7, [8, 3, 3, 3]));
        all.extend(outcome!(conv(&x, &weight, None, 1, 1).unwrap(), x, weight));
        let (x, weight, bias) = (leaf(8, [300, 130]), leaf(9, [130]), leaf(10, [130]));
        let out = norm(&x, &weight, Some(&bias), 1, 1e-5).unwrap();
        all.extend(outcome!(out, x, weight, bias));
        let (weight, bias) = (leaf(11, [130, 9]), leaf(12, [9]));
        let out = linear(&x, &weight, Some(&bias), true).unwrap();
        all.extend(outcome!(out, x, weight, bias));
        all
    };
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(all)
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn evaluation_without_a_tape_gives_the_same() {
    let device = Device::flex();
    let x = Tensor::<2>::from_data(TensorData::new(noise(1, 60), [6, 10]), &device);
    let ours = gelu(&x).unwrap();
    close(
        "plain",
        &[list(ours)],
        &[list(gelu(&leaf(1, [6, 10])).unwrap())],
        0.0,
    );
}
