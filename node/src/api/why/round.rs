//! Why the round is not over.

use super::answer::{Answer, Facts, Topic};
use super::words::{described, listed, percent, short, time};
use crate::api::insight::{IncidentKind, Point, RoundResult, WaitNow};

/// A wait this many times as long as usual is worth a look.
const UNUSUAL: f64 = 3.0;

/// Shorter waits are never worth a look, seconds.
const SHORT_S: f64 = 2.0;

/// Rounds that say what is usual.
const USUAL_ROUNDS: usize = 32;

/// Refusals that an answer names.
const REFUSALS_MAX: usize = 2;

/// Peers that a sentence names.
const NAMED_MAX: usize = 4;

pub(super) fn answer(facts: &Facts<'_>, round: Option<u64>, peer: Option<&str>) -> Answer {
    let now = facts.status.round;
    match round {
        Some(round) if round > now => Answer::new(Topic::Round, round).say(format!(
            "Round {round} has not begun: this daemon is in round {now}."
        )),
        Some(round) if round < now => past(facts, round),
        _ => present(facts, peer),
    }
}

/// The wait to tell of: one that names peers, and of these the oldest.
fn main_wait<'a>(facts: &Facts<'a>) -> Option<&'a WaitNow> {
    let key = |wait: &&WaitNow| (wait.peers.is_empty(), wait.since_unix_s);
    let waits = facts.insight.waiting.iter();
    waits.min_by(|a, b| {
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })
}

fn present(facts: &Facts<'_>, peer: Option<&str>) -> Answer {
    let status = facts.status;
    let answer = Answer::new(Topic::Round, status.round);
    if let Some(how) = &status.trainer {
        return answer
            .say(format!("This daemon's training loop does not run: {how}."))
            .say("It is started again. When it fails in the same way three times, the daemon ends.")
            .act("Mend the training loop; its traceback is in the daemon's output.");
    }
    if let Some(peer) = peer {
        return about(facts, peer);
    }
    let answer = match main_wait(facts) {
        _ if facts.status.control.paused => of_pause(facts, answer),
        Some(wait) => of_wait(facts, wait),
        None => go_on_without(facts, answer.say(without_wait(facts))),
    };
    refusals(facts, answer)
}

/// Adds which peers refused a daemon that waits to begin, or were refused by it.
fn refusals(facts: &Facts<'_>, mut answer: Answer) -> Answer {
    if facts.status.phase != "join" {
        return answer;
    }
    let newest = facts.insight.incidents.all().rev();
    let refused = newest.filter_map(|incident| {
        let peer = incident.peer.as_deref()?;
        let (who, why) = (short(peer), &incident.words);
        match incident.kind {
            IncidentKind::RefusedBy => Some(format!("Daemon {who} refused this daemon: {why}.")),
            IncidentKind::Refused => Some(format!("This daemon refused daemon {who}: {why}.")),
            IncidentKind::Differs => Some(format!(
                "The configuration of daemon {who} has other values in {why}."
            )),
            _ => None,
        }
    });
    let sentences: Vec<String> = refused.take(REFUSALS_MAX).collect();
    if sentences.is_empty() {
        return answer;
    }
    for sentence in sentences {
        answer = answer.say(sentence);
    }
    let mut incidents = facts.insight.incidents.all();
    if incidents.any(|incident| incident.kind == IncidentKind::Differs) {
        return answer.act(
            "Write the same values into both configurations, and start the changed daemon again.",
        );
    }
    answer.act(
        "Compare `murmurate run --show-config` of both daemons; what must be the same is marked in \
         docs/configuration.md.",
    )
}

/// What a pause is, and who ends it.
fn of_pause(facts: &Facts<'_>, answer: Answer) -> Answer {
    let round = facts.status.round;
    let since = facts.status.control.paused_from.unwrap_or(round);
    answer
        .say(format!(
            "The run is paused by the owner since round {since}: round {round} does not begin."
        ))
        .act("Wait for the owner of the run, who ends the pause with `murmurate control resume`.")
}

