//! Faults of a daemon and its machine, each provoked, with the code and the advice that it must get.

use crate::common::assert_has;
use crate::common::murmurate;
use murmurate_node::store::DirectoryLock;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

/// What doctor finds, and its exit code.
fn doctor(dir: &Path, args: &[&str]) -> (Value, i32) {
    let output = murmurate(dir, &[&["doctor", "--json"], args].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}{stderr}"));
    (report, output.status.code().unwrap())
}

/// The finding with this code.
fn finding(report: &Value, code: &str) -> Value {
    let all = report["findings"].as_array().unwrap();
    let found = all.iter().find(|finding| finding["code"] == code);
    found
        .unwrap_or_else(|| panic!("no {code}: {report:#}"))
        .clone()
}

/// Doctor must find this code, as a failure, with this text and advice.
fn fails(dir: &Path, args: &[&str], (code, text, fix): (&str, &str, &str)) {
    let (report, exit) = doctor(dir, args);
    let found = finding(&report, code);
    assert_eq!((&found["state"], exit), (&"failed".into(), 1), "{found:#}");
    assert_eq!(found["text"], text, "{code}");
    assert_eq!(found["fix"], fix, "{code}");
}

/// Writes a configuration, and returns the arguments that name it.
fn config(dir: &Path, text: &str) -> [&'static str; 2] {
    std::fs::write(dir.join("node.toml"), text).unwrap();
    ["--config", "node.toml"]
}

#[test]
fn a_daemon_that_lacks_nothing_gets_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let (report, exit) = doctor(dir.path(), &[]);
    assert_eq!(
        (report["failed"].as_u64(), exit),
        (Some(0), 0),
        "{report:#}"
    );
    let checks: Vec<&str> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["check"].as_str().unwrap())
        .collect();
    for check in [
        "configuration",
        "version",
        "processor",
        "open files",
        "buffers",
        "directory",
        "clock",
        "membership",
        "data",
        "memory",
        "disk",
        "ports",
        "page",
    ] {
        assert!(checks.contains(&check), "{check}: {checks:?}");
    }
    // It has looked and made nothing.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let text = String::from_utf8(murmurate(dir.path(), &["doctor"]).stdout).unwrap();
    assert_has(
        &text,
        "ok       configuration the default configuration is valid",
    );
}

#[test]
fn wrong_settings_data_and_devices_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("t.txt"), "a bird\n".repeat(9999)).unwrap();
    let lists = "correct this place; docs/configuration.md lists all keys, and `murmurate init` writes \
                 a file with them";
    let cases = [
        (
            "[run]\nrouns = 3\n",
            (
                "M001",
                "node.toml:2: unknown key `rouns`; did you mean `rounds`? There are: name, seed, rounds, start_with, \
                 start_wait_s, init, open, key",
                lists,
            ),
        ),
        (
            "[network]\njoin = [\"/ip4/10.0.0.1/udp/4001\"]\n",
            (
                "M001",
                "node.toml:2: `/ip4/10.0.0.1/udp/4001` lacks /quic-v1 after the port; write \
                 /ip4/10.0.0.1/udp/4001/quic-v1",
                lists,
            ),
        ),
        (
            "[task]\nkind = \"language-model\"\ndata = \"t.txt\"\n[shards]\nkind = \"iid\"\nindex = 0\nof = 1024\n",
            (
                "M009",
                "shard 0 of 1024 has 64 samples, 129 are needed (use fewer shards)",
                "set `shards.index` and `shards.of` so that each daemon has enough samples, or use \
                 shards.kind = \"dealt\"",
            ),
        ),
        (
            "[daemon]\ndevice = \"cuda:0\"\n",
            (
                "M010",
                "this binary was built without `cuda` (build it with `--features cuda`)",
                "set `daemon.device` (--device) to a device that this machine and program have, such \
                 as \"flex\"",
            ),
        ),
    ];
    for (text, expected) in cases {
        fails(dir, &config(dir, text), expected);
    }
}

#[test]
fn missing_files_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (report, exit) = doctor(
        dir,
        &config(
            dir,
            "[task]\nkind = \"image-classifier\"\ndata = \"no/such/data\"\n",
        ),
    );
    let found = finding(&report, "M008");
    assert_eq!((&found["state"], exit), (&"failed".into(), 1));
    assert!(
        found["text"].as_str().unwrap().contains("no/such/data"),
        "{found}"
    );
    assert!(
        found["fix"]
            .as_str()
            .unwrap()
            .starts_with("set `task.data` (--data)"),
        "{found}"
    );
    fails(
        dir,
        &["--config", "none.toml"],
        (
            "M001",
            "none.toml: No such file or directory (os error 2); `murmurate init --to none.toml` writes one",
            "murmurate init --to none.toml",
        ),
    );
}

