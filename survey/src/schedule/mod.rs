//! The seven methods as graphs of tasks, and the time of an iteration when they repeat.
//!
//! Forward runs layer by layer from the input, backward from the output. A layer's gradients are
//! ready when its backward pass is complete. The methods differ in when, in which pieces and on
//! which resources gradients are sent.

mod merge;
mod method;

pub use method::Method;

use crate::constants::Constants;
use crate::engine::{Engine, Resource, TaskId};
use crate::model::{Layer, ModelProfile};
use crate::tiers::{Tiers, ring_share};
use method::{Architecture, Scheduling};

/// Number of iterations before the pipeline counts as steady, and number of iterations that are
/// averaged then.
const WARM: usize = 2;
const AVERAGED: usize = 3;

/// A gradient, a part of one, or several gradients that are sent together.
#[derive(Clone, Debug)]
struct Message {
    bytes: f64,
    /// The layer whose backward pass completes the message.
    ready_after: usize,
    /// The layers whose next forward pass needs it.
    layers: Vec<usize>,
}

/// One cell to predict: a model on a number of GPUs of a cluster.
#[derive(Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) model: &'a ModelProfile,
    pub(crate) constants: &'a Constants,
    pub(crate) ranks: usize,
    /// Bandwidth inside a machine, bytes per second.
    pub(crate) pcie: f64,
    /// Bandwidth of the slowest link between all ranks, bytes per second.
    pub(crate) slowest: f64,
    /// Duration of an iteration on one GPU, seconds.
    pub(crate) single: f64,
}

impl<'a> Setting<'a> {
    /// Returns `None` if the required tier was not calibrated.
    pub(crate) fn new(
        model: &'a ModelProfile,
        constants: &'a Constants,
        tiers: &Tiers,
        ranks: usize,
        single: f64,
    ) -> Option<Self> {
        let inside = ranks <= constants.gpus_per_machine;
        let slowest = if inside { tiers.pcie } else { tiers.nic }?;
        Some(Self {
            model,
            constants,
            ranks,
            // Without a measurement inside a machine only the bandwidth of its NIC is known.
            pcie: tiers.pcie.unwrap_or(f64::INFINITY),
            slowest,
            single,
        })
    }

    /// Seconds of one iteration in the steady state.
    pub(crate) fn iteration_seconds(&self, method: Method) -> f64 {
        let times = LayerTimes::new(self.model, self.constants, self.single);
        let messages = self.messages(method, &times);
        let mut graph = Graph {
            engine: Engine::default(),
            setting: self,
            times: &times,
            method,
        };
        let mut before = Before::Nothing;
        let mut begins = Vec::new();
        for _ in 0..=WARM + AVERAGED {
            let (begin, after) = graph.iteration(&messages, &before);
            begins.push(begin);
            before = after;
        }
        let ends = graph.engine.run();
        (ends[begins[WARM + AVERAGED]] - ends[begins[WARM]]) / AVERAGED as f64
    }

    /// Seconds of a collective: a constant part and a part for each byte.
    fn collective(&self) -> (f64, f64) {
        let alpha = self.constants.message_seconds(self.ranks);
        (alpha, ring_share(self.ranks) / self.slowest)
    }

