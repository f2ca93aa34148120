//! Schedules of the learning rate, on the swarm's clock: the factor of an inner step depends only on
//! its round and its place in the round. So peers that restart or join late agree without a message.

use core::f64::consts::PI;

/// The share of a schedule's rounds in which `wsd` decays, where the configuration does not say.
const DECAY_SHARE: f64 = 0.1;

/// The course of the factor after the warm-up. `T` is the schedule's end, `w` the warm-up, `t` the time
/// in rounds, `f` the final rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum RateShape {
    /// 1.
    #[default]
    Constant,
    /// `1 - (1 - f) (t - w) / (T - w)`.
    Linear {
        /// The factor at the end and after it.
        final_rate: f64,
    },
    /// `f + (1 - f) (1 + cos(pi (t - w) / (T - w))) / 2`.
    Cosine {
        /// The factor at the end and after it.
        final_rate: f64,
    },
    /// 1 up to `T - d`, then linear to `f`: warm-up, stable, decay.
    Wsd {
        /// The factor at the end and after it.
        final_rate: f64,
        /// Rounds `d` of the decay; zero takes a tenth of the schedule.
        decay_rounds: u64,
    },
}

/// A schedule as the configuration has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateSchedule {
    /// The course after the warm-up.
    pub shape: RateShape,
    /// Rounds in which the factor rises from 0 to 1.
    pub warmup_rounds: u64,
    /// The round at which it ends; zero takes the rounds of the run.
    pub rounds: u64,
}

impl RateSchedule {
    /// Set where the factor is always 1.
    pub fn is_constant(&self) -> bool {
        self.shape == RateShape::Constant && self.warmup_rounds == 0
    }

    /// The schedule of a run of this number of rounds, zero where it has no end.
    ///
    /// # Errors
    /// When there is no end to decay to, or warm-up and decay do not fit before it.
    pub fn of_run(&self, rounds: u64) -> Result<Rate, RateError> {
        let warmup = self.warmup_rounds as f64;
        let end = match (self.shape, self.rounds) {
            (RateShape::Constant, _) => {
                return Ok(Rate {
                    shape: self.shape,
                    warmup,
                    end: warmup,
                });
            }
            (_, 0) => rounds,
            (_, given) => given,
        };
        if end == 0 {
            return Err(RateError::NoEnd);
        }
        let decay = match self.shape {
            RateShape::Wsd { decay_rounds, .. } => decay_rounds,
            _ => 0,
        };
        if self.warmup_rounds.saturating_add(decay) > end || self.warmup_rounds == end {
            return Err(RateError::TooLong);
        }
        Ok(Rate {
            shape: self.shape,
            warmup,
            end: end as f64,
        })
    }
}

/// Why a schedule does not fit a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateError {
    /// Neither the schedule nor the run says where it ends.
    NoEnd,
    /// Warm-up and decay take longer than the schedule.
    TooLong,
}

/// The factor on the learning rate as a function of time in rounds.
///
/// ```text
/// t <  w:  t / w                       (warm-up)
/// t >= T:  f                           (after the end; 1 for a constant)
/// else:    the shape's value at t
/// ```
///
/// All arithmetic is IEEE f64 and the cosine is that of `libm`, so every machine gets the same bits:
/// peers that apply a mean gradient need them. Sources: Goyal et al., "Accurate, large minibatch SGD"
/// (2017), section 2.2 (warm-up); Loshchilov and Hutter, "SGDR" (ICLR 2017), equation 5 without
/// restarts (cosine); Hu et al., "MiniCPM" (2024), equation 1 (WSD). Special cases: no warm-up and a
/// constant shape is 1 everywhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    shape: RateShape,
    warmup: f64,
    end: f64,
}

impl Rate {
    /// 1 everywhere.
    pub const CONSTANT: Self = Self {
        shape: RateShape::Constant,
        warmup: 0.0,
        end: 0.0,
    };

    /// The time in rounds at which the factor stops to change; none if it does not change after warm-up.
    pub fn ends(&self) -> Option<f64> {
        (self.shape != RateShape::Constant).then_some(self.end)
    }