#[test]
fn a_model_that_fits_nowhere_is_found() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.txt"), "a bird\n".repeat(9999)).unwrap();
    let huge = "[task]\nkind = \"language-model\"\ndata = \"t.txt\"\nlayers = 256\nwidth = 16384\n\
                heads = 64\n";
    let (report, exit) = doctor(dir.path(), &config(dir.path(), huge));
    assert_eq!(exit, 1);
    for (code, fix) in [
        ("M005", "free space, or set `daemon.dir`"),
        ("M006", "choose a smaller model"),
    ] {
        let found = finding(&report, code);
        assert!(found["fix"].as_str().unwrap().starts_with(fix), "{found}");
    }
}

#[test]
fn taken_ports_and_public_pages_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let [of_udp, of_tcp] = [udp.local_addr(), tcp.local_addr()].map(|at| at.unwrap().port());
    let listen = format!("[network]\nlisten = [\"/ip4/127.0.0.1/udp/{of_udp}/quic-v1\"]\n");
    fails(
        dir,
        &config(dir, &listen),
        (
            "M011",
            &format!("/ip4/127.0.0.1/udp/{of_udp}/quic-v1 cannot be listened on"),
            &format!(
                "stop it (`ss -ulnp 'sport = :{of_udp}'` names it), or set another port in \
             `network.listen` (--listen)"
            ),
        ),
    );
    let http = format!("[daemon]\nhttp = \"127.0.0.1:{of_tcp}\"\n");
    fails(
        dir,
        &config(dir, &http),
        (
            "M012",
            &format!("the pages cannot be served on 127.0.0.1:{of_tcp}"),
            &format!(
                "stop what has the port (`ss -tlnp 'sport = :{of_tcp}'` names it), or set another one in \
             `daemon.http` (--http); port 0 takes any free one"
            ),
        ),
    );
    let public = "[daemon]\nhttp = \"0.0.0.0:0\"\nhttp_public = true\n";
    let (report, exit) = doctor(dir, &config(dir, public));
    assert_eq!(
        (&finding(&report, "M013")["state"], exit),
        (&"warning".into(), 0)
    );
}

#[test]
fn directories_secrets_and_clocks_are_checked() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("file"), "").unwrap();
    fails(
        dir,
        &["file/state"],
        (
            "M003",
            "file/state cannot be used",
            "make it writable for the user that runs the daemon, or set `daemon.dir` (--dir)",
        ),
    );
    assert!(murmurate(dir, &["id", "a"]).status.success());
    let key = dir.join("a/identity.key");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    fails(
        dir,
        &["a"],
        (
            "M004",
            "other users of this machine can read a/identity.key",
            "chmod 600 a/identity.key",
        ),
    );
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    let later = SystemTime::now() + Duration::from_secs(3600);
    let log = std::fs::File::create(dir.join("a/events.jsonl")).unwrap();
    log.set_modified(later).unwrap();
    let (report, exit) = doctor(dir, &["a"]);
    let found = finding(&report, "M030");
    assert_eq!((&found["state"], exit), (&"warning".into(), 0));
    assert_eq!(
        found["fix"],
        "set the clock by NTP: timedatectl set-ntp true"
    );
}

#[test]
fn a_checkpoint_is_read_as_the_start_reads_it() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("a");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("checkpoint.json"), "{\"version\": 1").unwrap();
    let (report, exit) = doctor(dir.path(), &["a"]);
    let text = |code| finding(&report, code)["text"].to_string();
    assert!(text("M043").contains("a/checkpoint.json is damaged"));
    assert!(text("M034").contains("neither membership.toml nor run.key"));
    assert_eq!(exit, 1);
    let key = murmurate(dir.path(), &["run-key", "birds", "--to", "a/run.key"]);
    assert!(key.status.success());
    let (report, _) = doctor(dir.path(), &["a"]);
    finding(&report, "M043");
    let all = report["findings"].as_array().unwrap();
    assert!(all.iter().all(|found| found["code"] != "M034"));
}

