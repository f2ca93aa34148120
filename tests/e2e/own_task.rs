//! A custom task is one file: the example in `node/examples` trains a burn model that is not built in.

use murmurate_tests::{Daemon, example, turn};
use std::path::Path;
use std::process::Command;

fn own_task(dir: &Path, index: &str) -> Command {
    let mut command = Command::new(example("own_task"));
    command.args(["--start-with", "2", "--index", index, "--dir"]);
    command.arg(dir.join(index));
    command
}

#[test]
fn two_daemons_train_a_model_that_is_not_built_in() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let mut first = Daemon::spawn(&turn, own_task(dir.path(), "0"));
    let (_, address, _) = first.listening();
    let mut joins = own_task(dir.path(), "1");
    joins.args(["--join", &address]);
    let second = Daemon::spawn(&turn, joins);
    let (first, second) = (first.end(), second.end());
    let (a, b) = (first.polite(), second.polite());
    assert_eq!((a.rounds, b.rounds), (40, 40));
    assert_eq!(a.digest, b.digest);
    assert!(a.digest.is_some());
    // Half of the points lie on either spiral.
    assert!(a.test_accuracy > Some(0.9), "{a:?}");
    assert!(a.bytes_sent.encoded > 0 && b.bytes_received.encoded > 0);
}
