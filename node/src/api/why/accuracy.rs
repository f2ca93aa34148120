//! Why the accuracy fell: what this daemon saw in the rounds in which it did.

use super::answer::{Answer, Facts, Topic};
use super::words::{described, listed, percent, short};
use crate::api::insight::{Incident, IncidentKind, Point, RoundEntry, RoundResult};
use murmurate_protocol::SortedSet;

/// A smaller fall is the noise of evaluations.
const NOISE: f64 = 0.005;

const EVALUATIONS: usize = 64;

/// Rounds before a fall that tell who usually contributes.
const USUAL_ROUNDS: usize = 32;

/// A training loss this many times as high as before has risen.
const RISEN: f64 = 1.2;

const CAUSES_MAX: usize = 5;

/// Two evaluations, one after the other: the accuracy fell between them.
#[derive(Clone, Copy)]
struct Fall<'a> {
    before: &'a Point,
    after: &'a Point,
}

/// Something that may explain a fall, with what to do about it.
struct Cause {
    sentence: String,
    peer: Option<String>,
    action: Option<String>,
}

impl Cause {
    /// A cause that no peer is to blame for, and that nothing is to be done about.
    const fn new(sentence: String) -> Self {
        Self {
            sentence,
            peer: None,
            action: None,
        }
    }
}

pub(super) fn answer(facts: &Facts<'_>, round: Option<u64>, peer: Option<&str>) -> Answer {
    let evaluated = facts.insight.history.points();
    let evaluated: Vec<&Point> = evaluated.filter(|p| p.accuracy.is_some()).collect();
    let shown = &evaluated[evaluated.len().saturating_sub(EVALUATIONS)..];
    let Some(last) = shown.last() else {
        return Answer::new(Topic::Accuracy, facts.status.round).say(
            "No evaluation of an accuracy has ended since this daemon started, so nothing is known of it.",
        );
    };
    let answer = Answer::new(Topic::Accuracy, last.round);
    let mut falls = shown.windows(2).filter_map(|pair| match pair {
        [before, after] => Some(Fall { before, after }),
        _ => None,
    });
    let found = match round {
        Some(round) => falls.find(|fall| fall.has(round)),
        None => falls
            .filter(|fall| fall.depth() > NOISE)
            .max_by(|a, b| a.depth().total_cmp(&b.depth())),
    };
    match found {
        Some(fall) => explain(facts, fall, last, peer),
        None if round.is_some() => {
            answer.say("Nothing is known of the accuracy around that round.")
        }
        None => answer.say(format!(
            "The accuracy has not fallen by more than {}: it is {} after round {}.",
            percent_fine(NOISE),
            percent_fine(last.accuracy.unwrap_or_default()),
            last.round
        )),
    }
}

impl Fall<'_> {
    fn depth(&self) -> f64 {
        self.before.accuracy.unwrap_or_default() - self.after.accuracy.unwrap_or_default()
    }

    fn has(&self, round: u64) -> bool {
        self.before.round < round && round <= self.after.round
    }
}

fn explain(facts: &Facts<'_>, fall: Fall<'_>, last: &Point, peer: Option<&str>) -> Answer {
    let (before, after) = (fall.before, fall.after);
    let went = match fall.depth() {
        depth if depth > NOISE => "fell",
        depth if depth < -NOISE => "rose",
        _ => "stayed",
    };
    let was = before.accuracy.unwrap_or_default();
    let mut answer = Answer::new(Topic::Accuracy, after.round).say(format!(
        "The accuracy {went} from {} after round {} to {} after round {}.",
        percent_fine(was),
        before.round,
        percent_fine(after.accuracy.unwrap_or_default()),
        after.round
    ));
    let found = all_causes(facts, fall);
    let of_peer = |cause: &Cause| peer.is_none() || cause.peer.as_deref() == peer;
    let found: Vec<Cause> = found.into_iter().filter(of_peer).take(CAUSES_MAX).collect();
    if found.is_empty() {
        answer = answer.say(
            "This daemon saw nothing unusual in these rounds: no lie, no round without a result, no \
             newcomer, and no change of the learning rate.",
        );
    }
    let mut action = None;
    for cause in found {
        answer = answer.say(cause.sentence);
        answer.peers.extend(cause.peer);
        action = action.or(cause.action);
    }
    let now = last.accuracy.unwrap_or_default();
    let over = now >= was - NOISE;
    if last.round > after.round {
        let verb = if over {
            "has recovered"
        } else {
            "is still lower"
        };
        answer = answer.say(format!(
            "It {verb}: {} after round {}.",
            percent_fine(now),
            last.round
        ));
    }
    if over {
        return answer;
    }
    answer.act(action.unwrap_or_else(|| {
        "Evaluate for some more rounds; if it does not recover, lower `strategy.inner.lr`."
            .to_owned()
    }))
}

