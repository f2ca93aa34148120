//! One lane's file of a checkpoint. State is streamed from the Executor to the disk.

use crate::store::StoreError;
use crate::store::tensors::{TensorFile, TensorWriter};
use murmurate_strategies::Layout;
use murmurate_strategies::state::{StateError, StateSink};
use std::sync::Arc;

/// Bytes of the header that one entry takes, without its name.
const ENTRY_BYTES: usize = 96;

/// Number of copies of the parameters for which the header has room. With more, the data is moved
/// once.
const STORES_PER_HEADER: usize = 6;

/// A lane's finished file.
#[derive(Debug)]
pub struct LaneFile(pub(super) TensorFile);

/// Writes the state of one lane, on that lane's thread.
///
/// A store as long as the whole model, such as `anchor`, is stored tensor by tensor under the
/// layout's names (`anchor.layer1.weight`), so that other programs can find the model in it.
#[derive(Debug)]
pub struct LaneSink {
    writer: TensorWriter,
    layout: Arc<Layout>,
}

impl LaneSink {
    pub(super) fn create(path: &std::path::Path, layout: Arc<Layout>) -> Result<Self, StoreError> {
        let per_store: usize = layout
            .tensors()
            .iter()
            .map(|t| t.name.len() + ENTRY_BYTES)
            .sum();
        let writer = TensorWriter::create(path, 4096 + STORES_PER_HEADER * per_store)?;
        Ok(Self { writer, layout })
    }

    /// Completes the file and flushes it to stable storage.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn finish(self) -> Result<LaneFile, StoreError> {
        self.writer.finish().map(LaneFile)
    }

    fn refuse_twice(&self, name: &str) -> Result<(), StateError> {
        if !self.writer.contains(name) {
            return Ok(());
        }
        let reason = "it was written twice".to_owned();
        Err(StateError::Malformed {
            name: name.to_owned(),
            reason,
        })
    }

    fn one(&mut self, name: &str, shape: &[u64], values: &[f32]) -> Result<(), StateError> {
        self.refuse_twice(name)?;
        self.writer.tensor(name, shape, values).map_err(host)
    }
}

impl StateSink for LaneSink {
    fn tensor(&mut self, name: &str, values: &[f32]) -> Result<(), StateError> {
        let layout = Arc::clone(&self.layout);
        if values.len() == layout.len() && !values.is_empty() {
            for spec in layout.tensors() {
                let full = format!("{name}.{}", spec.name);
                self.one(&full, &spec.shape, &values[spec.range()])?;
            }
            return Ok(());
        }
        let spec = layout.tensors().iter().find(|spec| {
            spec.len() == values.len()
                && name
                    .strip_suffix(spec.name.as_str())
                    .is_some_and(|rest| rest.ends_with('.'))
        });
        match spec {
            Some(spec) => self.one(name, &spec.shape, values),
            None => self.one(name, &[values.len() as u64], values),
        }
    }

    fn bytes(&mut self, name: &str, bytes: &[u8]) -> Result<(), StateError> {
        self.refuse_twice(name)?;
        self.writer.bytes(name, bytes);
        Ok(())
    }
}

fn host(error: StoreError) -> StateError {
    StateError::Host(error.to_string())
}
