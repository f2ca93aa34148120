//! Bulk transfers as fluid flows. Each link divides its capacity equally among its most urgent flows,
//! and the others wait. The rate of a flow is its smallest share.
//!
//! If a flow cannot use its share of one link because another link is slower, the rest stays unused. This is exact if
//! all flows of a link are the same, as in an all-reduce, and pessimistic otherwise. Packets, queues and windows are
//! not modelled here; `transport` adds the cost of slow start and loss.

use core::cmp::Ordering;
use murmurate_protocol::Time;

/// Most links of a flow: out of a machine, out of its site, into the other site, into the machine; and the same
/// again from a machine that passes it on.
const PATH_MAX: usize = 8;

pub(crate) type LinkId = u32;

/// The links that a flow passes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Path {
    links: [LinkId; PATH_MAX],
    count: usize,
}

impl Path {
    /// A path through these links, at most eight.
    pub(crate) fn through(links: impl IntoIterator<Item = LinkId>) -> Self {
        let mut path = Self::default();
        for link in links.into_iter().take(PATH_MAX) {
            path.links[path.count] = link;
            path.count += 1;
        }
        path
    }

    /// This path and another one after it.
    pub(crate) fn then(&self, next: &Self) -> Self {
        Self::through(self.links().iter().chain(next.links()).copied())
    }

    fn links(&self) -> &[LinkId] {
        &self.links[..self.count]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A push, by its number.
    Push(usize),
    /// A fetch, by its number.
    Fetch(usize),
}

/// The time at which a flow ends, unless other flows start or end before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Appointment {
    pub(crate) flow: u32,
    pub(crate) owner: Owner,
    /// Serial number. The appointment is void if the flow has a newer one.
    pub(crate) serial: u32,
    pub(crate) at: Time,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    owner: Owner,
    path: Path,
    /// Bytes left at `since`.
    left: f64,
    since: Time,
    rate: f64,
    /// Highest rate, whatever the links allow.
    most: f64,
    /// Flows with a lower number go first.
    priority: u8,
    serial: u32,
    alive: bool,
}

#[derive(Clone, Debug)]
struct Link {
    /// Bytes per second.
    capacity: f64,
    flows: Vec<u32>,
    /// The priority of its most urgent flows, and how many these are.
    urgent: (u8, usize),
    /// Set once flows have started on it at this instant.
    grew: bool,
}

/// What a flow carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub(crate) bytes: f64,
    /// The highest rate.
    pub(crate) most: f64,
    pub(crate) priority: u8,
}

impl Link {
    fn enter(&mut self, priority: u8) {
        match priority.cmp(&self.urgent.0) {
            _ if self.flows.is_empty() => self.urgent = (priority, 1),
            Ordering::Less => self.urgent = (priority, 1),
            Ordering::Equal => self.urgent.1 += 1,
            Ordering::Greater => {}
        }
    }

