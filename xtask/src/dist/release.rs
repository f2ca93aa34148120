//! The parts that all items of a release share: their folders, the machines that they are for, and the binary.

use super::binary::Binary;
use crate::command::{Failure, fresh, host, output, target};
use std::fs;
use std::path::{Path, PathBuf};

pub(super) struct Release {
    /// Where the files go.
    pub(super) out: PathBuf,
    /// Where they are put together.
    pub(super) stage: PathBuf,
    /// The machines that it is for, as rustc names them.
    pub(super) target: String,
    /// The time in all archives, in seconds since 1970: that of the commit.
    pub(super) epoch: String,
    /// If something is asked for that it goes into.
    pub(super) binary: Option<Binary>,
}

impl Release {
    pub(super) fn new(triple: Option<&str>) -> Result<Self, Failure> {
        // Cargo builds the profile `dist` in `dist`.
        let out = target().join("packages");
        let stage = target().join("xtask").join("dist");
        fs::create_dir_all(&out)?;
        fs::create_dir_all(&stage)?;
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(set) => set,
            Err(_) => output("git", &["log", "-1", "--format=%ct"])?
                .trim()
                .to_owned(),
        };
        let target = triple.map_or_else(host, |triple| Ok(triple.to_owned()))?;
        Ok(Self {
            out,
            stage,
            target,
            epoch,
            binary: None,
        })
    }

    pub(super) fn binary(&self) -> Result<&Binary, Failure> {
        let binary = self.binary.as_ref();
        binary.ok_or_else(|| Failure::new("there is no binary: give --binary"))
    }

    /// The name of Debian, and of images, for the processor.
    pub(super) fn debian_arch(&self) -> Result<&'static str, Failure> {
        match self.target.split_once('-') {
            Some(("x86_64", system)) if system.starts_with("unknown-linux") => Ok("amd64"),
            Some(("aarch64", system)) if system.starts_with("unknown-linux") => Ok("arm64"),
            _ => Err(Failure::new(format!(
                "not for {}: give a Linux as --target",
                self.target
            ))),
        }
    }

    /// An empty folder to put an item together in.
    pub(super) fn fresh(&self, name: &str) -> Result<PathBuf, Failure> {
        let folder = self.stage.join(name);
        fresh(&folder)?;
        Ok(folder)
    }
}

/// Copies a file, and makes the folder that it goes to. The failure names the file.
pub(super) fn copy(from: impl AsRef<Path>, to: &Path) -> Result<(), Failure> {
    let from = from.as_ref();
    let failed = |error| Failure::new(format!("{} to {}: {error}", from.display(), to.display()));
    fs::create_dir_all(to.parent().unwrap_or(to)).map_err(failed)?;
    fs::copy(from, to).map(drop).map_err(failed)
}
