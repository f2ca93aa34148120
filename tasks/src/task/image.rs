//! Image classification: labelled images of any source with small random shifts.

use super::{Score, Task};
use crate::config::{Augmentation, ImageConfig, ImageModel};
use crate::data::{
    BadRecords, DECODED_IN_MEMORY_MAX, DataError, Dataset, ImageData, ImageShape, Problem, Shards,
    Taken, Units,
};
use crate::model::{CNN_SIDE_MIN, Classifier, Cnn, Mlp, ResNet18};
use crate::{Segments, TaskError, loss, rng};
use burn::tensor::{Device, Int, Tensor, TensorData};
use murmurate_strategies::{DataReport, TensorSpec};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// Mean and standard deviation of MNIST's pixels in `[0, 1]`. They also suit other grey images.
const GREY: ([f32; 1], [f32; 1]) = ([0.1307], [0.3081]);

/// Classes from which on the five most likely are worth a measure.
const TOP_5_CLASSES: usize = 10;

/// Those of ImageNet's red, green and blue, which models of torchvision expect.
const COLOURS: ([f32; 3], [f32; 3]) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);

/// The most images in an evaluation batch.
const HELD_BATCH_MAX: usize = 100;

/// The fewest, however large they are.
const HELD_BATCH_MIN: usize = 16;

/// Values of a batch that an evaluation does not exceed between these two.
const HELD_VALUES: usize = 1_600_000;

/// Channels of the first stage of a ResNet.
const RESNET_BASE: usize = 64;

/// The model of an image classifier, without its weights.
pub(crate) struct ImagePlan {
    model: ImageModel,
    hidden: usize,
    base: usize,
    shape: ImageShape,
    classes: usize,
}

impl ImagePlan {
    /// The model for these images.
    ///
    /// # Errors
    /// If they are too small for it.
    pub(crate) fn new(config: &ImageConfig, data: &ImageData) -> Result<Self, TaskError> {
        let ImageShape { height, width, .. } = data.shape;
        if config.model == ImageModel::Cnn && height.min(width) < CNN_SIDE_MIN {
            return Err(TaskError::ImageTooSmall { height, width });
        }
        Ok(Self {
            model: config.model,
            hidden: config.hidden as usize,
            base: config.width.map_or(RESNET_BASE, |width| width as usize),
            shape: data.shape,
            classes: data.classes,
        })
    }

    pub(crate) fn model(&self, device: &Device) -> Classifier {
        let (image, hidden, classes) = (self.shape, self.hidden, self.classes);
        match self.model {
            ImageModel::Mlp => Classifier::Mlp(Mlp::zeros(image.area(), hidden, classes, device)),
            ImageModel::Cnn => Classifier::Cnn(Cnn::zeros(image, hidden, classes, device)),
            ImageModel::ResNet18 => {
                Classifier::ResNet18(ResNet18::zeros(image, self.base, classes, device))
            }
        }
    }
}

/// An image classifier and its images.
pub struct ImageTask {
    plan: ImagePlan,
    augmentation: Augmentation,
    data: ImageData,
    units: Units,
    scale: Scale,
    bad: BadRecords,
}

impl ImageTask {
    /// Reads the images and keeps one shard of them.
    ///
    /// # Errors
    /// If the configuration, the images or the shard is invalid.
    pub fn new(config: &ImageConfig, seed: u64, shards: &Shards) -> Result<Self, TaskError> {
        Self::within(DECODED_IN_MEMORY_MAX, config, seed, shards)
    }

    /// The same; at most `in_memory` bytes of decoded images stay in memory.
    pub(super) fn within(
        in_memory: usize,
        config: &ImageConfig,
        seed: u64,
        shards: &Shards,
    ) -> Result<Self, TaskError> {
        let mut data = ImageData::find(config)?;
        let plan = ImagePlan::new(config, &data)?;
        data.keep_shard(shards, 1)?;
        let bad = BadRecords::new(config.on_bad_record);
        data.load(in_memory, &bad)?;
        let (images, batch) = (data.train.len(), config.batch as usize);
        let units = Units::new(images, batch, shards, seed, || data.train.fingerprint())?;
        Ok(Self {
            units,
            bad,
            augmentation: config.augmentation,
            scale: Scale::of(plan.shape),
            plan,
            data,
        })
    }

    fn held_batch(&self) -> usize {
        let fits = HELD_VALUES / self.plan.shape.area();
        fits.clamp(HELD_BATCH_MIN, HELD_BATCH_MAX)
    }
}

