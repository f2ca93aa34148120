//! Exchanges of two passes with real peers and Executors: all members hold the same bits when one dies in
//! either pass or between them, newcomers take over what is kept in common, nothing learned is lost, and
//! members whose data differ come to their common optimum.

use crate::common::check::{dies_at_a_push, newcomer_takes_over, refused};
use crate::common::{
    Fate, Make, Swarm, forward_trainer, peer, quadratic, refused_key, same_bits, wide,
};
use murmurate_protocol::{FragmentId, Output, Part, PeerId, Round};
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::toy::{Quadratic, ToyTask};
use murmurate_strategies::{Layout, StepControl, TrainError, TrainReport, Trainer};

/// Seven values and a matrix.
const DIM: usize = 7 + 14 * 14;

const CODECS: [&str; 2] = [
    "codec = \"power-sgd-mean\"\nrank = 1",
    "codec = \"sketched-sgd\"\ndensity = 0.1\nwidth = 0.5",
];

const EXCHANGES: [&str; 3] = [
    "exchange = \"all-reduce\"",
    "exchange = \"parameter-server\"\nowners = 1",
    "exchange = \"parameter-server\"\nowners = 2",
];

fn text(codec: &str, exchange: &str) -> String {
    format!(
        "preset = \"local-sgd\"\n[synchronization]\ninner_steps = 2\n[architecture]\n{exchange}\n\
         contribution = \"delta\"\n[compression]\n{codec}\n[overlap]\nfragments = 1\n"
    )
}

/// A quadratic whose parameters are a matrix and a few values.
struct Shaped {
    inner: Box<dyn Trainer>,
    layout: Layout,
}

impl Trainer for Shaped {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn steps(&mut self, control: &mut dyn StepControl) -> Result<TrainReport, TrainError> {
        self.inner.steps(control)
    }

    forward_trainer!(inner at hand);
}

fn shaped(task: ToyTask, peers: usize, seed: u64) -> Make {
    Box::new(move |index| {
        let tensors = [("bias", vec![7]), ("weight", vec![14, 14])];
        Box::new(Shaped {
            inner: task.build(index, peers, seed),
            layout: Layout::new(tensors),
        })
    })
}

fn swarm(codec: &str, exchange: &str, peers: usize, seed: u64) -> Swarm {
    let make = shaped(ToyTask::quadratic(DIM), peers, 11);
    Swarm::new(&text(codec, exchange), peers, seed, make)
}

#[test]
fn all_members_hold_the_same_bits_in_groups_of_every_size() {
    for codec in CODECS {
        for exchange in EXCHANGES {
            for (peers, seed) in [(1, 0), (2, 0), (3, 1), (4, 2), (7, 3)] {
                let mut swarm = swarm(codec, exchange, peers, seed);
                swarm.run(8);
                same_bits(&swarm, 8, codec);
                let anchors = &swarm.members[&peer(0)].anchors;
                assert_ne!(anchors[&Round(0)], anchors[&Round(7)], "{codec} moves");
            }
        }
    }
}

/// A newcomer's first basis and contribution are for what the others keep in common.
#[test]
fn a_newcomer_takes_over_what_is_kept_in_common() {
    for codec in CODECS {
        for exchange in EXCHANGES {
            let make = shaped(ToyTask::quadratic(DIM), 5, 11);
            let mut swarm = Swarm::new(&text(codec, exchange), 4, 1, make);
            newcomer_takes_over(&mut swarm, codec);
        }
    }
}

#[test]
fn survivors_of_a_death_in_either_pass_hold_the_same_bits() {
    let parts = [
        Part::Contribution,
        Part::Basis,
        Part::Second,
        Part::Aggregate,
    ];
    for codec in CODECS {
        for exchange in EXCHANGES {
            for part in parts {
                for (victim, nth, seed) in
                    [(1, 0, 0), (1, 1, 1), (2, 2, 2), (0, 1, 3), (3, 0, 1007)]
                {
                    let mut swarm = swarm(codec, exchange, 4, seed);
                    swarm.fatal = dies_at_a_push(peer(victim), part, nth);
                    swarm.run(6);
                    let what = format!("{codec} {exchange} {part:?} {victim} {nth}");
                    same_bits(&swarm, 6, &what);
                }
            }
        }
    }
}

