//! Distances between the daemons' parameters, from their checkpoints.

use crate::store::Checkpoint;
use std::path::Path;

/// Distances of every model from the mean of all:
///
/// `d_i = || theta_i - (1 / K) sum_k theta_k ||` (Euclidean; theta: `[P]`, f32).
///
/// The consensus distance is the mean of the `d_i`. A directory without a readable checkpoint of
/// the same size as the first gives `None`. K = 1 gives zero.
pub(super) fn distances(dirs: &[&Path]) -> Vec<Option<f64>> {
    let models: Vec<Option<Vec<f32>>> = dirs.iter().map(|dir| parameters(dir)).collect();
    let Some(len) = models.iter().flatten().map(Vec::len).next() else {
        return vec![None; dirs.len()];
    };
    let same: Vec<&Vec<f32>> = models.iter().flatten().filter(|m| m.len() == len).collect();
    let mut mean = vec![0f64; len];
    for model in &same {
        for (sum, value) in mean.iter_mut().zip(model.iter()) {
            *sum += f64::from(*value);
        }
    }
    let count = same.len() as f64;
    mean.iter_mut().for_each(|sum| *sum /= count);
    let distance = |model: &Vec<f32>| {
        let squares = model
            .iter()
            .zip(&mean)
            .map(|(v, m)| (f64::from(*v) - m).powi(2));
        squares.sum::<f64>().sqrt()
    };
    models
        .iter()
        .map(|m| m.as_ref().filter(|m| m.len() == len).map(distance))
        .collect()
}

/// The parameters from which a daemon would continue.
fn parameters(dir: &Path) -> Option<Vec<f32>> {
    let checkpoint = Checkpoint::open(dir).ok()??;
    let mut values = vec![0.0; checkpoint.len()];
    for store in ["anchor", "parameters"] {
        if checkpoint.read_store(store, &mut values).ok()? {
            return Some(values);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{CheckpointWriter, Expected, Manifest};
    use murmurate_protocol::{PlanHash, RunId};
    use murmurate_strategies::Layout;
    use murmurate_strategies::state::StateSink;
    use std::sync::Arc;

    fn save(values: &[f32]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let layout = Arc::new(Layout::new([("w", vec![values.len() as u64])]));
        let writer = CheckpointWriter::begin(dir.path(), 1, Arc::clone(&layout)).unwrap();
        let mut sink = writer.sink("mix").unwrap();
        sink.tensor("anchor", values).unwrap();
        let expected = Expected {
            run: RunId::from_bytes([0; 32]),
            plan: PlanHash::from_bytes([0; 32]),
            layout: layout.hash(),
        };
        let manifest = Manifest::new(&expected, 1, layout.tensors());
        let files = vec![sink.finish().unwrap()];
        writer.commit(manifest, files).unwrap();
        dir
    }

    #[test]
    fn distances_are_those_from_the_mean() {
        let (a, b, empty) = (
            save(&[0.0, 0.0]),
            save(&[6.0, 8.0]),
            tempfile::tempdir().unwrap(),
        );
        let found = distances(&[a.path(), empty.path(), b.path()]);
        assert_eq!(found, [Some(5.0), None, Some(5.0)]);
        assert_eq!(distances(&[a.path()]), [Some(0.0)]);
        assert_eq!(distances(&[empty.path()]), [None]);
    }
}
