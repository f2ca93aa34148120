//! Devices by the names of `--device`. The graphics back ends are cargo features; without a feature
//! its names are known but refused.

use burn::tensor::Device;
use murmurate_strategies::names::hint;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

const NAMES: [&str; 6] = ["flex", "cpu", "wgpu", "wgpu:N", "cuda", "cuda:N"];

/// A device by name.
///
/// ```
/// use murmurate_tasks::DeviceChoice;
/// assert_eq!("cpu".parse(), Ok(DeviceChoice::Flex));
/// assert_eq!("cuda:1".parse(), Ok(DeviceChoice::Cuda(1)));
/// assert!("cuba".parse::<DeviceChoice>().unwrap_err().to_string().contains("`cuda`"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceChoice {
    /// The processor, by burn's `flex` back end. `cpu` means the same.
    #[default]
    Flex,
    /// A graphics processor by Vulkan, Metal or DirectX: by its index among those that wgpu finds, or
    /// the one that wgpu prefers.
    Wgpu(Option<usize>),
    /// A CUDA device by its index.
    Cuda(usize),
}

/// Why a device is not available.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// No device has this name.
    #[error("there is no device `{name}`; {hint}")]
    Unknown { name: String, hint: String },
    /// The text after the colon is not an index, or the device takes none.
    #[error("device `{0}` has a bad index (write `cuda:0` or `wgpu:0`; the others take none)")]
    Index(String),
    /// This binary was built without the device.
    #[error("this binary was built without `{0}` (build it with `--features {0}`)")]
    NotBuilt(&'static str),
    /// No graphics processor, or none with this index.
    #[error("there is no device `{name}`: {found} (is the driver installed?)")]
    Missing { name: String, found: String },
}

