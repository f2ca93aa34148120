//! The session between a daemon and a trainer, with the trainer in threads of the test.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "tests fail with a message of their own"
)]

mod client;
mod failures;
mod islands;
mod rounds;

use murmurate_attach::{Mode, Notes, RemoteTrainer, Terms, Waiting};
use murmurate_protocol::InnerStep;
use murmurate_strategies::{Proceed, Rank, StepControl, Trainer};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A daemon's side, its notes, and its directory.
struct Side {
    trainer: RemoteTrainer,
    notes: Arc<Mutex<Vec<String>>>,
    dir: tempfile::TempDir,
    leaving: Arc<AtomicBool>,
}

/// Takes this many steps.
struct Count(u64);

impl StepControl for Count {
    fn before(&mut self, step: InnerStep) -> Proceed {
        match step.0 < self.0 {
            true => Proceed::Go,
            false => Proceed::Stop,
        }
    }
}

impl Side {
    /// Opens the socket, lets `first` attach on a thread, and waits for it.
    fn attach<T: Send + 'static>(
        mode: Mode,
        first: impl FnOnce(PathBuf) -> T + Send + 'static,
    ) -> (Self, std::thread::JoinHandle<T>) {
        let dir = tempfile::tempdir().unwrap();
        let notes: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&notes);
        let show: Notes = Arc::new(move |text| kept.lock().unwrap().push(text.to_owned()));
        let waiting = Waiting::open(Terms {
            dir: dir.path().join("attach"),
            run: "test".to_owned(),
            seed: 7,
            shard: 1,
            dealt: true,
            shards: 4,
            rank: Rank::ALONE,
            mode,
            patience: Duration::from_secs(1),
            notes: show,
        })
        .unwrap();
        let socket = waiting.socket().to_owned();
        let first = std::thread::spawn(move || first(socket));
        let mut trainer = waiting.wait(None, &|| false).unwrap();
        let leaving = Arc::new(AtomicBool::new(false));
        trainer.leaving(Arc::clone(&leaving));
        let side = Self {
            trainer,
            notes,
            dir,
            leaving,
        };
        (side, first)
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("attach").join("socket")
    }

    fn parameters(&mut self) -> Vec<f32> {
        let mut all = vec![0.0; self.trainer.layout().len()];
        self.trainer.read(0, &mut all);
        all
    }

    /// Whether there was a note with this text.
    fn noted(&self, text: &str) -> bool {
        self.notes
            .lock()
            .unwrap()
            .iter()
            .any(|note| note.contains(text))
    }

    fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }
}

fn mode_of(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}
