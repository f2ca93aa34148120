//! Continues a text with a causal language model.

use crate::data::Tokens;
use crate::model::{CausalLm, ModelDirError, end_of_text, read_shape};
use crate::rng;
use crate::weights::load_module;
use crate::{DeviceChoice, TaskError};
use burn::tensor::{Device, Int, Tensor, TensorData};
use std::path::{Path, PathBuf};

/// How tokens are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Tokens to add at most.
    pub max_tokens: usize,
    /// Divides the logits. Zero takes the most likely token.
    pub temperature: f64,
    /// Tokens to draw from, the most likely ones; zero for all.
    pub top_k: usize,
    /// Seed of the draws.
    pub seed: u64,
}

/// A model with its tokenizer.
pub struct Generator {
    model: CausalLm,
    tokens: Tokens,
    positions: usize,
    end: Option<u32>,
    device: Device,
    dir: PathBuf,
}

impl Generator {
    /// Reads a Hugging Face directory, such as `murmurate export` writes.
    ///
    /// # Errors
    /// If model or tokenizer cannot be read or do not fit, or the device is not available.
    pub fn open(dir: &Path, device: &DeviceChoice) -> Result<Self, TaskError> {
        let device = device.open()?;
        let shape = read_shape(dir)?;
        let tokens = Tokens::read(dir)?;
        if tokens.vocabulary() > shape.vocabulary {
            return Err(crate::config::ConfigError::Vocabulary {
                tokens: tokens.vocabulary(),
                vocabulary: shape.vocabulary,
            }
            .into());
        }
        Ok(Self {
            model: load_module(CausalLm::zeros(&shape, None, &device), dir)?,
            tokens,
            positions: shape.positions,
            end: end_of_text(dir, shape.vocabulary)?,
            device,
            dir: dir.to_path_buf(),
        })
    }

    /// Continues `prompt` until the model ends the text or `max_tokens` are added, and calls `f`
    /// with each new piece of text. The model sees the last tokens that it has positions for.
    /// Returns the number of tokens added.
    ///
    /// # Errors
    /// If the tokenizer fails, or there is nothing to continue.
    pub fn generate(
        &self,
        prompt: &str,
        sampling: &Sampling,
        f: &mut dyn FnMut(&str),
    ) -> Result<usize, TaskError> {
        let wrong = |reason: String| ModelDirError::new(&self.dir, reason);
        let mut tokens = self.tokens.encode(prompt).map_err(wrong)?;
        if tokens.is_empty() {
            // Models begin a text after the token that ends one.
            tokens.extend(self.end);
        }
        if tokens.is_empty() {
            return Err(TaskError::Own(
                "--prompt: give some text to continue".to_owned(),
            ));
        }
        let begin = tokens.len();
        let mut rng = rng::stream(sampling.seed, rng::SAMPLES, 0);
        let mut shown = 0;
        while tokens.len() < begin + sampling.max_tokens {
            let logits = self.logits(&tokens);
            let token = draw(&logits, sampling, rng::unit_f64(&mut rng)) as u32;
            if Some(token) == self.end {
                break;
            }
            tokens.push(token);
            let text = self.tokens.decode(&tokens[begin..]).map_err(wrong)?;
            // A character may need further tokens; until then its end is a replacement character.
            if !text.ends_with(char::REPLACEMENT_CHARACTER)
                && let Some(fresh) = text.get(shown..)
            {
                f(fresh);
                shown = text.len();
            }
        }
        let text = self.tokens.decode(&tokens[begin..]).map_err(wrong)?;
        f(text.get(shown..).unwrap_or_default());
        Ok(tokens.len() - begin)
    }

    /// Logits of the token after these.
    fn logits(&self, tokens: &[u32]) -> Vec<f32> {
        let seen = &tokens[tokens.len().saturating_sub(self.positions)..];
        let ids: Vec<i32> = seen.iter().map(|&token| token as i32).collect();
        let shape = [1, ids.len()];
        let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, shape), &self.device);
        let last = self.model.forward(ids).narrow(0, shape[1] - 1, 1);
        last.into_data().iter::<f32>().collect()
    }
}

/// The token at the place `unit`, in `[0, 1)`, of the cumulated probabilities.
fn draw(logits: &[f32], sampling: &Sampling, unit: f64) -> usize {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    let most = match sampling.top_k {
        _ if sampling.temperature <= 0.0 => 1,
        0 => order.len(),
        top_k => top_k,
    };
    order.truncate(most);
    let (Some(&first), Some(&last)) = (order.first(), order.last()) else {
        return 0;
    };
    let weight = |token: usize| {
        let below = f64::from(logits[token]) - f64::from(logits[first]);
        (below / sampling.temperature.max(1e-9)).exp()
    };
    let mut left = unit * order.iter().map(|&token| weight(token)).sum::<f64>();
    for &token in &order {
        left -= weight(token);
        if left < 0.0 {
            return token;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLING: Sampling = Sampling {
        max_tokens: 1,
        temperature: 1.0,
        top_k: 0,
        seed: 0,
    };

    #[test]
    fn tokens_are_drawn_by_their_probability() {
        let logits = [1.0_f32.ln(), 3.0_f32.ln(), 6.0_f32.ln()];
        let share = |sampling: &Sampling| {
            let mut counts = [0; 3];
            for place in 0..1000 {
                counts[draw(&logits, sampling, (f64::from(place) + 0.5) / 1000.0)] += 1;
            }
            counts
        };
        assert_eq!(share(&SAMPLING), [100, 300, 600]);
        let top = Sampling {
            top_k: 2,
            ..SAMPLING
        };
        assert_eq!(share(&top), [0, 333, 667]);
        let coldest = Sampling {
            temperature: 0.0,
            ..SAMPLING
        };
        assert_eq!(share(&coldest), [0, 0, 1000]);
    }
}
