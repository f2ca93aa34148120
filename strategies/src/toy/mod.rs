//! Toy tasks: trainers in plain Rust with a known optimum, cheap enough for a thousand peers in a
//! simulator. They learn nothing useful.

mod draw;
mod logistic;
mod quadratic;
mod trainer;

pub use logistic::Logistic;
pub use quadratic::Quadratic;
pub use trainer::{Objective, ToyTrainer};

use crate::Trainer;
use crate::inner::InnerKind;
use serde::{Deserialize, Serialize};

/// A toy task with its parameters: the same on all peers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ToyTask {
    /// [`Quadratic`].
    Quadratic {
        /// Parameters.
        dim: usize,
        /// Standard deviation of the peers' own optima; 0 for one common optimum.
        #[serde(default = "one")]
        heterogeneity: f64,
        /// Standard deviation of the gradient's noise in each dimension.
        #[serde(default = "tenth")]
        noise: f64,
        /// The trainer's own inner optimizer.
        #[serde(default = "default_inner")]
        inner: InnerKind,
    },
    /// [`Logistic`].
    Logistic {
        /// Features; there is one parameter more.
        dim: usize,
        /// How far the peers' samples are shifted along the separating direction; 0 is not at all.
        #[serde(default = "one")]
        heterogeneity: f64,
        /// Samples of one inner step.
        #[serde(default = "eight")]
        batch: u64,
        /// The trainer's own inner optimizer.
        #[serde(default = "default_inner")]
        inner: InnerKind,
    },
}

const fn one() -> f64 {
    1.0
}

const fn tenth() -> f64 {
    0.1
}

const fn eight() -> u64 {
    8
}

fn default_inner() -> InnerKind {
    InnerKind::sgd(0.1)
}

impl ToyTask {
    /// A quadratic of this many parameters with defaults for the rest.
    pub fn quadratic(dim: usize) -> Self {
        Self::Quadratic {
            dim,
            heterogeneity: one(),
            noise: tenth(),
            inner: default_inner(),
        }
    }

    /// A logistic regression of this many features with defaults for the rest.
    pub fn logistic(dim: usize) -> Self {
        Self::Logistic {
            dim,
            heterogeneity: one(),
            batch: eight(),
            inner: default_inner(),
        }
    }

    /// The same task with another inner optimizer, such as the strategy's.
    #[must_use]
    pub const fn with_inner(mut self, kind: InnerKind) -> Self {
        match &mut self {
            Self::Quadratic { inner, .. } | Self::Logistic { inner, .. } => *inner = kind,
        }
        self
    }

    /// The trainer of peer `peer_index` out of `peers`.
    pub fn build(&self, peer_index: usize, peers: usize, seed: u64) -> Box<dyn Trainer> {
        let (at, stream) = ([peer_index, peers], peer_index as u64);
        match *self {
            Self::Quadratic {
                dim,
                heterogeneity,
                noise,
                inner,
            } => {
                let objective = Quadratic::new(dim, heterogeneity, noise, at, seed);
                Box::new(ToyTrainer::new(objective, &inner, seed, stream))
            }
            Self::Logistic {
                dim,
                heterogeneity,
                batch,
                inner,
            } => {
                let objective = Logistic::new(dim, heterogeneity, batch.max(1), at, seed);
                Box::new(ToyTrainer::new(objective, &inner, seed, stream))
            }
        }
    }

