//! Islands of toy trainers.

use super::*;
use crate::state::MemoryState;
use crate::toy::ToyTask;

/// Stops after this many steps, and counts the reported steps and samples.
#[derive(Default)]
struct Count {
    steps: u64,
    told: u64,
    samples: u64,
}

impl Count {
    fn of(steps: u64) -> Self {
        Self {
            steps,
            ..Self::default()
        }
    }
}

impl StepControl for Count {
    fn before(&mut self, step: InnerStep) -> Proceed {
        if step.0 < self.steps {
            Proceed::Go
        } else {
            Proceed::Stop
        }
    }

    fn after(&mut self, _: InnerStep, samples: u64) {
        self.told += 1;
        self.samples += samples;
    }
}

fn trainer(rank: usize) -> Box<dyn Trainer> {
    ToyTask::logistic(40).build(rank, 4, 7)
}

fn island(ranks: usize) -> Island {
    Island::new((0..ranks).map(trainer).collect()).unwrap()
}

fn values(trainer: &mut dyn Trainer) -> Vec<f32> {
    let mut values = vec![0.0; trainer.layout().len()];
    trainer.read(0, &mut values);
    values
}

/// A trainer that can be away, sees other samples in each step, and takes as many steps as it is told.
struct Odd {
    inner: Box<dyn Trainer>,
    samples: u64,
    steps: u64,
    /// Calls for which it is away.
    away: u64,
}

impl Trainer for Odd {
    fn layout(&self) -> &Layout {
        self.inner.layout()
    }

    fn steps(&mut self, control: &mut dyn StepControl) -> Result<TrainReport, TrainError> {
        if self.away > 0 {
            self.away -= 1;
            return Err(TrainError::Away);
        }
        for step in 0..self.steps {
            control.after(InnerStep(step), self.samples);
        }
        Ok(TrainReport {
            steps: self.steps,
            samples: self.steps * self.samples,
            loss: self.samples as f64,
        })
    }

    fn batch(&self) -> u64 {
        self.samples
    }

    fn gradients(&mut self, on_ready: Visit<'_>) -> Result<TrainReport, TrainError> {
        if self.away > 0 {
            self.away -= 1;
            return Err(TrainError::Away);
        }
        let samples = self.samples;
        self.inner.visit(0..self.layout().len(), &mut |offset, _| {
            assert_eq!(offset, 0, "a toy is one piece");
        });
        on_ready(0, &mut vec![samples as f32; self.layout().len()]);
        Ok(TrainReport {
            steps: 1,
            samples,
            loss: samples as f64,
        })
    }

    fn visit(&mut self, range: Range<usize>, f: Visit<'_>) {
        self.inner.visit(range, f);
    }

    fn evaluate(&mut self) -> Result<Evaluation, TrainError> {
        match self.away {
            0 => self.inner.evaluate(),
            _ => Err(TrainError::Away),
        }
    }

    fn save(&mut self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        self.inner.save(sink)
    }

    fn load(&mut self, source: &dyn StateSource) -> Result<(), StateError> {
        self.inner.load(source)
    }
}

fn odd(samples: u64, steps: u64, away: u64) -> Box<dyn Trainer> {
    let inner = ToyTask::quadratic(5).build(0, 1, 3);
    Box::new(Odd {
        inner,
        samples,
        steps,
        away,
    })
}

#[test]
fn an_island_is_the_mean_of_separate_trainers() {
    let mut alone: Vec<_> = (0..4).map(trainer).collect();
    let start = values(alone[0].as_mut());
    let mut reports = Vec::new();
    for trainer in &mut alone {
        trainer.write(0, &start);
        reports.push(trainer.steps(&mut Count::of(9)).unwrap());
    }
    let mut island = island(4);
    let mut control = Count::of(9);
    let report = island.steps(&mut control).unwrap();
    assert_eq!(report.steps, 9);
    assert_eq!(
        report.samples,
        reports.iter().map(|r| r.samples).sum::<u64>()
    );
    assert_eq!(
        (control.told, control.samples + island.untold),
        (9, report.samples)
    );
    let of_each: Vec<_> = alone.iter_mut().map(|t| values(t.as_mut())).collect();
    assert_ne!(of_each[0], of_each[1], "the ranks have other data");
    for (at, value) in values(&mut island).into_iter().enumerate() {
        let mean = of_each.iter().map(|v| f64::from(v[at])).sum::<f64>() / 4.0;
        assert!((f64::from(value) - mean).abs() <= 1e-6 * mean.abs().max(1.0));
    }
    let loss = reports.iter().map(|r| r.loss).sum::<f64>() / 4.0;
    assert!((report.loss - loss).abs() < 1e-12);
}