    /// The messages of a method, in the order in which they become ready.
    fn messages(&self, method: Method, times: &LayerTimes) -> Vec<Message> {
        let tensors = self.gradients();
        match (method.architecture(), method.scheduling()) {
            (Architecture::AllToAll, Scheduling::Barrier) => vec![Message {
                bytes: tensors.iter().map(|m| m.bytes).sum(),
                ready_after: 0,
                layers: vec![0],
            }],
            (Architecture::AllToAll, Scheduling::WaitFree) => tensors,
            (Architecture::AllToAll, Scheduling::Merged) => {
                let bytes: Vec<f64> = tensors.iter().map(|m| m.bytes).collect();
                let ready: Vec<f64> = tensors
                    .iter()
                    .map(|m| times.gradient_ready(m.ready_after))
                    .collect();
                let planned = merge::planned(self.ranks, self.slowest);
                let planned = planned.unwrap_or_else(|| self.collective());
                merge::groups(&bytes, &ready, planned)
                    .into_iter()
                    .map(|group| Message {
                        bytes: bytes[group.clone()].iter().sum(),
                        ready_after: tensors[group.end - 1].ready_after,
                        layers: tensors[group].iter().map(|m| m.ready_after).collect(),
                    })
                    .collect()
            }
            // BytePS and ByteScheduler cut every tensor into partitions.
            (Architecture::ParameterServer, _) | (_, Scheduling::Priority) => {
                self.partitions(&tensors)
            }
        }
    }

    /// One message for each tensor, from the output to the input.
    fn gradients(&self) -> Vec<Message> {
        let layers = self.model.layers.iter().enumerate().rev();
        layers
            .flat_map(|(index, layer)| {
                layer.tensors.iter().rev().map(move |parameters| Message {
                    bytes: 4.0 * *parameters as f64,
                    ready_after: index,
                    layers: vec![index],
                })
            })
            .collect()
    }

    fn partitions(&self, tensors: &[Message]) -> Vec<Message> {
        let most = self.constants.partition_mb * 1e6;
        tensors
            .iter()
            .flat_map(|tensor| {
                let count = (tensor.bytes / most).ceil().max(1.0) as usize;
                let part = Message {
                    bytes: tensor.bytes / count as f64,
                    ..tensor.clone()
                };
                std::iter::repeat_n(part, count)
            })
            .collect()
    }
}

/// The part of the previous iteration that an iteration waits for.
enum Before {
    /// Nothing: it is the first.
    Nothing,
    /// The optimizer over all parameters.
    Optimizer(TaskId),
    /// The optimizer of each layer: the forward pass proceeds layer by layer.
    Layers(Vec<TaskId>),
}

struct Graph<'a> {
    engine: Engine,
    setting: &'a Setting<'a>,
    times: &'a LayerTimes,
    method: Method,
}

