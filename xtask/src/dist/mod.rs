//! `cargo xtask dist`: everything that a release offers to install, in `packages` in the directory of build
//! results. Each item needs the tools of its format. An item whose tool is missing fails and says what to
//! install; the others can be asked for by name.

mod archive;
mod binary;
mod deb;
mod files;
mod image;
mod release;
#[cfg(test)]
mod tests;

use crate::command::{Failure, fresh, output, root, run, run_with};
use crate::tool::Tool;
use binary::{Binary, VERSION};
use release::Release;
use std::fs;
use std::path::Path;

/// The items of a release.
const ITEMS: &[Item] = &[
    Item::packed(
        "tarball",
        "the binary, manual pages, completions",
        files::tarball,
    ),
    Item::packed(
        "wheel",
        "the Python package with the binary in it",
        files::wheel,
    ),
    Item::packed("deb", "a Debian package with a service", deb::deb),
    Item::packed("image", "a container image as an OCI archive", image::image),
    Item::plain("chart", "the Helm chart", files::chart),
    Item::plain("install", "install.sh for this version", files::install),
    Item::plain("sbom", "the dependencies, as CycloneDX", sbom),
];

/// Reads the dependencies of the binary. Its build takes a minute.
const CYCLONEDX: Tool = Tool {
    name: "cargo-cyclonedx",
    version: "0.5.9",
    features: &[],
};

/// Free MiB that a build of the binary takes, and that packing takes.
const BUILD_MIB: u64 = 6 << 10;
const PACK_MIB: u64 = 1 << 10;

/// One thing to make, with the name that asks for it.
struct Item {
    name: &'static str,
    what: &'static str,
    /// The binary goes into it.
    packs: bool,
    make: Make,
}

type Make = fn(&Release) -> Result<(), Failure>;

impl Item {
    const fn packed(name: &'static str, what: &'static str, make: Make) -> Self {
        Self {
            name,
            what,
            packs: true,
            make,
        }
    }

    const fn plain(name: &'static str, what: &'static str, make: Make) -> Self {
        Self {
            packs: false,
            ..Self::packed(name, what, make)
        }
    }
}

/// The items that are asked for.
#[derive(Default)]
struct Options<'a> {
    items: Vec<&'static Item>,
    /// A binary that is built already.
    binary: Option<&'a str>,
    target: Option<&'a str>,
}

impl<'a> Options<'a> {
    fn parse(words: &[&'a str]) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || {
                let value = words.next().copied();
                value.ok_or_else(|| Failure::new(format!("dist: {word} needs a value")))
            };
            match *word {
                "--binary" => options.binary = Some(value()?),
                "--target" => options.target = Some(value()?),
                name => options.items.push(item(name)?),
            }
        }
        if options.items.is_empty() {
            options.items = ITEMS.iter().collect();
        }
        Ok(options)
    }
}

fn item(name: &str) -> Result<&'static Item, Failure> {
    let names: Vec<&str> = ITEMS.iter().map(|item| item.name).collect();
    let found = ITEMS.iter().find(|item| item.name == name);
    found.ok_or_else(|| {
        let names = names.join(", ");
        Failure::new(format!(
            "dist: there is no item {name:?}; there are {names}, --binary and --target"
        ))
    })
}

/// The lines of `cargo xtask help`.
pub(crate) fn help() {
    println!("cargo xtask dist [ITEM ...] [--binary FILE] [--target TRIPLE]");
    println!(
        "                            what a release offers to install; all items without one:"
    );
    for item in ITEMS {
        println!("                            {:<8} {}", item.name, item.what);
    }
}

/// Makes the requested items, and the checksums of all files of the release.
pub(crate) fn dist(words: &[&str]) -> Result<(), Failure> {
    let options = Options::parse(words)?;
    let mut release = Release::new(options.target)?;
    let packs = options.items.iter().any(|item| item.packs);
    let builds = packs && options.binary.is_none();
    room(&release.out, if builds { BUILD_MIB } else { PACK_MIB })?;
    if builds {
        release.binary = Some(binary::build(&release.target)?);
    } else if let Some(given) = options.binary {
        release.binary = Some(Binary::read(Path::new(given))?);
    }
    if options.items.len() == ITEMS.len() {
        // Files of another version would stay in the list of checksums.
        fresh(&release.out)?;
    }
    for item in &options.items {
        println!("\n==> {}: {}", item.name, item.what);
        (item.make)(&release).map_err(|failure| failure.within(item.name))?;
    }
    let sums = archive::checksums(&release.out)?;
    println!("\n{sums}in {}", release.out.display());
    Ok(())
}

/// Fails if fewer MiB are free where `folder` is.
fn room(folder: &Path, mib: u64) -> Result<(), Failure> {
    let folder = folder.to_string_lossy();
    let table = output("df", &["-Pk", &folder])?;
    let free = table
        .lines()
        .nth(1)
        .and_then(|line| line.split_whitespace().nth(3));
    match free.and_then(|kib| kib.parse::<u64>().ok()) {
        Some(kib) if kib >> 10 < mib => Err(Failure::new(format!(
            "{folder} has {} MiB free, and {mib} MiB are needed; free some, or set CARGO_TARGET_DIR to another disk",
            kib >> 10
        ))),
        _ => Ok(()),
    }
}

/// Writes what the binary consists of. The tool writes beside each package of the workspace.
fn sbom(release: &Release) -> Result<(), Failure> {
    let tool = CYCLONEDX.installed()?;
    let what = [
        "cyclonedx",
        "--manifest-path",
        "command/Cargo.toml",
        "--describe",
        "binaries",
    ];
    let how = [
        "--format",
        "json",
        "--spec-version",
        "1.5",
        "--quiet",
        "--target",
        &release.target,
    ];
    run_with(
        &tool,
        &[&what[..], &how].concat(),
        &[("SOURCE_DATE_EPOCH", &release.epoch)],
    )?;
    let written = Path::new("command/murmurate_bin.cdx.json");
    let text = fs::read_to_string(written)?;
    run(
        "git",
        &["clean", "--quiet", "--force", "--", "*_bin.cdx.json"],
    )?;
    // Where the clone is says nothing about the binary.
    let here = format!("file://{}/", root().display());
    let file = format!("murmurate-{VERSION}-{}.cdx.json", release.target);
    Ok(fs::write(
        release.out.join(file),
        text.replace(&here, "file:///"),
    )?)
}
