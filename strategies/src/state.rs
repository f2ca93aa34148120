//! Named state on its way to and from a checkpoint, without IO: the host supplies sink and source.

/// Why state cannot be written or taken back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// A name is missing.
    #[error("`{name}` is missing from the checkpoint")]
    Missing {
        /// Its name.
        name: String,
    },
    /// A value has another size than this model needs.
    #[error("`{name}` holds {found} values, this model needs {needed}")]
    Size {
        /// Its name.
        name: String,
        /// Values found.
        found: usize,
        /// Values needed.
        needed: usize,
    },
    /// A value cannot be read.
    #[error("`{name}` cannot be read: {reason}")]
    Malformed {
        /// Its name.
        name: String,
        /// The reason why it cannot be read.
        reason: String,
    },
    /// The host could not write.
    #[error("{0}")]
    Host(String),
}

/// Receives named state.
pub trait StateSink {
    /// Takes a run of values.
    ///
    /// # Errors
    /// When the host cannot write it.
    fn tensor(&mut self, name: &str, values: &[f32]) -> Result<(), StateError>;

    /// Takes anything else; it is small.
    ///
    /// # Errors
    /// When the host cannot write it.
    fn bytes(&mut self, name: &str, bytes: &[u8]) -> Result<(), StateError>;
}

/// Returns named state.
pub trait StateSource {
    /// Copies a run of values into `into`.
    ///
    /// # Errors
    /// When it is missing or has another length; `into` is then as it was.
    fn tensor(&self, name: &str, into: &mut [f32]) -> Result<(), StateError>;

    /// Returns the bytes that [`StateSink::bytes`] took under this name.
    ///
    /// # Errors
    /// When it is missing.
    fn bytes(&self, name: &str) -> Result<Vec<u8>, StateError>;

    /// Set where the name exists.
    fn contains(&self, name: &str) -> bool;
}

/// Reads `len` values, all of them finite; nothing is looked up where `len` is zero.
pub(crate) fn finite(
    source: &dyn StateSource,
    name: &str,
    len: usize,
) -> Result<Vec<f32>, StateError> {
    let mut values = vec![0.0; len];
    if len > 0 {
        source.tensor(name, &mut values)?;
    }
    if values.iter().all(|v| v.is_finite()) {
        Ok(values)
    } else {
        Err(StateError::Malformed {
            name: name.to_owned(),
            reason: "a value is not finite".to_owned(),
        })
    }
}

/// Reads a number of eight bytes, little-endian.
///
/// # Errors
/// When it is missing or has another length.
pub fn number(source: &dyn StateSource, name: &str) -> Result<u64, StateError> {
    let bytes = source.bytes(name)?;
    let eight = <[u8; 8]>::try_from(bytes.as_slice()).map_err(|_| StateError::Malformed {
        name: name.to_owned(),
        reason: format!("{} bytes instead of 8", bytes.len()),
    })?;
    Ok(u64::from_le_bytes(eight))
}

/// State in memory. The simulator restarts a crashed peer from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryState {
    tensors: std::collections::BTreeMap<String, Vec<f32>>,
    bytes: std::collections::BTreeMap<String, Vec<u8>>,
}

impl StateSink for MemoryState {
    fn tensor(&mut self, name: &str, values: &[f32]) -> Result<(), StateError> {
        self.tensors.insert(name.to_owned(), values.to_vec());
        Ok(())
    }

    fn bytes(&mut self, name: &str, bytes: &[u8]) -> Result<(), StateError> {
        self.bytes.insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }
}

impl StateSource for MemoryState {
    fn tensor(&self, name: &str, into: &mut [f32]) -> Result<(), StateError> {
        let values = self.tensors.get(name).ok_or_else(|| StateError::Missing {
            name: name.to_owned(),
        })?;
        if values.len() != into.len() {
            return Err(StateError::Size {
                name: name.to_owned(),
                found: values.len(),
                needed: into.len(),
            });
        }
        into.copy_from_slice(values);
        Ok(())
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, StateError> {
        self.bytes
            .get(name)
            .cloned()
            .ok_or_else(|| StateError::Missing {
                name: name.to_owned(),
            })
    }

    fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name) || self.bytes.contains_key(name)
    }
}
