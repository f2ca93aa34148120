//! Rule `secure-mean` with real peers: the mean is that of the weighted mean, nothing that leaves a peer can be read
//! alone, and after a death at any moment no two sums are opened whose difference would be one member's.

use crate::common::check::refused;
use crate::common::{Swarm, near, peer, quadratic, wide};
use murmurate_protocol::{Output, Part, Round};
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::inner::InnerKind;
use std::cell::Cell;
use std::rc::Rc;

const DIM: usize = 24;

fn text(rule: &str, more: &str) -> String {
    format!(
        "preset = \"local-sgd\"\n[synchronization]\ninner_steps = 2\n[architecture]\nexchange = \"all-reduce\"\n\
         contribution = \"delta\"\n[compression]\ncodec = \"f32\"\n[aggregation]\nrule = \"{rule}\"\n{more}\n[inner]\n\
         optimizer = \"sgd\"\nlr = 0.2\n"
    )
}

fn swarm(text: &str, peers: usize, seed: u64) -> Swarm {
    let task = quadratic(DIM, 1.0, InnerKind::sgd(0.2));
    Swarm::training(text, task, peers, [seed, 3])
}

#[test]
fn the_mean_is_the_weighted_mean_up_to_the_steps_of_integers() {
    let parameter_server = |text: String| {
        text.replace("\"all-reduce\"", "\"parameter-server\"")
            .replace("inner_steps = 2", "inner_steps = 2\nmode = \"bsp\"")
    };
    for (peers, server) in [(3, false), (5, false), (4, true)] {
        let of = |rule: &str| match server {
            true => parameter_server(text(rule, "")),
            false => text(rule, ""),
        };
        let mut plain = swarm(&of("weighted-mean"), peers, 0);
        let mut masked = swarm(&of("secure-mean"), peers, 0);
        plain.run(8);
        masked.run(8);
        let [plain, masked] =
            [&plain, &masked].map(|swarm| swarm.members[&peer(0)].executor.anchor());
        near(plain, &wide(masked), 1e-6, &format!("{peers} {server}"));
    }
}

#[test]
fn means_return_in_the_codec_of_the_run() {
    let int8 = text("secure-mean", "").replace("codec = \"f32\"", "codec = \"int8\"");
    let mut swarm = swarm(&int8, 4, 1);
    swarm.run(6);
    let of = |part: Part| {
        let slices = swarm.encoded.iter().filter(move |(s, _)| s.part == part);
        slices.map(|(_, bytes)| bytes.len()).max().unwrap()
    };
    // Six values of a shard.
    assert_eq!(of(Part::Contribution), 16 + 4 * 6);
    assert!(of(Part::Aggregate) < 4 * 6, "{}", of(Part::Aggregate));
}

/// A contribution of zeros, and one of large values, are the same to who sees one of them.
#[test]
fn what_leaves_a_peer_says_nothing_alone() {
    let mut swarm = swarm(&text("secure-mean", ""), 4, 1);
    swarm.run(12);
    let contributions = swarm.encoded.iter();
    let contributions = contributions.filter(|(slice, _)| slice.part == Part::Contribution);
    let mut bits = [0_u32; 8];
    let mut words = 0;
    for (slice, bytes) in contributions {
        // A member sends its share of the delta.
        let delta = &swarm.members[&slice.origin].deltas[&slice.round];
        let share: Vec<f64> = delta.iter().map(|value| value / 4.0).collect();
        for four in bytes[16..].as_chunks::<4>().0 {
            let (as_float, as_steps) = (f32::from_le_bytes(*four), i32::from_le_bytes(*four));
            let as_steps = f64::from(as_steps) * 8.0 / f64::from(1_u32 << 31);
            let near =
                |d: &f64| (d - f64::from(as_float)).abs() < 1e-9 || (d - as_steps).abs() < 1e-9;
            assert!(!share.iter().chain(delta).any(near), "{slice:?}");
            words += 1;
            for (at, count) in bits.iter_mut().enumerate() {
                *count += u32::from(four[3] >> at & 1);
            }
        }
    }
    assert!(words >= 12 * DIM * 3, "{words}");
    // The leading bits are those of a coin, within five deviations.
    let deviation = f64::from(words as u32).sqrt() / 2.0;
    for count in bits {
        let off = f64::from(count) - f64::from(words as u32) / 2.0;
        assert!(off.abs() < 5.0 * deviation, "{count} of {words}");
    }
}