impl Task for ImageTask {
    type Model = Classifier;
    type Batch = (Tensor<2>, Tensor<1, Int>);

    fn model(&self, device: &Device) -> Classifier {
        self.plan.model(device)
    }

    /// He's initialization for layers before a relu; zero for the output and all biases. The second norm of
    /// a residual block begins at zero and the others at one, so that each block begins as its shortcut.
    ///
    /// **Source:** Goyal et al., Accurate, large minibatch SGD, 2017, section 5.1.
    fn initial(&self, tensor: &TensorSpec, values: &mut [f32], rng: &mut ChaCha8Rng) {
        let is_output = tensor.name.starts_with("output.") || tensor.name.starts_with("fc.");
        let is_scale = tensor.name.ends_with(".weight") && !tensor.name.ends_with("bn2.weight");
        match tensor.shape.len() {
            2.. if !is_output => {
                rng::fan_in(tensor, std::f32::consts::SQRT_2, values, rng);
            }
            1 if is_scale => values.fill(1.0),
            _ => values.fill(0.0),
        }
    }

    fn dataset(&self) -> Option<&dyn Dataset> {
        Some(&self.units)
    }

    fn dataset_mut(&mut self) -> Option<&mut dyn Dataset> {
        Some(&mut self.units)
    }

    fn samples(&self) -> u64 {
        self.units.batch_len() as u64
    }

    fn batch(&mut self, number: u64, device: &Device) -> Result<Self::Batch, TaskError> {
        let wanted = self.units.batch(number);
        let mut rng = rng::stream(self.units.seed(), rng::BATCHES, number);
        let train = &mut self.data.train;
        let taken = train.take(&wanted, &mut self.units.later(number))?;
        if taken.images.is_empty() {
            return Err(DataError::nowhere(Problem::NoneLeft).into());
        }
        let shift = self.augmentation.shift_px();
        let mut offset = || match shift {
            0 => 0,
            _ => rng::below(2 * shift as u64 + 1, &mut rng) as isize - shift as isize,
        };
        let by = || [offset(), offset()];
        Ok(self.scale.tensors(&taken, train.labels(), by, device))
    }

    fn loss(
        &self,
        model: &Classifier,
        (images, labels): Self::Batch,
        segments: &mut Segments,
    ) -> Tensor<1> {
        loss::cross_entropy(model.segmented(images, segments), labels)
    }

    fn data_report(&self) -> Option<Arc<DataReport>> {
        Some(self.bad.report())
    }

    fn held_batches(&self) -> usize {
        self.data.held.len().div_ceil(self.held_batch())
    }

    fn score(
        &mut self,
        model: &Classifier,
        index: usize,
        device: &Device,
    ) -> Result<Score, TaskError> {
        let (images, batch) = (self.data.held.len() as u32, self.held_batch() as u32);
        let indices = |number: usize| -> Vec<u32> {
            let start = number as u32 * batch;
            (start..(start + batch).min(images)).collect()
        };
        let held = &mut self.data.held;
        let wanted = indices(index);
        let mut next = |k: usize| Some(indices(index + 1 + k)).filter(|next| !next.is_empty());
        let taken = held.take(&wanted, &mut next)?;
        if taken.images.is_empty() {
            return Ok(Score::default());
        }
        let scaled = self.scale.tensors(&taken, held.labels(), || [0, 0], device);
        let (images, labels) = scaled;
        let logits = model.forward(images);
        let many = logits.dims()[1] >= TOP_5_CLASSES;
        let right_5 = many.then(|| loss::top_5(logits.clone(), labels.clone()));
        let (loss_sum, right) = loss::score(logits, labels);
        Ok(Score {
            loss_sum,
            right: Some(right),
            right_5,
            samples: taken.images.len() as u64,
        })
    }
}

/// From bytes to the values that a model sees, `(byte / 255 - mean) / deviation`: one table for each
/// channel.
struct Scale {
    shape: ImageShape,
    tables: Vec<[f32; 256]>,
}

impl Scale {
    fn of(shape: ImageShape) -> Self {
        let table = |(mean, deviation): (&f32, &f32)| {
            std::array::from_fn(|byte| (f32::from(byte as u8) / 255.0 - mean) / deviation)
        };
        let tables = match shape.channels {
            1 => GREY.0.iter().zip(&GREY.1).map(table).collect(),
            _ => COLOURS.0.iter().zip(&COLOURS.1).map(table).collect(),
        };
        Self { shape, tables }
    }

