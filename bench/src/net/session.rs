//! A session: runs the transfers of all ways in turn and combines their results.

use crate::net::network::Network;
use crate::net::process::Process;
use crate::net::report::sum_up;
use crate::net::{BenchError, FarTask, Hello, NearTask, NetReport, Run, Task, Tuning, Way};
use crate::wrong;
use libp2p::PeerId;
use libp2p::identity::Keypair;
use murmurate_net::emulate::LinkSpec;
use murmurate_net::quic::{Endpoint, Kind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::timeout;

/// How long a far end on another machine may take to send its hello.
const HELLO_WAIT: Duration = Duration::from_secs(10);

const HELLO_BYTES: u64 = 4_096;

/// The measurements of a session.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Bytes of each transfer.
    pub bytes: u64,
    /// Time limit of a transfer, seconds. Bytes that arrived before it count.
    pub limit_s: u64,
    /// Number of transfers for each way.
    pub rounds: u32,
    /// The ways, in this order. Each round begins with another one.
    pub ways: Vec<Way>,
    /// Settings of our own endpoints.
    pub tuning: Tuning,
    /// The emulated link between the ends, if any.
    pub link: Option<LinkSpec>,
    /// Address of a far end on another machine, instead of one on this machine.
    pub join: Option<SocketAddr>,
}

impl Plan {
    /// The settings of the ends. Packets fit an emulated link, of which the system knows nothing.
    fn tuning(&self) -> Tuning {
        let fitting = self.link.map(|link| link.payload_max());
        Tuning {
            payload_max: self.tuning.payload_max.or(fitting),
            ..self.tuning.clone()
        }
    }

    /// A plan to transfer `bytes` by all ways on this machine: three rounds of at most 60 s each.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self {
            bytes,
            limit_s: 60,
            rounds: 3,
            ways: Way::ALL.to_vec(),
            tuning: Tuning::default(),
            link: None,
            join: None,
        }
    }

    fn check(&self) -> Result<(), BenchError> {
        if !(1..=1 << 40).contains(&self.bytes) {
            return wrong("bytes", "give 1 to 1 TB");
        }
        if !(1..=3_600).contains(&self.limit_s) {
            return wrong("limit", "give 1 to 3600 seconds");
        }
        if !(1..=1_000).contains(&self.rounds) {
            return wrong("rounds", "give 1 to 1000");
        }
        if self.ways.is_empty() {
            return wrong("ways", "give at least one");
        }
        if self.link.is_some() && self.join.is_some() {
            return wrong(
                "link",
                "a link is emulated on one machine; leave it or join out",
            );
        }
        Ok(())
    }
}

/// A far end, and the network to it.
pub struct Session<'a> {
    plan: &'a Plan,
    program: &'a dyn Fn(&str) -> Command,
    network: Option<Network>,
    hello: Hello,
    ip: IpAddr,
    _far: Option<Process>,
}