impl Graph<'_> {
    /// Adds an iteration. Returns its first task and what the next one waits for.
    fn iteration(&mut self, messages: &[Message], before: &Before) -> (TaskId, Before) {
        let mut last: Option<TaskId> = None;
        let mut begin = 0;
        for (index, seconds) in self.times.forward.iter().enumerate() {
            let gate = match before {
                Before::Nothing => None,
                Before::Optimizer(task) => (index == 0).then_some(*task),
                Before::Layers(tasks) => Some(tasks[index]),
            };
            let task = self
                .engine
                .add(Resource::Gpu, *seconds, 0, last.into_iter().chain(gate));
            if index == 0 {
                begin = task;
            }
            last = Some(task);
        }
        let mut backward = vec![0; self.times.backward.len()];
        for (index, seconds) in self.times.backward.iter().enumerate().rev() {
            backward[index] = self.engine.add(Resource::Gpu, *seconds, 0, last);
            last = Some(backward[index]);
        }
        let mut arrived = vec![Vec::new(); backward.len()];
        for (order, message) in messages.iter().enumerate() {
            let (ready, priority) = match self.method.scheduling() {
                Scheduling::Barrier => (backward[0], order as u32),
                Scheduling::WaitFree | Scheduling::Merged => {
                    (backward[message.ready_after], order as u32)
                }
                // Messages that the next forward pass needs first are sent first.
                Scheduling::Priority => (backward[message.ready_after], message.ready_after as u32),
            };
            let done = self.travel(message.bytes, ready, priority);
            for layer in &message.layers {
                arrived[*layer].push(done);
            }
        }
        (begin, self.optimize(arrived, backward[0]))
    }

    /// The optimizer: over all parameters after a barrier, or over each layer when it is ready.
    fn optimize(&mut self, arrived: Vec<Vec<TaskId>>, backward: TaskId) -> Before {
        if self.method.scheduling() == Scheduling::Priority {
            let layers = arrived.into_iter().zip(&self.times.optimizer);
            let tasks = layers.map(|(arrived, seconds)| {
                let after = arrived.into_iter().chain([backward]);
                self.engine.add(Resource::Gpu, *seconds, 0, after)
            });
            return Before::Layers(tasks.collect());
        }
        let after = arrived.into_iter().flatten().chain([backward]);
        let seconds = self.times.optimizer.iter().sum();
        Before::Optimizer(self.engine.add(Resource::Gpu, seconds, 0, after))
    }

    /// Adds the tasks of one message. Returns the last one.
    fn travel(&mut self, bytes: f64, ready: TaskId, priority: u32) -> TaskId {
        let setting = self.setting;
        let inside = setting.ranks <= setting.constants.gpus_per_machine;
        if self.method.architecture() == Architecture::AllToAll {
            let (alpha, beta) = setting.collective();
            return self
                .engine
                .add(Resource::Ring, alpha + beta * bytes, priority, [ready]);
        }
        // Between the GPUs of a machine a parameter server reduces before it pushes and spreads
        // what it pulled: the two halves of a ring. The NIC's stage lies between them.
        let local = setting.ranks.min(setting.constants.gpus_per_machine);
        let half = 0.5 * ring_share(local) * bytes / setting.pcie;
        let reduced = self.engine.add(Resource::Pcie, half, priority, [ready]);
        let exchanged = if inside {
            reduced
        } else {
            let seconds = setting.constants.push_and_pull * bytes / setting.slowest;
            self.engine.add(Resource::Nic, seconds, priority, [reduced])
        };
        self.engine.add(Resource::Pcie, half, priority, [exchanged])
    }
}

/// Seconds of each layer, in the order of the forward pass.
#[derive(Clone, Debug)]
struct LayerTimes {
    forward: Vec<f64>,
    backward: Vec<f64>,
    optimizer: Vec<f64>,
}

impl LayerTimes {
    /// T_single = forward + backward + optimizer; forward and backward have shares f and 1 - f of
    /// what the optimizer leaves, and a layer has the share of its FLOPs in both.
    ///
    /// Special case: an optimizer as long as the whole iteration leaves no time to compute.
    fn new(model: &ModelProfile, constants: &Constants, single: f64) -> Self {
        let optimizer = constants.optimizer_seconds(model.parameters());
        let compute = (single - optimizer).max(0.0);
        let flops = model.flops();
        let times = |seconds: f64| -> Vec<f64> {
            let share = |layer: &Layer| seconds * layer.flops / flops;
            model.layers.iter().map(share).collect()
        };
        let of_layer = |layer: &Layer| constants.optimizer_seconds(layer.parameters());
        Self {
            forward: times(compute * constants.forward_share),
            backward: times(compute * (1.0 - constants.forward_share)),
            optimizer: model.layers.iter().map(of_layer).collect(),
        }
    }

    /// Seconds from the start of backward until a layer's gradients are ready.
    fn gradient_ready(&self, layer: usize) -> f64 {
        self.backward[layer..].iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iteration_is_all_of_its_parts() {
        let constants = Constants::shipped().unwrap();
        let model = ModelProfile::named("ResNet-50", &constants).unwrap();
        let times = LayerTimes::new(&model, &constants, 0.25);
        let sum = |values: &[f64]| values.iter().sum::<f64>();
        let whole = sum(&times.forward) + sum(&times.backward) + sum(&times.optimizer);
        assert!((whole - 0.25).abs() < 1e-9);
        assert!((sum(&times.backward) / sum(&times.forward) - 2.0).abs() < 1e-9);
        assert!((times.gradient_ready(0) - sum(&times.backward)).abs() < 1e-12);
    }
}