    /// Where the loss of all peers together is smallest.
    pub fn optimum(&self, peers: usize, seed: u64) -> Vec<f32> {
        match *self {
            Self::Quadratic {
                dim,
                heterogeneity,
                noise,
                ..
            } => Quadratic::new(dim, heterogeneity, noise, [0, peers], seed)
                .optimum()
                .to_vec(),
            Self::Logistic {
                dim,
                heterogeneity,
                batch,
                ..
            } => Logistic::new(dim, heterogeneity, batch.max(1), [0, peers], seed).optimum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::MemoryState;
    use crate::{Proceed, StepControl};
    use murmurate_protocol::InnerStep;

    struct Count(u64);

    impl StepControl for Count {
        fn before(&mut self, step: InnerStep) -> Proceed {
            if step.0 < self.0 {
                Proceed::Go
            } else {
                Proceed::Stop
            }
        }
    }

    fn tasks() -> [ToyTask; 2] {
        [ToyTask::quadratic(12), ToyTask::logistic(12)]
    }

    fn parameters(trainer: &mut dyn Trainer) -> Vec<f32> {
        let mut all = Vec::new();
        trainer.visit(0..trainer.layout().len(), &mut |_, values| {
            all.extend_from_slice(values)
        });
        all
    }

    #[test]
    fn the_gradients_of_all_peers_cancel_at_the_optimum_of_the_quadratic() {
        for peers in [1, 2, 3, 4, 8, 11] {
            let task = ToyTask::Quadratic {
                dim: 20,
                heterogeneity: 1.5,
                noise: 0.0,
                inner: default_inner(),
            };
            let optimum = task.optimum(peers, 3);
            let mut sum = [0.0f64; 20];
            let mut size = 0.0;
            for peer in 0..peers {
                let mut trainer = task.build(peer, peers, 3);
                trainer.visit(0..20, &mut |_, x| x.copy_from_slice(&optimum));
                let add = &mut |at: usize, g: &mut [f32]| {
                    for (s, g) in sum[at..].iter_mut().zip(g) {
                        *s += f64::from(*g);
                        size += f64::from(g.abs());
                    }
                };
                trainer.gradients(add).unwrap();
            }
            assert!(sum.iter().all(|s| s.abs() < 1e-5), "{peers} peers: {sum:?}");
            assert_eq!(
                size > 1.0,
                peers > 1,
                "heterogeneous exactly when there are others"
            );
        }
    }

    #[test]
    fn gradients_are_the_slope_of_the_loss() {
        let quadratic = Quadratic::new(6, 1.0, 0.0, [1, 4], 5);
        let x = [0.3f32, -0.2, 0.9, 1.1, -0.7, 0.0];
        check_slope(&quadratic, &x);
        check_slope(&Logistic::new(5, 1.0, 16, [1, 4], 5), &x);
    }

    fn check_slope(objective: &dyn Objective, x: &[f32]) {
        let at = |x: &[f32]| {
            let mut gradient = vec![0.0; x.len()];
            let loss = objective.sample(&mut draw::stream(1, 1), x, &mut gradient);
            (loss, gradient)
        };
        let gradient = at(x).1;
        for i in 0..x.len() {
            let (mut up, mut down) = (x.to_vec(), x.to_vec());
            up[i] += 1e-2;
            down[i] -= 1e-2;
            let slope = (at(&up).0 - at(&down).0) / f64::from(up[i] - down[i]);
            // Central differences of the loss in f32 over 2e-2.
            assert!(
                (slope - f64::from(gradient[i])).abs() < 1e-3,
                "{i}: {slope} {gradient:?}"
            );
        }
    }

    #[test]
    fn training_alone_finds_the_optimum_of_the_logistic_task() {
        let task = ToyTask::Logistic {
            dim: 8,
            heterogeneity: 0.0,
            batch: 64,
            inner: InnerKind::sgd(1.0),
        };
        let mut trainer = task.build(0, 1, 4);
        assert!(trainer.evaluate().unwrap().accuracy.unwrap() < 0.6);
        trainer.steps(&mut Count(2000)).unwrap();
        let best = {
            let mut best = task.build(0, 1, 4);
            let optimum = task.optimum(1, 4);
            best.visit(0..9, &mut |_, x| x.copy_from_slice(&optimum));
            best.evaluate().unwrap()
        };
        let found = trainer.evaluate().unwrap();
        assert!(found.loss < best.loss + 0.03, "{found:?} {best:?}");
        assert!(found.accuracy.unwrap() > best.accuracy.unwrap() - 0.03 && best.loss < 0.3);
    }

    #[test]
    fn training_alone_with_own_data_misses_the_common_optimum() {
        let task = ToyTask::quadratic(16);
        let mut trainer = task.build(0, 8, 4);
        let before = trainer.evaluate().unwrap().loss;
        trainer.steps(&mut Count(500)).unwrap();
        let after = trainer.evaluate().unwrap().loss;
        assert!(after > 1.0, "from {before} to {after}");
    }

    #[test]
    fn a_reloaded_trainer_goes_on_to_the_bit() {
        for task in tasks() {
            let mut whole = task.with_inner(InnerKind::adam_w(0.01)).build(2, 5, 9);
            assert_eq!(whole.steps(&mut Count(7)).unwrap().steps, 7);
            let (mut state, at) = (MemoryState::default(), parameters(&mut *whole));
            whole.save(&mut state).unwrap();
            let mut again = task.with_inner(InnerKind::adam_w(0.01)).build(2, 5, 9);
            again.load(&state).unwrap();
            again.visit(0..at.len(), &mut |_, x| x.copy_from_slice(&at));
            whole.steps(&mut Count(5)).unwrap();
            again.steps(&mut Count(5)).unwrap();
            assert_eq!(parameters(&mut *whole), parameters(&mut *again));
        }
    }

    #[test]
    fn too_high_a_learning_rate_is_an_error_not_a_nan() {
        let task = ToyTask::quadratic(4).with_inner(InnerKind::sgd(100.0));
        assert!(task.build(0, 2, 1).steps(&mut Count(1000)).is_err());
    }

    #[test]
    fn tasks_read_from_toml_with_defaults() {
        let task: ToyTask = toml::from_str("task = \"quadratic\"\ndim = 64").unwrap();
        assert_eq!(task, ToyTask::quadratic(64));
        assert!(toml::from_str::<ToyTask>("task = \"quadratic\"\ndim = 64\nnois = 1").is_err());
        for task in tasks() {
            assert_eq!(
                toml::from_str::<ToyTask>(&toml::to_string(&task).unwrap()).unwrap(),
                task
            );
        }
    }
}
