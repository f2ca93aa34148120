//! Passes on what a training loop prints to standard error.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Lines of a traceback that are held back until it is known whether they are new.
const TRACEBACK_LINES_MAX: usize = 400;

/// How Python begins one.
const TRACEBACK: &str = "Traceback (most recent call last)";

/// How long the last lines of a training loop that has ended may take. A process that it left behind may
/// hold the stream open for ever.
const READ_WAIT: Duration = Duration::from_secs(1);

/// How often a reader is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The reader of one life of a training loop.
#[derive(Debug)]
pub(crate) struct Reader {
    thread: JoinHandle<()>,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Debug, Default)]
struct Heard {
    /// The last line that is not empty.
    last: String,
    /// Lines of a traceback.
    held: VecDeque<String>,
}

impl Reader {
    /// Reads on a thread of its own.
    pub(crate) fn start(stream: impl Read + Send + 'static) -> Self {
        let heard = Arc::<Mutex<Heard>>::default();
        let hears = Arc::clone(&heard);
        let thread = std::thread::spawn(move || {
            let mut lines = BufReader::new(stream).split(b'\n');
            while let Some(Ok(bytes)) = lines.next() {
                let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
                lock(&hears).hear(line);
            }
        });
        Self { thread, heard }
    }

    /// The process has ended: shows the traceback that is held back, unless it is the one that was `shown`
    /// last. Returns the last line.
    pub(crate) fn last_words(self, shown: &mut VecDeque<String>) -> String {
        let until = Instant::now() + READ_WAIT;
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(LOOK_EVERY);
        }
        let mut heard = lock(&self.heard);
        let held = std::mem::take(&mut heard.held);
        if !held.is_empty() && held != *shown {
            held.iter().for_each(|line| print(line));
            *shown = held;
        }
        heard.last.clone()
    }
}

impl Heard {
    fn hear(&mut self, line: String) {
        if !line.trim().is_empty() {
            line.trim().clone_into(&mut self.last);
        }
        if self.held.is_empty() && !line.starts_with(TRACEBACK) {
            print(&line);
            return;
        }
        self.held.push_back(line);
        if self.held.len() > TRACEBACK_LINES_MAX {
            self.held.drain(..).for_each(|line| print(&line));
        }
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A line on standard error. One that is closed ends no training.
fn print(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_that_is_left_behind_with_the_stream_is_not_waited_for() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 20 & echo $! ; echo last words >&2"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let reader = Reader::start(child.stderr.take().unwrap());
        let mut left = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut left).unwrap();
        child.wait().unwrap();
        let since = Instant::now();
        assert_eq!(reader.last_words(&mut VecDeque::new()), "last words");
        let waited = since.elapsed();
        Command::new("kill").arg(left.trim()).status().unwrap();
        assert!(waited < Duration::from_secs(10), "{waited:?}");
    }
}
