//! Gradients of layers are sums of outer products of inputs and output gradients, one for each
//! sample.

use murmurate_strategies::Layout;
use murmurate_strategies::compress::{CodecKind, EncodeContext, Matrix};
use murmurate_strategies::inner::InnerKind;
use murmurate_tasks::config::{ImageConfig, TaskConfig};
use murmurate_tasks::data::Shards;
use murmurate_tasks::{DeviceChoice, build};

const SAMPLES: usize = 16;

/// The layers' weights.
fn matrices(layout: &Layout) -> Vec<Matrix> {
    let mut offset = 0;
    let mut found = Vec::new();
    for tensor in layout.tensors() {
        let len = tensor.shape.iter().product::<u64>() as usize;
        if let [rows, columns] = tensor.shape[..] {
            found.push(Matrix {
                offset,
                rows: rows as usize,
                columns: columns as usize,
            });
        }
        offset += len;
    }
    found
}

/// Error of a batch's gradient through `sufficient-factors`, and its bytes as a share of those of
/// f32.
fn sent(factors: usize) -> (f64, f64) {
    let task = TaskConfig::ImageClassifier(ImageConfig {
        batch: SAMPLES as u32,
        ..ImageConfig::default()
    });
    let sgd = InnerKind::sgd(0.1);
    let mut trainer =
        build(&task, &sgd, &DeviceChoice::Flex, 5, &Shards::whole()).expect("it is built in");
    let matrices = matrices(trainer.layout());
    let mut gradient = vec![0.0; trainer.layout().len()];
    trainer
        .gradients(&mut |at, values| gradient[at..at + values.len()].copy_from_slice(values))
        .expect("a batch");
    let kind = CodecKind::new("sufficient-factors", &[("samples", factors as f64)]);
    let mut codec = kind.expect("in range").build();
    let (mut memory, mut bytes) = (Vec::new(), Vec::new());
    let mut context = EncodeContext {
        matrices: &matrices,
        ..EncodeContext::seeded(1, &mut memory)
    };
    codec.encode(&gradient, &mut context, &mut bytes);
    let mut decoded = vec![0.0; gradient.len()];
    codec
        .decode_add(&bytes, 1.0, &mut decoded)
        .expect("own bytes");
    let square = |v: f32| f64::from(v) * f64::from(v);
    let whole: f64 = gradient.iter().map(|v| square(*v)).sum();
    let gaps = decoded.iter().zip(&gradient).map(|(a, b)| square(a - b));
    let off = (gaps.sum::<f64>() / whole).sqrt();
    (off, bytes.len() as f64 / (4 * gradient.len()) as f64)
}

/// With one product for each sample only rounding is lost, with fewer products much more.
#[test]
fn gradients_of_layers_are_the_factors_of_their_samples() {
    let (off, share) = sent(SAMPLES);
    assert!(off < 1e-5, "{off:e}");
    assert!(share < 0.2, "{share}");
    let (fewer, _) = sent(SAMPLES / 4);
    assert!(fewer > 1e-2, "{fewer:e}");
}
