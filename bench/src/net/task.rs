//! The tasks of the ends, and the hello of the far end.

use crate::net::{BenchError, Way};
use crate::wrong;
use murmurate_net::congestion::{Congestion, MaxRate};
use murmurate_net::quic::{Cipher, Config};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// Settings of our own endpoint that differ from its defaults. `None` keeps a default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tuning {
    /// `bbr3` or `cubic`; the default is that of [`Congestion`].
    pub congestion: Option<String>,
    /// `auto`, `aes` or `chacha`. quinn uses the same.
    pub cipher: Option<String>,
    /// [`Config::ack_every`].
    pub ack_every: Option<u32>,
    /// [`Config::payload_max`].
    pub payload_max: Option<u16>,
    /// The window of a stream in MiB. A connection has twice that.
    pub window_mib: Option<u64>,
    /// Number of connections that a transfer over [`Way::Bulk`] is spread over; the default is one.
    pub connections: Option<u32>,
    /// Number of streams on each of these connections; the default is one.
    pub streams: Option<u32>,
}

/// The most connections of a transfer, and streams of each, that the far end accepts for one way.
pub const SPREAD_MAX: u32 = 7;

impl Tuning {
    /// Number of connections of a transfer over [`Way::Bulk`], and of streams on each.
    ///
    /// # Errors
    /// [`BenchError::Flag`] above [`SPREAD_MAX`].
    pub fn spread(&self) -> Result<(u32, u32), BenchError> {
        let check = |setting, count: Option<u32>| match count.unwrap_or(1) {
            count @ 1..=SPREAD_MAX => Ok(count),
            other => wrong(
                setting,
                format!("{other} is not between 1 and {SPREAD_MAX}"),
            ),
        };
        Ok((
            check("connections", self.connections)?,
            check("streams", self.streams)?,
        ))
    }

    /// The settings of the endpoint.
    ///
    /// # Errors
    /// [`BenchError::Flag`] for an unknown name.
    pub fn config(&self) -> Result<Config, BenchError> {
        let congestion = self.congestion()?;
        let mut config = Config {
            congestion: congestion.factory(&MaxRate::default()),
            cipher: match self.cipher.as_deref() {
                None | Some("auto") => Cipher::Auto,
                Some("aes") => Cipher::Aes128,
                Some("chacha") => Cipher::ChaCha20,
                Some(other) => {
                    let message = format!("{other:?} is not a cipher; give auto, aes or chacha");
                    return wrong("cipher", message);
                }
            },
            ..Config::default()
        };
        self.spread()?;
        // The far end does not know the number of connections in advance.
        config.limits.bulk_per_peer = config.limits.bulk_per_peer.max(SPREAD_MAX as usize);
        config.ack_every = self.ack_every.unwrap_or(config.ack_every);
        config.payload_max = self.payload_max.unwrap_or(config.payload_max);
        if let Some(mib) = self.window_mib {
            let window = mib.saturating_mul(1 << 20);
            let windows = &mut config.windows;
            (windows.stream, windows.bulk) = (window, window.saturating_mul(2));
            (windows.send, windows.control) = (window, window.saturating_mul(2));
        }
        Ok(config)
    }

    /// The congestion control.
    ///
    /// # Errors
    /// [`BenchError::Flag`] for an unknown name.
    pub fn congestion(&self) -> Result<Congestion, BenchError> {
        let word = self.congestion.as_deref();
        match word.map(Congestion::from_str).transpose() {
            Ok(parsed) => Ok(parsed.unwrap_or_default()),
            Err(error) => wrong("congestion", error.to_string()),
        }
    }
}

/// The task of an end's process; see [`perform`](super::perform).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Performs one transfer and prints its [`Figures`](super::Figures), or the error.
    Near(NearTask),
    /// Listens, prints the [`Hello`], and serves until the parent process is gone.
    Far(FarTask),
}

/// One transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NearTask {
    /// The way.
    pub way: Way,
    /// The far end's address for this way.
    pub to: SocketAddr,
    /// The far end's peer id.
    pub peer: String,
    /// The address to bind; `None` lets the system choose.
    pub from: Option<SocketAddr>,
    /// Number of bytes.
    pub bytes: u64,
    /// Seconds after which the far end stops reading.
    pub limit_s: u64,
    /// Settings of our own endpoint.
    pub tuning: Tuning,
}

/// The task of a far end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FarTask {
    /// The address for all ways.
    pub ip: IpAddr,
    /// The first of [`FarTask::PORTS`] consecutive ports, each for UDP and TCP; 0 lets the system choose.
    pub port: u16,
    /// Settings of our own endpoint.
    pub tuning: Tuning,
}

impl FarTask {
    /// Number of consecutive ports of a far end.
    pub const PORTS: u16 = 3;

    /// The one among them that accepts TLS over TCP.
    pub(super) const TLS: u16 = 2;

    /// The address of one of these ports.
    pub(super) fn at(&self, index: u16) -> SocketAddr {
        let port = match self.port {
            0 => 0,
            first => first.saturating_add(index),
        };
        SocketAddr::new(self.ip, port)
    }
}

/// The message of a far end that listens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The program's version.
    pub version: String,
    /// Its peer id, for the ways that use one.
    pub peer: String,
    /// UDP port of bulk and control connections.
    pub ours: u16,
    /// UDP port of bare quinn.
    pub quinn: u16,
    /// TCP port of Noise and Yamux.
    pub tcp_noise: u16,
    /// TCP port of plain TCP.
    pub tcp: u16,
}

impl Hello {
    /// The port of a way.
    #[must_use]
    pub fn port(&self, way: Way) -> u16 {
        match way {
            Way::Quinn => self.quinn,
            // TLS begins with a bulk connection, on which the far end offers its port.
            Way::Bulk | Way::Tls | Way::Control => self.ours,
            Way::TcpNoise => self.tcp_noise,
            Way::Tcp => self.tcp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_names_nothing_is_refused_by_its_setting() {
        let wrong = |tuning: Tuning| tuning.config().map(drop).unwrap_err().to_string();
        let congestion = wrong(Tuning {
            congestion: Some("reno".into()),
            ..Tuning::default()
        });
        assert!(
            congestion.starts_with("congestion: ") && congestion.contains("bbr3"),
            "{congestion}"
        );
        let streams = wrong(Tuning {
            streams: Some(8),
            ..Tuning::default()
        });
        assert_eq!(streams, "streams: 8 is not between 1 and 7");
        let cipher = wrong(Tuning {
            cipher: Some("rot13".into()),
            ..Tuning::default()
        });
        assert!(
            cipher.starts_with("cipher: ") && cipher.contains("chacha"),
            "{cipher}"
        );
    }

    #[test]
    fn ports_follow_one_another_or_are_the_systems() {
        let mut task = FarTask {
            ip: [127, 0, 0, 1].into(),
            port: 4_100,
            tuning: Tuning::default(),
        };
        assert_eq!(task.at(FarTask::PORTS - 1).port(), 4_102);
        task.port = 0;
        assert_eq!(task.at(2).port(), 0);
    }
}
