//! Which steps have passed, and with which files. The record is a hash of contents, below the target directory:
//! a clean clone has none, and no date or branch is trusted.

use crate::command::{Failure, feed, output, target};
use std::fs;
use std::path::{Path, PathBuf};

/// The inputs of one step, as they are now.
pub(crate) struct Passed {
    record: PathBuf,
    hash: String,
}

impl Passed {
    /// Hashes the files that match `inputs`, the code of the steps, and the compiler's version.
    pub(crate) fn of(step: &str, inputs: &[&str]) -> Result<Self, Failure> {
        let files = listed(inputs)?;
        let present = files.lines().filter(|file| Path::new(file).is_file());
        let present = present.collect::<Vec<_>>().join("\n");
        let contents = feed("git", &["hash-object", "--stdin-paths"], &present)?;
        let compiler = output("rustc", &["-vV"])?;
        let all = format!("{compiler}\n{present}\n{contents}");
        let hash = feed("git", &["hash-object", "--stdin"], &all)?;
        let record = target().join("xtask").join("passed").join(step);
        Ok(Self { record, hash })
    }

    /// The step has passed with these files.
    pub(crate) fn is_recorded(&self) -> bool {
        fs::read_to_string(&self.record).is_ok_and(|hash| hash == self.hash)
    }

    /// Notes that it has.
    pub(crate) fn record(&self) -> Result<(), Failure> {
        if let Some(directory) = self.record.parent() {
            fs::create_dir_all(directory)?;
        }
        Ok(fs::write(&self.record, &self.hash)?)
    }
}

/// Files that git follows, or would follow, at these paths. The steps' own code is always among them.
fn listed(inputs: &[&str]) -> Result<String, Failure> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let list = [&list[..], &["--", "xtask", ".cargo", "rust-toolchain.toml"]].concat();
    output("git", &[&list[..], inputs].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_give_another_hash() {
        std::env::set_current_dir(crate::command::root()).unwrap();
        let hash = |inputs: &[&str]| Passed::of("test-of-hashes", inputs).unwrap().hash;
        assert_eq!(hash(&["README.md"]), hash(&["README.md"]));
        assert_ne!(hash(&["README.md"]), hash(&["README.md", "docs"]));
        assert_ne!(hash(&["."]), hash(&[".", ":!docs"]));
    }

    #[test]
    fn a_step_has_passed_once_it_is_recorded() {
        std::env::set_current_dir(crate::command::root()).unwrap();
        let passed = Passed::of("test-of-records", &["README.md"]).unwrap();
        let other = Passed::of("test-of-records", &["LICENSE-MIT"]).unwrap();
        let _ = fs::remove_file(&passed.record);
        assert!(!passed.is_recorded());
        passed.record().unwrap();
        assert!(passed.is_recorded() && !other.is_recorded());
        fs::remove_file(&passed.record).unwrap();
    }
}