#[test]
fn a_low_limit_of_open_files_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 200; exec \"$@\"", "sh"])
        .args([env!("CARGO_BIN_EXE_murmurate"), "doctor", "--json"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = finding(&report, "M015");
    assert_eq!(
        found["text"],
        "a process may open 200 files, 1024 are advised"
    );
    let fix = "ulimit -n 1024 in the shell, or LimitNOFILE=1024 in the systemd unit";
    assert_eq!(found["fix"], fix);
}

/// Answers every request as a daemon of an old version would.
fn old_daemon(listener: TcpListener) {
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut head = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        while head.read_line(&mut line).is_ok_and(|read| read > 2) {
            line.clear();
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n{\"version\":\"0.0.1\"}");
    }
}

#[test]
fn a_running_daemon_of_another_version_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("a");
    std::fs::create_dir(&home).unwrap();
    let _lock = DirectoryLock::acquire(&home).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    std::fs::write(
        home.join("http.addr"),
        listener.local_addr().unwrap().to_string(),
    )
    .unwrap();
    std::thread::spawn(|| old_daemon(listener));
    let (report, exit) = doctor(dir.path(), &["a"]);
    let found = finding(&report, "M002");
    assert_eq!(
        (&found["state"], exit),
        (&"warning".into(), 0),
        "{report:#}"
    );
    assert!(
        found["text"]
            .as_str()
            .unwrap()
            .contains("is murmurate 0.0.1, this is "),
        "{found}"
    );
}

#[test]
fn memberships_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let join = ["--join", "/ip4/127.0.0.1/tcp/9"];
    fails(
        dir,
        &join,
        (
            "M034",
            "this daemon has addresses to join and nothing that lets it in",
            "run `murmurate invite DIR` on a machine of the run and start with --invite FILE here; or \
         start all daemons of the run with --open",
        ),
    );
    fails(
        dir,
        &["--invite", "murmurate-invite-1.hello"],
        (
            "M033",
            "the invite is damaged: copy the whole line once more",
            "ask a member for a new line: murmurate invite DIR",
        ),
    );
    assert!(murmurate(dir, &["run-key", "birds"]).status.success());
    let ended = murmurate(
        dir,
        &["invite", "a", "--key", "birds.key", "--expires", "1s"],
    )
    .stdout;
    let ended = String::from_utf8(ended).unwrap();
    // It is good for a second, and the next one is not far.
    let since = SystemTime::now();
    let found = loop {
        let (report, _) = doctor(dir, &["--invite", ended.trim()]);
        let all = report["findings"].as_array().unwrap().clone();
        if let Some(found) = all.into_iter().find(|finding| finding["code"] == "M033") {
            break found;
        }
        assert!(
            since.elapsed().unwrap() < Duration::from_secs(60),
            "{report:#}"
        );
    };
    assert!(
        found["text"].as_str().unwrap().contains("it ended "),
        "{found}"
    );
}

/// An invite of another run says nothing of this directory.
#[test]
fn an_invite_of_another_run_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    assert!(murmurate(dir, &["run-key", "birds"]).status.success());
    assert!(murmurate(dir, &["run-key", "bees"]).status.success());
    let other = murmurate(dir, &["invite", "a", "--key", "bees.key"]).stdout;
    std::fs::write(dir.join("bees.txt"), other).unwrap();
    let run = [
        "run",
        "--dir",
        "b",
        "--key",
        "birds.key",
        "--no-mdns",
        "--rounds",
        "1",
    ];
    assert!(murmurate(dir, &run).status.success());
    fails(
        dir,
        &["b", "--invite", "bees.txt"],
        (
            "M033",
            "the invite is of the run `bees`, and b belongs to another one",
            "give another directory: --dir NEW",
        ),
    );
    // What the daemon of a directory was started with is in its checkpoint, as is its size.
    let (report, exit) = doctor(dir, &["b"]);
    assert_eq!(exit, 0, "{report:#}");
    let text = report.to_string();
    assert_has(&text, "the configuration of the checkpoint in b is valid");
    assert!(text.contains("left in order in round 1"), "{text}");
}

#[test]
fn addresses_that_do_not_answer_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let udp = format!("/ip4/127.0.0.1/udp/{port}/quic-v1");
    fails(
        dir,
        &["--open", "--join", &udp],
        (
            "M022",
            &format!("no daemon answers at {udp}"),
            &format!(
                "start the daemon there, compare the address with what it prints, and open UDP and TCP {port} on \
             127.0.0.1"
            ),
        ),
    );
    // The discard port, on which no process listens.
    fails(
        dir,
        &["--open", "--join", "/ip4/127.0.0.1/tcp/9"],
        (
            "M022",
            "no daemon answers at /ip4/127.0.0.1/tcp/9",
            "start the daemon there, compare the address with what it prints, and open UDP and TCP 9 on \
         127.0.0.1",
        ),
    );
    fails(
        dir,
        &["--open", "--join", "/dns4/no-such-host.invalid/tcp/9"],
        (
            "M020",
            "the name no-such-host.invalid cannot be looked up",
            "correct the name, or write the IP address instead of /dns/no-such-host.invalid",
        ),
    );
}

