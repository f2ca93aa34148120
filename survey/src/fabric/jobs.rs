//! Training jobs that share a link. A job computes, then sends, again and again. Jobs whose sending
//! falls together slow each other down in every iteration; jobs that take turns do not.
//!
//! - CASSINI (Rajasekaran et al. 2023, arXiv 2308.00852) turns each job on a circle until demands
//!   overlap least: [`compatibility`].
//! - MLTCP (Rajasekaran et al. 2024, arXiv 2402.09589) gives a flow a share that grows with the
//!   part of its iteration's bytes that it has sent: [`Sharing::Mltcp`].

/// A job: every iteration it computes and then sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    /// Milliseconds of computation.
    pub compute_ms: u32,
    /// Milliseconds of sending when the job has the link to itself.
    pub send_ms: u32,
}

impl Job {
    /// Milliseconds of an iteration alone on the link.
    pub fn period_ms(&self) -> u32 {
        self.compute_ms + self.send_ms
    }
}

/// How a link is divided among the jobs that send at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sharing {
    /// Equally.
    Fair,
    /// In proportion to slope * r + intercept, where r is the part of the iteration's bytes that
    /// the job has sent.
    Mltcp {
        /// Growth of the share over an iteration.
        slope: f64,
        /// Share of a flow that begins.
        intercept: f64,
    },
}

/// MLTCP's window scaling, F(r) = 1.75 r + 0.25. The form is the paper's; the two constants were not
/// checked against its text. Any growing F makes jobs take turns.
pub const MLTCP: Sharing = Sharing::Mltcp {
    slope: 1.75,
    intercept: 0.25,
};

impl Sharing {
    fn weight(self, sent: f64) -> f64 {
        match self {
            Self::Fair => 1.0,
            Self::Mltcp { slope, intercept } => slope * sent + intercept,
        }
    }
}

/// Steps of the fluid simulation in a millisecond.
const STEPS_PER_MS: u32 = 10;

/// Mean milliseconds of an iteration of each job over the second half of `iterations`. Jobs begin
/// computing at `offsets_ms`, and rates are recomputed every tenth of a millisecond.
pub fn mean_iterations(
    jobs: &[Job],
    offsets_ms: &[u32],
    sharing: Sharing,
    iterations: u32,
) -> Vec<f64> {
    let step = 1.0 / f64::from(STEPS_PER_MS);
    // Left to compute, and left to send, of the present iteration.
    let mut left: Vec<(f64, f64)> = jobs
        .iter()
        .zip(offsets_ms)
        .map(|(job, offset)| (f64::from(job.compute_ms + offset), f64::from(job.send_ms)))
        .collect();
    let mut ends: Vec<Vec<f64>> = vec![Vec::new(); jobs.len()];
    let mut now = 0.0;
    while ends.iter().any(|ends| ends.len() < iterations as usize) {
        let weights: Vec<f64> = jobs
            .iter()
            .zip(&left)
            .map(|(job, (compute, send))| {
                if *compute > 0.0 {
                    0.0
                } else {
                    sharing.weight(1.0 - send / f64::from(job.send_ms))
                }
            })
            .collect();
        let total: f64 = weights.iter().sum();
        now += step;
        for (index, job) in jobs.iter().enumerate() {
            let (compute, send) = &mut left[index];
            if *compute > 0.0 {
                *compute -= step;
                continue;
            }
            *send -= step * weights[index] / total;
            if *send <= 1e-9 {
                ends[index].push(now);
                *compute = f64::from(job.compute_ms);
                *send = f64::from(job.send_ms);
            }
        }
    }
    let mean = |ends: &Vec<f64>| {
        let (from, to) = (iterations as usize / 2, iterations as usize - 1);
        (ends[to] - ends[from - 1]) / (to + 1 - from) as f64
    };
    ends.iter().map(mean).collect()
}

/// Angles of CASSINI's circle.
const ANGLES: u32 = 72;

/// Most jobs whose turns are searched: 72^3 combinations.
pub const JOBS_MAX: usize = 4;