/// The survivors of a death between the passes decide the round: a successor makes a basis of its own.
#[test]
fn a_death_between_the_passes_makes_no_round_void() {
    for codec in CODECS {
        for exchange in EXCHANGES {
            let mut swarm = swarm(codec, exchange, 5, 0);
            let mut dead = None;
            swarm.fatal = Box::new(move |who, round, output| match output {
                Output::Push { slice, .. } if round.0 == 2 && slice.part == Part::Basis => {
                    dead.get_or_insert(who) == &who
                }
                _ => false,
            });
            swarm.run(5);
            assert_eq!(swarm.dead.len(), 1);
            same_bits(&swarm, 5, codec);
            for who in swarm.members.keys() {
                assert_eq!(swarm.voided(*who), [], "{codec} {exchange}");
            }
        }
    }
}

/// What was learned is what moved and what the residuals hold.
#[test]
fn nothing_learned_is_lost() {
    const PEERS: usize = 4;
    const ROUNDS: u64 = 6;
    for codec in CODECS {
        let mut swarm = swarm(codec, EXCHANGES[1], PEERS, 0);
        swarm.run(ROUNDS);
        let members: Vec<PeerId> = (0..PEERS).map(peer).collect();
        let mut left = vec![0.0f64; DIM];
        let mut before = wide(&swarm.initial);
        for round in (0..ROUNDS).map(Round) {
            let set = &swarm.stated[&(round, FragmentId(0))][0];
            assert_eq!(set.len(), PEERS, "{codec} {round:?}");
            let anchor = &swarm.members[&members[0]].anchors[&round];
            for d in 0..DIM {
                let after = f64::from(anchor[d]);
                left[d] -= PEERS as f64 * (after - before[d]);
                before[d] = after;
            }
            for who in &members {
                let delta = &swarm.members[who].deltas[&round];
                left.iter_mut().zip(delta).for_each(|(l, v)| *l += v);
            }
        }
        for who in &members {
            let kept = swarm.residual(*who, ROUNDS);
            for (l, e) in left.iter_mut().zip(&kept) {
                *l -= f64::from(*e);
            }
        }
        // Rounding of six rounds of values of about ten, in f32.
        let most = left.iter().fold(0.0f64, |most, l| most.max(l.abs()));
        assert!(most < 2e-4, "{codec}: {most}");
    }
}

/// A member whose second contribution never arrives is in no mean, and all hold the same bits.
#[test]
fn a_second_contribution_that_never_arrives_is_left_out() {
    for codec in CODECS {
        let mut swarm = swarm(codec, EXCHANGES[1], 4, 0);
        let mut owner = None;
        swarm.fate = Box::new(move |slice| {
            if slice.part == Part::Basis {
                owner = Some(slice.origin);
            }
            let loser = (0..4).map(peer).find(|who| Some(*who) != owner);
            let second = slice.round.0 == 2 && slice.part == Part::Second;
            match second && Some(slice.origin) == loser {
                true => Fate::Vanished,
                false => Fate::Delivered,
            }
        });
        swarm.run(6);
        same_bits(&swarm, 6, codec);
        let set = &swarm.stated[&(Round(2), FragmentId(0))][0];
        assert_eq!(set.len(), 3, "{codec}: {set:?}");
    }
}

#[test]
fn members_with_unequal_data_come_to_the_common_optimum() {
    for (codec, rounds) in CODECS.into_iter().zip([600, 3000]) {
        let seed = 3;
        let task = quadratic(DIM, 0.3, InnerKind::sgd(0.1));
        let text = text(codec, EXCHANGES[0]).replace("inner_steps = 2", "inner_steps = 1");
        let mut swarm = Swarm::new(&text, 4, 0, shaped(task, 4, seed));
        swarm.run_long(rounds);
        let objective = Quadratic::new(DIM, 0.3, 0.0, [0, 4], seed);
        let loss = objective.global_loss(swarm.members[&peer(0)].executor.anchor());
        let start = objective.global_loss(&swarm.initial);
        println!("{codec}: {start:.1} to {loss:.1e}");
        assert!(loss < 1e-3 * start, "{codec}: {loss} of {start}");
    }
}

#[test]
fn what_cannot_carry_two_passes_is_refused_by_its_key() {
    for codec in CODECS {
        let plain = text(codec, EXCHANGES[0]);
        let instead = |other: &str| plain.replace("all-reduce\"", other);
        for (text, key) in [
            (instead("gathered\""), "compression.codec"),
            (
                instead("all-reduce\"\nschedule = \"ring\""),
                "architecture.schedule",
            ),
            (
                format!("{plain}[agreement]\nliars = 1\n"),
                "agreement.liars",
            ),
            (
                format!("{plain}[agreement]\ngrouping = \"grid\"\n"),
                "agreement.grouping",
            ),
            (
                format!("{plain}[aggregation]\nrule = \"median\"\n"),
                "aggregation.rule",
            ),
        ] {
            refused(&text, &[key]);
            assert_eq!(refused_key(&text), key);
        }
    }
}
