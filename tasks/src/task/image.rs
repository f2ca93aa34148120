//! Image classification on IDX files: shards of labelled images with small random shifts.

use super::{Score, Task};
use crate::config::{Augmentation, DataSource, ImageConfig, ImageModel};
use crate::data::{Dealt, LabelledPair, Passes, ShardKind, Shards, bundled};
use crate::model::{CNN_SIDE_MIN, Classifier, Cnn, Mlp};
use crate::{Segments, TaskError, init, loss, rng};
use burn::tensor::{Device, Int, Tensor, TensorData};
use murmurate_protocol::Participants;
use murmurate_strategies::TensorSpec;
use rand_chacha::ChaCha8Rng;

/// Mean and standard deviation of MNIST's pixels in `[0, 1]`. They also suit other images.
const MEAN: f32 = 0.1307;
const DEVIATION: f32 = 0.3081;

/// Classes from which on the five most likely are worth a measure.
const TOP_5_CLASSES: usize = 10;

/// Images in an evaluation batch.
const HELD_BATCH: usize = 500;

/// An image classifier and its images.
pub struct ImageTask {
    model: ImageModel,
    hidden: usize,
    augmentation: Augmentation,
    data: LabelledPair,
    batch: usize,
    passes: Passes,
    seed: u64,
    /// Only where the peers divide the images.
    dealt: Option<Dealt>,
}

impl ImageTask {
    /// Reads the images and keeps one shard of them.
    ///
    /// # Errors
    /// If the configuration, the images or the shard is invalid.
    pub fn new(config: &ImageConfig, seed: u64, shards: &Shards) -> Result<Self, TaskError> {
        let mut data = read(config)?;
        data.keep_shard(shards, 1)?;
        let (height, width) = (data.held.images.height, data.held.images.width);
        if config.model == ImageModel::Cnn && height.min(width) < CNN_SIDE_MIN {
            return Err(TaskError::ImageTooSmall { height, width });
        }
        let dealt =
            (shards.kind == ShardKind::Dealt).then(|| Dealt::new(data.train.len(), shards.seed));
        let seed = rng::shard_seed(seed, shards.index);
        Ok(Self {
            dealt,
            model: config.model,
            hidden: config.hidden as usize,
            augmentation: config.augmentation,
            batch: config.batch as usize,
            passes: Passes::new(data.train.len(), config.batch as usize, seed),
            data,
            seed,
        })
    }

    /// The images: this shard's and all held-out ones.
    pub fn data(&self) -> &LabelledPair {
        &self.data
    }
}

pub(crate) fn read(config: &ImageConfig) -> Result<LabelledPair, TaskError> {
    match &config.data {
        DataSource::Bundled => Ok(bundled::mnist()),
        DataSource::Path(dir) => Ok(LabelledPair::read(dir, config.held_out)?),
    }
}

impl Task for ImageTask {
    type Model = Classifier;
    type Batch = (Tensor<2>, Tensor<1, Int>);

    fn model(&self, device: &Device) -> Classifier {
        let (images, classes) = (&self.data.held.images, self.data.classes);
        match self.model {
            ImageModel::Mlp => {
                Classifier::Mlp(Mlp::zeros(images.area(), self.hidden, classes, device))
            }
            ImageModel::Cnn => {
                let sides = [images.height, images.width];
                Classifier::Cnn(Cnn::zeros(sides, self.hidden, classes, device))
            }
        }
    }

    /// He's initialization for layers before a relu; zero for the output and all biases.
    fn initial(&self, tensor: &TensorSpec, values: &mut [f32], rng: &mut ChaCha8Rng) {
        match tensor.shape.len() {
            2.. if !tensor.name.starts_with("output.") => {
                init::fan_in(tensor, std::f32::consts::SQRT_2, values, rng);
            }
            _ => init::zeros(values),
        }
    }

    fn deal(&mut self, participants: &Participants) {
        let Some(dealt) = &mut self.dealt else { return };
        if dealt.deal(participants) {
            self.seed = dealt.order_seed();
            self.passes = Passes::new(dealt.count(), self.batch, self.seed);
        }
    }

    fn samples(&self) -> u64 {
        self.passes.batch_len() as u64
    }

