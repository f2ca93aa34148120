//! Why the round is not over.

use super::answer::{Answer, Facts, Topic};
use super::troubles::{Count, named};
use super::words::{described, percent, short, time};
use crate::api::PeerStatus;
use crate::api::insight::{IncidentKind, Point, RoundResult, WaitNow};
use crate::progress::bytes;
use murmurate_protocol::{Phase, Wait};

/// A wait this many times as long as usual is worth a look.
const UNUSUAL: f64 = 3.0;

/// Shorter waits are never worth a look, seconds.
const SHORT_S: f64 = 2.0;

/// Rounds over which the usual wait is averaged.
const USUAL_ROUNDS: usize = 32;

const REFUSALS_MAX: usize = 2;

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
        _ if facts.status.control.paused => of_pause(facts),
        Some(wait) => of_wait(facts, wait),
        None => without_wait(facts),
    };
    let answer = refusals(facts, reunion(facts, answer));
    match facts.status.privacy {
        Some(privacy) => answer.say(privacy.sentence()),
        None => answer,
    }
}

/// Adds that the sides of a split are being merged.
fn reunion(facts: &Facts<'_>, answer: Answer) -> Answer {
    match facts.insight.outages.merging_branch(facts.status.branch) {
        Some(branch) => answer.say(format!(
            "The swarm was split in round {}; its sides are being merged.",
            branch.since_round
        )),
        None => answer,
    }
}

/// Adds which peers refused a daemon that waits to begin, or were refused by it.
fn refusals(facts: &Facts<'_>, mut answer: Answer) -> Answer {
    if Phase::of_word(&facts.status.phase) != Some(Phase::Join) {
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
        "Compare what `murmurate run --show-config` prints with the flags of each daemon; docs/configuration.md \
         marks what must be the same.",
    )
}

fn of_pause(facts: &Facts<'_>) -> Answer {
    let round = facts.status.round;
    let since = facts.status.control.paused_from.unwrap_or(round);
    Answer::new(Topic::Round, round)
        .say(format!(
            "The run is paused by the owner since round {since}: round {round} does not begin."
        ))
        .act("Wait for the owner of the run, who ends the pause with `murmurate control resume`.")
}

/// The round's wait for one peer.
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

/// The work of a daemon that waits for no other.
fn without_wait(facts: &Facts<'_>) -> Answer {
    let status = facts.status;
    let round = status.round;
    let answer = Answer::new(Topic::Round, round);
    let alone = facts.status.linked() == 0 && status.phase != "join";
    let answer = answer.say(match Phase::of_word(&status.phase) {
        Some(Phase::New) => "The daemon has not begun.".to_owned(),
        Some(Phase::Join) => "The daemon has not begun its first round: it looks for others.".to_owned(),
        Some(Phase::Train) => format!(
            "Round {round}: this daemon trains, {:.1} inner steps a second, and waits for no other.",
            status.inner_steps_per_s
        ),
        Some(Phase::Exchange) => format!("Round {round}: this daemon exchanges what it trained."),
        Some(Phase::Apply) => format!("Round {round}: this daemon applies the result."),
        Some(Phase::Settle) => {
            format!("Before round {round}: this daemon evaluates the model, or writes a checkpoint.")
        }
        Some(Phase::Finished) => format!("All {} rounds are complete.", status.rounds),
        _ => "The daemon leaves.".to_owned(),
    });
    if alone && Phase::of_word(&status.phase) == Some(Phase::Train) {
        answer.say("No other daemon is here; others can join at any time.")
    } else {
        answer
    }
}

fn of_wait(facts: &Facts<'_>, wait: &WaitNow) -> Answer {
    let round = facts.status.round;
    let waited = (facts.now - wait.since_unix_s).max(0.0);
    let left = wait.deadline_unix_s - facts.now;
    let who = named(facts, &wait.peers);
    let what = Wait::of_word(&wait.what);
    let awaited = match (what, who.as_str()) {
        (Some(Wait::Peers | Wait::State), "") => "The daemon waits for other daemons".to_owned(),
        (Some(Wait::Peers | Wait::State), who) => format!("The daemon waits for {who}"),
        (Some(Wait::Group), "") => format!("Round {round} waits until a group has formed"),
        (_, "") => format!("Round {round} waits for other daemons"),
        (_, who) => format!("Round {round} waits for {who}"),
    };
    let (lack, sequel) = lack_and_sequel(facts, wait);
    let transfer = facts.status.transfer.as_ref();
    let transfer = transfer.filter(|_| what == Some(Wait::State));
    let came = transfer.map_or_else(String::new, |it| {
        format!("; {} of {} have come", bytes(it.bytes), bytes(it.of_bytes))
    });
    let answer = Answer::new(Topic::Round, round)
        .names(&wait.peers)
        .say(format!("{awaited}: {lack}."))
        .say(format!("It has waited {}{came}.", time(waited)))
        .say(if left > 0.0 {
            format!("The deadline is in {}; then {sequel}.", time(left))
        } else {
            format!("The deadline has passed; {sequel}.")
        });
    match action(facts, wait, waited) {
        Some(action) => answer.act(action),
        None => answer,
    }
}

