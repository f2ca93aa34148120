//! What takes the time of a round.

use super::answer::{Answer, Facts, Topic};
use super::words::{described, percent, rate, short, time};
use crate::api::PeerStatus;
use crate::api::insight::Point;

const ROUNDS: usize = 32;

/// From this share of a round on, a part of it is what makes it slow.
const LARGE: f64 = 0.4;

/// From this share of all waiting on, a peer is slower than the others.
const STANDS_OUT: f64 = 0.66;

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
    let (mut blamed, mut relay) = (None, None);
    if let Some((name, seconds)) = named.filter(|(_, s)| **s > 0.0) {
        let share = seconds / all.max(f64::MIN_POSITIVE);
        let known = facts.status.peers.get(name);
        let linked = known.is_some_and(PeerStatus::is_linked);
        // Between two daemons a slow link is that of both.
        let comparable = facts.status.peers.len() > 1 || wait >= exchange;
        let stands_out = share >= STANDS_OUT && comparable;
        if stands_out || peer.is_some() {
            answer.peers.push(name.clone());
            answer = answer.say(format!(
                "It waited longest for {}{}: {} of all waiting.",
                described(facts, name),
                link(facts, name),
                percent(share)
            ));
        }
        let each = seconds / points.len() as f64;
        blamed = (stands_out && linked).then(|| (short(name), each));
        relay = known.and_then(|known| known.path.as_ref()?.relay.as_ref());
    }
    let part = |seconds: f64| seconds / whole.max(f64::MIN_POSITIVE);
    let held_up = blamed.as_ref().map_or(0.0, |(_, each)| wait.max(*each));
    match blamed {
        Some((name, _)) if part(held_up) >= LARGE && relay.is_some() => answer.act(format!(
            "Let daemon {name} and this one reach each other directly (a firewall or a router is in the \
             way): their link goes through another daemon."
        )),
        // Waits for the bytes of one peer are part of the exchange.
        Some((name, _)) if part(held_up) >= LARGE => answer.act(format!(
            "Give daemon {name} less work a round (fewer inner steps, or a fixed time for training), or a \
             faster machine or link."
        )),
        _ if part(exchange.max(wait)) >= LARGE && part(train) < LARGE => answer.act(
            "Send less (a codec such as int8), or train longer between exchanges (more inner steps); \
             `murmurate plan` compares them.",
        ),
        _ if part(train) >= LARGE => answer.say("Most of a round is training, as it should be."),
        _ => answer,
    }
}

/// Rate, distance and path of a link, in brackets.
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
    words.extend(known.path.as_ref().map(|path| match &path.relay {
        Some(relay) => format!("{} through daemon {}", path.kind, short(relay)),
        None => path.kind.clone(),
    }));
    if words.is_empty() {
        String::new()
    } else {
        format!(" ({})", words.join(", "))
    }
}
