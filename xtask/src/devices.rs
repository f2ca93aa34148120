//! The tests of graphics devices on Mesa's lavapipe, a Vulkan driver that computes on the processor.

use crate::command::{run, succeeds};
use crate::failure::Failure;
use std::path::Path;

/// Where Vulkan drivers are announced.
const DRIVERS: [&str; 2] = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"];

/// The packages of Debian and Ubuntu with the driver and its loader.
const PACKAGES: [&str; 2] = ["mesa-vulkan-drivers", "libvulkan1"];

pub(crate) fn check() -> Result<(), Failure> {
    if !driver() {
        install();
    }
    if !driver() {
        println!("skipped: there is no Vulkan driver, and apt cannot install one; checking only");
        return run("cargo", &["check", "-p", "murmurate", "--features", "wgpu"]);
    }
    let build = ["test", "-p", "murmurate", "--features", "wgpu"];
    run("cargo", &[&build[..], &["--test", "devices"]].concat())
}

fn driver() -> bool {
    let holds_one = |dir: &&str| {
        let entries = Path::new(dir).read_dir();
        entries.is_ok_and(|mut entries| entries.next().is_some())
    };
    DRIVERS.iter().any(holds_one)
}

fn install() {
    let install = ["install", "--yes", "--quiet", "--no-install-recommends"];
    let install = [&install[..], &PACKAGES].concat();
    let ready = succeeds("apt-get", &install) || {
        succeeds("apt-get", &["update"]) && succeeds("apt-get", &install)
    };
    if !ready {
        println!("apt-get could not install {}", PACKAGES.join(" and "));
    }
}