/// The missing part of a wait, and the sequel to its deadline.
fn lack_and_sequel(facts: &Facts<'_>, wait: &WaitNow) -> (&'static str, String) {
    let (lack, sequel) = match Wait::of_word(&wait.what) {
        Some(Wait::Group) => return (group_lacks(facts, wait), group_without(facts, wait)),
        Some(Wait::Peers) => (
            "a run begins when enough daemons are here",
            "training begins if enough are here, and waits on if not",
        ),
        Some(Wait::State) => (
            "it takes over the present state from others, and goes on from it",
            "another daemon is asked",
        ),
        Some(Wait::Contributions) => (
            "contributions have not arrived",
            "the round goes on without these contributions",
        ),
        Some(Wait::Agreement) => (
            "sums or votes have not arrived",
            "others do the missing part again",
        ),
        Some(Wait::Repair) => (
            "a daemon failed, and others do its part of the round again",
            "others do the missing part again",
        ),
        Some(Wait::Results) => (
            "results of other columns have not arrived",
            "other rows are asked",
        ),
        Some(Wait::Partners) => (
            "parameters of neighbours have not arrived",
            "the round mixes what has arrived",
        ),
        Some(Wait::Center) => (
            "parameters have not come back from the servers that own them",
            "other owners are asked, or the parameters are left as they are",
        ),
        Some(Wait::Lead) => ("too many rounds behind", "training goes on"),
        None => ("an answer has not arrived", "the round goes on"),
    };
    (lack, sequel.to_owned())
}

fn group_lacks(facts: &Facts<'_>, wait: &WaitNow) -> &'static str {
    match wait.peers.len() {
        1 => "it has not ended its training of the round",
        2.. => "they have not ended their training of the round",
        0 if facts.status.linked() > 0 => "the daemons that are ready agree on who is in it",
        0 if facts.about.agreement.signs() => {
            "no other daemon is linked, and with `agreement.liars` above 0 a lost daemon counts for a minute"
        }
        0 => "no other daemon is linked",
    }
}

/// Prospect of a group without those that are awaited.
fn group_without(facts: &Facts<'_>, wait: &WaitNow) -> String {
    let peers = &facts.status.peers;
    let Count { here, gone, needed } = Count::of(facts);
    let awaited = wait.peers.iter();
    let missing = awaited.filter(|peer| peers.get(*peer).is_some_and(PeerStatus::is_linked));
    let (ready, seats) = (here.saturating_sub(missing.count()), here + gone.len());
    if ready >= needed {
        format!("the round goes on with {ready} of {seats}")
    } else {
        format!(
            "{ready} of {seats} are too few for a result, which needs {needed}: this daemon trains on until more \
             are ready"
        )
    }
}

/// A person's remedy for a wait; none if it is as long as usual.
fn action(facts: &Facts<'_>, wait: &WaitNow, waited: f64) -> Option<String> {
    let points: Vec<&Point> = facts.insight.history.last(USUAL_ROUNDS).collect();
    let usual = points.iter().map(|p| p.wait_s).sum::<f64>() / points.len().max(1) as f64;
    let unusual = waited > SHORT_S.max(UNUSUAL * usual);
    let count = Count::of(facts);
    if Wait::of_word(&wait.what) == Some(Wait::Group) && count.too_few() {
        return Some(count.remedy());
    }
    let Some(peer) = wait.peers.first() else {
        let begins = matches!(Wait::of_word(&wait.what), Some(Wait::Peers | Wait::State));
        return (begins && waited > SHORT_S).then(|| {
            "Start the other daemons, or check the addresses given with --join.".to_owned()
        });
    };
    let linked = facts
        .status
        .peers
        .get(peer)
        .is_some_and(PeerStatus::is_linked);
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

/// Cost and result of a round that is over.
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
