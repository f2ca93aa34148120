//! Archives with the same bytes on every machine, and checksums.

use super::release::Release;
use crate::command::{Failure, needs, output, run};
use std::fs;
use std::path::Path;

/// The name of the file with checksums.
const SUMS: &str = "SHA256SUMS";

/// Writes these files and folders of `parent` as a tar archive, compressed if it ends in gz: sorted, with
/// one time, one owner and the usual rights.
pub(super) fn tar(
    release: &Release,
    parent: &Path,
    names: &[&str],
    to: &Path,
) -> Result<(), Failure> {
    let tar = gnu_tar()?;
    let mtime = format!("--mtime=@{}", release.epoch);
    let (parent, file) = (parent.to_string_lossy(), to.to_string_lossy());
    let owner = [
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mode=u=rwX,go=rX",
    ];
    let how = ["--format=gnu", "--sort=name", &mtime];
    let compressed: &[&str] = if file.ends_with("gz") {
        &["--use-compress-program=gzip -9n"]
    } else {
        &[]
    };
    let what = ["-C", &parent, "-cf", &file, "--"];
    run(tar, &[&how[..], &owner, compressed, &what, names].concat())
}

/// The name of GNU tar here. That of macOS cannot sort.
fn gnu_tar() -> Result<&'static str, Failure> {
    let is_gnu = |name: &&str| {
        needs(name, "").is_ok()
            && output(name, &["--version"]).is_ok_and(|said| said.contains("GNU"))
    };
    let found = ["tar", "gtar"].into_iter().find(is_gnu);
    found.ok_or_else(|| Failure::new("GNU tar is not here: install tar, or gnu-tar on macOS"))
}

/// Writes the SHA-256 of every file in the folder into [`SUMS`], and returns its text.
pub(super) fn checksums(folder: &Path) -> Result<String, Failure> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() && !path.ends_with(SUMS) {
            files.push(path.to_string_lossy().into_owned());
        }
    }
    files.sort();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let said = match needs("sha256sum", "") {
        Ok(()) => output("sha256sum", &files)?,
        Err(_) => output("shasum", &[&["-a", "256"], &files[..]].concat())?,
    };
    let prefix = format!("{}/", folder.to_string_lossy());
    let text = said.replace(&prefix, "");
    fs::write(folder.join(SUMS), &text)?;
    Ok(text)
}
