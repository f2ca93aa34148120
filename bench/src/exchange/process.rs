//! The process of one peer of a benchmark.

use crate::BenchError;
use murmurate_node::api::peak_rss_bytes_of;
use murmurate_node::config::{Config, Overrides};
use murmurate_node::progress::Line;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::PeerTimes;

/// How long a peer may take until it listens.
const LISTEN_WAIT: Duration = Duration::from_secs(30);

/// The process of one peer. Dropping it kills the process.
pub(crate) struct Process {
    rank: usize,
    lines: Lines<BufReader<ChildStdout>>,
    last: String,
    child: Child,
}

impl Process {
    /// Starts `murmurate bench peer` with this configuration, which is written beside `dir`, the
    /// peer's directory, and with more flags.
    ///
    /// # Errors
    /// If the configuration is wrong, or the process does not start.
    pub(crate) fn start(
        config: &str,
        dir: &Path,
        rank: usize,
        params: u64,
        flags: &[String],
    ) -> Result<Self, BenchError> {
        let failed = |reason: String| BenchError::Start { peer: rank, reason };
        let path = dir.with_extension("toml");
        // Checked here, so that an inconsistency is reported once and not by every peer.
        Config::from_text(&path, config, &Overrides::default())?;
        std::fs::write(&path, config).map_err(|e| failed(e.to_string()))?;
        let program = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
        let mut command = Command::new(program);
        command
            .args(["bench", "peer", "--config"])
            .arg(&path)
            .args(["--params", &params.to_string()])
            .args(["--rank", &rank.to_string()])
            .args(["--parent", &std::process::id().to_string()]);
        let mut child = command
            .args(flags)
            .env("RAYON_NUM_THREADS", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| failed(e.to_string()))?;
        let out = child
            .stdout
            .take()
            .ok_or_else(|| failed("no output".to_owned()))?;
        Ok(Self {
            rank,
            lines: BufReader::new(out).lines(),
            last: "none".to_owned(),
            child,
        })
    }

    async fn line(&mut self) -> Result<String, BenchError> {
        match self.lines.next_line().await {
            Ok(Some(line)) => {
                self.last.clone_from(&line);
                Ok(line)
            }
            _ => Err(BenchError::Silent {
                peer: self.rank,
                words: self.last.clone(),
            }),
        }
    }

    /// The address at which the peer listens, with its PeerId.
    ///
    /// # Errors
    /// If the process ends, or does not listen in time.
    pub(crate) async fn address(&mut self) -> Result<String, BenchError> {
        let listening = async {
            loop {
                let line = self.line().await?;
                if let Ok(Line::Listening { addresses, .. }) = serde_json::from_str(&line)
                    && let Some(address) = addresses.first()
                {
                    return Ok(address.clone());
                }
            }
        };
        let seconds = LISTEN_WAIT.as_secs();
        timeout(LISTEN_WAIT, listening)
            .await
            .map_err(|_| BenchError::Late { seconds })?
    }

    /// The results, once the peer has done its rounds.
    ///
    /// # Errors
    /// If the process ends without them.
    pub(crate) async fn figures(&mut self) -> Result<PeerTimes, BenchError> {
        loop {
            let line = self.line().await?;
            if let Ok(times) = serde_json::from_str(&line) {
                return Ok(times);
            }
        }
    }

    /// Reads what the process prints, so that it never waits for a reader, until it ends.
    ///
    /// # Errors
    /// Always: how the process ended.
    pub(crate) async fn ended(&mut self) -> BenchError {
        loop {
            if let Err(error) = self.line().await {
                return error;
            }
        }
    }

    /// Peak of its resident bytes, while it runs.
    pub(crate) fn peak_rss_bytes(&self) -> Option<u64> {
        self.child.id().and_then(peak_rss_bytes_of)
    }

    pub(crate) async fn kill(&mut self) {
        // It has ended already where this fails.
        let _ = self.child.kill().await;
    }
}
