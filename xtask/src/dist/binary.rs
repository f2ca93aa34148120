//! The binary of a release. For Linux it is linked by zig against an old C library, so that it runs wherever
//! that one or a newer one is.

use crate::command::{Failure, needs, output, run, run_with, succeeds, target};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The C library that the binary may ask for at most: that of the oldest systems which Rust supports.
pub(super) const OLDEST: Glibc = Glibc(2, 17);

/// A version of the GNU C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Glibc(pub(super) u16, pub(super) u16);

impl fmt::Display for Glibc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl Glibc {
    /// The newest version that a program asks for; `None` if it is static. The versions are whole strings
    /// in its table of dynamic strings.
    pub(super) fn of(program: &[u8]) -> Option<Self> {
        let words = program.split(|byte| *byte == 0);
        let versions = words.filter_map(|word| {
            let version = std::str::from_utf8(word).ok()?.strip_prefix("GLIBC_")?;
            let mut numbers = version.split('.').map(str::parse);
            Some(Self(numbers.next()?.ok()?, numbers.next()?.ok()?))
        });
        versions.max()
    }
}

/// A binary that runs here, of the workspace's version.
pub(super) struct Binary {
    pub(super) path: PathBuf,
    pub(super) glibc: Option<Glibc>,
}

impl Binary {
    /// Looks at a binary, and says which systems it runs on.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let bytes = fs::read(path).map_err(|error| Failure::new(format!("{shown}: {error}")))?;
        let said = output(path, &["--version"])?;
        let said = said.lines().next().unwrap_or_default();
        if said != format!("murmurate {VERSION}") {
            return Err(Failure::new(format!(
                "{shown} is {said:?}, not murmurate {VERSION}: build it again"
            )));
        }
        let glibc = Glibc::of(&bytes);
        match glibc {
            Some(needed) => println!(
                "{shown}: {} bytes, needs glibc {needed} or newer",
                bytes.len()
            ),
            None => println!("{shown}: {} bytes, needs no glibc", bytes.len()),
        }
        let path = path.canonicalize()?;
        Ok(Self { path, glibc })
    }
}

/// Builds the binary for these machines.
pub(super) fn build(triple: &str) -> Result<Binary, Failure> {
    let std = output("rustc", &["--print", "target-libdir", "--target", triple])?;
    if !Path::new(std.trim()).exists() {
        return Err(Failure::new(format!(
            "Rust has no library for {triple} here: rustup target add {triple}"
        )));
    }
    let what = [
        "--profile",
        "dist",
        "--locked",
        "-p",
        "murmurate",
        "--target",
    ];
    if triple.contains("-linux-") {
        let tools = python(&["cargo-zigbuild==0.24.1", "ziglang==0.17.1"])?;
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", tools.display());
        let oldest = if triple.ends_with("-gnu") {
            format!("{triple}.{OLDEST}")
        } else {
            triple.to_owned()
        };
        let zig = tools.join("cargo-zigbuild");
        run_with(
            zig,
            &[&["zigbuild"], &what[..], &[&oldest]].concat(),
            &[("PATH", &path)],
        )?;
    } else {
        run("cargo", &[&["build"], &what[..], &[triple]].concat())?;
    }
    let binary = Binary::read(&target().join(triple).join("dist").join("murmurate"))?;
    match binary.glibc {
        Some(needed) if needed > OLDEST => Err(Failure::new(format!(
            "the binary needs glibc {needed}, and a release promises {OLDEST}: `objdump -T` names the symbol"
        ))),
        _ => Ok(binary),
    }
}

/// The folder with the programs of an environment of Python that has these packages.
pub(super) fn python(packages: &[&str]) -> Result<PathBuf, Failure> {
    needs("python3", "python3 and python3-venv")?;
    let home = target().join("tools").join("dist");
    let programs = home.join("bin");
    let python = programs.join("python");
    if !succeeds(&python, &["-m", "pip", "--version"]) {
        run("python3", &["-m", "venv", &home.to_string_lossy()])
            .map_err(|_| Failure::new("python3 has no venv: install python3-venv"))?;
    }
    run(
        &python,
        &[&["-m", "pip", "install", "--quiet"], packages].concat(),
    )
    .map_err(|_| {
        Failure::new(format!(
            "pip cannot install {}: it needs a registry",
            packages.join(" and ")
        ))
    })?;
    Ok(programs)
}
