//! BERT for pre-training (Devlin et al. 2018, arXiv 1810.04805): encoder, masked-language head with
//! the decoder tied to the word embedding, next-sentence head.
//!
//! The tied weight is one tensor: it belongs to the first layer, because its gradient is complete
//! only when the backward pass has come back to the embedding.

use super::layer::{Layer, layer};

const VOCABULARY: u64 = 30_522;
const POSITIONS: u64 = 512;
const SEGMENTS: u64 = 2;

/// Layers in the order of the forward pass, for a hidden size, a depth and tokens of a sample.
pub(super) fn layers(hidden: u64, depth: usize, tokens: u64) -> Vec<Layer> {
    let h = hidden;
    let dense = |name: String, from: u64, to: u64, more: u64| {
        layer(name, [from * to, to], 2 * from * to * tokens + more)
    };
    let norm = |name: String| layer(name, [h, h], 8 * h * tokens);
    let embeddings = [VOCABULARY * h, POSITIONS * h, SEGMENTS * h, h, h];
    let mut layers = vec![layer("embeddings".to_owned(), embeddings, 8 * h * tokens)];
    for block in 0..depth {
        let name = |part: &str| format!("encoder.{block}.{part}");
        layers.push(dense(name("query"), h, h, 0));
        layers.push(dense(name("key"), h, h, 0));
        // Scores and their product with the values have no parameters of their own.
        layers.push(dense(name("value"), h, h, 4 * tokens * tokens * h));
        layers.push(dense(name("attention"), h, h, 0));
        layers.push(norm(name("attention-norm")));
        layers.push(dense(name("wide"), h, 4 * h, 0));
        layers.push(dense(name("narrow"), 4 * h, h, 0));
        layers.push(norm(name("norm")));
    }
    // The pooler and the next-sentence head see one token of each sample.
    layers.push(layer("pooler".to_owned(), [h * h, h], 2 * h * h));
    let transform = [h * h, h, h, h];
    layers.push(layer("transform".to_owned(), transform, 2 * h * h * tokens));
    let decoder = 2 * VOCABULARY * h * tokens;
    layers.push(layer("decoder".to_owned(), [VOCABULARY], decoder));
    layers.push(layer("next-sentence".to_owned(), [2 * h, 2], 4 * h));
    layers
}