#[test]
fn an_islands_gradient_is_the_mean_of_its_ranks() {
    let mut island = Island::new(vec![odd(1, 1, 0), odd(3, 1, 0), odd(8, 1, 1)]).unwrap();
    let mut seen = vec![0.0; island.layout().len()];
    let report = island
        .gradients(&mut |offset, piece| seen[offset..offset + piece.len()].copy_from_slice(piece))
        .unwrap();
    assert_eq!((report.samples, report.loss), (4, 2.5));
    assert_eq!(seen, vec![2.5; seen.len()]);
    assert_eq!(island.batch(), 12);
}

#[test]
fn results_repeat_to_the_bit() {
    let run = || {
        let mut island = island(4);
        for _ in 0..5 {
            island.steps(&mut Count::of(3)).unwrap();
        }
        values(&mut island)
    };
    let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
    assert_eq!(bits(run()), bits(run()));
}

#[test]
fn ranks_count_by_their_samples_and_those_away_not_at_all() {
    let mut ranks = vec![odd(1, 2, 0), odd(3, 2, 0), odd(5, 7, 1)];
    for (value, rank) in [(0.0, 1), (4.0, 2), (9.0, 3)].into_iter().zip(&mut ranks) {
        rank.write(0, &[value.0; 5]);
    }
    let mut island = Island::new(ranks).unwrap();
    assert_eq!(values(&mut island), [0.0; 5], "all begin as rank 0");
    island.ranks[1].write(0, &[4.0; 5]);
    island.ranks[2].write(0, &[9.0; 5]);
    let report = island.steps(&mut Count::of(2)).unwrap();
    assert_eq!((report.steps, report.samples), (2, 8));
    assert_eq!(report.loss, 2.5);
    for rank in &mut island.ranks {
        assert_eq!(values(rank.as_mut()), [3.0; 5]);
    }
    // The third one is back, and takes more steps in the same time.
    let (mut control, before) = (Count::of(9), island.untold);
    let report = island.steps(&mut control).unwrap();
    assert_eq!((report.steps, report.samples), (7, 8 + 35));
    let told = control.samples + island.untold - before;
    assert_eq!((control.told, told), (7, 43));
}

#[test]
fn an_island_without_ranks_waits_until_one_is_back_or_it_is_told_to_stop() {
    let mut island = Island::new(vec![odd(1, 2, 3), odd(3, 2, 2)]).unwrap();
    let report = island.steps(&mut Count::of(0)).unwrap();
    assert_eq!(report, TrainReport::default());
    let report = island.steps(&mut Count::of(2)).unwrap();
    assert_eq!(report.samples, 6, "the second one was back first");
    assert!(island.evaluate().is_ok(), "by a rank that is there");
}

#[test]
fn what_is_written_reaches_all_ranks() {
    let mut island = island(3);
    island.write(2, &[7.0, 8.0]);
    island.visit(0..3, &mut |_, piece| {
        piece.iter_mut().for_each(|v| *v += 1.0)
    });
    let expected = values(&mut island);
    assert_eq!(expected[2..4], [8.0, 8.0]);
    for rank in &mut island.ranks {
        assert_eq!(values(rank.as_mut()), expected);
    }
}

#[test]
fn a_restart_goes_on_with_the_same_bits_and_with_other_ranks() {
    let mut island = island(3);
    island.steps(&mut Count::of(4)).unwrap();
    let mut state = MemoryState::default();
    island.save(&mut state).unwrap();
    let parameters = values(&mut island);
    island.steps(&mut Count::of(4)).unwrap();
    let resumed = |ranks| {
        let mut island = super::tests::island(ranks);
        island.load(&state)?;
        island.write(0, &parameters);
        island.steps(&mut Count::of(4)).unwrap();
        Ok::<_, StateError>(values(&mut island))
    };
    assert_eq!(resumed(3).unwrap(), values(&mut island));
    assert!(resumed(5).is_ok() && resumed(2).is_ok());
    // A trainer without others takes the state of rank 0.
    trainer(0).load(&state).unwrap();
    StateSink::bytes(&mut state, RANKS, &u64::MAX.to_le_bytes()).unwrap();
    let error = super::tests::island(2)
        .load(&state)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("not a number of ranks from 1 to 64"),
        "{error}"
    );
}

#[test]
fn a_rank_with_another_model_is_named() {
    let others = vec![trainer(0), trainer(1), ToyTask::quadratic(5).build(0, 1, 3)];
    let error = Island::new(others).err().unwrap().to_string();
    assert!(
        error.starts_with("rank 2 trains another model than rank 0"),
        "{error}"
    );
    assert!(!error.contains('\n'));
    assert_eq!(Island::new(Vec::new()).err(), Some(IslandError::Ranks(0)));
    let many = (0..65).map(|_| odd(1, 1, 0)).collect();
    assert_eq!(Island::new(many).err(), Some(IslandError::Ranks(65)));
}
