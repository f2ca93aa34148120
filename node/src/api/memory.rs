//! Memory of this process, as the operating system counts it.

use serde::Serialize;
use std::collections::BTreeMap;
use std::str::FromStr;

/// Memory of the process, compared with the memory that its method needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Memory {
    /// Resident bytes now.
    pub rss_bytes: Option<u64>,
    /// Peak of the resident bytes.
    pub peak_rss_bytes: Option<u64>,
    /// Parameters of the model.
    pub parameters: u64,
    /// Stores of the method, each in multiples of 4 bytes x parameters.
    pub multiples: BTreeMap<String, f64>,
    /// Resident bytes minus those of the stores. Negative if the stores are not yet resident.
    pub overhead_bytes: Option<i64>,
}

impl Memory {
    /// Measures this process now.
    pub fn measure(parameters: u64, multiples: &BTreeMap<String, f64>) -> Self {
        let mut memory = Self {
            parameters,
            multiples: multiples.clone(),
            ..Self::default()
        };
        // Once for both: the system counts every mapping for it.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        memory.rss_bytes = parse(&status, "VmRSS:");
        memory.peak_rss_bytes = parse(&status, "VmHWM:");
        memory.overhead_bytes = memory.rss_bytes.map(|rss| memory.overhead(rss));
        memory
    }

    /// rss - 4 x parameters x (sum of the multiples).
    fn overhead(&self, rss: u64) -> i64 {
        let needed = 4.0 * self.parameters as f64 * self.multiples.values().sum::<f64>();
        rss as i64 - needed as i64
    }
}

/// Peak resident bytes of another process, or `None` where the operating system does not say.
pub fn peak_rss_bytes_of(process: u32) -> Option<u64> {
    let path = format!("/proc/{process}/status");
    parse(&std::fs::read_to_string(path).ok()?, "VmHWM:")
}

fn parse(text: &str, key: &str) -> Option<u64> {
    Some(field::<u64>(text, key)? * 1024)
}

/// The number at the beginning of a line of `/proc/self/status` or a file like it.
pub(super) fn field<T: FromStr>(text: &str, key: &str) -> Option<T> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overhead_is_what_the_multiples_do_not_explain() {
        let multiples = BTreeMap::from([("anchor".to_owned(), 1.0), ("residual".to_owned(), 0.5)]);
        let memory = Memory {
            parameters: 1000,
            multiples,
            ..Memory::default()
        };
        assert_eq!(memory.overhead(10_000), 4_000);
    }

    #[test]
    fn the_kernels_line_is_read() {
        assert_eq!(
            parse("VmHWM:\t  12 kB\nVmRSS:\t   5 kB\n", "VmRSS:"),
            Some(5 * 1024)
        );
        assert_eq!(parse("VmRSS: x\n", "VmRSS:"), None);
    }
}