/// Possible causes of a fall, the gravest first.
fn all_causes(facts: &Facts<'_>, fall: Fall<'_>) -> Vec<Cause> {
    let mut causes = incidents(facts, fall);
    causes.extend(results(facts, fall));
    causes.extend(newcomers(facts, fall));
    causes.extend(learning_rate(facts, fall));
    causes.extend(training_loss(fall));
    causes.extend(others(facts));
    causes
}

fn incidents(facts: &Facts<'_>, fall: Fall<'_>) -> Vec<Cause> {
    let all = facts.insight.incidents.all();
    let within = all.filter(|incident| fall.has(incident.round));
    within
        .filter_map(|incident| of_incident(facts, incident))
        .collect()
}

fn of_incident(facts: &Facts<'_>, incident: &Incident) -> Option<Cause> {
    let Incident {
        kind, round, words, ..
    } = incident;
    let peer = incident.peer.clone();
    let who = peer.as_deref().map(|peer| described(facts, peer));
    let who = who.unwrap_or_default();
    let sentence = match kind {
        IncidentKind::Lied => format!("In round {round}, {who} lied: {words}."),
        IncidentKind::BrokeRule => format!("In round {round}, {who} broke a rule: {words}."),
        IncidentKind::Absent => format!(
            "From round {round} on, rounds went on without {who}, which contributed nothing."
        ),
        IncidentKind::Merged => format!(
            "Round {round} merged a swarm that was split: {words}. Their mean may be worse than either."
        ),
        IncidentKind::TookState => {
            format!("This daemon took over the state of others that opens round {round}.")
        }
        IncidentKind::Refused | IncidentKind::RefusedBy | IncidentKind::Differs => return None,
    };
    let is_foul = matches!(kind, IncidentKind::Lied | IncidentKind::BrokeRule);
    let action = peer.as_deref().filter(|_| is_foul).map(|peer| {
        format!(
            "Find out what daemon {} runs; `murmurate revoke` throws it out.",
            short(peer)
        )
    });
    Some(Cause {
        sentence,
        peer,
        action,
    })
}

/// Rounds without a result, and rounds with fewer contributions than usual.
fn results(facts: &Facts<'_>, fall: Fall<'_>) -> Vec<Cause> {
    let within = || facts.insight.ledger.rounds().filter(|e| fall.has(e.round));
    let void: Vec<String> = within()
        .filter(|entry| matches!(entry.result, Some(RoundResult::Void | RoundResult::Alone)))
        .map(|entry| entry.round.to_string())
        .take(USUAL_ROUNDS)
        .collect();
    let mut causes = Vec::new();
    if !void.is_empty() {
        let rounds = if void.len() == 1 { "Round" } else { "Rounds" };
        let round = &void[0];
        causes.push(Cause {
            action: Some(format!(
                "Ask `murmurate why round --round {round}` what failed."
            )),
            ..Cause::new(format!(
                "{rounds} {} had no result of a group.",
                listed(&void)
            ))
        });
    }
    let usual = before(facts, fall)
        .map(contributors)
        .max()
        .unwrap_or_default();
    let fewest = within().filter(|e| e.result == Some(RoundResult::Decided));
    let fewest = fewest.map(|e| (contributors(e), e.round)).min();
    if let Some((count, round)) =
        fewest.filter(|(count, _)| count + 1 < usual || 2 * count <= usual)
    {
        causes.push(Cause::new(format!(
            "Round {round} had {count} contributions, where there were up to {usual} before."
        )));
    }
    causes
}

