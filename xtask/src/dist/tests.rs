//! Promises of a release, tried on small files.

use super::binary::Glibc;
use super::files::stamped;
use super::release::Release;
use super::{Options, archive, room};
use crate::command::target;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An empty folder of this test.
fn folder(name: &str) -> PathBuf {
    let folder = target().join("xtask").join("dist-tests").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn release(folder: &Path) -> Release {
    Release {
        out: folder.to_owned(),
        stage: folder.to_owned(),
        target: "x86_64-unknown-linux-gnu".to_owned(),
        epoch: "1700000000".to_owned(),
        binary: None,
    }
}

#[test]
fn the_newest_c_library_that_a_program_asks_for_is_found() {
    let program = b"\x7fELF\0GLIBC_2.9\0GLIBC_2.17\0xGLIBC_2.40\0GLIBC_2.2.5\0GLIBC_PRIVATE\0";
    assert_eq!(Glibc::of(program), Some(Glibc(2, 17)));
    assert_eq!(Glibc::of(b"\x7fELF\0static"), None);
    // A program that is certainly here, and not static.
    let sh = fs::read("/bin/sh").unwrap();
    assert!(Glibc::of(&sh) >= Some(Glibc(2, 0)));
}

#[test]
fn unknown_items_and_missing_values_are_named() {
    let refused = |words: &[&str]| Options::parse(words).err().unwrap().to_string();
    assert!(refused(&["tarbal"]).contains("there are tarball, wheel, deb"));
    assert_eq!(
        refused(&["deb", "--binary"]),
        "dist: --binary needs a value"
    );
    let all = Options::parse(&["--binary", "x"]).unwrap();
    assert_eq!(
        (all.items.len(), all.binary),
        (super::ITEMS.len(), Some("x"))
    );
}

#[test]
fn a_full_disk_is_found_before_anything_is_built() {
    let line = room(Path::new("."), u64::MAX >> 10)
        .unwrap_err()
        .to_string();
    assert!(line.contains("MiB free, and"), "{line}");
    room(Path::new("."), 0).unwrap();
}

#[test]
fn an_archive_depends_on_names_and_content_alone() {
    let base = folder("archive");
    let archive_of = |name: &str, files: [&str; 2], mode| {
        let parent = base.join(name);
        fs::create_dir_all(parent.join("a")).unwrap();
        for file in files {
            let path = parent.join("a").join(file);
            fs::write(&path, file).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let to = parent.join("a.tar.gz");
        archive::tar(&release(&base), &parent, &["a"], &to).unwrap();
        fs::read(to).unwrap()
    };
    let first = archive_of("first", ["x", "y"], 0o644);
    // Later, made in another order, under another umask.
    assert!(first == archive_of("second", ["y", "x"], 0o600));
    assert!(first != archive_of("third", ["x", "z"], 0o644));
}

/// A release of version 9.9.9 whose command is a script, and a run of install.sh with it.
struct Installer(PathBuf);

impl Installer {
    fn new(name: &str, glibc: &str) -> Self {
        let base = folder(name);
        let (stage, out) = (base.join("stage"), base.join("out"));
        let script = fs::read_to_string("../deploy/install.sh").unwrap();
        let values = [("release", "9.9.9"), ("releases", ""), ("glibc", glibc)];
        fs::create_dir_all(&out).unwrap();
        fs::write(out.join("install.sh"), stamped(&script, &values).unwrap()).unwrap();
        for triple in ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"] {
            let name = format!("murmurate-9.9.9-{triple}");
            let program = stage.join(&name).join("murmurate");
            fs::create_dir_all(program.parent().unwrap()).unwrap();
            fs::write(&program, "#!/bin/sh\necho murmurate 9.9.9\n").unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            let to = out.join(format!("{name}.tar.gz"));
            archive::tar(&release(&base), &stage, &[&name], &to).unwrap();
        }
        archive::checksums(&out).unwrap();
        Self(base)
    }

    fn run(&self, from: &str, words: &[&str]) -> Output {
        let path = std::env::var("PATH").unwrap();
        Command::new("sh")
            .arg(self.0.join("out/install.sh"))
            .args(words)
            .env("PREFIX", self.0.join("prefix"))
            .env("MURMURATE_FROM", from)
            .env("PATH", format!("{}:{path}", self.0.join("first").display()))
            .output()
            .unwrap()
    }

    /// Puts a program before those of the system.
    fn shadow(&self, program: &str, script: &str) {
        let path = self.0.join("first").join(program);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The only line of a refusal, which leaves nothing behind.
    fn refused(&self, from: &str, words: &[&str]) -> String {
        let output = self.run(from, words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let bin = fs::read_dir(self.0.join("prefix/bin"));
        assert_eq!(bin.map_or(0, Iterator::count), 0, "{said}");
        said
    }

    fn from(&self) -> String {
        self.0.join("out").to_string_lossy().into_owned()
    }
}

#[cfg(target_os = "linux")]
#[test]
fn install_sh_installs_and_can_be_run_again() {
    let installer = Installer::new("install", "2.17");
    for _ in 0..2 {
        let output = installer.run(&installer.from(), &[]);
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.starts_with("installed murmurate 9.9.9: "), "{said}");
        assert!(said.contains("add it to your PATH"), "{said}");
        let bin = fs::read_dir(installer.0.join("prefix/bin")).unwrap();
        assert_eq!(bin.count(), 1);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn install_sh_refuses_in_one_line_that_says_why() {
    let installer = Installer::new("refused", "2.17");
    let from = installer.from();
    let says = |said: String, part: &str| {
        assert!(said.contains(part) && said.lines().count() == 1, "{said}");
    };
    says(installer.refused("", &[]), "set MURMURATE_FROM");
    installer.shadow("df", "echo head; echo /dev/x 1 1 1024 1% /");
    says(
        installer.refused(&from, &[]),
        "has 1 MiB free, and 200 MiB are needed",
    );
    fs::remove_file(installer.0.join("first/df")).unwrap();
    let said = installer.refused(&from, &["8.8.8"]);
    assert!(said.ends_with("(the reason is above)\n"), "{said}");
    for file in fs::read_dir(&from).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "gz") {
            let mut bytes = fs::read(&path).unwrap();
            bytes.push(0);
            fs::write(&path, bytes).unwrap();
        }
    }
    says(
        installer.refused(&from, &[]),
        "is damaged or was replaced: its SHA-256 is",
    );
    installer.shadow("getconf", "echo glibc 2.16");
    says(
        installer.refused(&from, &[]),
        "this system has glibc 2.16, the command needs 2.17",
    );
    installer.shadow("getconf", "exit 1");
    says(
        installer.refused(&from, &[]),
        "no glibc (as Alpine has none)",
    );
    installer.shadow("uname", "echo riscv64");
    says(
        installer.refused(&from, &[]),
        "there is no build for riscv64 on riscv64",
    );
}
