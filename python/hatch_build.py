"""Builds the wheel: the package, and the command `murmurate` as its script.

The command is taken from where it is first found:

1. the program that the variable MURMURATE_BINARY names
2. the newest of `target/dist/murmurate` and `target/release/murmurate` in the clone, if its version is that of
   the package
3. `cargo build --release`, which takes many minutes

The version, and the addresses of the project once there are some, are those of the workspace's Cargo.toml.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

if sys.version_info >= (3, 11):
    import tomllib
else:  # hatchling needs it too
    import tomli as tomllib

# What a build of the command takes on an empty disk.
BUILD_BYTES = 6 << 30

# Of the system's libraries those that every Linux with this C library has.
ON_EVERY_LINUX = re.compile(r"ld-linux[-\w]*\.so\.\d|lib(c|m|dl|rt|pthread|gcc_s)\.so\.\d")

MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64"}


class Metadata(MetadataHookInterface):
    """What the workspace says of all its packages."""

    def update(self, metadata):
        about = workspace(self.root)
        if about is None:
            # In a source distribution they are in PKG-INFO.
            return
        metadata["version"] = about["version"]
        urls = {name: about.get(name.lower()) for name in ("Homepage", "Documentation", "Repository")}
        if urls["Repository"]:
            urls["Changelog"] = urls["Repository"] + "/blob/HEAD/CHANGELOG.md"
        metadata["urls"] = {name: url for name, url in urls.items() if url}


class Command(BuildHookInterface):
    """Puts the command into the wheel, and names the systems on which it runs."""

    def initialize(self, version, build_data):
        try:
            binary = self._binary()
        except Missing as error:
            self.app.abort(f"murmurate: {error}")
        self.app.display_info(f"murmurate: the command is {binary}")
        build_data["shared_scripts"] = {binary: "murmurate"}
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform(binary)}"

    def _binary(self):
        package = self.metadata.version
        given = os.environ.get("MURMURATE_BINARY")
        if given:
            if not (os.path.isfile(given) and os.access(given, os.X_OK)):
                raise Missing(f"MURMURATE_BINARY={given} is no program that can be run")
            found = version_of(given)
            if found not in (package, None):
                raise Missing(f"MURMURATE_BINARY={given} has version {found}, the package {package}")
            return os.path.abspath(given)
        about = workspace(self.root)
        if about is None:
            raise Missing(
                "a source distribution has no Rust source: run `pip install ./python` in a clone of the "
                "repository, or set MURMURATE_BINARY"
            )
        home = os.path.dirname(self.root)
        target = os.path.join(home, os.environ.get("CARGO_TARGET_DIR") or "target")
        built = [os.path.join(target, profile, "murmurate") for profile in ("dist", "release")]
        built = sorted(filter(os.path.isfile, built), key=os.path.getmtime, reverse=True)
        for binary in built:
            found = version_of(binary)
            if found == package:
                return binary
            self.app.display_info(f"murmurate: {binary} has version {found}, not {package}")
        check_tools(about["rust-version"], home, target)
        self.app.display_info("murmurate: compiling the command, which takes many minutes")
        build = ["cargo", "build", "--release", "--locked", "-p", "murmurate", "--target-dir", target]
        # Standard output may be read by the program that asked for the wheel.
        made = subprocess.run(build, cwd=home, stdout=sys.stderr).returncode == 0
        binary = os.path.join(target, "release", "murmurate")
        if not made or not os.path.isfile(binary):
            raise Missing(f"`{' '.join(build)}` made no {binary}; what it says is above")
        return binary


class Missing(Exception):
    """What a build needs is not here."""


def workspace(root):
    """The table `workspace.package` of the clone that `root` lies in; None in a source distribution."""
    try:
        with open(os.path.join(root, "..", "Cargo.toml"), "rb") as file:
            return tomllib.load(file)["workspace"]["package"]
    except (FileNotFoundError, KeyError):
        return None


def said(*command, cwd=None):
    """What a command prints; None where it cannot be run or fails."""
    try:
        return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True, timeout=600).stdout
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def version_of(binary):
    """The version that a program of this name tells; None where it cannot be run here."""
    found = re.match(r"murmurate (\S+)", said(os.path.abspath(binary), "--version") or "")
    return found and found[1]


def check_tools(rust, home, target):
    """Raises before a long build begins that could not end well."""
    hint = "or set MURMURATE_BINARY"
    if shutil.which("cargo") is None:
        raise Missing(f"there is no cargo: install Rust {rust} from your system or rustup, {hint}")
    # In the clone, where rustup takes the toolchain that rust-toolchain.toml names.
    found = re.match(r"rustc (\d+)\.(\d+)", said("rustc", "--version", cwd=home) or "")
    if found is None:
        raise Missing(f"`rustc --version` fails: install Rust {rust} from your system or rustup, {hint}")
    if (int(found[1]), int(found[2])) < tuple(map(int, rust.split(".")[:2])):
        raise Missing(f"{found[0]} is too old: install Rust {rust} or newer, {hint}")
    compiler = (os.environ.get("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        raise Missing(f"there is no C compiler `{compiler}`: install gcc or clang, {hint}")
    place = target
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    free = shutil.disk_usage(place).free
    if free < BUILD_BYTES:
        raise Missing(
            f"{place} has {free / (1 << 30):.1f} GiB free, and a build takes {BUILD_BYTES >> 30} GiB: free "
            f"some, name another disk by CARGO_TARGET_DIR, {hint}"
        )


def platform(binary):
    """The platform's part of the wheel's tag."""
    here, machine = sysconfig.get_platform(), os.uname().machine
    # A Python for both kinds of Macs; the command is for this one.
    if here.endswith("universal2"):
        here = "macosx-11.0-arm64" if machine == "arm64" else here.replace("universal2", machine)
    here = re.sub(r"[-.]", "_", here)
    if not here.startswith("linux"):
        return here
    from elftools.common.exceptions import ELFError
    from elftools.elf.dynamic import DynamicSection
    from elftools.elf.elffile import ELFFile
    from elftools.elf.gnuversions import GNUVerNeedSection

    with open(binary, "rb") as file:
        try:
            elf = ELFFile(file)
        except ELFError:
            return here
        if elf["e_machine"] not in MACHINES:
            return here
        machine = MACHINES[elf["e_machine"]]
        needs, dynamic = elf.get_section_by_name(".gnu.version_r"), elf.get_section_by_name(".dynamic")
        if not isinstance(needs, GNUVerNeedSection) or not isinstance(dynamic, DynamicSection):
            # Without a C library of the system it runs on any Linux.
            return f"linux_{machine}"
        libraries = [getattr(tag, "needed") for tag in dynamic.iter_tags("DT_NEEDED")]
        names = [version.name for _, versions in needs.iter_versions() for version in versions]
        minors = [int(name.split(".")[1]) for name in names if re.match(r"GLIBC_2\.\d", name)]
        if not minors or not all(map(ON_EVERY_LINUX.fullmatch, libraries)):
            return f"linux_{machine}"
        return f"manylinux_2_{max(minors)}_{machine}"
