//! A decoded image: its samples as bytes, its channels, and its size.

use crate::data::idx::ImageShape;

/// The weights of red, green and blue in the luma of linear light with the primaries of sRGB.
///
/// **Source:** ITU-R BT.709-6, item 3.2, from the chromaticities with white D65.
const LUMA: [f32; 3] = [0.212_647_84, 0.715_179_2, 0.072_173_04];

/// A decoded image, row by row, with all channels of a pixel together.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) shape: ImageShape,
    pub(super) samples: Vec<u8>,
}

impl Picture {
    /// The image with one channel or three: colours become grey by their luma, and grey becomes the same
    /// value in all channels.
    pub(super) fn with_channels(self, channels: usize) -> Self {
        let samples = match (self.shape.channels, channels) {
            (3, 1) => self.samples.chunks_exact(3).map(grey).collect(),
            (1, 3) => self.samples.iter().flat_map(|grey| [*grey; 3]).collect(),
            _ => self.samples,
        };
        let shape = ImageShape {
            channels,
            ..self.shape
        };
        Self { shape, samples }
    }

    /// The middle of the image in the proportions of the shape, resized to it. Cutting comes first, so
    /// that a long thin image never becomes larger than both.
    pub(super) fn fitted(self, shape: ImageShape) -> Vec<u8> {
        let (h, w) = (self.shape.height, self.shape.width);
        if (h, w) == (shape.height, shape.width) {
            return self.samples;
        }
        let (cut_h, cut_w) = if w * shape.height > h * shape.width {
            (h, (h * shape.width / shape.height).max(1))
        } else {
            ((w * shape.height / shape.width).max(1), w)
        };
        self.cut(cut_h, cut_w).resized(shape.height, shape.width)
    }

    /// The middle of the image.
    fn cut(self, height: usize, width: usize) -> Self {
        let channels = self.shape.channels;
        let (above, left) = (
            (self.shape.height - height) / 2,
            (self.shape.width - width) / 2,
        );
        let rows = self.samples.chunks_exact(self.shape.width * channels);
        let rows = rows.skip(above).take(height);
        let samples = rows.flat_map(|row| &row[left * channels..][..width * channels]);
        Self {
            samples: samples.copied().collect(),
            shape: ImageShape {
                height,
                width,
                channels,
            },
        }
    }

    /// The samples of the image in another size: first its columns are resized, then its rows.
    ///
    /// ```text
    /// out[y] = sum_i w_i in[i] / sum_i w_i    w_i = max(0, 1 - |i + 1/2 - (y + 1/2) r| / max(r, 1))
    /// ```
    ///
    /// r is the old size over the new one. A smaller image thus takes all of the old samples into account.
    fn resized(&self, height: usize, width: usize) -> Vec<u8> {
        let channels = self.shape.channels;
        let row_len = self.shape.width * channels;
        let (down, across) = (
            weights(self.shape.height, height),
            weights(self.shape.width, width),
        );
        let mut out = Vec::with_capacity(height * width * channels);
        let mut row = vec![0.0; row_len];
        for (first, weights) in down {
            row.fill(0.0);
            let rows = self.samples[first * row_len..].chunks_exact(row_len);
            for (samples, weight) in rows.zip(weights) {
                for (sum, sample) in row.iter_mut().zip(samples) {
                    *sum += f32::from(*sample) * weight;
                }
            }
            for (first, weights) in &across {
                for channel in 0..channels {
                    let samples = row[first * channels + channel..].iter().step_by(channels);
                    let terms = samples.zip(weights).map(|(sample, weight)| sample * weight);
                    // From 0, which `sum` does not promise.
                    let sum = terms.fold(0.0, |sum: f32, term| sum + term);
                    out.push(sum.round() as u8);
                }
            }
        }
        out
    }
}

/// The luma of a colour.
fn grey(rgb: &[u8]) -> u8 {
    let terms = rgb.iter().zip(LUMA);
    let terms = terms.map(|(sample, weight)| f32::from(*sample) * (1.0 / 255.0) * weight);
    (terms.fold(0.0, |sum: f32, term| sum + term) * 255.0).round() as u8
}

/// For each new sample, the first old one that counts and the weights of that and the following ones.
fn weights(old: usize, new: usize) -> Vec<(usize, Vec<f32>)> {
    let ratio = old as f32 / new as f32;
    let scale = ratio.max(1.0);
    let weights = |at: usize| {
        let middle = (at as f32 + 0.5) * ratio;
        let first = ((middle - scale).floor().max(0.0) as usize).min(old - 1);
        let end = ((middle + scale).ceil() as usize).clamp(first + 1, old);
        let weight = |i: usize| (1.0 - ((i as f32 - (middle - 0.5)) / scale).abs()).max(0.0);
        let mut all: Vec<f32> = (first..end).map(weight).collect();
        let sum = all.iter().fold(0.0, |sum: f32, weight| sum + weight);
        for weight in &mut all {
            *weight /= sum;
        }
        (first, all)
    };
    (0..new).map(weights).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(height: usize, width: usize, channels: usize, samples: &[u8]) -> Picture {
        Picture {
            shape: ImageShape {
                height,
                width,
                channels,
            },
            samples: samples.to_vec(),
        }
    }

    #[test]
    fn colours_become_grey_by_their_luma_and_grey_stays_grey() {
        let colours = [255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255, 90, 90, 90];
        let grey = picture(1, 5, 3, &colours).with_channels(1);
        assert_eq!(grey.samples, [54, 182, 18, 255, 90]);
        assert_eq!(grey.with_channels(3).samples[..4], [54, 54, 54, 182]);
        for value in 0..=255 {
            let grey = picture(1, 1, 3, &[value; 3]).with_channels(1);
            assert_eq!(grey.samples, [value]);
        }
    }

    #[test]
    fn halving_weighs_all_samples_and_doubling_lies_between_two() {
        // The weights of four samples at the first of two places are 1.5, 1.5 and 0.5 halves.
        let four = picture(1, 4, 1, &[70, 0, 140, 210]);
        let expected = [(70.0 * 3.0 + 140.0) / 7.0_f32, (140.0 + 210.0) * 3.0 / 7.0];
        assert_eq!(
            four.resized(1, 2),
            expected.map(|value| value.round() as u8)
        );
        let two = picture(2, 1, 1, &[0, 200]);
        assert_eq!(two.resized(4, 1), [0, 50, 150, 200]);
        let colours = picture(1, 2, 3, &[1, 2, 3, 1, 2, 3]);
        assert_eq!(colours.resized(2, 1), [1, 2, 3, 1, 2, 3]);
    }
}