    /// A batch `[n, channels * height * width]`, each image shifted by what `by` says, and its labels `[n]`
    /// of those of all images.
    fn tensors(
        &self,
        taken: &Taken,
        labels: &[u16],
        mut by: impl FnMut() -> [isize; 2],
        device: &Device,
    ) -> (Tensor<2>, Tensor<1, Int>) {
        let (n, area) = (taken.images.len(), self.shape.area());
        let mut pixels = Vec::with_capacity(taken.pixels.len());
        for image in taken.pixels.chunks_exact(area) {
            self.append_moved(&mut pixels, image, by());
        }
        let label = |&image: &u32| i32::from(labels[image as usize]);
        let labels: Vec<i32> = taken.images.iter().map(label).collect();
        (
            Tensor::from_data(TensorData::new(pixels, [n, area]), device),
            Tensor::from_data(TensorData::new(labels, [n]), device),
        )
    }

    /// Appends an image `[height, width, channels]` as `[channels, height, width]`, shifted down and right.
    /// New pixels are black.
    fn append_moved(&self, into: &mut Vec<f32>, image: &[u8], [down, right]: [isize; 2]) {
        let ImageShape {
            height,
            width,
            channels,
        } = self.shape;
        // Columns that are left and right of what remains of a row, and where that begins in the image.
        let left = width.min(right.max(0).unsigned_abs());
        let cut = width.min(right.min(0).unsigned_abs());
        let kept = width - left - cut;
        for (channel, table) in self.tables.iter().enumerate() {
            let begin = into.len();
            into.resize(begin + height * width, table[0]);
            for (row, line) in into[begin..].chunks_exact_mut(width).enumerate() {
                let from = row.checked_add_signed(-down).filter(|&from| from < height);
                let Some(from) = from else {
                    continue;
                };
                let first = (from * width + cut) * channels + channel;
                let bytes = image[first.min(image.len())..].iter().step_by(channels);
                let places = line[left..left + kept].iter_mut().zip(bytes);
                places.for_each(|(to, byte)| *to = table[usize::from(*byte)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(channels: usize) -> Scale {
        Scale::of(ImageShape {
            height: 2,
            width: 2,
            channels,
        })
    }

    #[test]
    fn a_moved_image_keeps_its_size_and_gains_background() {
        let scaled = |byte: u8| (f32::from(byte) / 255.0 - 0.1307) / 0.3081;
        let image = [0, 255, 0, 255];
        let mut moved = Vec::new();
        scale(1).append_moved(&mut moved, &image, [1, -1]);
        assert_eq!(moved, [0, 0, 255, 0].map(scaled));
        moved.clear();
        scale(1).append_moved(&mut moved, &image, [0, 0]);
        assert_eq!(moved, image.map(scaled));
        moved.clear();
        scale(1).append_moved(&mut moved, &image, [-1, 1]);
        assert_eq!(moved, [0, 0, 0, 0].map(scaled));
        moved.clear();
        scale(1).append_moved(&mut moved, &image, [0, -2]);
        assert_eq!(moved, [0; 4].map(scaled), "nothing of it is left");
    }

    #[test]
    fn moved_pixels_lie_where_each_of_them_belongs() {
        let shape = ImageShape {
            height: 3,
            width: 4,
            channels: 3,
        };
        let image: Vec<u8> = (1..=36).collect();
        let scale = Scale::of(shape);
        for (down, right) in (-4..=4).flat_map(|down| (-5..=5).map(move |right| (down, right))) {
            let mut found = Vec::new();
            scale.append_moved(&mut found, &image, [down, right]);
            let at = |channel: usize, row: isize, column: isize| {
                let (row, column) = (row - down, column - right);
                let inside = (0..3).contains(&row) && (0..4).contains(&column);
                let pixel = || image[(row * 4 + column) as usize * 3 + channel];
                scale.tables[channel][usize::from(if inside { pixel() } else { 0 })]
            };
            let all = (0..3).flat_map(|c| (0..3).flat_map(move |r| (0..4).map(move |x| (c, r, x))));
            let expected: Vec<f32> = all.map(|(c, r, x)| at(c, r, x)).collect();
            assert_eq!(found, expected, "{down} down, {right} right");
        }
    }

    #[test]
    fn colours_lie_one_after_the_other() {
        let image: Vec<u8> = (0..12).collect();
        let mut found = Vec::new();
        scale(3).append_moved(&mut found, &image, [0, 0]);
        let red = (3.0 / 255.0 - 0.485) / 0.229;
        assert!((found[1] - red).abs() < 1e-6);
        let blue = (11.0 / 255.0 - 0.406) / 0.225;
        assert!((found[11] - blue).abs() < 1e-6);
    }
}
