//! Reads single tensors of one or several safetensors files, so that a model needs no memory for
//! whole files beside its parameters.

use super::ModelFileError;
use crate::model::read_json;
use half::{bf16, f16};
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The largest header that is read, as in the safetensors crate.
const HEADER_BYTES_MAX: u64 = 100_000_000;

/// Bytes that are converted at a time.
const CHUNK: usize = 1 << 20;

/// The weights of one model.
#[derive(Debug)]
pub(crate) struct WeightFiles {
    /// The file or folder, for messages.
    path: PathBuf,
    files: Vec<WeightFile>,
    /// Each tensor and the index of its file.
    tensors: BTreeMap<String, (usize, TensorInfo)>,
}

#[derive(Debug)]
struct WeightFile {
    path: PathBuf,
    file: File,
    /// Where the values begin.
    start: u64,
}

impl WeightFiles {
    /// Opens a safetensors file, or a folder with `model.safetensors`, else with
    /// `model.safetensors.index.json` and the files that it names, else with
    /// `adapter_model.safetensors`.
    ///
    /// # Errors
    /// If a file is missing or not a safetensors file, or a tensor is in two of them or in another one than
    /// the index says.
    pub(crate) fn open(path: &Path) -> Result<Self, ModelFileError> {
        let mut all = Self {
            path: path.to_path_buf(),
            files: Vec::new(),
            tensors: BTreeMap::new(),
        };
        for (file, tensors) in files_of(path)? {
            all.add(&file)?;
            if let Some(name) = tensors.iter().find(|name| !all.contains(name)) {
                let reason = format!(
                    "tensor `{name}` is not in it, though {INDEX} says so (copy both again)"
                );
                return Err(folder_error(&file, reason));
            }
        }
        Ok(all)
    }

    /// The names of all tensors.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// The file or folder as it was given.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn add(&mut self, path: &Path) -> Result<(), ModelFileError> {
        let io = ModelFileError::io(path);
        let file = File::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        let (header, metadata) = header(path, &file, size)?;
        let index = self.files.len();
        for (name, info) in metadata.tensors() {
            if self.tensors.contains_key(&name) {
                let reason = format!("tensor `{name}` is also in another file of the folder");
                return Err(folder_error(path, reason));
            }
            self.tensors.insert(name, (index, info.clone()));
        }
        let start = 8 + header;
        let path = path.to_path_buf();
        self.files.push(WeightFile { path, file, start });
        Ok(())
    }

    /// Reads a tensor as f32.
    ///
    /// # Errors
    /// If it is missing, has another shape, a type that is not read, or values that are not finite.
    pub(crate) fn read(
        &self,
        name: &str,
        shape: &[u64],
        into: &mut [f32],
    ) -> Result<(), ModelFileError> {
        let Some((index, info)) = self.tensors.get(name) else {
            let (file, name) = (self.path.clone(), name.to_owned());
            return Err(ModelFileError::Missing { file, name });
        };
        let file = &self.files[*index];
        let (path, name) = (file.path.clone(), name.to_owned());
        let same = info.shape.iter().map(|&length| length as u64);
        if !same.eq(shape.iter().copied()) {
            return Err(ModelFileError::Shape {
                file: path,
                name,
                dtype: info.dtype,
                found: info.shape.clone(),
                needed: shape.to_vec(),
            });
        }
        let convert: fn(&[u8], &mut [f32]) = match info.dtype {
            Dtype::F32 => |bytes, into| each(bytes, into, f32::from_le_bytes),
            Dtype::F16 => |bytes, into| each(bytes, into, |b| f16::from_le_bytes(b).to_f32()),
            Dtype::BF16 => |bytes, into| each(bytes, into, |b| bf16::from_le_bytes(b).to_f32()),
            dtype => {
                return Err(ModelFileError::Dtype {
                    file: path,
                    name,
                    dtype,
                });
            }
        };
        let (start, end) = info.data_offsets;
        let width = (end - start) / into.len().max(1);
        let mut bytes = vec![0; CHUNK.min(end - start)];
        let mut at = file.start + start as u64;
        for piece in into.chunks_mut(CHUNK / width.max(1)) {
            let bytes = &mut bytes[..piece.len() * width];
            let read = file.file.read_exact_at(bytes, at);
            read.map_err(ModelFileError::io(&file.path))?;
            at += bytes.len() as u64;
            convert(bytes, piece);
            if !piece.iter().all(|value| value.is_finite()) {
                return Err(ModelFileError::NotFinite { file: path, name });
            }
        }
        Ok(())
    }
}

fn each<const N: usize>(bytes: &[u8], into: &mut [f32], value: impl Fn([u8; N]) -> f32) {
    for (into, bytes) in into.iter_mut().zip(bytes.as_chunks::<N>().0) {
        *into = value(*bytes);
    }
}

