//! A daemon that is watched, alone or as one of a local swarm whose daemons come and go.

use crate::feed::{Feed, News};
use crate::picture::Picture;
use crate::target::Target;
use murmurate_node::events::unix_s;
use murmurate_node::local::{LivingDaemon, ViewNews};
use std::time::Duration;
use tokio::sync::mpsc;

#[derive(Debug)]
pub(crate) struct Watched {
    target: Option<Target>,
    feed: Option<Feed>,
    /// News of a local swarm.
    swarm: Option<mpsc::Receiver<ViewNews>>,
    interval: Duration,
    picture: Picture,
    /// The picture that stands still, while it does.
    frozen: Option<Picture>,
}

impl Watched {
    pub(crate) fn daemon(target: Target, interval: Duration) -> Self {
        let mut watched = Self::new(None, interval);
        watched.watch(target);
        watched
    }

    /// Watches a local swarm through its first living daemon.
    pub(crate) fn swarm(news: mpsc::Receiver<ViewNews>, interval: Duration) -> Self {
        Self::new(Some(news), interval)
    }

    fn new(swarm: Option<mpsc::Receiver<ViewNews>>, interval: Duration) -> Self {
        Self {
            target: None,
            feed: None,
            swarm,
            interval,
            picture: Picture::default(),
            frozen: None,
        }
    }

    fn watch(&mut self, target: Target) {
        self.feed = Some(Feed::begin(&target, self.interval));
        self.target = Some(target);
        self.picture.begin_again();
    }

    /// The watched daemon, in words.
    pub(crate) fn target(&self) -> String {
        match &self.target {
            Some(target) => target.to_string(),
            None => "the first daemon".to_owned(),
        }
    }

    pub(crate) fn picture(&self) -> &Picture {
        self.frozen.as_ref().unwrap_or(&self.picture)
    }

    /// The picture stands still.
    pub(crate) const fn is_paused(&self) -> bool {
        self.frozen.is_some()
    }

    /// Lets the picture stand still, or go on.
    pub(crate) fn pause(&mut self) {
        self.frozen = match self.frozen {
            Some(_) => None,
            None => Some(self.picture.clone()),
        };
    }

    /// Waits for news and takes them. Returns whether there will be more.
    pub(crate) async fn take_news(&mut self) -> bool {
        let Self { feed, swarm, .. } = self;
        let of_daemon = async {
            match feed {
                Some(feed) => feed.next().await,
                None => std::future::pending().await,
            }
        };
        let of_swarm = async {
            match swarm {
                Some(swarm) => swarm.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            news = of_daemon => {
                if let Some(news) = news {
                    self.of_daemon(news);
                }
                true
            }
            news = of_swarm => match news {
                Some(news) => {
                    self.of_swarm(news);
                    true
                }
                None => false,
            }
        }
    }

    fn of_daemon(&mut self, news: News) {
        match news {
            News::Answers(answers) => self.picture.answered(*answers, unix_s()),
            News::Entries(entries) => self.picture.happened(entries),
            News::Trouble(error) => self.picture.trouble = Some(error.to_string()),
        }
    }

    fn of_swarm(&mut self, news: ViewNews) {
        match news {
            ViewNews::Said(sentence) => self.picture.say(sentence),
            ViewNews::Living(daemons) => self.living(&daemons),
        }
    }

    /// These daemons of the swarm live. The first one is watched, until it dies.
    fn living(&mut self, daemons: &[LivingDaemon]) {
        for daemon in daemons {
            let name = format!("node-{}", daemon.index);
            self.picture.names.insert(daemon.peer.clone(), name);
        }
        let at = |daemon: &LivingDaemon| Target::At(daemon.http.clone());
        let lives = daemons.iter().any(|daemon| self.target == Some(at(daemon)));
        if let Some(first) = daemons.first().filter(|_| !lives) {
            self.watch(at(first));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn living(indexes: &[usize]) -> Vec<LivingDaemon> {
        let daemon = |index: &usize| LivingDaemon {
            index: *index,
            peer: format!("peer{index}"),
            // No daemon answers there.
            http: format!("127.0.0.1:{index}"),
        };
        indexes.iter().map(daemon).collect()
    }

    #[tokio::test]
    async fn the_next_daemon_is_watched_when_the_first_one_dies() {
        let (sender, news) = mpsc::channel(8);
        let mut watched = Watched::swarm(news, Duration::from_secs(60));
        let targets = [
            (living(&[0, 1, 2]), "http://127.0.0.1:0/"),
            (living(&[1, 0]), "http://127.0.0.1:0/"),
            (living(&[1, 2]), "http://127.0.0.1:1/"),
            (living(&[]), "http://127.0.0.1:1/"),
        ];
        for (daemons, target) in targets {
            watched.of_swarm(ViewNews::Living(daemons));
            assert_eq!(watched.target(), target);
        }
        watched.of_swarm(ViewNews::Said("daemon 0 was killed".to_owned()));
        assert_eq!(watched.picture().name("peer0"), "node-0");
        watched.pause();
        watched.of_swarm(ViewNews::Said("daemon 1 was killed".to_owned()));
        assert_eq!(watched.picture().said.len(), 1, "it stands still");
        watched.pause();
        assert_eq!(watched.picture().said.len(), 2);
        drop(sender);
        while watched.take_news().await {}
    }
}
