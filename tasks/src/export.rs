//! Models as safetensors files, for other frameworks and for evaluation: one f32 tensor for each
//! of the layout, under its name. The format: docs/model-format.md. Not the checkpoint.

use murmurate_strategies::{Layout, TensorSpec, Trainer};
use safetensors::{Dtype, SafeTensorError, SafeTensors, View};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Errors of reading or writing a model file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFileError {
    /// The file is missing or unreadable, or the disk is full.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not a safetensors file.
    #[error("{}: it is not a safetensors file ({source})", file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// The reason.
        source: SafeTensorError,
    },
    /// A tensor of the model is not in the file.
    #[error("{}: tensor `{name}` is missing (is it a file of another model?)", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
        /// The tensor.
        name: String,
    },
    /// A tensor of the file is not in the model.
    #[error("{}: tensor `{name}` is not of this model (is it a file of another model?)", file.display())]
    Extra {
        /// The file.
        file: PathBuf,
        /// The tensor.
        name: String,
    },
    /// A tensor has another shape or type.
    #[error(
        "{}: tensor `{name}` is {dtype} {found:?}, this model has F32 {needed:?} (is it a file of \
         another model?)", file.display()
    )]
    Shape {
        /// The file.
        file: PathBuf,
        /// The tensor.
        name: String,
        /// Its type in the file.
        dtype: Dtype,
        /// Its shape in the file.
        found: Vec<usize>,
        /// Its shape in the model.
        needed: Vec<u64>,
    },
    /// A value is NaN or infinite.
    #[error("{}: tensor `{name}` has values that are not finite (export it again)", file.display())]
    NotFinite {
        /// The file.
        file: PathBuf,
        /// The tensor.
        name: String,
    },
}

struct Piece<'a> {
    shape: Vec<usize>,
    values: &'a [f32],
}

impl View for Piece<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect::<Vec<_>>()
            .into()
    }

    fn data_len(&self) -> usize {
        size_of_val(self.values)
    }
}

/// Writes flat parameters as a safetensors file with `about` in its metadata. The file is written
/// under another name, synced and renamed, so it is either complete or absent. An existing file is
/// replaced.
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
    assert_eq!(parameters.len(), layout.len(), "parameters of this layout");
    let pieces = layout.tensors().iter().map(|spec| {
        let shape = spec.shape.iter().map(|&length| length as usize).collect();
        (
            spec.name.as_str(),
            Piece {
                shape,
                values: &parameters[spec.range()],
            },
        )
    });
    let about: HashMap<_, _> = about.clone().into_iter().collect();
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    let io = |source| ModelFileError::Io {
        file: path.into(),
        source,
    };
    let written =
        safetensors::serialize_to_file(pieces, Some(about), &beside).map_err(|error| match error {
            SafeTensorError::IoError(source) => io(source),
            source => ModelFileError::Format {
                file: path.into(),
                source,
            },
        });
    let moved = written.and_then(|()| {
        File::open(&beside)
            .and_then(|file| file.sync_all())
            .map_err(io)?;
        fs::rename(&beside, path).map_err(io)
    });
    if moved.is_err() {
        // Remove the incomplete file. The error of the write is reported, not that of the removal.
        let _ = fs::remove_file(&beside);
    }
    moved
}

/// Reads the parameters of a layout from a safetensors file. The file must have exactly the tensors
/// of the layout, with their shapes.
///
/// # Errors
/// If the file is unreadable or of another model. The error names the tensor.
pub fn read_model(path: &Path, layout: &Layout) -> Result<Vec<f32>, ModelFileError> {
    let file = || path.to_path_buf();
    let bytes = fs::read(path).map_err(|source| ModelFileError::Io {
        file: file(),
        source,
    })?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|source| ModelFileError::Format {
        file: file(),
        source,
    })?;
    let mut names = tensors.names();
    names.sort_unstable();
    let ours = |name: &str| layout.tensors().iter().any(|spec| spec.name == name);
    if let Some(name) = names.into_iter().find(|name| !ours(name)) {
        return Err(ModelFileError::Extra {
            file: file(),
            name: name.to_owned(),
        });
    }
    let mut parameters = vec![0.0; layout.len()];
    for spec in layout.tensors() {
        read_tensor(path, &tensors, spec, &mut parameters[spec.range()])?;
    }
    Ok(parameters)
}

fn read_tensor(
    path: &Path,
    tensors: &SafeTensors<'_>,
    spec: &TensorSpec,
    into: &mut [f32],
) -> Result<(), ModelFileError> {
    let (file, name) = (path.to_path_buf(), spec.name.clone());
    let Ok(view) = tensors.tensor(&spec.name) else {
        return Err(ModelFileError::Missing { file, name });
    };
    let (found, dtype) = (view.shape().to_vec(), view.dtype());
    let same = found
        .iter()
        .map(|&length| length as u64)
        .eq(spec.shape.iter().copied());
    if dtype != Dtype::F32 || !same {
        let needed = spec.shape.clone();
        return Err(ModelFileError::Shape {
            file,
            name,
            dtype,
            found,
            needed,
        });
    }
    let values = view.data().as_chunks::<4>().0;
    for (value, bytes) in into.iter_mut().zip(values) {
        *value = f32::from_le_bytes(*bytes);
        if !value.is_finite() {
            return Err(ModelFileError::NotFinite { file, name });
        }
    }
    Ok(())
}

/// Reads a safetensors file into a trainer, as `eval` does.
///
/// # Errors
/// As [`read_model`]. The trainer is then unchanged.
pub fn load_model(trainer: &mut dyn Trainer, path: &Path) -> Result<(), ModelFileError> {
    let parameters = read_model(path, trainer.layout())?;
    trainer.visit(0..parameters.len(), &mut |offset, values| {
        values.copy_from_slice(&parameters[offset..offset + values.len()]);
    });
    Ok(())
}

/// All parameters of a trainer.
pub fn parameters(trainer: &mut dyn Trainer) -> Vec<f32> {
    let len = trainer.layout().len();
    let mut parameters = Vec::with_capacity(len);
    trainer.visit(0..len, &mut |_, values| {
        parameters.extend_from_slice(values)
    });
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(
                error.contains(expected) && error.contains("model.safetensors"),
                "{error}"
            );
        }
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
