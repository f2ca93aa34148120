//! From files to models.

use super::{ModelFileError, WeightFiles};
use crate::trainer::flat;
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Tensor, TensorData};
use murmurate_strategies::{Layout, Trainer};
use std::collections::BTreeSet;
use std::path::Path;

/// Beginnings that files of a model without its output leave out.
const PREFIXES: [&str; 2] = ["model.", "transformer."];

/// The name of an adapter's tensor in PEFT's files; `None` for other tensors.
pub(crate) fn peft_name(name: &str) -> Option<String> {
    let factors = [(".lora_a.", ".lora_A."), (".lora_b.", ".lora_B.")];
    let (ours, theirs) = factors.into_iter().find(|(ours, _)| name.contains(ours))?;
    Some(format!("base_model.model.{}", name.replace(ours, theirs)))
}

/// Names under which a file may have a tensor of the model, the first one first.
fn candidates(name: &str) -> impl Iterator<Item = String> {
    let short = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    let all = [
        Some(name.to_owned()),
        peft_name(name),
        short.map(str::to_owned),
    ];
    all.into_iter().flatten()
}

/// Tensors that a file may have and its model has not: tables that old versions of `transformers` saved, the output of a model that uses its embeddings instead, and the statistics of
/// batch norm.
fn is_derived(name: &str, tied: bool) -> bool {
    let tables = [
        ".attn.bias",
        ".attn.masked_bias",
        ".rotary_emb.inv_freq",
        ".running_mean",
        ".running_var",
        ".num_batches_tracked",
    ];
    tables.iter().any(|end| name.ends_with(end)) || (tied && name == "lm_head.weight")
}

/// Reads the parameters of a layout from a safetensors file, or from a folder as `transformers` and
/// PEFT write it. The file must have exactly the tensors of the layout, with their shapes, as F32,
/// F16 or BF16.
///
/// # Errors
/// If a file is unreadable or of another model. The error names the tensor.
pub fn read_model(path: &Path, layout: &Layout) -> Result<Vec<f32>, ModelFileError> {
    let files = WeightFiles::open(path)?;
    let specs = layout.tensors();
    let names = resolve(&files, specs.iter().map(|spec| spec.name.as_str()))?;
    let mut parameters = vec![0.0; layout.len()];
    for (spec, name) in specs.iter().zip(&names) {
        files.read(name, &spec.shape, &mut parameters[spec.range()])?;
    }
    Ok(parameters)
}

/// Reads a model file or folder into a trainer, as `eval` and `--init` do.
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

/// Reads a folder into all parameters of a model, those that are not trained included; adapters
/// keep their values.
///
/// # Errors
/// As [`read_model`].
pub fn load_module<M: Module>(model: M, path: &Path) -> Result<M, ModelFileError> {
    let files = WeightFiles::open(path)?;
    let names = flat::names(&model);
    let read = names.iter().filter(|name| !is_adapter(name));
    resolve(&files, read.map(String::as_str))?;
    let mut reader = Reader {
        files: &files,
        names: &names,
        place: 0,
        failed: None,
    };
    let model = model.map(&mut reader);
    match reader.failed {
        None => Ok(model),
        Some(error) => Err(error),
    }
}

fn is_adapter(name: &str) -> bool {
    peft_name(name).is_some()
}

/// The names that tensors of the model have in the files, which must have no others.
fn resolve<'a>(
    files: &WeightFiles,
    names: impl Iterator<Item = &'a str>,
) -> Result<Vec<String>, ModelFileError> {
    let file = || files.path().to_path_buf();
    let (mut found, mut missing, mut tied) = (Vec::new(), None, true);
    for name in names {
        tied &= name != "lm_head.weight";
        match find(files, name) {
            Some(name) => found.push(name),
            None => missing = missing.or(Some(name.to_owned())),
        }
    }
    let known: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    let mut others = files.names().filter(|name| !known.contains(name));
    if let Some(name) = others.find(|name| !is_derived(name, tied)) {
        let name = name.to_owned();
        return Err(ModelFileError::Extra { file: file(), name });
    }
    match missing {
        Some(name) => Err(ModelFileError::Missing { file: file(), name }),
        None => Ok(found),
    }
}

/// The name that a tensor of the model has in the files.
fn find(files: &WeightFiles, name: &str) -> Option<String> {
    candidates(name).find(|name| files.contains(name))
}

struct Reader<'a> {
    files: &'a WeightFiles,
    names: &'a [String],
    place: usize,
    /// The first error; later tensors are not read.
    failed: Option<ModelFileError>,
}

impl Reader<'_> {
    fn read(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelFileError> {
        let mut values = vec![0.0; shape.iter().product()];
        let shape: Vec<u64> = shape.iter().map(|&length| length as u64).collect();
        let found = find(self.files, name);
        let name = found.as_deref().unwrap_or(name);
        self.files.read(name, &shape, &mut values)?;
        Ok(values)
    }
}

impl ModuleMapper for Reader<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = &self.names[self.place];
        self.place += 1;
        if is_adapter(name) || self.failed.is_some() {
            return param;
        }
        let shape: [usize; D] = param.lazy_shape().dims();
        match self.read(name, &shape) {
            Err(error) => {
                self.failed = Some(error);
                param
            }
            Ok(values) => param.map(|tensor| {
                let data = TensorData::new(values, shape);
                let fresh = Tensor::from_data(data, &tensor.device());
                fresh.set_require_grad(tensor.is_require_grad())
            }),
        }
    }
}
