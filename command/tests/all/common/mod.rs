//! Runs the command in a directory, for the tests beside this folder.

#![allow(dead_code, reason = "each test uses some of it")]

use murmurate_net::congestion::MaxRate;
use murmurate_node::api::{About, ApiServer, Observer, Served, StatusHandle, Token};
use murmurate_node::daemon::SteadyClock;
use murmurate_node::events::Recent;
use murmurate_node::store::Progress;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// What the command wrote, and how it ended.
pub(crate) fn murmurate(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_murmurate"))
        .current_dir(dir)
        .args(args)
        .env_remove("MURMURATE_LOG")
        .output()
        .unwrap()
}

/// The output of a command that succeeds.
pub(crate) fn success(dir: &Path, args: &[&str]) -> String {
    let output = murmurate(dir, args);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The single line of a command that fails.
pub(crate) fn failure(dir: &Path, args: &[&str]) -> String {
    let output = murmurate(dir, args);
    assert!(!output.status.success(), "{args:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    let line = error.strip_prefix("error: ").unwrap().trim_end().to_owned();
    assert!(!line.contains('\n'), "{line}");
    line
}

/// A daemon's HTTP server, as the commands find it in the directory `dir`.
pub(crate) fn serve(dir: &Path, runtime: &Runtime, rate: MaxRate, token: Token) -> ApiServer {
    let observer = Observer::new(About::default(), Progress::default());
    let served = Served {
        status: StatusHandle::new(observer, Arc::new(SteadyClock::new())),
        recent: Recent::default(),
        rate,
        token,
        names: Vec::new(),
    };
    let server = runtime.block_on(ApiServer::start("127.0.0.1:0".parse().unwrap(), served));
    let server = server.unwrap();
    std::fs::write(dir.join("http.addr"), format!("{}\n", server.address())).unwrap();
    server
}

/// Fails unless a text has this part.
#[track_caller]
pub(crate) fn assert_has(text: &str, part: &str) {
    assert!(text.contains(part), "{text}");
}

/// Fails unless a text begins so.
#[track_caller]
pub(crate) fn assert_begins(text: &str, start: &str) {
    assert!(text.starts_with(start), "{text}");
}

/// Fails unless a text ends so.
#[track_caller]
pub(crate) fn assert_ends(text: &str, end: &str) {
    assert!(text.ends_with(end), "{text}");
}
