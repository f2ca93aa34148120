//! Continues a text, or answers a conversation, with a causal language model.

use crate::data::{Template, Tokens, special_tokens};
use crate::model::{Cache, CausalLm, ModelDirError, ends_of_text, read_shape};
use crate::rng;
use crate::weights::load_module;
use crate::{DeviceChoice, TaskError};
use burn::tensor::{Device, Int, Tensor, TensorData};
use minijinja::Value;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// How tokens are drawn, and when that ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Tokens to add at most.
    pub max_tokens: usize,
    /// Divides the logits. Zero takes the most likely token.
    pub temperature: f64,
    /// Tokens to draw from, the most likely ones; zero for all.
    pub top_k: usize,
    /// Draws from the most likely tokens whose probabilities add up to this; 1 for all.
    ///
    /// **Source:** Holtzman et al., The curious case of neural text degeneration, 2020, section 3.1.
    pub top_p: f64,
    /// Texts at which generation ends; they are not part of the result.
    pub stop: Vec<String>,
    /// Seed of the draws.
    pub seed: u64,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// "system", "user" or "assistant".
    pub role: String,
    /// Its text.
    pub content: String,
}

impl Turn {
    fn message(&self) -> Value {
        Value::from_pairs([("role", self.role.as_str()), ("content", &self.content)])
    }
}

/// A generated text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Generated {
    /// The text behind the prompt.
    pub text: String,
    /// Its tokens.
    pub tokens: usize,
    /// Why there are no more.
    pub ended: Ended,
    /// Tokens at the beginning of the prompt that the model has no positions for, and does not see.
    pub unseen: usize,
}

/// Why a text ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The model ended it.
    Model,
    /// A stop text came.
    Stop,
    /// It has as many tokens as were asked for.
    Length,
}

/// A model with its tokenizer.
pub struct Generator {
    model: CausalLm,
    tokens: Tokens,
    positions: usize,
    ends: Vec<u32>,
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
        let mut ends = ends_of_text(dir, shape.vocabulary)?;
        // A chat model ends its answers with the tokenizer's.
        let end = special_tokens(dir)?.remove("eos_token");
        ends.extend(end.and_then(|text| tokens.number_of(&text)));
        Ok(Self {
            model: load_module(CausalLm::zeros(&shape, None, &device), dir)?,
            tokens,
            positions: shape.positions,
            ends,
            device,
            dir: dir.to_path_buf(),
        })
    }

    /// Continues `prompt` until the model ends the text, a stop text comes or `max_tokens` are added, and
    /// calls `f` with each new piece of text. The model sees the last tokens that it has positions for.
    ///
    /// # Errors
    /// If the tokenizer fails, or there is nothing to continue.
    pub fn generate(
        &self,
        prompt: &str,
        sampling: &Sampling,
        f: &mut dyn FnMut(&str),
    ) -> Result<Generated, TaskError> {
        let (tokens, begin) = self.tokens();
        let tokens = tokens.encode_or_begin(prompt, begin);
        self.follow(tokens.map_err(TaskError::Own)?, sampling, f)
    }

    /// The tokenizer, and the token that ends a text, after which models begin one.
    pub(crate) fn tokens(&self) -> (&Tokens, Option<u32>) {
        (&self.tokens, self.ends.first().copied())
    }

    /// The model and its device.
    pub(crate) const fn model(&self) -> (&CausalLm, &Device) {
        (&self.model, &self.device)
    }

    /// The longest sequence of the model.
    pub(crate) const fn positions(&self) -> usize {
        self.positions
    }

    /// The assistant's answer to a conversation, by the chat template of the folder; the rest as
    /// [`Generator::generate`].
    ///
    /// # Errors
    /// If there is no template, it refuses the conversation, or the conversation is longer than the model's
    /// sequences.
    pub fn answer(
        &self,
        turns: &[Turn],
        sampling: &Sampling,
        f: &mut dyn FnMut(&str),
    ) -> Result<Generated, TaskError> {
        let template = Template::open(&self.dir)?;
        let messages: Vec<Value> = turns.iter().map(Turn::message).collect();
        let text = template.render(&messages, true);
        let text = text.map_err(|reason| self.wrong(format!("the chat template: {reason}")))?;
        let tokens = self.tokens.encode(&text).map_err(|e| self.wrong(e))?;
        let (found, most) = (tokens.len(), self.positions);
        if found == 0 {
            let reason = "the chat template makes no text of the conversation".to_owned();
            return Err(self.wrong(reason).into());
        }
        if found >= most {
            return Err(TaskError::Own(format!(
                "the conversation has {found} tokens and the model takes {most} (begin a new one)"
            )));
        }
        self.follow(tokens, sampling, f)
    }

    fn wrong(&self, reason: String) -> ModelDirError {
        ModelDirError::new(&self.dir, reason)
    }

    fn follow(
        &self,
        mut tokens: Vec<u32>,
        sampling: &Sampling,
        f: &mut dyn FnMut(&str),
    ) -> Result<Generated, TaskError> {
        let begin = tokens.len();
        let mut rng = rng::stream(sampling.seed, rng::SAMPLES, 0);
        let (mut cache, mut text) = (Cache::default(), Text::default());
        let mut seen = 0;
        let ended = loop {
            if tokens.len() == begin + sampling.max_tokens {
                break Ended::Length;
            }
            if cache.len() + tokens.len() - seen > self.positions {
                // A long prompt fills all positions. Behind the last one the model begins again with the second
                // half of what it saw.
                let kept = match cache.len() {
                    0 => self.positions,
                    _ => (self.positions / 2).max(1),
                };
                cache = Cache::default();
                seen = tokens.len() - kept;
            }
            let logits = self.next(&tokens[seen..], &mut cache);
            seen = tokens.len();
            let token = draw(&logits, sampling, rng::unit_f64(&mut rng)) as u32;
            if self.ends.contains(&token) {
                break Ended::Model;
            }
            tokens.push(token);
            let decoded = self.tokens.decode(&tokens[begin..]);
            if text.grow(decoded.map_err(|e| self.wrong(e))?, &sampling.stop, f) {
                break Ended::Stop;
            }
        };
        text.finish(f);
        Ok(Generated {
            text: text.all,
            tokens: tokens.len() - begin,
            ended,
            unseen: begin.saturating_sub(self.positions),
        })
    }

    /// Logits of the token after these and those in the cache.
    fn next(&self, tokens: &[u32], cache: &mut Cache) -> Vec<f32> {
        let x = self.model.follow(row(tokens, &self.device), cache);
        let last = x.narrow(0, tokens.len() - 1, 1);
        let logits = self.model.output().logits(&last);
        logits.into_data().iter::<f32>().collect()
    }
}

