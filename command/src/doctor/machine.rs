//! The machine: its processor, and what its kernel allows.

use super::finding::{Code, Finding};
use libp2p::identity::Keypair;
use murmurate_net::quic::{Config, Endpoint, Kind};
use rustix::process::{Resource, getrlimit};
use std::sync::Arc;

/// Open files that suffice for a daemon with many peers.
const FILES_MIN: u64 = 1024;

pub(super) fn machine() -> Vec<Finding> {
    let files = getrlimit(Resource::Nofile).current;
    vec![
        processor(&missing_instructions()),
        files_of(files),
        buffers(),
    ]
}

/// Vector instructions that the arithmetic is fast with and this processor lacks.
fn missing_instructions() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        let has = [
            ("AVX2", std::arch::is_x86_feature_detected!("avx2")),
            ("FMA", std::arch::is_x86_feature_detected!("fma")),
        ];
        has.iter()
            .filter(|(_, has)| !has)
            .map(|(name, _)| *name)
            .collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

fn processor(missing: &[&str]) -> Finding {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    let arch = std::env::consts::ARCH;
    if missing.is_empty() {
        return Finding::ok("processor", format!("{arch}, {threads} threads"));
    }
    let text = format!("the processor lacks {}", missing.join(" and "));
    Finding::warning("processor", Code::Processor, text)
        .because("it is old, or a virtual machine hides what it can")
        .fix("give the virtual machine the host's processor (QEMU: -cpu host), or train on a GPU")
}

fn files_of(limit: Option<u64>) -> Finding {
    match limit.filter(|limit| *limit < FILES_MIN) {
        None => Finding::ok("open files", "enough are allowed"),
        Some(limit) => Finding::warning(
            "open files",
            Code::Files,
            format!("a process may open {limit} files, {FILES_MIN} are advised"),
        )
        .fix(format!(
            "ulimit -n {FILES_MIN} in the shell, or LimitNOFILE={FILES_MIN} in the systemd unit"
        )),
    }
}

/// Checks that the kernel gives sockets the buffers that fast links need.
fn buffers() -> Finding {
    let anybody = |_: &libp2p::PeerId, _: Kind| true;
    let made = Endpoint::new(
        Config::default(),
        &Keypair::generate_ed25519(),
        Arc::new(anybody),
    );
    let cap = made.map(|(endpoint, _)| endpoint.buffers().cap());
    match cap {
        Ok(None) => Finding::ok("buffers", "UDP sockets get the buffers that they ask for"),
        Ok(Some(cap)) => {
            let text = format!(
                "UDP sockets get {} of {} kB",
                cap.0.receive.min(cap.0.send) / 1000,
                cap.0.asked / 1000
            );
            Finding::warning("buffers", Code::Buffers, text)
                .because("the kernel's limit is low: fast links will lose packets")
                .fix(format!("run as root: {}", cap.remedy()))
        }
        Err(error) => Finding::warning("buffers", Code::Buffers, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::State;

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(processor(&[]).state, State::Ok);
        let old = processor(&["AVX2", "FMA"]);
        assert_eq!(old.text, "the processor lacks AVX2 and FMA");
        assert_eq!(old.code.as_deref(), Some("M007"));
        assert_eq!(files_of(None).state, State::Ok);
        assert_eq!(files_of(Some(FILES_MIN)).state, State::Ok);
        let few = files_of(Some(200));
        assert_eq!(few.code.as_deref(), Some("M015"));
        assert!(few.fix.unwrap().starts_with("ulimit -n 1024 "));
    }
}
