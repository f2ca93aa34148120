//! A daemon whose only way out is a proxy: tinyproxy between two network namespaces, which forwards no packets. The
//! test needs Linux with `ip`, `unshare` and `nsenter`, and tinyproxy. Without one of them it says so and ends, unless
//! [`REQUIRED`] is set, as `cargo xtask proxy` does.

use murmurate_tests::{Daemon, Settings, Turn, program, quiet_turn, wait_until};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// The variable with which the test fails where it cannot run.
const REQUIRED: &str = "MURMURATE_PROXY_TEST";

/// The side of the daemon behind the proxy, and that of the other one. Each has the proxy at 1 and a daemon at 2.
const SIDES: [&str; 2] = ["10.9.1", "10.9.2"];

const PROXY_PORT: u16 = 3128;
const DAEMON_PORT: u16 = 4001;

/// A process that holds a network namespace until it is dropped.
struct Space {
    holder: Child,
    _out: BufReader<ChildStdout>,
}

impl Space {
    /// A namespace without any link, beside `beside` or by itself.
    fn new(beside: Option<&Self>) -> Result<Self, String> {
        let mut command = match beside {
            Some(other) => other.enter("--user", "unshare"),
            None => Command::new("unshare"),
        };
        if beside.is_none() && !is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command.args([
            "--net",
            "sh",
            "-c",
            "ip link set lo up && echo up && exec cat",
        ]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = command
            .spawn()
            .map_err(|error| format!("unshare: {error}"))?;
        let mut out = BufReader::new(holder.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let space = Self { holder, _out: out };
        match line.trim() {
            "up" => Ok(space),
            _ => Err("unshare cannot make a network namespace with `lo` in it".to_owned()),
        }
    }

    /// A program in this namespace; `--net` for the network, `--user` for that which owns it alone.
    fn enter(&self, which: &str, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        let target = format!("--target={}", self.holder.id());
        match (is_root(), which) {
            (true, "--user") => return Command::new(program),
            (true, _) => command.args([&target, which]),
            (false, _) => command.args([&target, "--user", "--preserve-credentials", which]),
        };
        command.arg("--").arg(program);
        command
    }

    fn command(&self, program: &str) -> Command {
        self.enter("--net", program)
    }

    /// Runs `ip` with these words.
    fn ip(&self, words: &str) -> bool {
        let mut command = self.command("ip");
        let command = command.args(words.split(' ')).stderr(Stdio::null());
        command.stdout(Stdio::null()).status().unwrap().success()
    }

    /// Joins this namespace, at address 1, with another one, at address 2.
    fn link(&self, side: &str, name: &str, other: &Self) {
        let pid = other.holder.id();
        assert!(self.ip(&format!(
            "link add {name} type veth peer name out netns {pid}"
        )));
        for (space, device, place) in [(self, name, 1), (other, "out", 2)] {
            assert!(space.ip(&format!("address add {side}.{place}/24 dev {device}")));
            assert!(space.ip(&format!("link set {device} up")));
        }
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // It has ended if its namespace could not be made.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A namespace for the proxy, one for a daemon that reaches the proxy alone, and one for the other daemon.
fn spaces() -> Result<[Space; 3], String> {
    for (tool, flag) in [("tinyproxy", "-v"), ("ip", "-V"), ("nsenter", "-V")] {
        let mut command = Command::new(tool);
        let tried = command.arg(flag).stdout(Stdio::null()).status();
        tried.map_err(|error| format!("{tool}: {error}"))?;
    }
    let middle = Space::new(None)?;
    let (inner, outer) = (Space::new(Some(&middle))?, Space::new(Some(&middle))?);
    middle.link(SIDES[0], "inner", &inner);
    middle.link(SIDES[1], "outer", &outer);
    Ok([inner, middle, outer])
}

/// Ends tinyproxy.
struct Proxy(Child);

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts tinyproxy, and waits until it listens.
fn proxy(space: &Space, dir: &Path, log: &Path) -> Proxy {
    let config = dir.join("tinyproxy.conf");
    let text = format!(
        "Port {PROXY_PORT}\nListen {}.1\nTimeout 600\nMaxClients 50\nLogLevel Info\nLogFile {log:?}\n",
        SIDES[0]
    );
    std::fs::write(&config, text).unwrap();
    let mut command = space.command("tinyproxy");
    let command = command.arg("-d").arg("-c").arg(config);
    let started = Proxy(command.stdout(Stdio::null()).spawn().unwrap());
    wait_until("tinyproxy", Duration::from_secs(30), || {
        let said = std::fs::read_to_string(log).unwrap_or_default();
        said.contains("Accepting connections").then_some(())
    });
    started
}

/// Starts a daemon in a namespace, with these lines in `[network]`.
fn daemon(turn: &Turn, space: &Space, dir: &Path, index: u32, network: &str) -> Daemon {
    let settings = Settings {
        rounds: 6,
        start_with: 2,
        inner_steps: Some(5),
        ports: [DAEMON_PORT, DAEMON_PORT],
        index,
        ..Settings::default()
    };
    let home = dir.join(format!("node-{index}"));
    let here = format!("{}.2", SIDES[index as usize]);
    let text = settings.toml(&home).replace("127.0.0.1", &here);
    let text = text.replace("[network]\n", &format!("[network]\n{network}\n"));
    let path = home.with_extension("toml");
    std::fs::write(&path, text).unwrap();
    let mut command = space.command(program().to_str().unwrap());
    command.arg("run").arg("--config").arg(path);
    Daemon::spawn(turn, command)
}

#[test]
fn a_daemon_without_another_way_out_joins_and_trains_through_tinyproxy() {
    let [inner, middle, outer] = match spaces() {
        Ok(spaces) => spaces,
        Err(reason) => {
            assert!(std::env::var_os(REQUIRED).is_none(), "{reason}");
            eprintln!(
                "skipped: {reason}; `cargo xtask proxy` installs tinyproxy, and fails without it"
            );
            return;
        }
    };
    let turn = quiet_turn();
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("tinyproxy.log");
    let _proxy = proxy(&middle, dir.path(), &log);
    let address = format!("{}.2", SIDES[1]);
    assert!(middle.ip(&format!("route get {address}")));
    assert!(
        !inner.ip(&format!("route get {address}")),
        "there is another way out"
    );
    let mut second = daemon(&turn, &outer, dir.path(), 1, "relay = true");
    let (_, listens, _) = second.listening();
    let id = listens.rsplit('/').next().unwrap();
    let network = format!(
        "join = [\"/ip4/{address}/tcp/{DAEMON_PORT}/p2p/{id}\"]\nproxy = \"http://{}.1:{PROXY_PORT}\"",
        SIDES[0]
    );
    let first = daemon(&turn, &inner, dir.path(), 0, &network);
    let (first, second) = (first.end(), second.end());
    let (a, b) = (first.polite(), second.polite());
    assert_eq!((a.rounds, b.rounds), (6, 6), "{a:?} {b:?}");
    assert_eq!(a.digest, b.digest);
    let said = std::fs::read_to_string(&log).unwrap();
    let asked = format!("CONNECT {address}:{DAEMON_PORT}");
    assert!(said.contains(&asked), "{said}");
    // Slices of both went through it: there is no other way.
    assert!(
        a.bytes_sent.encoded > 0 && a.bytes_received.encoded > 0,
        "{a:?}"
    );
}