/// Tokens as a batch of one row.
pub(crate) fn row(tokens: &[u32], device: &Device) -> Tensor<2, Int> {
    let ids: Vec<i32> = tokens.iter().map(|&token| token as i32).collect();
    let shape = [1, ids.len()];
    Tensor::from_data(TensorData::new(ids, shape), device)
}

/// A text that grows, and how much of it was shown.
#[derive(Default)]
struct Text {
    all: String,
    shown: usize,
}

impl Text {
    /// Takes the text so far, shows the certain part, and says whether a stop text came. Its end may be
    /// the beginning of a stop text, or a character whose other bytes are yet to come.
    fn grow(&mut self, all: String, stop: &[String], f: &mut dyn FnMut(&str)) -> bool {
        let found = stop.iter().filter(|stop| !stop.is_empty());
        let found = found.filter_map(|stop| all.find(stop.as_str())).min();
        self.all = all;
        if let Some(at) = found {
            self.all.truncate(at);
            return true;
        }
        if !self.all.ends_with(char::REPLACEMENT_CHARACTER) {
            let begins = |stop: &String, at: usize| stop.starts_with(&self.all[at..]);
            let open = self.all.char_indices().map(|(at, _)| at);
            let open = open.filter(|&at| stop.iter().any(|stop| begins(stop, at)));
            let certain = open.min().unwrap_or(self.all.len());
            self.show(certain, f);
        }
        false
    }

    fn show(&mut self, end: usize, f: &mut dyn FnMut(&str)) {
        if let Some(fresh) = self.all.get(self.shown..end).filter(|it| !it.is_empty()) {
            f(fresh);
            self.shown = end;
        }
    }

    fn finish(&mut self, f: &mut dyn FnMut(&str)) {
        self.show(self.all.len(), f);
    }
}

