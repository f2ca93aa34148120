//! A residual network of eighteen layers. Its fields have the names of torchvision's `resnet18`, so that
//! the names and shapes of the tensors are those of its files.

use super::layers::Norm;
use crate::data::ImageShape;
use crate::{Segments, fused};
use burn::module::{Initializer, Module, Param};
use burn::nn::PaddingConfig2d;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::tensor::activation::relu;
use burn::tensor::module::max_pool2d;
use burn::tensor::ops::MaxPoolOptions;
use burn::tensor::{Device, Tensor};

/// The longest side of an image for which the first layer keeps the size.
const SMALL_SIDE: usize = 64;

/// Channels of one group of a norm. With fewer, a norm would remove most of what the last stage of a small
/// image says, which has few places.
const GROUP: usize = 16;

/// Keeps a norm finite where all values of a group are equal.
const EPSILON: f64 = 1e-5;

/// ResNet-18: one convolution, four stages of two blocks with two 3 x 3 convolutions each, the mean over
/// all places, and one linear layer.
///
/// Norms are over groups of channels of one image instead of over the batch: the running mean and
/// variance of batch norm are not parameters, so peers would not average them, and with skewed data each
/// peer would keep those of its own classes.
///
/// **Sources:** He et al., Deep residual learning for image recognition, 2016, table 1 and section 4.2;
/// Wu and He, Group normalization, 2018, table 3 (16 channels in a group); Hsieh et al., The non-IID data quagmire of decentralized
/// machine learning, 2020, section 5.
#[derive(Module, Debug)]
pub struct ResNet18 {
    conv1: Conv2d,
    bn1: Norm,
    layer1: Vec<Block>,
    layer2: Vec<Block>,
    layer3: Vec<Block>,
    layer4: Vec<Block>,
    fc: Output,
    height: usize,
    width: usize,
    channels: usize,
    small: bool,
}

/// `relu(x + bn2(conv2(relu(bn1(conv1(x))))))`; where the size changes, x passes a 1 x 1 convolution and a
/// norm.
#[derive(Module, Debug)]
struct Block {
    conv1: Conv2d,
    bn1: Norm,
    conv2: Conv2d,
    bn2: Norm,
    downsample: Option<(Conv2d, Norm)>,
}

/// A linear layer with the weight `[output, input]`, as `torch.nn.Linear` has it.
#[derive(Module, Debug)]
struct Output {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

impl ResNet18 {
    /// All parameters zero. The first stage has `base` channels, 64 in the paper; each later stage has twice
    /// as many. For small images, as for CIFAR, the first layer has 3 x 3 kernels and keeps the size.
    /// Otherwise it has 7 x 7 kernels, and its stride and the pooling after it divide the size by 4.
    pub fn zeros(image: ImageShape, base: usize, classes: usize, device: &Device) -> Self {
        let ImageShape {
            height,
            width,
            channels,
        } = image;
        let small = height.max(width) <= SMALL_SIDE;
        let (side, stride) = if small { (3, 1) } else { (7, 2) };
        let stage = |input, output, stride| {
            let first = Block::zeros(input, output, stride, device);
            vec![first, Block::zeros(output, output, 1, device)]
        };
        let features = 8 * base;
        Self {
            conv1: conv([channels, base], side, stride, device),
            bn1: norm(base, device),
            layer1: stage(base, base, 1),
            layer2: stage(base, 2 * base, 2),
            layer3: stage(2 * base, 4 * base, 2),
            layer4: stage(4 * base, features, 2),
            fc: Output {
                weight: Initializer::Zeros.init([classes, features], device),
                bias: Initializer::Zeros.init([classes], device),
            },
            height,
            width,
            channels,
            small,
        }
    }

    /// Logits `[n, classes]` of images `[n, channels * height * width]`, with a boundary before every stage
    /// and before the output.
    pub fn segmented(&self, images: Tensor<2>, segments: &mut Segments) -> Tensor<2> {
        let [n, _] = images.dims();
        let x = images.reshape([n, self.channels, self.height, self.width]);
        let mut x = relu(self.bn1.forward(convolve(&self.conv1, x)));
        if !self.small {
            let pool = MaxPoolOptions::new([3, 3]);
            x = max_pool2d(x, pool.with_stride([2, 2]).with_padding([1, 1]));
        }
        for stage in [&self.layer1, &self.layer2, &self.layer3, &self.layer4] {
            let dims = x.dims();
            x = segments.boundary(x.flatten(1, 3)).reshape(dims);
            x = stage.iter().fold(x, |x, block| block.forward(x));
        }
        let mean = x.flatten::<3>(2, 3).mean_dim(2).flatten::<2>(1, 2);
        self.fc.forward(segments.boundary(mean))
    }
}

impl Block {
    fn zeros(input: usize, output: usize, stride: usize, device: &Device) -> Self {
        let changes = input != output || stride != 1;
        let shortcut = || {
            let conv = conv([input, output], 1, stride, device);
            (conv, norm(output, device))
        };
        Self {
            conv1: conv([input, output], 3, stride, device),
            bn1: norm(output, device),
            conv2: conv([output, output], 3, 1, device),
            bn2: norm(output, device),
            downsample: changes.then(shortcut),
        }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let y = relu(self.bn1.forward(convolve(&self.conv1, x.clone())));
        let y = self.bn2.forward(convolve(&self.conv2, y));
        let x = match &self.downsample {
            Some((conv, norm)) => norm.forward(convolve(conv, x)),
            None => x,
        };
        relu(x + y)
    }
}

impl Output {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x.matmul(self.weight.val().transpose()) + self.bias.val().unsqueeze()
    }
}