/// A daemon that is killed at the end of the test.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a daemon in directory `a`, and returns an address of it.
fn daemon(dir: &Path) -> (Daemon, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_murmurate"))
        .args(["run", "--dir", "a", "--no-mdns", "--log", "plain"])
        .args(["--listen", "/ip4/127.0.0.1/udp/0/quic-v1"])
        .current_dir(dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let daemon = Daemon(child);
    let mut lines = out.lines().map(Result::unwrap);
    let address = lines.find_map(|line| Some(line.strip_prefix("listening on ")?.to_owned()));
    // It may print for ever.
    std::thread::spawn(move || lines.for_each(drop));
    (daemon, address.unwrap())
}

#[test]
fn a_daemon_that_answers_is_recognised_and_so_is_another_one() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (_daemon, address) = daemon(dir);
    let (report, exit) = doctor(dir, &["--open", "--join", &address]);
    assert_eq!(exit, 0, "{report:#}");
    let all = report["findings"].as_array().unwrap();
    let join = all
        .iter()
        .find(|finding| finding["check"] == "join")
        .unwrap();
    assert_eq!(join["text"], format!("a daemon answers at {address}"));
    let (host, id) = address.rsplit_once('/').unwrap();
    // The id of no daemon that runs.
    let other = "12D3KooWReruQARxe83UwjG2A8xQ3Bfv8hDqBT3CdxZbp9rBZ2z2";
    assert_ne!(id, other);
    let wrong = format!("{host}/{other}");
    fails(
        dir,
        &["--open", "--join", &wrong],
        (
            "M023",
            &format!("another daemon than {wrong} names answers there"),
            "use an address that the daemon prints now, or leave out /p2p/ and what follows it",
        ),
    );
    // Its own ports and memory are no problem of the daemon that runs.
    let (report, exit) = doctor(dir, &["a"]);
    assert_eq!(exit, 0, "{report:#}");
    let text = report.to_string();
    assert!(text.contains("a daemon runs in a"), "{text}");

    bundle_holds_no_secret(dir);
}

fn bundle_holds_no_secret(dir: &Path) {
    let read = |name: &str| std::fs::read_to_string(dir.join("a").join(name)).unwrap();
    let invite = murmurate(dir, &["invite", "a"]).stdout;
    let invite = String::from_utf8(invite).unwrap().trim().to_owned();
    // Secrets that got into what is told: the configuration names a key, and an invite is in the log.
    let config = config(dir, "[run]\nkey = \"/a/place/that/is/secret.key\"\n");
    let planted = format!(
        "{{\"kind\":\"note\",\"text\":\"{invite} {}\"}}\n",
        read("http-token").trim()
    );
    let mut log = std::fs::File::options()
        .append(true)
        .open(dir.join("a/events.jsonl"))
        .unwrap();
    log.write_all(planted.as_bytes()).unwrap();
    let output = murmurate(
        dir,
        &[&["doctor", "a", "--bundle", "report.json"], &config[..]].concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let mut text = String::new();
    std::fs::File::open(dir.join("report.json"))
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["configuration"]["run"]["key"], "[redacted]");
    assert!(report["log"].as_array().unwrap().len() > 1, "{text}");
    assert_eq!(report["status"]["version"], env!("CARGO_PKG_VERSION"));
    let names: Vec<&str> = report["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"identity.key"), "{names:?}");
    let card = read("membership.toml");
    let quoted = |key: &str| {
        card.lines().find_map(|line| {
            let value = line.strip_prefix(key)?.trim_start().strip_prefix("= \"")?;
            Some(value.trim_end_matches('"').to_owned())
        })
    };
    let mut secrets = vec![invite, "/a/place/that/is/secret.key".to_owned()];
    secrets
        .extend(["identity.key", "http-token", "run.key"].map(|name| read(name).trim().to_owned()));
    secrets.extend(["secret", "certificates"].map(|key| quoted(key).unwrap()));
    for secret in secrets {
        assert!(
            !secret.is_empty() && !text.contains(&secret),
            "{secret} is in\n{text}"
        );
    }
    // An existing file is not replaced.
    let again = murmurate(dir, &["doctor", "a", "--bundle", "report.json"]);
    let said = String::from_utf8(again.stderr).unwrap();
    assert_eq!(
        said,
        "error: --bundle: report.json exists already; give another name\n"
    );
}