    /// The factor in `[0, 1]` at a time in rounds.
    pub fn at(&self, time: f64) -> f64 {
        if time < self.warmup {
            return time / self.warmup;
        }
        let part = |from: f64| ((time - from) / (self.end - from)).clamp(0.0, 1.0);
        match self.shape {
            RateShape::Constant => 1.0,
            RateShape::Linear { final_rate } => 1.0 - (1.0 - final_rate) * part(self.warmup),
            RateShape::Cosine { final_rate } => {
                let half = 0.5 * (1.0 + libm::cos(PI * part(self.warmup)));
                final_rate + (1.0 - final_rate) * half
            }
            RateShape::Wsd {
                final_rate,
                decay_rounds,
            } => {
                let decay = match decay_rounds {
                    0 => (self.end * DECAY_SHARE).min(self.end - self.warmup),
                    rounds => rounds as f64,
                };
                1.0 - (1.0 - final_rate) * part(self.end - decay)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(shape: RateShape, warmup_rounds: u64, rounds: u64) -> Rate {
        let schedule = RateSchedule {
            shape,
            warmup_rounds,
            rounds,
        };
        schedule.of_run(0).unwrap()
    }

    const F: f64 = 0.2;

    fn shapes() -> [RateShape; 4] {
        [
            RateShape::Constant,
            RateShape::Linear { final_rate: F },
            RateShape::Cosine { final_rate: F },
            RateShape::Wsd {
                final_rate: F,
                decay_rounds: 30,
            },
        ]
    }

    #[test]
    fn schedules_have_the_values_of_their_formulas() {
        let [constant, linear, cosine, wsd] = shapes().map(|shape| rate(shape, 10, 110));
        for schedule in [constant, linear, cosine, wsd] {
            assert_eq!(schedule.at(0.0), 0.0);
            assert_eq!(schedule.at(2.5), 0.25);
            assert_eq!(schedule.at(10.0), 1.0);
        }
        // A quarter, half and three quarters of the way, then the end and after it.
        for (time, line, curve) in [
            (35.0, 0.8, F + 0.8 * (0.5 + 0.125f64.sqrt())),
            (60.0, 0.6, 0.6),
            (85.0, 0.4, F + 0.8 * (0.5 - 0.125f64.sqrt())),
            (110.0, F, F),
            (500.0, F, F),
        ] {
            assert!((linear.at(time) - line).abs() < 1e-12, "{time}");
            assert!((cosine.at(time) - curve).abs() < 1e-12, "{time}");
            assert_eq!(constant.at(time), 1.0);
        }
        for (time, value) in [(80.0, 1.0), (95.0, 0.6), (110.0, F), (200.0, F)] {
            assert!((wsd.at(time) - value).abs() < 1e-12, "{time}");
        }
        let tenth = RateShape::Wsd {
            final_rate: 0.0,
            decay_rounds: 0,
        };
        let tenth = rate(tenth, 0, 100);
        assert_eq!((tenth.at(90.0), tenth.at(100.0)), (1.0, 0.0));
        assert!((tenth.at(95.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn schedules_have_no_jumps() {
        for shape in shapes() {
            for warmup in [0, 7] {
                let rate = rate(shape, warmup, 100);
                let step = 1e-3;
                let values = (0..120_000).map(|at| rate.at(f64::from(at) * step));
                let values: Vec<f64> = values.collect();
                let jump = values.windows(2).map(|pair| (pair[1] - pair[0]).abs());
                // The steepest is the warm-up: 1/7 a round.
                let most = jump.fold(0.0, f64::max);
                assert!(most <= step * 0.15, "{shape:?} {warmup}: {most}");
                assert!(values.iter().all(|value| (0.0..=1.0).contains(value)));
            }
        }
    }

    #[test]
    fn a_schedule_needs_an_end_after_its_warmup() {
        let linear = RateSchedule {
            shape: RateShape::Linear { final_rate: 0.0 },
            warmup_rounds: 5,
            rounds: 0,
        };
        assert_eq!(linear.of_run(0), Err(RateError::NoEnd));
        assert_eq!(linear.of_run(5), Err(RateError::TooLong));
        assert_eq!(linear.of_run(15).unwrap().at(10.0), 0.5);
        let wsd = RateSchedule {
            shape: shapes()[3],
            ..linear
        };
        assert_eq!(wsd.of_run(34), Err(RateError::TooLong));
        assert!(wsd.of_run(35).is_ok());
        let constant = RateSchedule {
            warmup_rounds: 5,
            ..RateSchedule::default()
        };
        assert_eq!(constant.of_run(0).unwrap().at(2.5), 0.5);
        assert!(!constant.is_constant() && RateSchedule::default().is_constant());
        assert_eq!(RateSchedule::default().of_run(0).unwrap(), Rate::CONSTANT);
    }
}