impl FromStr for DeviceChoice {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let bad_index = || DeviceError::Index(text.to_owned());
        let (name, index) = match text.split_once(':') {
            Some((name, index)) => (name, Some(index)),
            None => (text, None),
        };
        match (name, index) {
            ("flex" | "cpu", None) => Ok(Self::Flex),
            ("wgpu", None) => Ok(Self::Wgpu(None)),
            ("wgpu", Some(index)) => {
                let index = index.parse().map_err(|_| bad_index())?;
                Ok(Self::Wgpu(Some(index)))
            }
            ("cuda", None) => Ok(Self::Cuda(0)),
            ("cuda", Some(index)) => index.parse().map(Self::Cuda).map_err(|_| bad_index()),
            ("flex" | "cpu", Some(_)) => Err(bad_index()),
            _ => Err(DeviceError::Unknown {
                name: text.to_owned(),
                hint: match name {
                    "gpu" => "a GPU is `cuda` or `wgpu`, and `wgpu:1` the second one".to_owned(),
                    _ => hint(text, &NAMES),
                },
            }),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flex => f.write_str("flex"),
            Self::Wgpu(None) => f.write_str("wgpu"),
            Self::Wgpu(Some(index)) => write!(f, "wgpu:{index}"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

impl DeviceChoice {
    /// True if parameters and gradients are accessed in place. Otherwise they cross a bus, and the
    /// trainer keeps them on the device where it can.
    pub const fn in_place(self) -> bool {
        matches!(self, Self::Flex)
    }

    /// The device of a rank of an island: the one behind this by the rank's number, where devices are
    /// numbered.
    #[must_use]
    pub const fn of_rank(self, rank: u32) -> Self {
        match self {
            Self::Wgpu(Some(index)) => Self::Wgpu(Some(index + rank as usize)),
            Self::Cuda(index) => Self::Cuda(index + rank as usize),
            other => other,
        }
    }

    /// burn's device.
    ///
    /// # Errors
    /// If this binary was built without the device, or there is none with this index.
    pub fn open(self) -> Result<Device, DeviceError> {
        match self {
            Self::Flex => Ok(Device::flex()),
            Self::Wgpu(index) => wgpu(index),
            Self::Cuda(index) => cuda(index),
        }
    }
}

/// Parameters from which on an inner step takes longer than the second for which freed pages usually stay.
const LARGE: usize = 10_000_000;

/// How long freed pages stay then.
const FREED_PAGES: Duration = Duration::from_secs(10);

/// Makes this thread one of those that compute operations of the processor. Call it once for a thread, and keep the
/// result for as long as that computes.
///
/// Otherwise it waits while other threads compute for it. They wake in its place, often two of them on one core,
/// and two cores are then as slow as one. Where no thread can be started, this one computes alone, and `say` gets a
/// line for the operator: training is as many times slower as there are cores.
pub fn compute_here(say: impl FnOnce(String)) -> impl Sized {
    let threads = rayon::ThreadPoolBuilder::new().use_current_thread();
    let threads = threads.build().map_err(|error| {
        say(format!(
            "no thread can be started to compute ({error}): one thread computes alone, so inner steps take \
             longer; allow this process more threads (`ulimit -u`, or the limit of its container)"
        ));
    });
    threads.ok()
}

/// Keeps pages for the next inner step of a large model, unless `MIMALLOC_PURGE_DELAY` says how long. A small one
/// has little use of it, and takes a tenth more memory.
pub fn keep_pages_for(parameters: usize) {
    if parameters >= LARGE && std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        murmurate_native::keep_freed_pages(FREED_PAGES);
    }
}

#[cfg(feature = "wgpu")]
fn wgpu(index: Option<usize>) -> Result<Device, DeviceError> {
    use burn::tensor::{DeviceKind, DeviceType};
    let all = Device::enumerate(DeviceType::Wgpu).into_vec();
    let found = match all.len() {
        0 => "wgpu finds no graphics processor".to_owned(),
        count => format!("wgpu finds {count}, counted from 0"),
    };
    let name = DeviceChoice::Wgpu(index).to_string();
    match index {
        None if !all.is_empty() => Ok(Device::wgpu(DeviceKind::DefaultDevice)),
        None => Err(DeviceError::Missing { name, found }),
        Some(index) => {
            let device = all.into_iter().nth(index);
            device.ok_or(DeviceError::Missing { name, found })
        }
    }
}

#[cfg(not(feature = "wgpu"))]
const fn wgpu(_: Option<usize>) -> Result<Device, DeviceError> {
    Err(DeviceError::NotBuilt("wgpu"))
}

#[cfg(feature = "cuda")]
fn cuda(index: usize) -> Result<Device, DeviceError> {
    Ok(Device::cuda(index))
}

#[cfg(not(feature = "cuda"))]
const fn cuda(_: usize) -> Result<Device, DeviceError> {
    Err(DeviceError::NotBuilt("cuda"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_shown() {
        for name in ["flex", "wgpu", "wgpu:1", "cuda:0", "cuda:7"] {
            assert_eq!(name.parse::<DeviceChoice>().unwrap().to_string(), name);
        }
        assert_eq!(
            "flex:1".parse::<DeviceChoice>(),
            Err(DeviceError::Index("flex:1".into()))
        );
        assert!("wgpu:x".parse::<DeviceChoice>().is_err());
        assert!("cuda:x".parse::<DeviceChoice>().is_err());
    }

    #[test]
    fn a_thread_that_computes_alone_is_told() {
        let told = std::cell::RefCell::new(Vec::new());
        let say = |line| told.borrow_mut().push(line);
        let _threads = compute_here(say);
        assert!(told.borrow().is_empty());
        // This thread has its others already, so it gets none again.
        let _none = compute_here(say);
        let line = told.borrow().concat();
        assert!(
            line.starts_with("no thread can be started to compute (") && line.contains("alone"),
            "{line}"
        );
    }

    #[test]
    fn ranks_have_the_devices_behind_the_first() {
        let of_rank_2 = |name: &str| name.parse::<DeviceChoice>().unwrap().of_rank(2).to_string();
        let names = ["flex", "wgpu", "wgpu:1", "cuda"].map(of_rank_2);
        assert_eq!(names, ["flex", "wgpu", "wgpu:3", "cuda:2"]);
    }

    #[test]
    #[cfg(not(feature = "wgpu"))]
    fn a_device_that_was_not_built_says_how_to_build_it() {
        let error = DeviceChoice::Wgpu(None).open().unwrap_err().to_string();
        assert!(error.contains("--features wgpu"), "{error}");
    }
}
