//! The tarball, the wheel, the Helm chart and install.sh.

use super::archive;
use super::binary::{Binary, OLDEST, VERSION, python};
use super::release::{Release, copy};
use crate::command::{Failure, output, root, run, run_with};
use std::fs;
use std::path::Path;

/// The notices that go with every copy of the binary, each with its name there.
pub(super) const NOTICES: [(&str, &str); 3] = [
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("tasks/data/mnist-subset/README.md", "IMAGES.md"),
];

/// Where completions of a shell go below `/usr/share`, and how the file is named.
pub(super) const SHELLS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/murmurate"),
    ("zsh", "zsh/vendor-completions/_murmurate"),
    ("fish", "fish/vendor_completions.d/murmurate.fish"),
];

/// The binary, and everything that a package of a distribution is made from.
pub(super) fn tarball(release: &Release) -> Result<(), Failure> {
    let binary = release.binary()?;
    let name = format!("murmurate-{VERSION}-{}", release.target);
    let stage = release.fresh("tarball")?;
    let folder = stage.join(&name);
    copy(&binary.path, &folder.join("murmurate"))?;
    for (from, to) in NOTICES {
        copy(from, &folder.join(to))?;
    }
    for file in ["README.md", "CHANGELOG.md"] {
        copy(file, &folder.join(file))?;
    }
    for file in ["systemd/murmurate.service", "config/node.example.toml"] {
        copy(Path::new("deploy").join(file), &folder.join(file))?;
    }
    manual(binary, &folder.join("man"))?;
    for (shell, _) in SHELLS {
        let file = folder.join(format!("completions/murmurate.{shell}"));
        completions(binary, shell, &file)?;
    }
    let to = release.out.join(format!("{name}.tar.gz"));
    archive::tar(release, &stage, &[&name], &to)
}

pub(super) fn manual(binary: &Binary, folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder)?;
    run(&binary.path, &["man", "--out", &folder.to_string_lossy()])
}

pub(super) fn completions(binary: &Binary, shell: &str, file: &Path) -> Result<(), Failure> {
    let text = output(&binary.path, &["completions", shell])?;
    fs::create_dir_all(file.parent().unwrap_or(file))?;
    Ok(fs::write(file, text)?)
}

/// The wheel, by the package's own build, which takes the binary from a variable.
pub(super) fn wheel(release: &Release) -> Result<(), Failure> {
    let binary = release.binary()?;
    let python = python(&["pip"])?.join("python");
    let out = release.out.to_string_lossy();
    let wheel = ["-m", "pip", "wheel", "--no-deps", "./python", "-w", &out];
    let binary = binary.path.to_string_lossy();
    let variables = [
        ("MURMURATE_BINARY", &*binary),
        ("SOURCE_DATE_EPOCH", &release.epoch),
    ];
    run_with(python, &wheel, &variables)
}

/// The chart with this version in it, as `helm package` packs one.
pub(super) fn chart(release: &Release) -> Result<(), Failure> {
    let stage = release.fresh("chart")?;
    let chart = root().join("deploy").join("helm").join("murmurate");
    let (from, to) = (chart.to_string_lossy(), stage.to_string_lossy());
    run("cp", &["-R", &from, &to])?;
    let about = stage.join("murmurate").join("Chart.yaml");
    let text = fs::read_to_string(&about)?;
    let text = text.replace("ersion: 0.0.0", &format!("ersion: {VERSION}"));
    fs::write(&about, text)?;
    let to = release.out.join(format!("murmurate-{VERSION}.tgz"));
    archive::tar(release, &stage, &["murmurate"], &to)
}

/// install.sh with this version in it, and the place of releases, if the variable `MURMURATE_RELEASES` has it.
pub(super) fn install(release: &Release) -> Result<(), Failure> {
    let releases = std::env::var("MURMURATE_RELEASES").unwrap_or_default();
    let binary = release.binary.as_ref();
    let glibc = binary.and_then(|binary| binary.glibc).max(Some(OLDEST));
    let glibc = glibc.unwrap_or(OLDEST).to_string();
    let text = fs::read_to_string("deploy/install.sh")?;
    let values = [
        ("release", VERSION),
        ("releases", &releases),
        ("glibc", &glibc),
    ];
    let text = stamped(&text, &values)?;
    Ok(fs::write(release.out.join("install.sh"), text)?)
}

/// A script with these values in the lines that set the variables.
pub(super) fn stamped(script: &str, values: &[(&str, &str)]) -> Result<String, Failure> {
    let mut text = script.to_owned();
    for (name, value) in values {
        let start = format!("\n{name}=\"");
        let (before, after) = text
            .split_once(&start)
            .ok_or_else(|| Failure::new(format!("deploy/install.sh sets no `{name}`")))?;
        let (_, rest) = after.split_once('"').unwrap_or_default();
        text = format!("{before}{start}{value}\"{rest}");
    }
    Ok(text)
}
