//! The Debian package: the binary, a service with a user of its own, its configuration in /etc/murmurate.

use super::binary::{Binary, VERSION};
use super::files::{NOTICES, SHELLS, completions, manual};
use super::release::{Release, copy};
use crate::command::{Failure, needs, output, run, run_with};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

pub(super) fn deb(release: &Release) -> Result<(), Failure> {
    let binary = release.binary()?;
    needs("dpkg-deb", "dpkg")?;
    let arch = release.debian_arch()?;
    let stage = release.fresh("deb")?;
    tree(&stage, binary)?;
    let control = stage.join("DEBIAN");
    for file in SCRIPTS.iter().chain(&["conffiles"]) {
        copy(Path::new("deploy/debian").join(file), &control.join(file))?;
    }
    let libc = binary.glibc.map(|needed| format!(", libc6 (>= {needed})"));
    let size = output("du", &["-sk", "--exclude=DEBIAN", &stage.to_string_lossy()])?;
    let size = size.split_whitespace().next().unwrap_or_default();
    let text = fs::read_to_string("deploy/debian/control")?;
    let text = text.replace("@VERSION@", VERSION).replace("@ARCH@", arch);
    let text = text
        .replace("@LIBC@", &libc.unwrap_or_default())
        .replace("@SIZE@", size);
    fs::write(control.join("control"), text)?;
    // The sums by which `dpkg --verify` finds changed files.
    let sums = "cd \"$1\" && find usr -type f | LC_ALL=C sort | xargs md5sum > DEBIAN/md5sums";
    run("sh", &["-c", sums, "sh", &stage.to_string_lossy()])?;
    rights(&stage)?;
    let file = release.out.join(format!("murmurate_{VERSION}_{arch}.deb"));
    let pack = [
        "--root-owner-group",
        "-Zxz",
        "--build",
        &stage.to_string_lossy(),
        &file.to_string_lossy(),
    ];
    run_with("dpkg-deb", &pack, &[("SOURCE_DATE_EPOCH", &release.epoch)])
}

/// The files as they are on a system.
fn tree(stage: &Path, binary: &Binary) -> Result<(), Failure> {
    let share = stage.join("usr/share");
    let about = share.join("doc/murmurate");
    copy(&binary.path, &stage.join("usr/bin/murmurate"))?;
    for (from, to) in NOTICES {
        copy(from, &about.join(to))?;
    }
    for (from, to) in [
        ("LICENSE-MIT", "usr/share/doc/murmurate/copyright"),
        ("CHANGELOG.md", "usr/share/doc/murmurate/changelog"),
        ("deploy/config/node.example.toml", "etc/murmurate/node.toml"),
        ("deploy/debian/environment", "etc/murmurate/environment"),
    ] {
        copy(from, &stage.join(to))?;
    }
    run("gzip", &["-9n", &about.join("changelog").to_string_lossy()])?;
    let unit = fs::read_to_string("deploy/systemd/murmurate.service")?;
    let (_, unit) = unit.split_once("\n\n").unwrap_or(("", &unit));
    let to = stage.join("usr/lib/systemd/system/murmurate.service");
    fs::create_dir_all(to.parent().unwrap_or(stage))?;
    fs::write(&to, unit.replace("/usr/local/bin/", "/usr/bin/"))?;
    let pages = share.join("man/man1");
    manual(binary, &pages)?;
    for page in fs::read_dir(&pages)? {
        run("gzip", &["-9n", &page?.path().to_string_lossy()])?;
    }
    for (shell, file) in SHELLS {
        completions(binary, shell, &share.join(file))?;
    }
    Ok(())
}

/// Sets the rights of every file, whatever the umask here is. The variables may hold an invite.
fn rights(stage: &Path) -> Result<(), Failure> {
    run("chmod", &["-R", "u=rwX,go=rX", &stage.to_string_lossy()])?;
    let set =
        |file: &str, mode| fs::set_permissions(stage.join(file), fs::Permissions::from_mode(mode));
    set("etc/murmurate/environment", 0o600)?;
    for script in SCRIPTS {
        set(&format!("DEBIAN/{script}"), 0o755)?;
    }
    Ok(())
}
