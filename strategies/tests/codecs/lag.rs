//! The rules of `lag` against the paper's algorithms in f64, on quadratics whose optima and
//! curvatures differ between members.

use crate::gathered::{DIM, Group, PEERS, all, kind};
use std::collections::BTreeSet;

/// The step on the mean of gradients.
const RATE: f64 = 0.4;

/// The paper's D and xi.
const MOVES: usize = 10;
const XI: f64 = 0.1;

/// The curvature of a member at a place: members differ by the factor that the paper's first test
/// has, 1.3^(m - 1) + 1 squared, here to at most one.
fn curvature(at: usize, d: usize) -> f64 {
    let most = (1.3f64.powi(3 * at as i32) + 1.0).powi(2) / (1.3f64.powi(12) + 1.0).powi(2);
    most * (0.25 + 0.75 * (d % 16) as f64 / 15.0)
}

fn center(at: usize, d: usize) -> f64 {
    ((at * 37 + d * 11) % 23) as f64 / 8.0 - 1.4
}

/// L_m.
fn smoothness(at: usize) -> f64 {
    curvature(at, 15)
}

fn gradient(at: usize, x: &[f64]) -> Vec<f64> {
    (0..DIM)
        .map(|d| curvature(at, d) * (x[d] - center(at, d)))
        .collect()
}

fn optimum() -> Vec<f64> {
    let of = |d: usize| {
        let weighted = (0..PEERS).map(|at| curvature(at, d) * center(at, d));
        weighted.sum::<f64>() / (0..PEERS).map(|at| curvature(at, d)).sum::<f64>()
    };
    (0..DIM).map(of).collect()
}

fn square(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|v| v * v).sum()
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    square(a.iter().zip(b).map(|(a, b)| a - b))
}

#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// Equation 7a.
    Worker,
    /// Equation 7b with L_m given.
    Server,
    /// Equation 7b with L_m as the largest slope between gradients that were sent.
    Estimated,
}

/// Algorithms 1 and 2 of the paper, for sums over M members and alpha = RATE / M. Gives the members
/// that send in each round, and where it ends.
fn reference(rule: Rule, rounds: usize) -> (Vec<BTreeSet<usize>>, Vec<f64>) {
    let alpha = RATE / PEERS as f64;
    let mut thetas = vec![vec![0.0; DIM]];
    let mut sent = vec![(Vec::new(), Vec::new()); PEERS];
    let mut slopes = [0.0f64; PEERS];
    let mut senders = Vec::new();
    for k in 0..rounds {
        let theta = thetas[k].clone();
        let steps = (1..=MOVES.min(k)).map(|d| apart(&thetas[k + 1 - d], &thetas[k - d]));
        let right = XI * steps.sum::<f64>() / (alpha * alpha * (PEERS * PEERS) as f64);
        let mut now = BTreeSet::new();
        for at in 0..PEERS {
            let (then, last) = &sent[at];
            let new = gradient(at, &theta);
            let silent = k > 0
                && match rule {
                    Rule::Worker => apart(last, &new) <= right,
                    Rule::Server => smoothness(at).powi(2) * apart(then, &theta) <= right,
                    Rule::Estimated => {
                        slopes[at] > 0.0 && slopes[at].powi(2) * apart(then, &theta) <= right
                    }
                };
            if silent {
                continue;
            }
            if k > 0 {
                let slope = (apart(last, &new) / apart(then, &theta)).sqrt();
                slopes[at] = slopes[at].max(slope);
            }
            sent[at] = (theta.clone(), new);
            now.insert(at);
        }
        let sum = |d: usize| sent.iter().map(|(_, gradient)| gradient[d]).sum::<f64>();
        thetas.push((0..DIM).map(|d| theta[d] - alpha * sum(d)).collect());
        senders.push(now);
    }
    (senders, thetas.pop().unwrap())
}

fn given(rule: Rule) -> Vec<(&'static str, f64)> {
    match rule {
        Rule::Worker => vec![("xi", XI)],
        Rule::Server | Rule::Estimated => vec![("xi", XI), ("rule", 1.0)],
    }
}

