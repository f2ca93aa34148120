//! Reads a committed checkpoint, after checking that it is complete and belongs to this run.

use super::{Expected, MANIFEST, MANIFEST_VERSION, Manifest};
use crate::store::StoreError;
use crate::store::tensors::TensorReader;
use murmurate_strategies::state::{StateError, StateSource};
use std::path::{Path, PathBuf};

/// A committed checkpoint.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    manifest: Manifest,
    readers: Vec<TensorReader>,
}

/// A checkpoint that was committed, and whose manifest is gone; the newest if there are several. One that an
/// earlier life began and never committed has no copy of the manifest, and as long as there was no other, the
/// first generation.
fn orphan(dir: &Path) -> Option<StoreError> {
    let entries = std::fs::read_dir(dir).ok()?;
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let found = names.filter_map(|name| {
        let copied = dir.join(&name).join(MANIFEST).exists();
        let generation = super::generation_of(&name)?;
        (copied || generation > 0).then_some((copied, generation, name))
    });
    let (copied, _, files) = found.max()?;
    let dir = dir.to_owned();
    Some(StoreError::Orphaned { dir, files, copied })
}

/// The manifest in a daemon's directory; `None` if there is none.
pub(super) fn read_manifest(dir: &Path) -> Result<Option<Manifest>, StoreError> {
    let path = dir.join(MANIFEST);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(StoreError::io("read", &path, e)),
    };
    let damaged = |e: serde_json::Error| StoreError::damaged(&path, e.to_string());
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(damaged)?;
    let version = value.get("version").and_then(serde_json::Value::as_u64);
    if let Some(version) = version
        && version != u64::from(MANIFEST_VERSION)
    {
        return Err(StoreError::Foreign {
            path,
            what: "version",
            found: version.to_string(),
            expected: MANIFEST_VERSION.to_string(),
        });
    }
    let manifest: Manifest = serde_json::from_value(value).map_err(damaged)?;
    if !str::from_utf8(&text).is_ok_and(|text| manifest.is_whole(text)) {
        return Err(StoreError::damaged(&path, "its checksum does not match"));
    }
    Ok(Some(manifest))
}

impl Checkpoint {
    /// Opens the last committed checkpoint in a daemon's directory; `None` if there is none.
    ///
    /// # Errors
    /// If the manifest or one of its files cannot be read, or if the manifest is gone and its files are there.
    pub fn open(dir: &Path) -> Result<Option<Self>, StoreError> {
        let Some(manifest) = read_manifest(dir)? else {
            return orphan(dir).map_or(Ok(None), Err);
        };
        let path = dir.join(MANIFEST);
        if !super::is_directory_name(&manifest.directory)
            || manifest.files.iter().any(|f| f.name.contains(['/', '\\']))
        {
            return Err(StoreError::damaged(
                &path,
                "it names files outside its directory",
            ));
        }
        let home = dir.join(&manifest.directory);
        let readers = manifest
            .files
            .iter()
            .map(|file| TensorReader::open(&home.join(&file.name)))
            .collect::<Result<_, _>>()?;
        Ok(Some(Self {
            path,
            manifest,
            readers,
        }))
    }

    /// The checkpoint's manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Checks that the checkpoint belongs to this run, plan and model.
    ///
    /// # Errors
    /// The first of them that differs.
    pub fn require(&self, expected: &Expected) -> Result<(), StoreError> {
        let m = &self.manifest;
        let pairs = [
            ("run", &m.run, expected.run.to_hex()),
            ("model", &m.layout, expected.layout.to_hex()),
            ("plan", &m.plan, expected.plan.to_hex()),
        ];
        for (what, found, expected) in pairs {
            if *found != expected {
                let short = |s: &str| s.chars().take(8).collect();
                return Err(StoreError::Foreign {
                    path: self.path.clone(),
                    what,
                    found: short(found),
                    expected: short(&expected),
                });
            }
        }
        Ok(())
    }

    /// Checks the hash of every file.
    ///
    /// # Errors
    /// If a hash differs from the manifest.
    pub fn verify(&self) -> Result<(), StoreError> {
        self.readers
            .iter()
            .zip(&self.manifest.files)
            .try_for_each(|(r, file)| r.verify(file))
    }

    /// Copies the store `name` (`parameters`, `anchor`) into `into`, whose length must be that of
    /// the layout. Returns `Ok(false)` if the checkpoint does not contain the store.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn read_store(&self, name: &str, into: &mut [f32]) -> Result<bool, StoreError> {
        for spec in &self.manifest.tensors {
            let full = format!("{name}.{}", spec.name);
            let Some(values) = into.get_mut(spec.range()) else {
                return Ok(false);
            };
            let mut found = false;
            for reader in &self.readers {
                if reader.contains(&full) {
                    found = reader.read(&full, values)?;
                    break;
                }
            }
            if !found {
                return Ok(false);
            }
        }
        Ok(self.len() == into.len() && !into.is_empty())
    }

    /// Number of values in the model.
    pub fn len(&self) -> usize {
        self.manifest
            .tensors
            .iter()
            .map(|t| t.range().end)
            .max()
            .unwrap_or(0)
    }

    /// True where the model has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tensor with the name `name` itself, and its number of values.
    fn values_of(&self, name: &str) -> Option<(&TensorReader, usize)> {
        self.readers.iter().find_map(|reader| {
            let values = reader.shape(name)?.iter().product::<u64>();
            Some((reader, values as usize))
        })
    }

    fn has_store(&self, name: &str) -> bool {
        !self.manifest.tensors.is_empty()
            && self.manifest.tensors.iter().all(|spec| {
                let full = format!("{name}.{}", spec.name);
                self.readers.iter().any(|r| r.contains(&full))
            })
    }
}

impl StateSource for Checkpoint {
    fn tensor(&self, name: &str, into: &mut [f32]) -> Result<(), StateError> {
        let size = |found| StateError::Size {
            name: name.to_owned(),
            found,
            needed: into.len(),
        };
        if let Some((reader, found)) = self.values_of(name) {
            if found != into.len() {
                return Err(size(found));
            }
            reader.read(name, into).map_err(host)?;
            return Ok(());
        }
        if !self.has_store(name) {
            return Err(StateError::Missing {
                name: name.to_owned(),
            });
        }
        if self.len() != into.len() {
            return Err(size(self.len()));
        }
        self.read_store(name, into).map_err(host)?;
        Ok(())
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, StateError> {
        for reader in &self.readers {
            if let Some(bytes) = reader.read_bytes(name).map_err(host)? {
                return Ok(bytes);
            }
        }
        Err(StateError::Missing {
            name: name.to_owned(),
        })
    }

    fn contains(&self, name: &str) -> bool {
        self.readers.iter().any(|r| r.contains(name)) || self.has_store(name)
    }
}

/// An error of the store, as the Executor knows it.
pub(super) fn host(error: StoreError) -> StateError {
    StateError::Host(error.to_string())
}