/// CASSINI's score of jobs on one link, and the milliseconds by which to delay each job: the circle
/// is the least common multiple of the periods, the demand at an angle the number of jobs that send
/// there, and the score 1 - mean over angles of the demand beyond the link. A score of 1 is a plan
/// in which all take turns.
///
/// The first job is not turned; of equal scores the earliest turns win.
///
/// # Panics
/// With more than [`JOBS_MAX`] jobs or without one.
pub fn compatibility(jobs: &[Job]) -> (f64, Vec<u32>) {
    assert!((1..=JOBS_MAX).contains(&jobs.len()));
    let circle = jobs
        .iter()
        .fold(1, |circle, job| lcm(circle, job.period_ms()));
    let sends = |job: &Job, turn: u32, angle: u32| {
        let at = u64::from(angle) * u64::from(circle) / u64::from(ANGLES);
        let shifted = at + u64::from(circle) - u64::from(turn % circle);
        (shifted % u64::from(job.period_ms())) as u32 >= job.compute_ms
    };
    let turns = |job: &Job| -> Vec<u32> {
        let steps = (0..ANGLES).map(|step| step * job.period_ms() / ANGLES);
        steps.collect()
    };
    let choices: Vec<Vec<u32>> = jobs.iter().map(turns).collect();
    let mut best = (f64::NEG_INFINITY, Vec::new());
    let count = u64::from(ANGLES).pow(jobs.len() as u32 - 1);
    for code in 0..count {
        let mut rest = code;
        let mut turned = vec![0; jobs.len()];
        for index in (1..jobs.len()).rev() {
            turned[index] = choices[index][(rest % u64::from(ANGLES)) as usize];
            rest /= u64::from(ANGLES);
        }
        let excess: u32 = (0..ANGLES)
            .map(|angle| {
                let demand = jobs
                    .iter()
                    .zip(&turned)
                    .filter(|(job, turn)| sends(job, **turn, angle));
                (demand.count() as u32).saturating_sub(1)
            })
            .sum();
        let score = 1.0 - f64::from(excess) / f64::from(ANGLES);
        if score > best.0 {
            best = (score, turned);
        }
        if excess == 0 {
            break;
        }
    }
    best
}

fn lcm(a: u32, b: u32) -> u32 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Job = Job {
        compute_ms: 60,
        send_ms: 60,
    };

    #[test]
    fn a_job_alone_takes_its_period() {
        for sharing in [Sharing::Fair, MLTCP] {
            let found = mean_iterations(&[HALF], &[0], sharing, 20)[0];
            assert!((found - 120.0).abs() < 0.5, "{found}");
        }
    }

    #[test]
    fn equal_jobs_that_begin_together_share_for_ever() {
        // Both send at once: 60 to compute and 120 to send.
        let found = mean_iterations(&[HALF; 2], &[0, 0], Sharing::Fair, 40);
        assert!(found.iter().all(|ms| (ms - 180.0).abs() < 1.0), "{found:?}");
    }

    #[test]
    fn window_scaling_makes_jobs_take_turns_by_themselves() {
        let (jobs, offsets) = ([HALF; 2], [0, 6]);
        let fair = mean_iterations(&jobs, &offsets, Sharing::Fair, 200);
        let scaled = mean_iterations(&jobs, &offsets, MLTCP, 200);
        assert!(fair.iter().all(|ms| *ms > 165.0), "{fair:?}");
        assert!(scaled.iter().all(|ms| *ms < 125.0), "{scaled:?}");
    }

    #[test]
    fn no_sharing_beats_half_the_time_of_the_worst() {
        // k jobs that send a k-th of their period: (2k - 1) / k < 2.
        for k in 2..6u32 {
            let job = Job {
                compute_ms: (k - 1) * 20,
                send_ms: 20,
            };
            let jobs = vec![job; k as usize];
            let together = mean_iterations(&jobs, &vec![0; k as usize], Sharing::Fair, 20)[0];
            let gain = together / f64::from(job.period_ms());
            let expected = f64::from(2 * k - 1) / f64::from(k);
            assert!((gain - expected).abs() < 0.03, "{k}: {gain}");
        }
    }

    #[test]
    fn turns_that_fit_are_found_and_what_cannot_fit_scores_less() {
        let (score, turns) = compatibility(&[HALF; 2]);
        assert_eq!((score, turns.as_slice()), (1.0, [0, 60].as_slice()));
        let spaced = mean_iterations(&[HALF; 2], &turns, Sharing::Fair, 40);
        assert!(
            spaced.iter().all(|ms| (ms - 120.0).abs() < 1.0),
            "{spaced:?}"
        );
        // Three jobs that each send half the time want one and a half links.
        let (score, _) = compatibility(&[HALF; 3]);
        assert!((score - 0.5).abs() < 0.02, "{score}");
        // Periods of 60 and 120 share a circle of 120.
        let short = Job {
            compute_ms: 45,
            send_ms: 15,
        };
        let long = Job {
            compute_ms: 90,
            send_ms: 30,
        };
        assert_eq!(compatibility(&[short, long]).0, 1.0);
    }
}