    fn batch(&mut self, number: u64, device: &Device) -> Result<Self::Batch, TaskError> {
        let train = &self.data.train;
        let mut rng = rng::stream(self.seed, rng::BATCHES, number);
        let shift = self.augmentation.shift_px();
        let dealt = self.dealt.as_ref();
        let places = self.passes.batch(number);
        let indices = places
            .iter()
            .map(|place| dealt.map_or(*place, |dealt| dealt.unit(*place)));
        let mut pixels = Vec::with_capacity(places.len() * train.images.area());
        let mut labels = Vec::with_capacity(places.len());
        for index in indices {
            let image = train.images.image(index as usize);
            if shift == 0 {
                pixels.extend(image.iter().map(|&pixel| scaled(pixel)));
            } else {
                let mut offset =
                    || rng::below(2 * shift as u64 + 1, &mut rng) as isize - shift as isize;
                let by = [offset(), offset()];
                append_moved(&mut pixels, image, train.images.width, by);
            }
            labels.push(i32::from(train.labels[index as usize]));
        }
        Ok(tensors(pixels, labels, device))
    }

    fn loss(&self, model: &Classifier, batch: Self::Batch) -> Tensor<1> {
        self.segmented_loss(model, batch, &mut Segments::whole())
    }

    fn segmented_loss(
        &self,
        model: &Classifier,
        (images, labels): Self::Batch,
        segments: &mut Segments,
    ) -> Tensor<1> {
        loss::cross_entropy(model.segmented(images, segments), labels)
    }

    fn held_batches(&self) -> usize {
        self.data.held.len().div_ceil(HELD_BATCH)
    }

    fn score(
        &mut self,
        model: &Classifier,
        index: usize,
        device: &Device,
    ) -> Result<Score, TaskError> {
        let held = &self.data.held;
        let (start, area) = (index * HELD_BATCH, held.images.area());
        let end = (start + HELD_BATCH).min(held.len());
        let pixels = held.images.pixels[start * area..end * area].iter();
        let labels = held.labels[start..end]
            .iter()
            .map(|&label| i32::from(label))
            .collect();
        let pixels = pixels.map(|&pixel| scaled(pixel)).collect();
        let (images, labels) = tensors(pixels, labels, device);
        let logits = model.forward(images);
        let many = logits.dims()[1] >= TOP_5_CLASSES;
        let right_5 = many.then(|| loss::top_5(logits.clone(), labels.clone()));
        let (loss_sum, right) = loss::score(logits, labels);
        Ok(Score {
            loss_sum,
            right: Some(right),
            right_5,
            samples: (end - start) as u64,
        })
    }
}

fn tensors(pixels: Vec<f32>, labels: Vec<i32>, device: &Device) -> (Tensor<2>, Tensor<1, Int>) {
    let n = labels.len();
    let shape = [n, pixels.len() / n];
    (
        Tensor::from_data(TensorData::new(pixels, shape), device),
        Tensor::from_data(TensorData::new(labels, [n]), device),
    )
}

fn scaled(pixel: u8) -> f32 {
    (f32::from(pixel) / 255.0 - MEAN) / DEVIATION
}

/// Appends an image shifted down and right. New pixels are background.
fn append_moved(into: &mut Vec<f32>, image: &[u8], width: usize, [down, right]: [isize; 2]) {
    let rows = image.chunks_exact(width);
    let height = rows.len();
    for row in 0..height {
        let from = row.checked_add_signed(-down).filter(|&from| from < height);
        for column in 0..width {
            let at = column.checked_add_signed(-right).filter(|&at| at < width);
            let pixel = from
                .zip(at)
                .map_or(0, |(from, at)| image[from * width + at]);
            into.push(scaled(pixel));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_moved_image_keeps_its_size_and_gains_background() {
        let image = [0, 255, 0, 255];
        let mut moved = Vec::new();
        append_moved(&mut moved, &image, 2, [1, -1]);
        assert_eq!(moved, [0, 0, 255, 0].map(scaled));
        moved.clear();
        append_moved(&mut moved, &image, 2, [0, 0]);
        assert_eq!(moved, image.map(scaled));
    }
}
