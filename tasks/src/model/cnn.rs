//! A small convolutional network.

use super::perceptron::zeros;
use crate::data::ImageShape;
use crate::{Segments, fused};
use burn::module::{Initializer, Module, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{Linear, PaddingConfig2d};
use burn::tensor::activation::relu;
use burn::tensor::module::max_pool2d;
use burn::tensor::ops::MaxPoolOptions;
use burn::tensor::{Device, Tensor};

/// Smallest side of an image, so that a pixel remains after two poolings.
pub const CNN_SIDE_MIN: usize = 4;

const CHANNELS: [usize; 2] = [8, 16];

/// Two 3 x 3 convolutions of 8 and 16 channels, each with relu and 2 x 2 pooling, then one hidden
/// layer.
#[derive(Module, Debug)]
pub struct Cnn {
    conv1: Conv2d,
    conv2: Conv2d,
    hidden: Linear,
    output: Linear,
    height: usize,
    width: usize,
    channels: usize,
}

impl Cnn {
    /// All parameters zero.
    pub fn zeros(image: ImageShape, hidden: usize, classes: usize, device: &Device) -> Self {
        let ImageShape {
            height,
            width,
            channels,
        } = image;
        let conv = |input, output| {
            Conv2dConfig::new([input, output], [3, 3])
                .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
                .with_initializer(Initializer::Zeros)
                .init(device)
        };
        let linear = |input, output| zeros(input, output, device);
        Self {
            conv1: conv(channels, CHANNELS[0]),
            conv2: conv(CHANNELS[0], CHANNELS[1]),
            hidden: linear(CHANNELS[1] * (height / 4) * (width / 4), hidden),
            output: linear(hidden, classes),
            height,
            width,
            channels,
        }
    }

    /// Logits `[n, classes]` of images `[n, channels * height * width]`, with a boundary before every layer
    /// but the first.
    pub fn segmented(&self, images: Tensor<2>, segments: &mut Segments) -> Tensor<2> {
        let [n, _] = images.dims();
        let x = images.reshape([n, self.channels, self.height, self.width]);
        let x = layer(&self.conv1, x);
        let dims = x.dims();
        let x = segments.boundary(x.flatten(1, 3)).reshape(dims);
        let x = layer(&self.conv2, x);
        let x = segments.boundary(x.flatten(1, 3));
        let x = segments.boundary(relu(self.hidden.forward(x)));
        self.output.forward(x)
    }
}

/// A convolution, relu and pooling.
fn layer(conv: &Conv2d, x: Tensor<4>) -> Tensor<4> {
    let (weight, bias) = (conv.weight.val(), conv.bias.as_ref().map(Param::val));
    let x = fused::conv(&x, &weight, bias.as_ref(), 1, 1).unwrap_or_else(|| conv.forward(x));
    let pool = || MaxPoolOptions::new([2, 2]).with_stride([2, 2]);
    fused::relu_pool(&x).unwrap_or_else(|| max_pool2d(relu(x), pool()))
}
