//! Writes models as safetensors files: one f32 tensor for each of the layout, and buffers behind them. The
//! format: docs/model-format.md. Not the checkpoint.

use super::ModelFileError;
use murmurate_strategies::Layout;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes flat parameters as a safetensors file with `about` in its metadata. Equal
/// arguments give equal bytes. The file is written under another name, synced and renamed, so it is
/// either complete or absent. An existing file is replaced.
///
/// # Errors
/// If it cannot be written. An existing file is then unchanged.
///
/// # Panics
/// When the parameters are not those of the layout.
pub fn write_model(
    path: &Path,
    layout: &Layout,
    parameters: &[f32],
    about: &BTreeMap<String, String>,
) -> Result<(), ModelFileError> {
    write_model_with(path, (layout, parameters), &[], about)
}

/// A tensor beside the parameters.
#[derive(Clone, Copy, Debug)]
pub struct ExtraTensor<'a> {
    /// Its name.
    pub name: &'a str,
    /// The type of its values, as safetensors names it.
    pub dtype: &'a str,
    /// Its shape, outermost first.
    pub shape: &'a [u64],
    /// Its values in little endian.
    pub bytes: &'a [u8],
}

/// As [`write_model`], with tensors that are not trained, such as buffers, behind the parameters.
///
/// # Errors
/// As [`write_model`].
///
/// # Panics
/// As [`write_model`].
pub fn write_model_with(
    path: &Path,
    (layout, parameters): (&Layout, &[f32]),
    extra: &[ExtraTensor<'_>],
    about: &BTreeMap<String, String>,
) -> Result<(), ModelFileError> {
    assert_eq!(parameters.len(), layout.len(), "parameters of this layout");
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    let header = header(layout, extra, about);
    let moved = write(&beside, &header, parameters, extra).and_then(|()| fs::rename(&beside, path));
    if moved.is_err() {
        // Remove the incomplete file. The error of the write is reported, not that of the removal.
        let _ = fs::remove_file(&beside);
    }
    moved.map_err(ModelFileError::io(path))
}

/// The header: JSON with sorted keys, padded with spaces to a multiple of eight bytes.
fn header(layout: &Layout, extra: &[ExtraTensor<'_>], about: &BTreeMap<String, String>) -> Vec<u8> {
    let mut entries: BTreeMap<String, Value> = BTreeMap::new();
    let about: Map<String, Value> = about.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
    entries.insert("__metadata__".to_owned(), Value::Object(about));
    for spec in layout.tensors() {
        let (start, end) = (4 * spec.range().start, 4 * spec.range().end);
        let entry = json!({ "dtype": "F32", "shape": spec.shape, "data_offsets": [start, end] });
        entries.insert(spec.name.clone(), entry);
    }
    let mut start = 4 * layout.len();
    for ExtraTensor {
        name,
        dtype,
        shape,
        bytes,
    } in extra
    {
        let end = start + bytes.len();
        let entry = json!({ "dtype": dtype, "shape": shape, "data_offsets": [start, end] });
        entries.insert((*name).to_owned(), entry);
        start = end;
    }
    let mut text = json!(entries).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    text
}

fn write(
    path: &Path,
    header: &[u8],
    parameters: &[f32],
    extra: &[ExtraTensor<'_>],
) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header)?;
    for value in parameters {
        file.write_all(&value.to_le_bytes())?;
    }
    for tensor in extra {
        file.write_all(tensor.bytes)?;
    }
    file.into_inner()?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::assert_has;
    use crate::weights::read_model;

    fn layout() -> Layout {
        Layout::new([("b.weight", vec![2, 3]), ("a.bias", vec![2])])
    }

    fn written(dir: &Path) -> PathBuf {
        let path = dir.join("model.safetensors");
        let values: Vec<f32> = (0..8).map(|i| i as f32 / 3.0).collect();
        let about = BTreeMap::from([("task".to_owned(), "test".to_owned())]);
        write_model(&path, &layout(), &values, &about).unwrap();
        path
    }

    #[test]
    fn what_was_written_is_read_to_the_bit() {
        let dir = tempfile::tempdir().unwrap();
        let values = read_model(&written(dir.path()), &layout()).unwrap();
        assert_eq!(values, (0..8).map(|i| i as f32 / 3.0).collect::<Vec<_>>());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_beside_the_parameters_follows_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.safetensors");
        let count = ExtraTensor {
            name: "a.count",
            dtype: "I64",
            shape: &[],
            bytes: &7i64.to_le_bytes(),
        };
        let parameters = (&layout(), &[0.5; 8][..]);
        write_model_with(&path, parameters, &[count], &BTreeMap::new()).unwrap();
        let bytes = fs::read(&path).unwrap();
        let length = u64::from_le_bytes(*bytes.first_chunk().unwrap());
        let (header, values) = bytes[8..].split_at(length as usize);
        let header: Value = serde_json::from_slice(header).unwrap();
        let expected = json!({ "dtype": "I64", "shape": [], "data_offsets": [32, 40] });
        assert_eq!(header["a.count"], expected);
        assert_eq!(values[32..], 7i64.to_le_bytes());
    }

    #[test]
    fn files_of_other_models_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = written(dir.path());
        let cases = [
            (
                vec![("b.weight", vec![2, 3])],
                "`a.bias` is not of this model",
            ),
            (
                vec![("b.weight", vec![3, 2]), ("a.bias", vec![2])],
                "`b.weight` is F32 [2, 3]",
            ),
            (
                vec![
                    ("b.weight", vec![2, 3]),
                    ("a.bias", vec![2]),
                    ("c", vec![1]),
                ],
                "`c` is missing",
            ),
        ];
        for (tensors, expected) in cases {
            let error = read_model(&path, &Layout::new(tensors))
                .unwrap_err()
                .to_string();
            assert_has(&error, expected);
            assert_has(&error, "model.safetensors");
        }
    }

    /// A file of torchvision has the statistics of its batch norms beside the weights.
    #[test]
    fn statistics_of_batch_norm_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("resnet.safetensors");
        let all = [
            ("bn1.weight", vec![2]),
            ("bn1.running_mean", vec![2]),
            ("bn1.running_var", vec![2]),
            ("bn1.num_batches_tracked", vec![1]),
        ];
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        write_model(&path, &Layout::new(all), &values, &BTreeMap::new()).unwrap();
        let model = Layout::new([("bn1.weight", vec![2])]);
        assert_eq!(read_model(&path, &model).unwrap(), [1.0, 2.0]);
    }

    #[test]
    fn damaged_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = written(dir.path());
        let bytes = fs::read(&path).unwrap();
        for len in 0..bytes.len() {
            fs::write(&path, &bytes[..len]).unwrap();
            assert!(read_model(&path, &layout()).is_err(), "{len}");
        }
        let mut nan = bytes.clone();
        let end = nan.len();
        nan[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
        fs::write(&path, nan).unwrap();
        let error = read_model(&path, &layout()).unwrap_err().to_string();
        assert!(error.contains("not finite"), "{error}");
    }

    #[test]
    fn a_failed_write_leaves_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("no/such/folder/model.safetensors");
        let error = write_model(&path, &layout(), &[0.0; 8], &BTreeMap::new()).unwrap_err();
        assert!(error.to_string().contains("model.safetensors"), "{error}");
    }
}