/// A norm over groups of channels of one image.
fn norm(channels: usize, device: &Device) -> Norm {
    let fits = |groups: &usize| channels.is_multiple_of(*groups);
    Norm {
        weight: Initializer::Zeros.init([channels], device),
        bias: Some(Initializer::Zeros.init([channels], device)),
        groups: (1..=channels / GROUP).rev().find(fits).unwrap_or(1),
        offset: 0.0,
        eps: EPSILON,
    }
}

/// A convolution without bias whose padding keeps the size at stride 1.
fn conv([input, output]: [usize; 2], side: usize, stride: usize, device: &Device) -> Conv2d {
    let pad = side / 2;
    Conv2dConfig::new([input, output], [side, side])
        .with_stride([stride, stride])
        .with_padding(PaddingConfig2d::Explicit(pad, pad, pad, pad))
        .with_bias(false)
        .with_initializer(Initializer::Zeros)
        .init(device)
}

fn convolve(conv: &Conv2d, x: Tensor<4>) -> Tensor<4> {
    let (stride, pad) = (conv.stride[0], conv.kernel_size[0] / 2);
    fused::conv(&x, &conv.weight.val(), None, stride, pad).unwrap_or_else(|| conv.forward(x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::flat;
    use burn::tensor::TensorData;

    fn layout(side: usize, classes: usize) -> murmurate_strategies::Layout {
        let image = ImageShape {
            height: side,
            width: side,
            channels: 3,
        };
        flat::layout(&ResNet18::zeros(image, 64, classes, &Device::flex()))
    }

    /// torchvision's `resnet18` has 11,689,512 parameters, and 62 tensors beside the buffers of its norms.
    #[test]
    fn tensors_are_those_of_torchvision() {
        let large = layout(224, 1000);
        assert_eq!(large.len(), 11_689_512);
        let shapes: Vec<String> = large
            .tensors()
            .iter()
            .map(|spec| format!("{} {:?}", spec.name, spec.shape))
            .collect();
        assert_eq!(shapes.len(), 62);
        for expected in [
            "conv1.weight [64, 3, 7, 7]",
            "bn1.bias [64]",
            "layer1.1.conv2.weight [64, 64, 3, 3]",
            "layer2.0.downsample.0.weight [128, 64, 1, 1]",
            "layer2.0.downsample.1.weight [128]",
            "layer4.1.bn2.weight [512]",
            "fc.weight [1000, 512]",
            "fc.bias [1000]",
        ] {
            assert!(shapes.iter().any(|shape| shape == expected), "{expected}");
        }
        // For CIFAR-10: another first layer and another number of classes.
        let small = layout(32, 10);
        assert_eq!(small.len(), 11_689_512 - 9_408 + 1_728 - 513_000 + 5_130);
        assert_eq!(small.tensors()[0].shape, [64, 3, 3, 3]);
    }

    #[test]
    fn a_norm_gives_each_group_of_each_image_mean_zero_and_variance_one() {
        let device = Device::flex();
        let mut norm = norm(64, &device);
        assert_eq!(norm.groups, 4);
        norm.weight = Initializer::Ones.init([64], &device);
        let values: Vec<f32> = (0..2 * 64 * 9).map(|i| (i * 37 % 101) as f32).collect();
        let x = Tensor::<4>::from_data(TensorData::new(values, [2, 64, 3, 3]), &device);
        let y: Vec<f32> = norm.forward(x).into_data().iter::<f32>().collect();
        for group in y.chunks(16 * 9) {
            let mean = group.iter().sum::<f32>() / 144.0;
            let variance = group.iter().map(|y| y * y).sum::<f32>() / 144.0;
            assert!(
                mean.abs() < 1e-5 && (variance - 1.0).abs() < 1e-4,
                "{mean} {variance}"
            );
        }
    }

    #[test]
    fn any_size_gives_one_logit_for_each_class() {
        let device = Device::flex();
        for (height, width) in [(1, 1), (5, 9), (33, 20), (70, 65)] {
            let image = ImageShape {
                height,
                width,
                channels: 1,
            };
            let model = ResNet18::zeros(image, 3, 4, &device);
            let images = Tensor::zeros([2, height * width], &device);
            let logits = model.segmented(images, &mut Segments::whole());
            assert_eq!(logits.dims(), [2, 4]);
        }
    }
}