/// The codec in a group, with the L_m of each member where it is given.
fn built(
    rule: Rule,
    rounds: usize,
    present: impl Fn(u64) -> Vec<usize>,
) -> (Vec<BTreeSet<usize>>, Vec<f64>) {
    let mut group = Group::new(&kind("lag", &given(rule)));
    if rule == Rule::Server {
        for (at, codec) in group.codecs.iter_mut().enumerate() {
            let own = [&given(rule)[..], &[("smoothness", smoothness(at))]].concat();
            *codec = kind("lag", &own).build();
        }
    }
    let (mut x, mut senders) = (vec![0.0f32; DIM], Vec::new());
    for round in 0..rounds {
        let wide: Vec<f64> = x.iter().map(|v| f64::from(*v)).collect();
        let gradients =
            (0..PEERS).map(|at| gradient(at, &wide).iter().map(|v| *v as f32).collect());
        group.anchor.clone_from(&x);
        group.encode(&gradients.collect::<Vec<_>>());
        let speaks = |at: &usize| group.sent[*at].len() > 3;
        senders.push((0..PEERS).filter(speaks).collect());
        let moved = group.gather(&present(round as u64));
        let steps = x.iter_mut().zip(&moved);
        steps.for_each(|(x, moved)| *x -= RATE as f32 * moved);
    }
    (senders, x.iter().map(|v| f64::from(*v)).collect())
}

fn sends(senders: &[BTreeSet<usize>]) -> usize {
    senders.iter().map(BTreeSet::len).sum()
}

#[test]
fn members_send_where_the_paper_lets_them_send() {
    for rule in [Rule::Worker, Rule::Server, Rule::Estimated] {
        // As long as steps are far above the rounding of f32.
        let (expected, end) = reference(rule, 40);
        let (found, x) = built(rule, 40, all);
        assert_eq!(found, expected);
        assert!(apart(&x, &end).sqrt() < 1e-4);
    }
}

#[test]
fn the_servers_rule_sends_less_and_reaches_the_same_optimum() {
    let rounds = 400;
    let (optimum, every) = (optimum(), rounds * PEERS);
    for rule in [Rule::Worker, Rule::Server, Rule::Estimated] {
        let (senders, x) = built(rule, rounds, all);
        let off = (apart(&x, &optimum) / square(optimum.iter().copied())).sqrt();
        let of = |at: usize| senders.iter().filter(|now| now.contains(&at)).count();
        let counts: Vec<usize> = (0..PEERS).map(of).collect();
        println!("{off:.2e}, {counts:?} of {rounds}");
        assert!(off < 1e-4, "{off}");
        assert!(
            2 * sends(&senders) < every,
            "{} of {every}",
            sends(&senders)
        );
        // Who bends least has the least to say.
        assert!(
            counts.is_sorted() && 4 * counts[0] < counts[PEERS - 1],
            "{counts:?}"
        );
    }
}

#[test]
fn a_contribution_that_did_not_count_is_said_again() {
    for rule in [Rule::Server, Rule::Estimated] {
        // A round in which member 4 sends, and has nothing to say in the next one.
        let (undisturbed, _) = built(rule, 60, all);
        let says = |round: usize| undisturbed[round].contains(&4);
        let lost = (2..59)
            .find(|round| says(*round) && !says(*round + 1))
            .unwrap();
        // It is left out there: the others still hold what it said before.
        let absent = |round: u64| {
            let present = |at: &usize| round != lost as u64 || *at != 4;
            (0..PEERS).filter(present).collect()
        };
        let (senders, x) = built(rule, 400, absent);
        assert_eq!(senders[..=lost], undisturbed[..=lost]);
        assert!(senders[lost + 1].contains(&4), "round {lost}");
        let off = apart(&x, &optimum()) / square(optimum().into_iter());
        assert!(off.sqrt() < 1e-4);
    }
}

#[test]
fn without_an_anchor_the_servers_rule_always_sends() {
    let own = [("rule", 1.0), ("smoothness", 0.001)];
    let mut group = Group::new(&kind("lag", &own));
    for round in 0..5 {
        let values = vec![vec![1.0; DIM]; PEERS];
        group.encode(&values);
        assert!(group.sent.iter().all(|bytes| bytes.len() > 3), "{round}");
        group.gather(&all(0));
    }
}
