//! Makes the bundled subset of MNIST from the original files: the first 10,000 training images
//! and 200 test images of each class, spread evenly over the original order.
//!
//!     cargo run --release -p murmurate-tasks --example mnist_subset -- FROM TO

use flate2::{Compression, write::GzEncoder};
use murmurate_tasks::data::{Labelled, LabelledPair, encode_images, encode_labels};
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::Path;

const TRAINING: u32 = 10_000;
const HELD_PER_CLASS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = arguments.as_slice() else {
        return Err("usage: mnist_subset FROM TO (two folders)".into());
    };
    let whole = LabelledPair::read(Path::new(from), None, None)?;
    let train = whole.train.pick(&(0..TRAINING).collect::<Vec<_>>());
    let mut held = Vec::new();
    for class in 0..whole.classes {
        let labels = whole.held.labels.iter().enumerate();
        let of_class: Vec<u32> = labels
            .filter(|(_, label)| usize::from(**label) == class)
            .map(|(index, _)| index as u32)
            .collect();
        held.extend((0..HELD_PER_CLASS).map(|i| of_class[i * of_class.len() / HELD_PER_CLASS]));
    }
    held.sort_unstable();
    write(Path::new(to), "train", &train)?;
    write(Path::new(to), "t10k", &whole.held.pick(&held))
}

fn write(dir: &Path, prefix: &str, set: &Labelled) -> Result<(), Box<dyn Error>> {
    let labels: Vec<u8> = set.labels.iter().map(|&label| label as u8).collect();
    let files = [
        ("images-idx3", encode_images(&set.images)),
        ("labels-idx1", encode_labels(&labels)),
    ];
    for (name, bytes) in files {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&bytes)?;
        fs::write(
            dir.join(format!("{prefix}-{name}-ubyte.gz")),
            encoder.finish()?,
        )?;
    }
    Ok(())
}
