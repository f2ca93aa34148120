//! Performs one output of the peer. Never waits.

use crate::api::Clock;
use crate::daemon::driver::{Driver, fetch_failed, refusal};
use crate::faults::{Fault, FaultPhase};
use murmurate_protocol::{Event, Input, Output, Phase, PushOutcome, wire};

impl Driver {
    /// Does what the peer asks; gives back a fault that is due once all of it is done.
    pub(super) fn perform(&mut self, output: Output) -> Option<Fault> {
        match output {
            Output::Send { to, message } => {
                // The queue is bounded and delivery is not promised: the peer has deadlines.
                if let Err(busy) = self.net.try_send(to, wire::encode(&message)) {
                    tracing::debug!(peer = %to, %busy, "a message was dropped");
                }
            }
            Output::Push {
                to,
                slice,
                meta,
                priority,
                deadline,
            } => {
                let deadline = self.clock.instant(deadline);
                let pushed = self
                    .depot
                    .describe(&slice, meta)
                    .is_some_and(|meta| self.net.push(to, slice, meta, priority, deadline).is_ok());
                if pushed {
                    let payload = self.payload(slice, meta.of);
                    self.payload_pushed.insert((slice, to), payload);
                } else {
                    let outcome = PushOutcome::Lost;
                    self.pending.push_back(Input::Pushed { to, slice, outcome });
                }
            }
            Output::Fetch {
                what,
                from,
                deadline,
            } => {
                if self
                    .net
                    .fetch(what, from, self.clock.instant(deadline))
                    .is_err()
                {
                    self.pending.push_back(fetch_failed(what));
                }
            }
            Output::Cancel { slice } => {
                let _ = self.net.cancel(slice);
            }
            Output::Order { id, order } => self.lanes.submit(id, order),
            Output::Interrupt => self.lanes.signals().interrupt(),
            Output::Dial(record) => {
                let _ = self.net.dial(record);
            }
            Output::Disconnect { peer, .. } => {
                let _ = self.net.disconnect(peer);
            }
            Output::Emit(event) => return self.emitted(&event),
            Output::Left => self.ending.left = true,
        }
        None
    }

    /// Something for people: status, progress, and the faults that wait for it.
    fn emitted(&mut self, event: &Event) -> Option<Fault> {
        let now = self.clock.now();
        if matches!(event, Event::RoundEnded { .. }) {
            // What a round took is told with the bytes that it took.
            self.read_traffic();
        }
        self.status.with(|observer| observer.observe(now, event));
        self.tell(event);
        let Event::Phase { round, phase } = event else {
            return None;
        };
        let fault = self.faults.due(*round, *phase)?;
        if *phase == Phase::Exchange && fault.phase == FaultPhase::Exchange {
            self.armed = Some(fault);
            return None;
        }
        Some(fault)
    }

    /// What a person should know at once.
    fn tell(&mut self, event: &Event) {
        match event {
            Event::PeerUp(_) => self.ending.met_anyone = true,
            Event::JoinFailed { .. } => self.join_failed(),
            Event::WorkFailed { what } => self.printer.note(what),
            Event::Finished { rounds, .. } => {
                self.printer.note(&format!("all {rounds} rounds are done"));
            }
            event => {
                tracing::debug!(?event);
                if let Some(refused) = refusal(event) {
                    self.refused(refused);
                }
            }
        }
    }

    fn join_failed(&mut self) {
        self.ending.error = Some(match self.ending.refused.first() {
            Some(refused) => refused.clone().into(),
            None => crate::daemon::DaemonError::Unreachable {
                bootstrap: self.ending.bootstrap.clone(),
            },
        });
    }

    /// Nobody to train with, and somebody who says why: waiting longer will not help.
    fn refused(&mut self, refused: crate::daemon::RefusedBy) {
        self.printer.note(&refused.to_string());
        let hopeless = self.joining && !self.ending.met_anyone && self.peer.phase() == Phase::Join;
        if hopeless {
            self.ending.error = Some(refused.clone().into());
            self.ending.left = true;
        }
        if self.ending.refused.len() < 16 {
            self.ending.refused.push(refused);
        }
    }
}
