//! Closed runs between real processes: only those that were let in take part.

use murmurate_tests::assert_has;
use murmurate_tests::{
    Daemon, Settings, Turn, failure as failure_in, failure_with, local, success, turn, wait_until,
};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

fn output(args: &[&str]) -> String {
    success(Path::new("."), args)
}

fn failure(args: &[&str]) -> String {
    failure_in(Path::new("."), args)
}

pub(crate) fn closed() -> Settings {
    Settings {
        open: false,
        name: "murmurate".to_owned(),
        start_wait_s: 5.0,
        ..Settings::default()
    }
}

/// The line that a command prints for a daemon's directory.
pub(crate) fn line(args: &[&str], dir: &Path) -> String {
    let mut all: Vec<&str> = args.to_vec();
    let dir = dir.to_str().unwrap();
    all.push(dir);
    output(&all).trim().to_owned()
}

pub(crate) fn invited(turn: &Turn, shard: u32, dir: &Path, invite: &str) -> Daemon {
    let settings = closed().shard(shard);
    Daemon::start_with(turn, &settings, dir, &[], &["--invite", invite])
}

/// The rows of `murmurate members`.
fn members(dir: &Path) -> Vec<Value> {
    let text = output(&["members", dir.to_str().unwrap(), "--json"]);
    let table: Value = serde_json::from_str(&text).unwrap();
    table["members"].as_array().unwrap().clone()
}

pub(crate) fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    wait_until(what, Duration::from_secs(30), || done().then_some(()));
}

/// The owner is away while a second machine lets a third one in. Later the owner throws it out.
#[test]
fn members_let_others_in_and_the_owner_throws_one_out() {
    let turn = turn();
    let base = tempfile::tempdir().unwrap();
    let [owner, helper, third] = ["owner", "helper", "third"].map(|name| base.path().join(name));
    let mut first = Daemon::start(&turn, &closed(), &owner, &[]);
    first.notes("this daemon founded a closed run");
    first.listening();
    first.reaches(1);
    wait_for("the addresses are noted", || {
        owner.join("addresses").exists()
    });
    let invite = line(&["invite", "--role", "admit"], &owner);
    let mut second = invited(&turn, 1, &helper, &invite);
    second.listening();
    second.reaches(2);
    // Every member keeps what it needs, so the owner may go.
    first.interrupt().polite();
    wait_for("the addresses are noted", || {
        helper.join("addresses").exists()
    });
    let invite = line(&["invite"], &helper);
    let mut new = invited(&turn, 2, &third, &invite);
    let (id, ..) = new.listening();
    let begun = new.reaches(3).round;

    let mut first = Daemon::start(&turn, &closed(), &owner, &[]);
    let (owner_id, ..) = first.listening();
    first.reaches(begun + 1);
    wait_for("the owner hears of the third", || {
        members(&owner)
            .iter()
            .any(|member| member["peer"] == id.as_str())
    });
    // The helper may not throw out whom it did not let in, and is not told that it did.
    says(
        failure(&["revoke", &owner_id, helper.to_str().unwrap()]),
        "was not let in by the daemon in",
    );
    wait_for("the owner is shown as linked", || {
        let all = members(&helper);
        all.iter()
            .any(|m| m["peer"] == owner_id.as_str() && m["linked"] == true)
    });
    let said = output(&["revoke", &id, owner.to_str().unwrap()]);
    says(said, "tells the others now");
    second.notes("is no longer a member: it was revoked");
    first.notes("is no longer a member: it was revoked");
    let revoked = || {
        members(&helper)
            .into_iter()
            .find(|m| m["peer"] == id.as_str())
    };
    wait_for("the revocation is kept", || {
        revoked().is_some_and(|m| m["revoked"] == true)
    });
    drop(new);
    // It does not get in again, and neither does another machine with its invite.
    let again = invited(&turn, 2, &third, &invite).end();
    assert!(
        again.failed_with(4).contains("its membership was revoked"),
        "{again:?}"
    );
    let back = invited(&turn, 2, &base.path().join("thief"), &invite);
    let refused = back.end();
    assert!(
        refused.failed_with(4).contains("its invite is used up"),
        "{refused:?}"
    );
    second.interrupt().polite();
    first.interrupt().polite();
}

