//! The view beside a local swarm, on a thread of its own: the swarm needs the main one.

use crate::app::{App, Shown};
use crate::watched::Watched;
use murmurate_node::local::{LocalView, ViewNews};
use rustix::process::{Signal, getpid, kill_process};
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use tokio::sync::mpsc;

/// News of the swarm that may wait to be shown.
const NEWS_CAPACITY: usize = 256;

/// Opens the view of a local swarm. It ends with the swarm, or when the user quits; the swarm goes on then.
/// Ctrl+C ends the swarm, as it does without a view.
///
/// # Errors
/// If the thread cannot be started.
pub fn beside(pause: Duration) -> io::Result<LocalView> {
    let (sender, news) = mpsc::channel(NEWS_CAPACITY);
    let (open, closed) = channel();
    std::thread::Builder::new()
        .name("top".to_owned())
        .spawn(move || view(news, pause, open))?;
    Ok(LocalView::new(sender, closed))
}

/// The thread. `open` is dropped at its end, when the terminal is as it was before.
fn view(news: mpsc::Receiver<ViewNews>, pause: Duration, open: Sender<()>) {
    let shown = || -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let mut shown = Shown::Live(Box::new(Watched::swarm(news, pause)));
            App::open()?.show(&mut shown, interrupt).await
        })
    };
    // Without a terminal the swarm goes on with lines, which it begins when this thread has ended.
    let _ = shown();
    drop(open);
}

/// Tells this process what the terminal no longer does: that Ctrl+C was pressed. The view stays until the
/// daemons have left.
fn interrupt() -> bool {
    kill_process(getpid(), Signal::INT).is_ok()
}
