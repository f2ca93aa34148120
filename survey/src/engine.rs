//! A small discrete-event engine: tasks with a duration on resources that serve one at a time.
//!
//! A task is ready when all its predecessors have ended. A free resource takes the ready task with
//! the lowest priority number, and of those the one that was added first. Tasks are not preempted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A resource, which serves one task at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Resource {
    /// The GPU's compute stream. All GPUs do the same at the same time, so there is one.
    Gpu,
    /// The stream of collectives.
    Ring,
    /// A machine's PCIe tree.
    Pcie,
    /// A machine's NIC.
    Nic,
}

const RESOURCES: usize = 4;

pub(crate) type TaskId = usize;

#[derive(Clone, Debug)]
struct Task {
    resource: Resource,
    nanos: u64,
    priority: u32,
    waits_for: usize,
    followers: Vec<TaskId>,
}

/// A graph of tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Engine {
    tasks: Vec<Task>,
}

impl Engine {
    /// Adds a task. Its predecessors must have been added before, so the graph has no circles.
    pub(crate) fn add(
        &mut self,
        resource: Resource,
        seconds: f64,
        priority: u32,
        after: impl IntoIterator<Item = TaskId>,
    ) -> TaskId {
        let id = self.tasks.len();
        let mut waits_for = 0;
        for earlier in after {
            self.tasks[earlier].followers.push(id);
            waits_for += 1;
        }
        self.tasks.push(Task {
            resource,
            nanos: (seconds * 1e9).round() as u64,
            priority,
            waits_for,
            followers: Vec::new(),
        });
        id
    }

    /// Runs all tasks. Returns the time in seconds at which each task ends.
    pub(crate) fn run(mut self) -> Vec<f64> {
        let mut ready: [BinaryHeap<Reverse<(u32, TaskId)>>; RESOURCES] = Default::default();
        let mut busy = [false; RESOURCES];
        let mut ends = vec![0.0; self.tasks.len()];
        let mut calendar = BinaryHeap::new();
        for (id, task) in self.tasks.iter().enumerate() {
            if task.waits_for == 0 {
                ready[task.resource as usize].push(Reverse((task.priority, id)));
            }
        }
        let mut now = 0;
        loop {
            for (resource, queue) in ready.iter_mut().enumerate() {
                if busy[resource] {
                    continue;
                }
                if let Some(Reverse((_, id))) = queue.pop() {
                    busy[resource] = true;
                    calendar.push(Reverse((now + self.tasks[id].nanos, id)));
                }
            }
            let Some(Reverse((at, id))) = calendar.pop() else {
                return ends;
            };
            now = at;
            ends[id] = at as f64 * 1e-9;
            busy[self.tasks[id].resource as usize] = false;
            for follower in std::mem::take(&mut self.tasks[id].followers) {
                let task = &mut self.tasks[follower];
                task.waits_for -= 1;
                if task.waits_for == 0 {
                    ready[task.resource as usize].push(Reverse((task.priority, follower)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_of_a_pipeline_overlap() {
        let mut engine = Engine::default();
        let mut last = 0;
        for _ in 0..10 {
            let pcie = engine.add(Resource::Pcie, 1.0, 0, []);
            last = engine.add(Resource::Nic, 2.0, 0, [pcie]);
        }
        // The slower stage determines the pace: one second to fill it, then ten times two seconds.
        assert_eq!(engine.run()[last], 21.0);
    }

    #[test]
    fn the_lower_number_goes_first_but_preempts_nothing() {
        let mut engine = Engine::default();
        let first = engine.add(Resource::Nic, 5.0, 9, []);
        let gate = engine.add(Resource::Gpu, 1.0, 0, []);
        let late = engine.add(Resource::Nic, 1.0, 8, [gate]);
        let urgent = engine.add(Resource::Nic, 1.0, 1, [gate]);
        let ends = engine.run();
        assert_eq!((ends[first], ends[urgent], ends[late]), (5.0, 6.0, 7.0));
    }
}