/// Whatever a stranger tries, it gets no link, and the daemons reach what they reach without it.
#[test]
fn a_stranger_that_knows_all_addresses_changes_nothing() {
    let turn = turn();
    let report = local(&turn, &["--nodes", "3", "--shards", "iid", "--stranger"]);
    let stranger = &report["stranger"];
    assert_eq!(stranger["links"], 0, "{stranger}");
    assert_eq!(stranger["answered"], 0, "{stranger}");
    assert!(stranger["turned_away"].as_u64().unwrap() > 0, "{stranger}");
    assert!(stranger["silent"].as_u64().unwrap() > 0, "{stranger}");
    assert_eq!(report["reached"], true);
}

/// A member that starts again needs no invite and no address.
#[test]
fn a_member_comes_back_without_its_invite() {
    let turn = turn();
    let base = tempfile::tempdir().unwrap();
    let [owner, friend] = ["owner", "friend"].map(|name| base.path().join(name));
    let mut first = Daemon::start(&turn, &closed(), &owner, &[]);
    first.listening();
    wait_for("the addresses are noted", || {
        owner.join("addresses").exists()
    });
    let invite = line(&["invite"], &owner);
    let mut second = invited(&turn, 1, &friend, &invite);
    second.listening();
    #[cfg(target_os = "linux")]
    {
        // Every user of the machine may read this.
        let shown = std::fs::read(format!("/proc/{}/cmdline", second.id())).unwrap();
        let shown = String::from_utf8_lossy(&shown);
        assert_has(&shown, "run");
        assert!(!shown.contains("invite"), "{shown}");
    }
    second.reaches(2);
    wait_for("it knows the owner", || friend.join("peers.json").exists());
    second.interrupt().polite();
    let mut second = Daemon::start(&turn, &closed().shard(1), &friend, &[]);
    second.listening();
    let at = first.reaches(0).round;
    second.reaches(at + 2);
    second.interrupt().polite();
    first.interrupt().polite();
}

fn says(line: impl AsRef<str>, text: &str) {
    let line = line.as_ref();
    assert!(line.contains(text), "{line}");
}