fn folder_error(path: &Path, reason: impl Into<String>) -> ModelFileError {
    let (file, reason) = (path.to_path_buf(), reason.into());
    ModelFileError::Folder { file, reason }
}

/// The length of the header and its metadata, checked against the size of the file.
fn header(path: &Path, file: &File, size: u64) -> Result<(u64, Metadata), ModelFileError> {
    let format = |source| ModelFileError::Format {
        file: path.to_path_buf(),
        source,
    };
    let io = ModelFileError::io(path);
    let mut length = [0; 8];
    if size < 8 {
        return Err(format(safetensors::SafeTensorError::HeaderTooSmall));
    }
    file.read_exact_at(&mut length, 0).map_err(io)?;
    let length = u64::from_le_bytes(length);
    if length > HEADER_BYTES_MAX || length + 8 > size {
        return Err(format(safetensors::SafeTensorError::InvalidHeaderLength));
    }
    let mut text = vec![0; length as usize];
    file.read_exact_at(&mut text, 8).map_err(io)?;
    // Reading it checks that the tensors lie back to back and have the sizes of their shapes.
    let metadata: Metadata = serde_json::from_slice(&text)
        .map_err(safetensors::SafeTensorError::InvalidHeaderDeserialization)
        .map_err(format)?;
    if 8 + length + metadata.data_len() as u64 != size {
        return Err(format(
            safetensors::SafeTensorError::MetadataIncompleteBuffer,
        ));
    }
    Ok((length, metadata))
}

/// The weights of a complete model in one file, in several, and of adapters, in the order in which
/// `transformers` looks for them.
pub(crate) const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
pub(crate) const ADAPTER: &str = "adapter_model.safetensors";

/// The files of a model: the file itself, or those of a folder. With an index also the tensors that it says
/// are in each of them.
fn files_of(path: &Path) -> Result<Vec<(PathBuf, Vec<String>)>, ModelFileError> {
    if !path.is_dir() {
        return Ok(vec![(path.to_path_buf(), Vec::new())]);
    }
    let [single, index, adapter] = [SINGLE, INDEX, ADAPTER].map(|name| path.join(name));
    if !single.exists() && index.exists() {
        return listed(path, &index);
    }
    let reason = if path.join("pytorch_model.bin").exists() {
        "it has pytorch_model.bin but no safetensors file (save it with `transformers` again)"
    } else {
        "it has neither model.safetensors nor model.safetensors.index.json"
    };
    let found = [single, adapter].into_iter().find(|file| file.exists());
    let found = found.ok_or_else(|| folder_error(path, reason))?;
    Ok(vec![(found, Vec::new())])
}

/// The files that an index names, each once, with their tensors.
fn listed(dir: &Path, index: &Path) -> Result<Vec<(PathBuf, Vec<String>)>, ModelFileError> {
    let object = read_json(index).map_err(|error| folder_error(index, error.reason))?;
    let map = object.get("weight_map").and_then(|map| map.as_object());
    let map = map.ok_or_else(|| folder_error(index, "`weight_map` is missing"))?;
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (tensor, file) in map {
        match file.as_str() {
            Some(file) if !file.contains(['/', '\\']) => {
                files.entry(file).or_default().push(tensor.clone());
            }
            _ => {
                let reason =
                    format!("`weight_map` names {file}, which is not a file of the folder");
                return Err(folder_error(index, reason));
            }
        }
    }
    let files = files.into_iter();
    Ok(files
        .map(|(file, tensors)| (dir.join(file), tensors))
        .collect())
}

/// Removes the weights of another model that a folder holds beside the new [`SINGLE`]: the files of an index,
/// and adapters, which `transformers` would add to it.
///
/// # Errors
/// If a file cannot be removed.
pub(crate) fn remove_others(dir: &Path) -> Result<(), ModelFileError> {
    let index = dir.join(INDEX);
    let shards = if index.exists() {
        listed(dir, &index).unwrap_or_default()
    } else {
        Vec::new()
    };
    let adapters = [ADAPTER, "adapter_config.json"].map(|name| dir.join(name));
    let shards = shards.into_iter().map(|(file, _)| file);
    let others = shards.chain([index]).chain(adapters);
    for file in others.filter(|file| !file.ends_with(SINGLE) && file.exists()) {
        std::fs::remove_file(&file).map_err(ModelFileError::io(&file))?;
    }
    Ok(())
}

/// Refuses to write adapters beside the weights of a complete model, which would be read in their place.
///
/// # Errors
/// Names the file.
pub(crate) fn no_model_in(dir: &Path) -> Result<(), ModelFileError> {
    let found = [SINGLE, INDEX].iter().find(|name| dir.join(name).exists());
    found.map_or(Ok(()), |name| {
        let reason = format!(
            "it holds {name}, which would be read in place of the adapters (give another folder)"
        );
        Err(folder_error(dir, reason))
    })
}
