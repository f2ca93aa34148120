//! What takes the time of a round.

use super::answer::{Answer, Facts, Topic};
use super::words::{described, percent, rate, short, time};
use crate::api::insight::Point;

/// Rounds that are looked at.
const ROUNDS: usize = 32;

/// From this share of a round on, a part of it is what makes it slow.
const LARGE: f64 = 0.4;

/// Rounds this many times as long as predicted are slow.
const SLOW: f64 = 1.5;

pub(super) fn answer(facts: &Facts<'_>, peer: Option<&str>) -> Answer {
    let points: Vec<&Point> = facts.insight.history.last(ROUNDS).collect();
    let answer = Answer::new(Topic::Slow, facts.status.round);
    if points.is_empty() {
        return answer.say("No round has ended yet, so nothing is measured.");
    }
    let mean =
        |of: fn(&Point) -> f64| points.iter().map(|p| of(p)).sum::<f64>() / points.len() as f64;
    let (whole, train) = (mean(|p| p.seconds), mean(|p| p.train_s));
    let (wait, exchange) = (mean(|p| p.wait_s), mean(|p| p.exchange_s));
    let predicted = facts.status.predicted.as_ref().map(|p| p.round.round_s);
    let beside = predicted.map_or(String::new(), |p| format!(", predicted {}", time(p)));
    let mut answer = answer
        .say(format!(
            "Rounds take {}{beside} (mean of {}).",
            time(whole),
            points.len()
        ))
        .say(format!(
            "Training takes {}, waiting for others {}, exchange {}.",
            time(train),
            time(wait),
            time(exchange)
        ));
    let slow = facts.insight.slow_peers(ROUNDS);
    let all: f64 = slow.values().sum();
    let named = match peer {
        Some(peer) => slow.get_key_value(peer),
        None => slow.iter().max_by(|a, b| a.1.total_cmp(b.1)),
    };
    let mut blamed = 0.0;
    if let Some((peer, seconds)) = named.filter(|(_, s)| **s > 0.0) {
        blamed = seconds / points.len() as f64;
        answer.peers.push(peer.clone());
        answer = answer.say(format!(
            "Of the time that it waited for others, {} was for {}{}.",
            percent(seconds / all.max(f64::MIN_POSITIVE)),
            described(facts, peer),
            link(facts, peer)
        ));
    }
    let part = |seconds: f64| seconds / whole.max(f64::MIN_POSITIVE);
    let first = answer.peers.first().map(|peer| short(peer));
    match first {
        _ if predicted.is_some_and(|p| whole < SLOW * p) && part(wait.max(blamed)) < LARGE => answer,
        // Waits for the bytes of one peer are part of the exchange.
        Some(peer) if part(wait.max(blamed)) >= LARGE => answer.act(format!(
            "Give daemon {peer} less work a round (fewer inner steps, or a fixed time for training), or a \
             faster machine or link."
        )),
        _ if part(exchange) >= LARGE => answer.act(
            "Send less: a codec such as int8, or three times the inner steps; `murmurate plan` compares \
             them.",
        ),
        _ if part(train) >= LARGE => answer.say("Most of a round is training, as it should be."),
        _ => answer,
    }
}

/// What is known of a link, in brackets.
fn link(facts: &Facts<'_>, peer: &str) -> String {
    let Some(known) = facts.status.peers.get(peer) else {
        return String::new();
    };
    let mut words = Vec::new();
    if let Some(link) = &known.link {
        let pushed = link.push_bytes_per_s.map(|rate| rate as f64);
        if let Some(bytes) = link.delivery_bytes_per_s.or(pushed) {
            words.push(rate(bytes));
        }
        words.extend(link.rtt_s.map(|rtt| format!("{} away", time(rtt))));
    }
    words.extend(known.path.as_ref().map(|path| path.kind.clone()));
    match words.is_empty() {
        true => String::new(),
        false => format!(" ({})", words.join(", ")),
    }
}