/// Adds the peers that rounds went on without: they counted in the last rounds, and are silent or gone.
fn go_on_without(facts: &Facts<'_>, answer: Answer) -> Answer {
    let rounds = || facts.insight.ledger.rounds().rev().take(USUAL_ROUNDS);
    let took_part = |id: &String| rounds().any(|entry| entry.peers.contains_key(id));
    let peers = facts.status.peers.iter();
    let silent = peers.filter(|(id, known)| (known.suspected || !known.linked) && took_part(id));
    let silent: Vec<String> = silent.map(|(id, _)| id.clone()).collect();
    let Some(first) = silent.first() else {
        return answer;
    };
    let ended = matches!(facts.status.phase.as_str(), "finished" | "leaving" | "left");
    let shown: Vec<String> = silent
        .iter()
        .take(NAMED_MAX)
        .map(|p| described(facts, p))
        .collect();
    let who = listed(&shown);
    let name = short(first);
    let linked = facts.status.peers.get(first).is_some_and(|p| p.linked);
    let answer = answer
        .names(&silent)
        .say(format!("Rounds go on without {who}."));
    match (ended, linked) {
        (true, _) => answer,
        (false, true) => answer.act(format!(
            "Look at the machine of daemon {name}: it is linked, but silent (stopped, swapping or \
             overloaded?)."
        )),
        (false, false) => answer.act(format!(
            "If daemon {name} should take part, check that it runs and that this machine can reach it."
        )),
    }
}

/// Whether the round waits for one peer.
fn about(facts: &Facts<'_>, peer: &str) -> Answer {
    let mut waits = facts.insight.waiting.iter();
    let round = facts.status.round;
    match waits.find(|wait| wait.peers.iter().any(|p| p == peer)) {
        Some(wait) => of_wait(facts, wait),
        None => Answer::new(Topic::Round, round).say(format!(
            "Round {round} does not wait for {}.",
            described(facts, peer)
        )),
    }
}

/// What a daemon does that waits for no other.
fn without_wait(facts: &Facts<'_>) -> String {
    let status = facts.status;
    let round = status.round;
    match status.phase.as_str() {
        "new" => "The daemon has not begun.".to_owned(),
        "join" => {
            "The daemon waits to begin: no other daemon, or no state, is here yet.".to_owned()
        }
        "train" => format!(
            "Round {round} trains on this daemon, {:.1} inner steps a second; it waits for no other.",
            status.inner_steps_per_s
        ),
        "finished" => format!("All {} rounds are complete.", status.rounds),
        "leaving" | "left" => "The daemon leaves.".to_owned(),
        phase => format!("Round {round} is in its phase {phase} and waits for no other daemon."),
    }
}

fn of_wait(facts: &Facts<'_>, wait: &WaitNow) -> Answer {
    let round = facts.status.round;
    let waited = (facts.now - wait.since_unix_s).max(0.0);
    let left = wait.deadline_unix_s - facts.now;
    let named: Vec<String> = wait
        .peers
        .iter()
        .take(NAMED_MAX)
        .map(|p| described(facts, p))
        .collect();
    let more = wait.peers.len().saturating_sub(NAMED_MAX);
    let mut who = listed(&named);
    if more > 0 {
        who = format!("{who}, and {more} more");
    }
    let subject = match wait.what.as_str() {
        "peers" | "state" if who.is_empty() => "The daemon waits for other daemons".to_owned(),
        "peers" | "state" => format!("The daemon waits for {who}"),
        _ if who.is_empty() => format!("Round {round} waits for this daemon's own work"),
        _ => format!("Round {round} waits for {who}"),
    };
    let mut answer = Answer::new(Topic::Round, round)
        .names(&wait.peers)
        .say(format!("{subject}: {}.", what_is_missing(&wait.what)))
        .say(format!("It has waited {}.", time(waited)));
    answer = answer.say(match left > 0.0 {
        true => format!(
            "The deadline is in {}; then {}.",
            time(left),
            then(facts, wait)
        ),
        false => format!("The deadline has passed; {}.", then(facts, wait)),
    });
    match action(facts, wait, waited) {
        Some(action) => answer.act(action),
        None => answer,
    }
}

/// What a wait lacks.
fn what_is_missing(what: &str) -> &'static str {
    match what {
        "peers" => "a run begins when enough daemons are here",
        "state" => "their state is on its way, and this daemon goes on from it",
        "group" => "not done with the training of the round",
        "contributions" => "contributions have not arrived",
        "agreement" => "aggregates or votes have not arrived",
        "repair" => "the part of a daemon that failed is done again by others",
        "results" => "results of other columns have not arrived",
        "partners" => "parameters of neighbours have not arrived",
        "center" => "shards have not come back from their owners",
        "lead" => "too many rounds behind",
        _ => "an answer has not arrived",
    }
}

