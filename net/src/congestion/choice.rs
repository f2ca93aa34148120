//! [`Congestion`]: the controller that a configuration chooses.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use quinn::congestion::{ControllerFactory, CubicConfig};

use super::bbr3::Bbr3Config;
use super::max_rate::{Limited, MaxRate};

/// The congestion controller, which decides how fast data is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Congestion {
    /// [`Bbr3`](super::Bbr3), which models the path. For links that are long or lose packets.
    #[default]
    Bbr3,
    /// CUBIC (RFC 9438), which treats every loss as congestion. Common on the Internet.
    Cubic,
}

/// A word that names no controller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown congestion control {word:?}: use \"bbr3\" or \"cubic\"")]
pub struct UnknownCongestion {
    /// The word.
    pub word: String,
}

impl Congestion {
    /// All controllers, the default first.
    pub const ALL: [Self; 2] = [Self::Bbr3, Self::Cubic];

    /// The controller's name in the configuration.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bbr3 => "bbr3",
            Self::Cubic => "cubic",
        }
    }

    /// The factory for quinn's transport configuration. All its controllers obey `limit`.
    #[must_use]
    pub fn factory(self, limit: &MaxRate) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self {
            Self::Bbr3 => Arc::new(Limited::new(Arc::new(Bbr3Config::default()), limit.clone())),
            Self::Cubic => Arc::new(Limited::new(
                Arc::new(CubicConfig::default()),
                limit.clone(),
            )),
        }
    }
}

impl fmt::Display for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Congestion {
    type Err = UnknownCongestion;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|choice| choice.word() == word)
            .ok_or_else(|| UnknownCongestion { word: word.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_their_controllers() {
        for choice in Congestion::ALL {
            assert_eq!(choice.word().parse(), Ok(choice));
        }
        let error = "reno".parse::<Congestion>().expect_err("no such word");
        assert!(error.to_string().contains("\"reno\""), "{error}");
        assert!(error.to_string().contains("bbr3"), "{error}");
    }
}
