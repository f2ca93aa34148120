//! Kills daemons for `--kill-every` and restarts them a while later. The kill is a SIGKILL from
//! outside, at any point of the daemon's work.

use super::LocalError;
use super::fault_entry::FaultEntry;
use super::member::{Member, State};
use super::swarm::{Swarm, unix_s};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// Time between a kill and the restart.
const AWAY: Duration = Duration::from_secs(2);

impl Swarm {
    /// Kills a daemon if a kill is due, and restarts the killed one after [`AWAY`]. Only one daemon
    /// is away at a time: the next kill waits until the last victim takes part in rounds again.
    /// Otherwise a machine that starts daemons slowly could lose the state of all of them. After a
    /// daemon has finished all rounds there are no more kills, so that the others finish too.
    pub(super) fn kill_and_start_again(&mut self) -> Result<(), LocalError> {
        let Some(killer) = &mut self.killer else {
            return Ok(());
        };
        let now = Instant::now();
        let done = self.members.iter().any(Member::is_done);
        // A liar is no victim: the others may have cut it off, and no one would wait for its return.
        let honest = || self.members.iter().enumerate().filter(|(_, m)| !m.lies());
        let up = |(_, m): &(usize, &Member)| m.state == State::Running && m.has_begun();
        let up: Vec<usize> = honest().filter(up).map(|(place, _)| place).collect();
        let all = up.len() == honest().count();
        if !done
            && all
            && let Some(place) = killer.strike(now, &up)
        {
            let member = &mut self.members[place];
            let entry = FaultEntry {
                node: member.plan.index,
                kind: "kill".to_owned(),
                round: member.progress.round,
                phase: Some(member.progress.phase.clone()),
                at_s: Some((unix_s() - self.started_unix_s).max(0.0)),
                peak_rss_bytes: member.peak_rss_bytes(),
            };
            self.display.say(&format!(
                "daemon {}: killed in round {}",
                entry.node, entry.round
            ));
            let how = format!("killed in round {}, starts again", entry.round);
            self.display.ended(place, &how);
            killer.kills.push(entry);
            member.signal(Signal::KILL);
            member.state = State::Away(now + AWAY);
        }
        for place in 0..self.members.len() {
            let member = &mut self.members[place];
            if matches!(member.state, State::Away(until) if now >= until) && member.has_ended() {
                member.begin_another_life();
                self.start(place)?;
            }
        }
        Ok(())
    }
}