/// What follows the deadline.
fn then(facts: &Facts<'_>, wait: &WaitNow) -> String {
    let here = 1 + facts
        .status
        .peers
        .values()
        .filter(|peer| peer.linked)
        .count();
    let linked = |peer: &&String| facts.status.peers.get(*peer).is_some_and(|p| p.linked);
    let missing = wait.peers.iter().filter(linked).count();
    match wait.what.as_str() {
        "peers" => "training begins with the daemons that are here".to_owned(),
        "state" => "another daemon is asked".to_owned(),
        "group" => format!(
            "the round goes on with {} of {here}",
            here.saturating_sub(missing)
        ),
        "contributions" => "the round goes on without these contributions".to_owned(),
        "agreement" | "repair" => "others do the missing part again".to_owned(),
        "results" => "other rows are asked".to_owned(),
        "partners" => "the round mixes what has arrived".to_owned(),
        "center" => "the shards are asked of other owners, or left as they are".to_owned(),
        "lead" => "training goes on".to_owned(),
        _ => "the round goes on".to_owned(),
    }
}

/// What a person can do about a wait; nothing if it is as long as usual.
fn action(facts: &Facts<'_>, wait: &WaitNow, waited: f64) -> Option<String> {
    let points: Vec<&Point> = facts.insight.history.last(USUAL_ROUNDS).collect();
    let usual = points.iter().map(|p| p.wait_s).sum::<f64>() / points.len().max(1) as f64;
    let unusual = waited > SHORT_S.max(UNUSUAL * usual);
    let Some(peer) = wait.peers.first() else {
        let begins = wait.what == "peers" && waited > SHORT_S;
        return begins.then(|| {
            "Start the other daemons, or check the addresses given with --join.".to_owned()
        });
    };
    let linked = facts.status.peers.get(peer).is_some_and(|p| p.linked);
    let name = short(peer);
    match (linked, unusual) {
        (false, _) => Some(format!(
            "Check that daemon {name} runs and that this machine can reach it."
        )),
        (true, true) => Some(format!(
            "Look at the machine of daemon {name}: it is linked, but has been silent for {} (stopped, \
             swapping or overloaded?).",
            time(waited)
        )),
        (true, false) => None,
    }
}

/// What a round that is over came to.
fn past(facts: &Facts<'_>, round: u64) -> Answer {
    let answer = Answer::new(Topic::Round, round);
    let mut points = facts.insight.history.points();
    let entry = facts.insight.ledger.round(round);
    let Some(point) = points.find(|point| point.round == round) else {
        return match entry.and_then(|entry| entry.result) {
            Some(RoundResult::Replayed | RoundResult::Skipped) => answer.say(format!(
                "Round {round} ended without this daemon, which took over its result from others."
            )),
            _ => answer.say(format!(
                "Round {round} is over, and nothing is remembered of it: it is too old, or was before this \
                 daemon started."
            )),
        };
    };
    let mut answer = answer.say(format!(
        "Round {round} took {}: {} of training, {} of waiting for others and {} of exchange.",
        time(point.seconds),
        time(point.train_s),
        time(point.wait_s),
        time(point.exchange_s)
    ));
    if let Some((peer, seconds)) = point.waited_for.first() {
        let share = percent((seconds / point.seconds.max(f64::MIN_POSITIVE)).min(1.0));
        answer.peers.push(peer.clone());
        answer = answer.say(format!(
            "It waited the longest for {}: {}, {share} of the round.",
            described(facts, peer),
            time(*seconds)
        ));
    }
    if let Some(result) = entry.and_then(|entry| entry.result) {
        answer = answer.say(result_words(result));
    }
    answer
}

/// How a round ended.
const fn result_words(result: RoundResult) -> &'static str {
    match result {
        RoundResult::Decided => "It was decided.",
        RoundResult::Partial => "Only parts of the model have a result; the others stayed.",
        RoundResult::Void => {
            "It had no result: too many daemons failed in it, and the parameters stayed."
        }
        RoundResult::Alone => "No group came about: no other daemon was ready.",
        RoundResult::Mixed => "The parameters of neighbours were mixed in.",
        RoundResult::Replayed | RoundResult::Skipped => {
            "It ended without this daemon, which took over its result."
        }
    }
}