/// Kills a member at its n-th output of round 2. Gives the swarm, and whether the member died.
fn death_at(peers: usize, victim: usize, nth: usize) -> (Swarm, bool) {
    let mut swarm = swarm(&text("secure-mean", ""), peers, 0);
    let died = Rc::new(Cell::new(false));
    let (seen, told) = (Cell::new(0), Rc::clone(&died));
    swarm.fatal = Box::new(move |who, round, _: &Output| {
        if who != peer(victim) || round != Round(2) {
            return false;
        }
        seen.set(seen.get() + 1);
        told.set(told.get() || seen.get() > nth);
        seen.get() > nth
    });
    swarm.run(5);
    let died = died.get();
    (swarm, died)
}

#[test]
fn a_death_at_any_moment_opens_no_two_sums_and_no_sum_without_a_member() {
    for peers in 3..=8 {
        for victim in [0, peers - 1] {
            for nth in 0.. {
                let (swarm, died) = death_at(peers, victim, nth);
                if !died {
                    assert!(nth > 8, "a peer puts out more than {nth} things in a round");
                    break;
                }
                for ((round, _), shards) in &swarm.stated {
                    let first = &shards[0];
                    assert!(shards.iter().all(|of| of == first), "{round}: {shards:?}");
                    assert!(
                        first.len() >= 3,
                        "{peers} {victim} {nth} {round}: {first:?}"
                    );
                }
                let living = swarm.members.values();
                let anchors: Vec<_> = living.map(|m| m.executor.anchor()).collect();
                assert!(anchors.iter().all(|anchor| *anchor == anchors[0]));
                let moved = swarm
                    .stated
                    .keys()
                    .filter(|(round, _)| round.0 >= 3)
                    .count();
                assert!(
                    peers == 3 || moved > 0,
                    "the others go on: {peers} {victim} {nth}"
                );
            }
        }
    }
}

/// The noise of a private mean is in the sum, and each contribution has a share of it.
#[test]
fn members_protect_together() {
    let keys = "clip = 0.25\nnoise = 3.0\nmembers = 4";
    let mut noised = swarm(&text("private-mean", keys), 4, 1);
    noised.run(40);
    // What is applied has a noise of 3 * 0.25 * sqrt(4 / 3) / 4, and the mean of clipped deltas.
    let deviation: f64 = 0.75 * (4.0_f64 / 3.0).sqrt() / 4.0;
    let mut squares = (0.0, 0);
    let anchors = &noised.members[&peer(0)].anchors;
    let pairs = anchors.values().zip(anchors.values().skip(1));
    for (before, after) in pairs {
        for (a, b) in before.iter().zip(after) {
            squares.0 += f64::from(b - a).powi(2);
            squares.1 += 1;
        }
    }
    let mean = squares.0 / f64::from(squares.1);
    let (least, most) = (
        0.85 * deviation * deviation,
        1.2 * deviation * deviation + 0.0026,
    );
    assert!(
        (least..most).contains(&mean),
        "{mean} for {}",
        deviation * deviation
    );
}

#[test]
fn what_would_show_more_or_cancel_nothing_is_refused() {
    let plain = text("secure-mean", "");
    assert!(Strategy::parse(&plain, None).is_ok());
    for (from, to, says) in [
        ("\"all-reduce\"", "\"gathered\"", "masks cancel"),
        (
            "\"all-reduce\"",
            "\"all-reduce\"\nschedule = \"ring\"",
            "masks cancel",
        ),
        (
            "[inner]",
            "[agreement]\nliars = 1\n[inner]",
            "a member that lies",
        ),
        (
            "[inner]",
            "[agreement]\ngrouping = \"grid\"\n[inner]",
            "the sum of a whole group",
        ),
        ("\"f32\"", "\"top-k\"\ndensity = 0.1", "every value"),
        (
            "\"f32\"",
            "\"int8\"\nerror_feedback = true",
            "leave nothing out",
        ),
        (
            "\"secure-mean\"",
            "\"secure-mean\"\nmembers = 2",
            "aggregation.members",
        ),
        (
            "\"secure-mean\"",
            "\"secure-mean\"\nmembers = 65",
            "aggregation.members",
        ),
    ] {
        refused(&plain.replace(from, to), &[says]);
    }
    for preset in ["d-psgd", "asp", "choco", "none", "guarded"] {
        let text = "[aggregation]\nrule = \"secure-mean\"";
        assert!(Strategy::parse(text, Some(preset)).is_err(), "{preset}");
    }
}