    fn share(&self, priority: u8) -> f64 {
        if priority > self.urgent.0 {
            0.0
        } else {
            self.capacity / self.urgent.1 as f64
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Flows {
    links: Vec<Link>,
    flows: Vec<Flow>,
    /// The scheduled appointments of the flows: each end of one looks at those of hundreds.
    dues: Vec<Time>,
    free: Vec<u32>,
    appointments: Vec<Appointment>,
    /// Links on which flows have started at this instant.
    grown: Vec<LinkId>,
}

impl Flows {
    /// Adds a link with this capacity in bytes per second; `None` for no limit.
    pub(crate) fn add_link(&mut self, capacity: Option<f64>) -> LinkId {
        self.links.push(Link {
            capacity: capacity.unwrap_or(f64::INFINITY),
            flows: Vec::new(),
            urgent: (0, 0),
            grew: false,
        });
        (self.links.len() - 1) as LinkId
    }

    /// A link's capacity in bytes per second.
    pub(crate) fn capacity(&self, link: LinkId) -> f64 {
        self.links[link as usize].capacity
    }

    pub(crate) fn narrowest(&self, path: &Path) -> f64 {
        let capacities = path.links().iter().map(|link| self.capacity(*link));
        capacities.fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn set_capacity(&mut self, now: Time, link: LinkId, capacity: f64) {
        self.links[link as usize].capacity = capacity;
        self.share_out(now, &[link]);
    }

    /// Starts a flow.
    ///
    /// The flows that it slows down end later than they would. They learn that by [`Flows::settle`], or
    /// each of many that start at one instant would change all others.
    pub(crate) fn start(&mut self, now: Time, owner: Owner, path: Path, demand: Demand) -> u32 {
        let Demand {
            bytes,
            most,
            priority,
        } = demand;
        let mut flow = Flow {
            owner,
            path,
            left: bytes,
            since: now,
            rate: 0.0,
            most,
            priority,
            serial: 0,
            alive: true,
        };
        let number = self.free.pop().unwrap_or_else(|| {
            self.flows.push(flow);
            self.dues.push(Time::NEVER);
            (self.flows.len() - 1) as u32
        });
        let place = &mut self.flows[number as usize];
        flow.serial = place.serial.wrapping_add(1);
        *place = flow;
        self.dues[number as usize] = Time::NEVER;
        for link in path.links() {
            let id = *link;
            let link = &mut self.links[id as usize];
            link.enter(priority);
            link.flows.push(number);
            if !std::mem::replace(&mut link.grew, true) {
                self.grown.push(id);
            }
        }
        self.set_rate(now, number);
        number
    }

    pub(crate) fn end(&mut self, now: Time, number: u32) {
        let flow = &mut self.flows[number as usize];
        if !std::mem::take(&mut flow.alive) {
            return;
        }
        flow.serial = flow.serial.wrapping_add(1);
        let (path, priority) = (flow.path, flow.priority);
        for link in path.links() {
            let link = &mut self.links[*link as usize];
            if let Some(at) = link.flows.iter().position(|f| *f == number) {
                link.flows.remove(at);
            }
            if priority == link.urgent.0 {
                link.urgent.1 -= 1;
            }
            if link.urgent.1 == 0 {
                let left = link.flows.iter();
                let left = left.map(|f| self.flows[*f as usize].priority);
                let most = left.clone().min().unwrap_or(0);
                link.urgent = (most, left.filter(|p| *p == most).count());
            }
        }
        self.free.push(number);
        self.share_out(now, path.links());
    }

    /// Handles an appointment. If its flow is complete, ends it and returns the owner.
    pub(crate) fn keep(&mut self, now: Time, number: u32, serial: u32) -> Option<Owner> {
        let flow = &mut self.flows[number as usize];
        if !flow.alive || flow.serial != serial {
            return None;
        }
        self.dues[number as usize] = Time::NEVER;
        self.set_rate(now, number);
        let flow = &self.flows[number as usize];
        if flow.left > 0.0 {
            return None;
        }
        let owner = flow.owner;
        // The flow is complete; this is the appointment that was made for its end.
        self.appointments.pop();
        self.end(now, number);
        Some(owner)
    }

    /// The appointments made since the last call.
    pub(crate) fn appointments(&mut self) -> std::vec::Drain<'_, Appointment> {
        self.appointments.drain(..)
    }

    /// Before time passes: shares out the links on which flows have started.
    pub(crate) fn settle(&mut self, now: Time) {
        let mut grown = std::mem::take(&mut self.grown);
        for link in grown.drain(..) {
            self.links[link as usize].grew = false;
            self.share_out(now, &[link]);
        }
        // Its room is used again.
        self.grown = grown;
    }

    /// Set while [`Flows::settle`] has nothing to do.
    pub(crate) const fn is_settled(&self) -> bool {
        self.grown.is_empty()
    }

    /// Recomputes the share of each flow over these links. A flow that is due now is left alone: it is looked at next.
    fn share_out(&mut self, now: Time, links: &[LinkId]) {
        for link in links {
            for at in 0..self.links[*link as usize].flows.len() {
                let flow = self.links[*link as usize].flows[at];
                if self.dues[flow as usize] != now {
                    self.set_rate(now, flow);
                }
            }
        }
    }

    fn set_rate(&mut self, now: Time, number: u32) {
        let flow = &self.flows[number as usize];
        let shares = flow.path.links().iter().map(|link| {
            let link = &self.links[*link as usize];
            link.share(flow.priority)
        });
        let rate = shares.fold(flow.most, f64::min);
        let flow = &mut self.flows[number as usize];
        let moved = flow.rate * now.since(flow.since).as_secs_f64();
        // Time has a resolution of nanoseconds: a flow that needs less is complete.
        flow.left -= if moved.is_nan() { flow.left } else { moved };
        if flow.left <= rate * 1e-9 {
            flow.left = 0.0;
        }
        (flow.since, flow.rate) = (now, rate);
        let seconds = flow.left / rate;
        let nanos = (seconds.min(1e10) * 1e9).ceil() as u64;
        let at = Time::from_nanos(now.as_nanos().saturating_add(nanos));
        // An appointment that is too early is moved when it is due.
        if at < self.dues[number as usize] {
            self.dues[number as usize] = at;
            flow.serial = flow.serial.wrapping_add(1);
            let serial = flow.serial;
            self.appointments.push(Appointment {
                flow: number,
                owner: flow.owner,
                serial,
                at,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_MOST: f64 = f64::INFINITY;

    fn demand(bytes: f64, most: f64, priority: u8) -> Demand {
        Demand {
            bytes,
            most,
            priority,
        }
    }

    fn at(seconds: f64) -> Time {
        Time::from_nanos((seconds * 1e9) as u64)
    }

    /// Runs the given starts and returns the end of each push, in order.
    fn play(flows: &mut Flows, starts: &[(f64, Path, f64)]) -> Vec<(usize, f64)> {
        let mut calendar: Vec<Appointment> = Vec::new();
        let mut ends = Vec::new();
        let mut starts = starts.iter().enumerate().peekable();
        let mut now = Time::ZERO;
        loop {
            if calendar.first().is_none_or(|next| next.at > now) {
                flows.settle(now);
            }
            calendar.extend(flows.appointments());
            calendar.sort_by_key(|a| a.at);
            let next_start = starts.peek().map(|(_, start)| at(start.0));
            match (calendar.first().map(|a| a.at), next_start) {
                (due, Some(start)) if due.is_none_or(|due| start <= due) => {
                    flows.settle(now);
                    now = start;
                    let (number, (_, path, bytes)) = starts.next().unwrap();
                    let owner = Owner::Push(number);
                    flows.start(start, owner, *path, demand(*bytes, NO_MOST, 0));
                }
                (Some(due), _) => {
                    now = due;
                    let appointment = calendar.remove(0);
                    let kept = flows.keep(due, appointment.flow, appointment.serial);
                    if let Some(Owner::Push(number)) = kept {
                        ends.push((number, due.as_secs_f64()));
                    }
                }
                (None, _) => return ends,
            }
        }
    }

    fn close(found: &[(usize, f64)], expected: &[(usize, f64)]) {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (f, e) in found.iter().zip(expected) {
            assert!(
                f.0 == e.0 && (f.1 - e.1).abs() < 1e-6,
                "{found:?}, expected {expected:?}"
            );
        }
    }

    #[test]
    fn flows_over_one_link_share_it() {
        let mut flows = Flows::default();
        let up = flows.add_link(Some(100.0));
        let path = Path::through([up]);
        // Alone for a second, then halves: 200 bytes end at 1 + 200/50 = 5 with the first's last
        // 100 at 3.
        let ends = play(&mut flows, &[(0.0, path, 200.0), (1.0, path, 200.0)]);
        close(&ends, &[(0, 3.0), (1, 4.0)]);
    }

    #[test]
    fn a_more_urgent_flow_makes_others_wait() {
        let mut flows = Flows::default();
        let up = flows.add_link(Some(100.0));
        let path = Path::through([up]);
        let mut start = |seconds, number, bytes, priority| {
            let demand = demand(bytes, NO_MOST, priority);
            flows.start(at(seconds), Owner::Push(number), path, demand);
            flows.settle(at(seconds));
            flows.appointments().next_back()
        };
        // The second one waits; the third takes the link at 1, when the first has 100 bytes left.
        let first = start(0.0, 0, 200.0, 3).expect("it is on its way");
        assert_eq!(first.at, at(2.0));
        start(0.0, 1, 100.0, 4);
        let urgent = start(1.0, 2, 50.0, 0).expect("it is on its way");
        assert_eq!((urgent.owner, urgent.at), (Owner::Push(2), at(1.5)));
        let mut ends = Vec::new();
        let mut calendar = vec![urgent, first];
        while !calendar.is_empty() {
            let due = calendar.remove(0);
            if let Some(Owner::Push(number)) = flows.keep(due.at, due.flow, due.serial) {
                ends.push((number, due.at.as_secs_f64()));
            }
            calendar.extend(flows.appointments());
            calendar.sort_by_key(|a| a.at);
        }
        close(&ends, &[(2, 1.5), (0, 2.5), (1, 3.5)]);
    }

    #[test]
    fn flows_that_start_at_one_instant_are_shared_out_once() {
        let mut flows = Flows::default();
        let up = flows.add_link(Some(100.0));
        let path = Path::through([up]);
        for number in 0..50 {
            let owner = Owner::Push(number);
            flows.start(at(1.0), owner, path, demand(10.0, NO_MOST, 0));
        }
        assert_eq!(flows.appointments().count(), 50, "one for each");
        assert!(flows.flows[0].rate > 50.0, "not shared out yet");
        flows.settle(at(1.0));
        assert_eq!(flows.appointments().count(), 0, "none ends sooner");
        assert!(
            flows
                .flows
                .iter()
                .all(|flow| (flow.rate - 2.0).abs() < 1e-9)
        );
    }

    #[test]
    fn the_slowest_link_of_a_way_counts() {
        let mut flows = Flows::default();
        let (up, down) = (flows.add_link(Some(100.0)), flows.add_link(Some(10.0)));
        let ends = play(&mut flows, &[(0.0, Path::through([up, down]), 50.0)]);
        close(&ends, &[(0, 5.0)]);
    }

    #[test]
    fn without_limits_bytes_take_no_time() {
        let mut flows = Flows::default();
        let up = flows.add_link(None);
        let ways = [
            (2.0, Path::through([up]), 1e12),
            (2.0, Path::through([]), 1e12),
        ];
        close(&play(&mut flows, &ways), &[(0, 2.0), (1, 2.0)]);
    }

    #[test]
    fn an_all_reduce_takes_what_the_formula_says() {
        let mut flows = Flows::default();
        let n = 8;
        let links: Vec<_> = (0..n)
            .map(|_| (flows.add_link(Some(1e6)), flows.add_link(Some(1e6))))
            .collect();
        let mut starts = Vec::new();
        for (from, (up, _)) in links.iter().enumerate() {
            for (to, (_, down)) in links.iter().enumerate() {
                if from != to {
                    starts.push((0.0, Path::through([*up, *down]), 1e6 / n as f64));
                }
            }
        }
        let ends = play(&mut flows, &starts);
        // (n - 1)/n of a megabyte at a megabyte a second, all at the same time.
        assert!(
            ends.iter().all(|(_, end)| (end - 0.875).abs() < 1e-6),
            "{ends:?}"
        );
    }

    #[test]
    fn capacity_that_changes_counts_from_then_on() {
        let mut flows = Flows::default();
        let up = flows.add_link(Some(10.0));
        let way = Path::through([up]);
        let flow = flows.start(at(0.0), Owner::Push(0), way, demand(100.0, NO_MOST, 0));
        flows.settle(at(0.0));
        flows.set_capacity(at(5.0), up, 50.0);
        let last = flows.appointments().next_back().unwrap();
        assert_eq!((last.flow, last.at), (flow, at(6.0)));
    }
}