/// The token at the place `unit`, in `[0, 1)`, of the cumulated probabilities.
fn draw(logits: &[f32], sampling: &Sampling, unit: f64) -> usize {
    // The larger logit first, and of equal ones the smaller token: the order does not depend on how it is found.
    let order = |a: &usize, b: &usize| logits[*b].total_cmp(&logits[*a]).then(a.cmp(b));
    let Some(first) = (0..logits.len()).min_by(order) else {
        return 0;
    };
    if sampling.temperature <= 0.0 {
        return first;
    }
    let mut tokens: Vec<usize> = (0..logits.len()).collect();
    if (1..tokens.len()).contains(&sampling.top_k) {
        tokens.select_nth_unstable_by(sampling.top_k - 1, order);
        tokens.truncate(sampling.top_k);
    }
    tokens.sort_unstable_by(order);
    let weight = |token: usize| {
        let below = f64::from(logits[token]) - f64::from(logits[first]);
        (below / sampling.temperature.max(1e-9)).exp()
    };
    let weights: Vec<f64> = tokens.iter().map(|&token| weight(token)).collect();
    let all: f64 = weights.iter().sum();
    let mut sums = weights.iter().scan(0.0, |sum, weight| {
        *sum += weight;
        Some(*sum)
    });
    let kept = sums.position(|sum| sum >= sampling.top_p * all);
    let weights = &weights[..kept.map_or(weights.len(), |last| last + 1)];
    let mut left = unit * weights.iter().sum::<f64>();
    for (token, weight) in tokens.iter().zip(weights) {
        left -= weight;
        if left < 0.0 {
            return *token;
        }
    }
    tokens[weights.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    const SAMPLING: Sampling = Sampling {
        max_tokens: 1,
        temperature: 1.0,
        top_k: 0,
        top_p: 1.0,
        stop: Vec::new(),
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

    #[test]
    fn a_cache_changes_no_logits() {
        let device = DeviceChoice::Flex.open().unwrap();
        let tokens: Vec<i32> = (0..20).map(|at| at * 7 % 61).collect();
        let row = |range: Range<usize>| {
            let some = TensorData::new(tokens[range.clone()].to_vec(), [1, range.len()]);
            Tensor::<2, Int>::from_data(some, &device)
        };
        for name in [
            "llama", "gpt2", "qwen2", "qwen3", "mistral", "gemma2", "gemma3",
        ] {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/fixtures")
                .join(name);
            let shape = read_shape(&dir).unwrap();
            let model = load_module(CausalLm::zeros(&shape, None, &device), &dir).unwrap();
            let whole = model.forward(row(0..20));
            let mut cache = Cache::default();
            // Several at first, then one by one.
            let steps = std::iter::once(0..13).chain((13..20).map(|at| at..at + 1));
            for step in steps {
                let last = step.end - 1;
                let x = model.follow(row(step.clone()), &mut cache);
                let found = model.output().logits(&x);
                let expected = whole.clone().narrow(0, step.start, step.len());
                let gap = (found - expected).abs().max().into_scalar::<f32>();
                assert!(gap < 1e-5, "{name} at {last}: {gap}");
            }
        }
    }

    #[test]
    fn the_nucleus_is_the_fewest_tokens_that_reach_the_share() {
        let logits = [1.0_f32.ln(), 3.0_f32.ln(), 6.0_f32.ln()];
        let drawn = |top_p| {
            let sampling = Sampling { top_p, ..SAMPLING };
            let places = (0..1000).map(|place| (f64::from(place) + 0.5) / 1000.0);
            let mut tokens: Vec<usize> =
                places.map(|unit| draw(&logits, &sampling, unit)).collect();
            tokens.sort_unstable();
            tokens.dedup();
            tokens
        };
        assert_eq!((drawn(0.5), drawn(0.61)), (vec![2], vec![1, 2]));
        assert_eq!((drawn(1.0), drawn(0.0)), (vec![0, 1, 2], vec![2]));
    }

    #[test]
    fn what_may_begin_a_stop_text_is_held_back() {
        let stop = ["END".to_owned(), "\n\n".to_owned()];
        let (mut text, mut shown) = (Text::default(), Vec::new());
        let mut f = |piece: &str| shown.push(piece.to_owned());
        for all in ["one E", "one EN", "one ENd\n", "one ENd\nt"] {
            assert!(!text.grow(all.to_owned(), &stop, &mut f));
        }
        assert!(text.grow("one ENd\nt EN\n\nmore".to_owned(), &stop, &mut f));
        text.finish(&mut f);
        assert_eq!(shown, ["one ", "ENd", "\nt", " EN"]);
        assert_eq!(text.all, "one ENd\nt EN");
    }
}
