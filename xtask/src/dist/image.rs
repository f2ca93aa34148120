//! The container image: a small Debian and the binary, put together without a daemon and without a context.

use super::archive;
use super::binary::VERSION;
use super::files::NOTICES;
use super::release::{Release, copy};
use crate::command::{Failure, needs, output, run, run_with};
use std::fs;
use std::path::Path;

/// The release of Debian.
const SUITE: &str = "bookworm";

/// Files that a container does not read. Licences stay.
const LEFT_OUT: [&str; 5] = [
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
    "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/man/*",
];

/// The user of the daemon, and its directory.
const USER: &str = "echo murmurate:x:10001:10001::/state:/usr/sbin/nologin >> \"$1/etc/passwd\"; \
                    echo murmurate:x:10001: >> \"$1/etc/group\"; install -d -o 10001 -g 10001 \"$1/state\"";

pub(super) fn image(release: &Release) -> Result<(), Failure> {
    let binary = release.binary()?;
    needs("mmdebstrap", "mmdebstrap")?;
    needs("umoci", "umoci")?;
    let arch = release.debian_arch()?;
    let stage = release.fresh("image")?;
    let base = stage.join("base.tar");
    debian(release, arch, &base)?;

    let program = stage.join("program");
    copy(&binary.path, &program.join("usr/local/bin/murmurate"))?;
    for (from, to) in NOTICES {
        copy(from, &program.join("usr/share/doc/murmurate").join(to))?;
    }
    let added = stage.join("program.tar");
    archive::tar(release, &program, &["usr"], &added)?;

    let layout = stage.join("layout");
    let image = format!("{}:murmurate:{VERSION}", layout.display());
    let date = format!("@{}", release.epoch);
    let created = output("date", &["-u", "-d", &date, "+%FT%TZ"])?;
    let created = created.trim();
    let umoci = |words: &[&str]| run("umoci", words);
    umoci(&["init", "--layout", &layout.to_string_lossy()])?;
    umoci(&["new", "--image", &image])?;
    let at = format!("--history.created={created}");
    for (layer, what) in [(&base, SUITE), (&added, "murmurate")] {
        let by = format!("--history.created_by={what}");
        let layer = layer.to_string_lossy();
        umoci(&["raw", "add-layer", &at, &by, "--image", &image, &layer])?;
    }
    configure(arch, created, &image)?;
    umoci(&["gc", "--layout", &layout.to_string_lossy()])?;
    let file = release
        .out
        .join(format!("murmurate-{VERSION}-{arch}.oci.tar"));
    archive::tar(
        release,
        &layout,
        &["blobs", "index.json", "oci-layout"],
        &file,
    )?;
    println!(
        "{}: podman load -i FILE, or skopeo copy oci-archive:FILE docker://...",
        file.display()
    );
    Ok(fs::remove_dir_all(stage)?)
}

/// Writes the base of the image as a tar archive.
fn debian(release: &Release, arch: &str, to: &Path) -> Result<(), Failure> {
    let arch = format!("--architectures={arch}");
    let left_out = LEFT_OUT.map(|option| format!("--dpkgopt={option}"));
    let left_out: Vec<&str> = left_out.iter().map(String::as_str).collect();
    let user = format!("--customize-hook={USER}");
    let what = [
        "--quiet",
        "--variant=essential",
        &arch,
        &user,
        SUITE,
        &to.to_string_lossy(),
    ];
    let variables = [("SOURCE_DATE_EPOCH", release.epoch.as_str())];
    run_with("mmdebstrap", &[&left_out[..], &what].concat(), &variables)
}

/// The program of a container, and its user. As in deploy/docker/Dockerfile.
fn configure(arch: &str, created: &str, image: &str) -> Result<(), Failure> {
    let set = format!(
        "--os=linux --architecture={arch} --created={created} --config.user=10001:10001 \
         --config.label=org.opencontainers.image.version={VERSION} --config.workingdir=/state \
         --config.volume=/state --config.env=PATH=/usr/local/bin:/usr/bin:/bin \
         --config.stopsignal=SIGTERM --config.entrypoint=murmurate --config.cmd=run \
         --config.cmd=--dir --config.cmd=/state --config.cmd=--no-mdns"
    );
    let set: Vec<&str> = set.split_whitespace().collect();
    let what = ["config", "--no-history", "--image", image];
    run("umoci", &[&what[..], &set].concat())
}