fn before<'a>(facts: &Facts<'a>, fall: Fall<'_>) -> impl Iterator<Item = &'a RoundEntry> {
    let (first, all) = (fall.before.round, facts.insight.ledger.rounds().rev());
    all.filter(move |entry| entry.round <= first)
        .take(USUAL_ROUNDS)
}

fn contributors(entry: &RoundEntry) -> usize {
    entry
        .peers
        .values()
        .filter(|share| share.share > 0.0)
        .count()
}

/// Peers in the results that were in none of the rounds before.
fn newcomers(facts: &Facts<'_>, fall: Fall<'_>) -> Vec<Cause> {
    let known: SortedSet<&String> = before(facts, fall).flat_map(|e| e.peers.keys()).collect();
    let mut told = SortedSet::new();
    let mut causes = Vec::new();
    if known.is_empty() {
        return causes;
    }
    for entry in facts.insight.ledger.rounds().filter(|e| fall.has(e.round)) {
        for (peer, share) in &entry.peers {
            if share.share > 0.0 && !known.contains(peer) && told.insert(peer) {
                causes.push(Cause {
                    peer: Some(peer.clone()),
                    ..Cause::new(format!(
                        "Round {} was the first in a while with a contribution of {}: {} of the result.",
                        entry.round,
                        described(facts, peer),
                        percent(share.share)
                    ))
                });
            }
        }
    }
    causes
}

fn learning_rate(facts: &Facts<'_>, fall: Fall<'_>) -> Option<Cause> {
    let rate = facts.about.rate.as_ref()?;
    let at = |round: u64| rate.at(round).1;
    let (was, is) = (at(fall.before.round), at(fall.after.round));
    let changed = (was - is).abs() > 0.01 * was.abs().max(is.abs());
    changed.then(|| Cause {
        action: (is > was).then(|| "Lower `strategy.inner.lr`, or warm up for longer.".to_owned()),
        ..Cause::new(format!(
            "The schedule changed the learning rate from {was:.3} to {is:.3} times the configured one."
        ))
    })
}

/// Training itself got worse, or only the evaluation did.
fn training_loss(fall: Fall<'_>) -> Option<Cause> {
    let (was, is) = (fall.before.loss?, fall.after.loss?);
    Some(Cause::new(match is {
        is if !is.is_finite() => "The training loss is no number any more.".to_owned(),
        is if is > RISEN * was.abs() && is > was => {
            format!("The training loss of this daemon rose as well, from {was:.3} to {is:.3}.")
        }
        _ => format!(
            "The training loss of this daemon did not rise ({was:.3}, then {is:.3}): look at the data, or \
             at what other daemons contribute."
        ),
    }))
}

/// Where daemons do not agree on parameters, what the others say of theirs.
fn others(facts: &Facts<'_>) -> Option<Cause> {
    if facts.about.agrees {
        return None;
    }
    let own = facts
        .status
        .evaluation
        .as_ref()
        .and_then(|found| found.accuracy)?;
    let says = |peer: &String| {
        let says = facts.claims.of(peer, facts.now)?;
        says.claim.accuracy.filter(|_| !says.stale).map(f64::from)
    };
    let said: Vec<f64> = facts.claims.peers().filter_map(says).collect();
    let (low, high) = (
        said.iter().copied().reduce(f64::min)?,
        said.iter().copied().reduce(f64::max)?,
    );
    Some(Cause::new(format!(
        "With this method each daemon has parameters of its own: this one is at {}, {} others say {} to {}.",
        percent_fine(own),
        said.len(),
        percent_fine(low),
        percent_fine(high)
    )))
}

/// A share with one digit after the point: falls are small.
fn percent_fine(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
