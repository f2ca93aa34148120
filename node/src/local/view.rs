//! A view of the swarm in place of lines. It runs on a thread of its own and asks the daemons itself. Here
//! it is only told which daemons live and what happened.

use std::sync::mpsc::Receiver;
use std::time::Duration;
use tokio::sync::mpsc::Sender;

/// How long the view may take to give the terminal back.
const CLOSE_WAIT: Duration = Duration::from_secs(3);

/// A daemon of the swarm that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivingDaemon {
    /// Its number, from zero.
    pub index: usize,
    /// Its id, hexadecimal.
    pub peer: String,
    /// The address of its HTTP server.
    pub http: String,
}

/// What a view is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewNews {
    /// A message that would be a line of its own.
    Said(String),
    /// The daemons that live now, by number.
    Living(Vec<LivingDaemon>),
}

/// The swarm's end of a view.
#[derive(Debug)]
pub struct LocalView {
    news: Sender<ViewNews>,
    closed: Receiver<()>,
    living: Vec<LivingDaemon>,
}

impl LocalView {
    /// A view that takes news. It drops the sender of `closed` when the terminal is free again.
    pub fn new(news: Sender<ViewNews>, closed: Receiver<()>) -> Self {
        Self {
            news,
            closed,
            living: Vec::new(),
        }
    }

    /// Whether the user has closed it.
    pub(super) fn is_closed(&self) -> bool {
        self.news.is_closed()
    }

    /// Tells a message. A view that is too busy misses it.
    pub(super) fn say(&self, text: &str) {
        let _ = self.news.try_send(ViewNews::Said(text.to_owned()));
    }

    /// Tells which daemons live, if that has changed.
    pub(super) fn living(&mut self, daemons: impl Iterator<Item = LivingDaemon>) {
        let daemons: Vec<LivingDaemon> = daemons.collect();
        if daemons != self.living {
            let told = self.news.try_send(ViewNews::Living(daemons.clone()));
            // A view that is too busy is told again.
            if told.is_ok() {
                self.living = daemons;
            }
        }
    }

    /// Ends it, and waits until the terminal is free.
    pub(super) fn close(self) {
        drop(self.news);
        let _ = self.closed.recv_timeout(CLOSE_WAIT);
    }
}
