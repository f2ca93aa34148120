//! Starts the daemons of a swarm on this machine: of many, a few at a time.

use super::{End, Swarm, unix_s};
use crate::local::LocalError;
use crate::local::member::State;
use crate::local::page::{self, SwarmPage};
use std::time::{Duration, Instant};

/// Daemons that start at the same time.
const STARTED_AT_ONCE: usize = 16;

/// How long the next daemons wait for those before them to meet another one.
const MEETING_WAIT: Duration = Duration::from_secs(20);

impl Swarm {
    /// Starts the daemons that are not late: first one of them, then the others, which join it.
    pub(super) async fn start_all(&mut self) -> Result<Option<End>, LocalError> {
        let first: Vec<usize> = (0..self.members.len())
            .filter(|p| self.members[*p].plan.late.is_none())
            .collect();
        self.started_unix_s = unix_s();
        if let Some(narrator) = &mut self.narrator {
            let indexes = first.iter().map(|place| self.members[*place].plan.index);
            narrator.begins(self.started_unix_s, &indexes.collect::<Vec<_>>());
        }
        self.narrate();
        for (started, &place) in first.iter().enumerate() {
            // The others join the first. Of many, some wait for those before them: a machine that starts a
            // hundred daemons at once is too busy to answer any of them.
            let batch = started == 1 || started.is_multiple_of(STARTED_AT_ONCE);
            if !self.alone
                && batch
                && (self.until_listening(&first[..started]).await? == Some(End::Interrupted)
                    || self.until_met(&first[..started]).await? == Some(End::Interrupted))
            {
                return Ok(Some(End::Interrupted));
            }
            self.start(place)?;
        }
        let end = self.until_listening(&first).await?;
        self.show_page();
        Ok(end)
    }

    /// Says where the page of the swarm is.
    fn show_page(&mut self) {
        let Some(url) = self.page.as_ref().map(SwarmPage::url) else {
            return;
        };
        self.display.say(&format!("the swarm in a browser: {url}"));
        if std::mem::take(&mut self.open_browser)
            && let Err(error) = page::open(&url)
        {
            self.display.say(&format!(
                "no browser can be opened ({error}): open {url} yourself"
            ));
        }
    }

    async fn until_listening(&mut self, places: &[usize]) -> Result<Option<End>, LocalError> {
        let since = Instant::now();
        while places.iter().any(|p| {
            let member = &self.members[*p];
            member.plan.joinable && member.state == State::Running && member.addresses.is_empty()
        }) {
            if since.elapsed() > self.start_wait {
                let what = "not every daemon could be joined".to_owned();
                return Err(LocalError::Stuck {
                    what,
                    seconds: self.start_wait.as_secs(),
                });
            }
            if self.next().await? == Some(End::Interrupted) {
                return Ok(Some(End::Interrupted));
            }
        }
        Ok(None)
    }

    /// Gives the daemons of the batches before time to meet another one. One that meets none ends the
    /// others' wait, and its own deadline says why.
    async fn until_met(&mut self, places: &[usize]) -> Result<Option<End>, LocalError> {
        let since = Instant::now();
        while places.len() > 1 && since.elapsed() < MEETING_WAIT {
            let alone = |place: &usize| {
                let member = &self.members[*place];
                member.state == State::Running && member.progress.peers == 0
            };
            if !places.iter().any(alone) {
                break;
            }
            if self.next().await? == Some(End::Interrupted) {
                return Ok(Some(End::Interrupted));
            }
        }
        Ok(None)
    }
}
