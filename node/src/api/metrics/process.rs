//! The process as every Prometheus client describes it, under the usual names (`process_...`).

use super::page::Page;
use crate::api::Memory;
use crate::api::memory::field;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Facts of this process from the system. Those that it does not tell are left out.
#[derive(Clone, Copy, Debug, Default)]
struct Process {
    cpu_s: f64,
    threads: Option<f64>,
    virtual_bytes: Option<f64>,
    started_unix_s: Option<f64>,
    files: Option<f64>,
    files_max: Option<f64>,
}

impl Process {
    fn measure() -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        // Reading the directory opens one more.
        let files = std::fs::read_dir("/proc/self/fd").ok();
        let files = files.map(|all| all.count().saturating_sub(1) as f64);
        Self {
            cpu_s: cpu.tv_sec as f64 + cpu.tv_nsec as f64 * 1e-9,
            threads: field(&status, "Threads:"),
            virtual_bytes: field(&status, "VmSize:").map(|kib: f64| kib * 1024.0),
            started_unix_s: started_unix_s(),
            files,
            files_max: getrlimit(Resource::Nofile).current.map(|max| max as f64),
        }
    }
}

/// Adds the metrics, whose names get the prefix `process`.
pub(super) fn add(page: &mut Page, memory: &Memory) {
    let process = Process::measure();
    page.seconds("cpu_seconds", process.cpu_s);
    let rss = memory.rss_bytes.map(|bytes| bytes as f64);
    page.measure("resident_memory_bytes", rss);
    page.measure("virtual_memory_bytes", process.virtual_bytes);
    page.measure("start_time_seconds", process.started_unix_s);
    page.measure("open_fds", process.files);
    page.measure("max_fds", process.files_max);
    page.measure("threads", process.threads);
}

/// When the process started: field 22 of `/proc/self/stat`, in ticks since the machine did.
fn started_unix_s() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in parentheses, which may contain anything.
    let (_, after_name) = stat.rsplit_once(')')?;
    let ticks: f64 = after_name.split_whitespace().nth(19)?.parse().ok()?;
    let machine = std::fs::read_to_string("/proc/stat").ok()?;
    let boot: f64 = field(&machine, "btime ")?;
    Some(boot + ticks / rustix::param::clock_ticks_per_second() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{SystemTime, UNIX_EPOCH};

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_described() {
        let process = Process::measure();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let age = now.as_secs_f64() - process.started_unix_s.unwrap();
        // The kernel's start of the machine is a whole second, and tests end within hours.
        assert!((-2.0..86_400.0).contains(&age), "{age} s");
        assert!(
            process.cpu_s > 0.0 && process.threads.unwrap() >= 1.0,
            "{process:?}"
        );
        assert!(
            process.files.unwrap() < process.files_max.unwrap(),
            "{process:?}"
        );
        assert!(process.virtual_bytes.unwrap() > 1e6, "{process:?}");
    }
}