/// Wrong input ends in one line that says what to do.
#[test]
fn wrong_invites_and_keys_are_refused_in_one_line() {
    let base = tempfile::tempdir().unwrap();
    let dir = |name: &str| base.path().join(name).to_str().unwrap().to_owned();
    let key = dir("birds.key");
    output(&["run-key", "birds", "--to", &key]);
    let hasty = dir("hasty.toml");
    std::fs::write(&hasty, "[run]\nstart_wait_s = 0.5\n").unwrap();
    let always = ["run", "--no-mdns", "--rounds", "1", "--config", &hasty];
    let run_with =
        |code, args: &[&str]| failure_with(code, Path::new("."), &[&always, args].concat());
    let run = |args: &[&str]| run_with(6, args);
    let address = "/ip4/127.0.0.1/udp/1/quic-v1";
    says(
        run(&["--dir", &dir("a"), "--join", address]),
        "but no invite: run `murmurate invite DIR`",
    );
    says(
        run(&["--dir", &dir("a"), "--invite", "hello"]),
        "--invite: this is not an invite",
    );
    let invite = output(&["invite", &dir("none"), "--key", &key, "--address", address]);
    let invite = invite.trim();
    says(
        run(&["--dir", &dir("a"), "--invite", &invite[..invite.len() - 5]]),
        "--invite: the invite is damaged: copy the whole line once more",
    );
    says(
        run(&["--dir", &dir("a"), "--invite", invite, "--open"]),
        "--open lets everyone in",
    );
    says(
        run(&["--dir", &dir("a"), "--invite", invite, "--name", "fish"]),
        "`run.name` is `fish`, but the invite is of the run `birds`",
    );
    // Once a directory is a member of one run, it is of no other.
    run_with(5, &["--dir", &dir("member"), "--invite", invite]);
    // It has no state of the run, so it does not begin one of its own without the invite.
    says(
        run_with(5, &["--dir", &dir("member")]),
        "no address of one is known here; give an invite",
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let card = base.path().join("member/membership.toml");
        assert_eq!(card.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    says(
        run(&["--dir", &dir("member"), "--open"]),
        "belongs to the closed run `birds`",
    );
    let other = dir("other.key");
    output(&["run-key", "birds", "--to", &other]);
    says(
        run(&["--dir", &dir("member"), "--key", &other]),
        "the run key is of another one",
    );
    says(
        failure(&["invite", &dir("member")]),
        "may not let others in",
    );
}

/// Without its register a daemon would let in machines that were revoked.
#[test]
fn a_register_that_cannot_be_read_is_refused_in_one_line_and_kept() {
    let base = tempfile::tempdir().unwrap();
    let key = base.path().join("birds.key");
    let key = key.to_str().unwrap();
    output(&["run-key", "birds", "--to", key]);
    let dir = base.path().join("dir");
    std::fs::create_dir(&dir).unwrap();
    let register = dir.join("register");
    let newer = [b"murmurate register\n".as_slice(), &[9], &[0; 64]].concat();
    for (content, problem) in [
        (vec![0; 24], "is damaged"),
        (Vec::new(), "is damaged"),
        (newer, "is of a newer version of murmurate"),
        (
            vec![1; 11 << 20],
            "has 11534336 bytes, and no register has more than",
        ),
    ] {
        std::fs::write(&register, &content).unwrap();
        let args = ["run", "--no-mdns", "--rounds", "1", "--key", key, "--dir"];
        let args = [&args, [dir.to_str().unwrap()].as_slice()].concat();
        let said = failure_with(6, Path::new("."), &args);
        says(&said, problem);
        says(
            &said,
            "it says who was revoked, so nothing starts without it",
        );
        assert_eq!(std::fs::read(&register).unwrap(), content);
    }
}

/// So do wrong orders, and files that others may read.
#[test]
fn wrong_orders_are_refused_in_one_line() {
    let base = tempfile::tempdir().unwrap();
    let dir = |name: &str| base.path().join(name).to_str().unwrap().to_owned();
    let key = dir("birds.key");
    output(&["run-key", "birds", "--to", &key]);
    says(
        failure(&["members", &dir("no one")]),
        "is not the directory of a member",
    );
    says(
        failure(&["run-key", "birds", "--to", &key]),
        "exists already",
    );
    says(
        failure(&["admit", "abc", &dir("none"), "--key", &key]),
        "is not a peer's id",
    );
    says(
        failure(&["revoke", "abcd", &dir("none"), "--key", &key]),
        "no member's id begins with `abcd`",
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &str| Path::new(path).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&key), 0o600);
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
        says(
            failure(&["invite", &dir("none"), "--key", &key]),
            "run chmod 600 on it",
        );
    }
}

/// What a command shows of a run contains none of its secrets.
#[test]
fn no_secret_is_shown() {
    let base = tempfile::tempdir().unwrap();
    let key = base.path().join("birds.key");
    let key = key.to_str().unwrap();
    let said = output(&["run-key", "birds", "--to", key]);
    let text = std::fs::read_to_string(key).unwrap();
    let secret = text.split('"').find(|part| part.len() == 64).unwrap();
    assert!(!said.contains(secret));
    let config = output(&["run", "--key", key, "--show-config"]);
    assert!(config.contains("birds.key") && !config.contains(secret));
}