impl<'a> Session<'a> {
    /// Runs the measurements of a plan. `program` builds the command that starts this same program, so that it
    /// [`perform`](super::perform)s the [`Task`] whose JSON it receives. Calls `heard` after each transfer.
    ///
    /// # Errors
    /// If the plan is invalid, or an end cannot be started. A failed transfer is part of the
    /// report.
    pub async fn run(
        plan: &'a Plan,
        program: &'a dyn Fn(&str) -> Command,
        mut heard: impl FnMut(&Run),
    ) -> Result<NetReport, BenchError> {
        plan.check()?;
        let warning = socket_warning(&plan.tuning)?;
        let mut session = Self::start(plan, program).await?;
        let mut runs = Vec::new();
        for round in 0..plan.rounds {
            // Rotated, because the machine's state differs for the first way of a round.
            let mut ways = plan.ways.clone();
            ways.rotate_left(round as usize % plan.ways.len());
            for way in ways {
                let run = session.transfer(way, round).await?;
                heard(&run);
                runs.push(run);
            }
        }
        let drops = session.network.as_ref().map_or(0, Network::kernel_drops);
        let dropped = (drops > 0).then(|| {
            format!("the kernel dropped {drops} packets before the emulated link: this machine is too busy for it")
        });
        let config = plan.tuning.config()?;
        Ok(NetReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            bytes: plan.bytes,
            limit_s: plan.limit_s,
            rounds: plan.rounds,
            link: plan.link.map(|link| link.to_string()),
            joined: plan.join.map(|at| at.to_string()),
            congestion: plan.tuning.congestion()?.to_string(),
            cipher: if config.cipher.is_aes() {
                "aes-128-gcm"
            } else {
                "chacha20-poly1305"
            }
            .to_owned(),
            warnings: warning.into_iter().chain(dropped).collect(),
            ways: sum_up(&plan.ways, plan.bytes, &runs),
            runs,
        })
    }

    async fn start(
        plan: &'a Plan,
        program: &'a dyn Fn(&str) -> Command,
    ) -> Result<Self, BenchError> {
        let tuning = &plan.tuning();
        let mut network = plan.link.map(Network::start).transpose()?;
        let (far, hello, ip) = match (plan.join, network.as_mut()) {
            (Some(at), _) => (None, joined(at).await?, at.ip()),
            (None, Some(network)) => {
                let task = Task::Far(network.far_task(tuning));
                let (far, hello) = Process::far(&task, program).await?;
                let ip = network.publish(&hello)?;
                (Some(far), hello, ip)
            }
            (None, None) => {
                let ip = Ipv4Addr::LOCALHOST.into();
                let task = Task::Far(FarTask {
                    ip,
                    port: 0,
                    tuning: tuning.clone(),
                });
                let (far, hello) = Process::far(&task, program).await?;
                (Some(far), hello, ip)
            }
        };
        Ok(Self {
            plan,
            program,
            network,
            hello,
            ip,
            _far: far,
        })
    }

    async fn transfer(&mut self, way: Way, round: u32) -> Result<Run, BenchError> {
        let task = NearTask {
            way,
            to: SocketAddr::new(self.ip, self.hello.port(way)),
            peer: self.hello.peer.clone(),
            from: self.network.as_mut().map(Network::near_address),
            bytes: self.plan.bytes,
            limit_s: self.plan.limit_s,
            tuning: self.plan.tuning(),
        };
        let passed = || self.network.as_ref().map(Network::passed);
        let before = passed();
        let result = Process::near(task, self.program).await?;
        let link = passed().zip(before);
        let (figures, error) = match result {
            Ok(figures) => (Some(figures), None),
            Err(error) => (None, Some(error)),
        };
        Ok(Run {
            way,
            round,
            figures,
            error,
            link_offered_bytes: link.map(|(now, before)| now.offered - before.offered),
            link_dropped_bytes: link.map(|(now, before)| now.dropped - before.dropped),
        })
    }
}

/// The hello of a far end on another machine.
async fn joined(at: SocketAddr) -> Result<Hello, BenchError> {
    let failed = BenchError::failed("asking the far end where it listens");
    let asking = async {
        let stream = TcpStream::connect(at).await?;
        let mut line = String::new();
        BufReader::new(stream.take(HELLO_BYTES))
            .read_line(&mut line)
            .await?;
        std::io::Result::Ok(line)
    };
    let line = timeout(HELLO_WAIT, asking)
        .await
        .map_err(|e| failed(e.to_string()))?;
    let line = line.map_err(|e| failed(e.to_string()))?;
    serde_json::from_str(&line).map_err(|e| BenchError::Words {
        end: "far",
        reason: e.to_string(),
    })
}

/// A warning about this machine's socket buffers, if they are too small.
fn socket_warning(tuning: &Tuning) -> Result<Option<String>, BenchError> {
    let admit_all = Arc::new(|_: &PeerId, _: Kind| true);
    let (endpoint, _) = Endpoint::new(tuning.config()?, &Keypair::generate_ed25519(), admit_all)?;
    Ok(endpoint.buffers().cap().map(|cap| cap.to_string()))
}
