"""Where `hatch_build.py` takes the command of a wheel from.  Skipped, with a line, where hatchling is not
installed."""

import importlib.util
import os
import platform
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

found = all(importlib.util.find_spec(name) for name in ("hatchling", "elftools"))
if not found:
    print("skipped: the tests of the wheel, because hatchling or pyelftools is not installed")

WORKSPACE = """
[workspace]
members = ["command"]
[workspace.package]
version = "1.2.3"
rust-version = "{rust}"
"""
CRATE = """
[package]
name = "murmurate"
version = "1.2.3"
"""
BUILD = "import sys, hatchling.build as b; print(getattr(b, 'build_' + sys.argv[1])(sys.argv[2]))"


@unittest.skipUnless(found, "hatchling or pyelftools is not installed")
class Wheel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = os.path.join(folder.name, "clone")
        self.package = os.path.join(self.home, "python")
        ignored = shutil.ignore_patterns("__pycache__", "tests", "examples")
        shutil.copytree(PACKAGE, self.package, ignore=ignored)
        self.write("Cargo.toml", WORKSPACE.format(rust="1.0"))
        self.out = os.path.join(folder.name, "out")

    def write(self, path, text, mode=0o644):
        path = os.path.join(self.home, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def program(self, path, version):
        """A program that tells this version."""
        return self.write(path, f"#!/bin/sh\necho murmurate {version}\n", 0o755)

    def build(self, kind="wheel", package=None, **variables):
        """The path of what was built, or None; and what was said."""
        kept = {key: os.environ[key] for key in os.environ if key not in ("MURMURATE_BINARY", "CARGO_TARGET_DIR", "CC")}
        command = [sys.executable, "-c", BUILD, kind, self.out]
        done = subprocess.run(
            command, cwd=package or self.package, env=kept | variables, capture_output=True, text=True, timeout=300
        )
        if done.returncode:
            return None, done.stderr.strip()
        return os.path.join(self.out, done.stdout.splitlines()[-1]), done.stdout + done.stderr

    def refused(self, words, **variables):
        wheel, text = self.build(**variables)
        self.assertIsNone(wheel)
        self.assertNotIn("Traceback", text)
        self.assertRegex(text.splitlines()[-1], words)

    def test_the_newest_program_of_this_version_is_taken(self):
        self.program("target/dist/murmurate", "1.2.3")
        newer = self.program("target/release/murmurate", "1.2.3")
        os.utime(newer, (2e9, 2e9))
        wheel, text = self.build()
        self.assertRegex(text, "the command is .*/target/release/murmurate\n")
        self.assertRegex(os.path.basename(wheel), r"^murmurate-1\.2\.3-py3-none-\w+\.whl$")
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            script = archive.getinfo("murmurate-1.2.3.data/scripts/murmurate")
            with open(newer, "rb") as file:
                self.assertEqual(archive.read(script), file.read())
            about = archive.read("murmurate-1.2.3.dist-info/METADATA").decode()
        self.assertTrue(script.external_attr >> 16 & stat.S_IXUSR)
        self.assertEqual(sum("LICENSE" in name for name in names), 2)
        self.assertIn("murmurate/py.typed", names)
        self.assertNotIn("Project-URL", about)
        # One of another version is not, however new.
        self.program("target/release/murmurate", "1.2.4")
        os.utime(newer, (2.1e9, 2.1e9))
        _, text = self.build()
        self.assertIn("release/murmurate has version 1.2.4, not 1.2.3", text)
        self.assertIn("dist/murmurate\n", text)

    def test_a_named_program_comes_first(self):
        self.program("target/release/murmurate", "1.2.3")
        other = self.program("other", "1.2.3")
        wheel, text = self.build(MURMURATE_BINARY=other)
        self.assertIn(f"the command is {other}", text)
        self.refused(f"MURMURATE_BINARY={other}s is no program that can be run", MURMURATE_BINARY=other + "s")
        self.program("other", "1.2.2")
        self.refused("has version 1.2.2, the package 1.2.3", MURMURATE_BINARY=other)
        os.chmod(other, 0o644)
        self.refused("is no program that can be run", MURMURATE_BINARY=other)

    @unittest.skipUnless(sys.platform == "linux", "there is no GLIBC")
    def test_the_tag_names_the_c_library(self):
        with open(os.path.realpath(sys.executable), "rb") as file:
            self.assertIn(b"GLIBC_2.", file.read())
        spec = importlib.util.spec_from_file_location("hatch_build", os.path.join(PACKAGE, "hatch_build.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        machine = platform.machine()
        # A program of the system: it needs the C library and nothing else.
        tag = module.platform(os.path.realpath("/bin/sh"))
        self.assertRegex(tag, rf"^manylinux_2_\d+_{machine}$")
        minor = int(tag.split("_")[2])
        self.assertLessEqual(minor, int(platform.libc_ver()[1].split(".")[1]))
        self.assertEqual(module.platform(os.path.abspath(__file__)), f"linux_{machine}")

    def test_what_a_build_lacks_is_told_before_it_begins(self):
        tools = os.path.join(self.home, "tools")
        os.mkdir(tools)
        self.refused("no cargo: install Rust 1.0 from your system or rustup, or set MURMURATE_BINARY", PATH=tools)
        self.program("tools/cargo", "")
        self.refused("`rustc --version` fails", PATH=tools)
        self.write("tools/rustc", "#!/bin/sh\necho 'rustc 1.63.0 (x 2022-08-08)'\n", 0o755)
        self.write("Cargo.toml", WORKSPACE.format(rust="1.95"))
        self.refused("rustc 1.63 is too old: install Rust 1.95 or newer", PATH=tools)
        self.write("Cargo.toml", WORKSPACE.format(rust="1.63"))
        self.refused("no C compiler `cc`: install gcc or clang", PATH=tools)

    @unittest.skipUnless(shutil.which("cargo") and shutil.which("cc"), "there is no Rust")
    def test_it_is_compiled_where_there_is_none(self):
        self.write("command/Cargo.toml", CRATE)
        self.write("command/src/main.rs", 'fn main() { println!("murmurate 1.2.3") }')
        self.refused("`cargo build .*` made no .*; what it says is above", CARGO_TARGET_DIR="t")
        subprocess.run(["cargo", "generate-lockfile", "--offline"], cwd=self.home, check=True, capture_output=True)
        wheel, text = self.build(CARGO_TARGET_DIR="t")
        self.assertIn("compiling the command", text)
        self.assertTrue(os.path.isfile(os.path.join(self.home, "t", "release", "murmurate")))
        self.assertIsNotNone(wheel)

    def test_addresses_are_those_of_the_workspace(self):
        self.program("target/release/murmurate", "1.2.3")
        self.write("Cargo.toml", WORKSPACE.format(rust="1.0") + 'repository = "https://forge.example/m"\n')
        with zipfile.ZipFile(self.build()[0]) as archive:
            about = archive.read("murmurate-1.2.3.dist-info/METADATA").decode()
        self.assertIn("\nProject-URL: Repository, https://forge.example/m\n", about)
        self.assertIn("\nProject-URL: Changelog, https://forge.example/m/blob/HEAD/CHANGELOG.md\n", about)
        self.assertNotIn("Homepage", about)

    def test_a_source_distribution_needs_a_program(self):
        sdist, _ = self.build("sdist")
        with tarfile.open(sdist) as archive:
            archive.extractall(self.out)
        package = sdist[: -len(".tar.gz")]
        wheel, text = self.build(package=package)
        self.assertIsNone(wheel)
        self.assertIn("a source distribution has no Rust source: run `pip install ./python` in a clone", text)
        wheel, _ = self.build(package=package, MURMURATE_BINARY=self.program("other", "1.2.3"))
        self.assertIn("murmurate-1.2.3-py3", wheel)


if __name__ == "__main__":
    unittest.main()
