//! Explains in sentences why a round does not end, why a contribution did not count, and why rounds are
//! slow. Every answer begins with the grave troubles of the moment, and ends in one action, or in "nothing to do".

mod accuracy;
mod answer;
mod contribution;
mod round;
mod slow;
mod troubles;
pub mod words;

use super::Trouble;
#[cfg(test)]
use super::{Status, insight::Insight};
pub(crate) use answer::Facts;
pub use answer::{Answer, Question, Topic};
use answer::{FASTER, NOTHING};
pub(crate) use troubles::{
    ELSEWHERE, ONE_IDENTITY, SAME_DATA_ACTION, state, trains_the_same, troubles,
};

/// Answers a question. Daemons that have a name appear by it, and where something is to be done with the
/// beginning of the id behind it.
pub fn why(facts: &Facts<'_>, question: &Question) -> Answer {
    let mut answer = answer_with_ids(facts, question);
    for (id, name) in facts.claims.unique_names() {
        let by_id = format!("daemon {}", words::short(id));
        for sentence in &mut answer.sentences {
            *sentence = sentence.replace(&by_id, name);
        }
        let both = format!("{name} ({})", words::short(id));
        answer.action = answer.action.replace(&by_id, &both);
    }
    answer
}

fn answer_with_ids(facts: &Facts<'_>, question: &Question) -> Answer {
    let asked = question.peer.as_deref();
    let peer = match asked.map(|peer| words::find(facts, peer)).transpose() {
        Ok(peer) => peer,
        Err(sentence) => {
            let answer = Answer::new(question.what, facts.status.round).say(sentence);
            return answer
                .act("Use the beginning of an id that `murmurate why` or the page shows.");
        }
    };
    let answer = match question.what {
        Topic::Round => round::answer(facts, question.round, peer.as_deref()),
        Topic::Contribution => contribution::answer(facts, question.round, peer.as_deref()),
        Topic::Slow => slow::answer(facts, peer.as_deref()),
        Topic::Accuracy => accuracy::answer(facts, question.round, peer.as_deref()),
    };
    let answer = led_by(troubles(facts), answer, peer.as_ref());
    let present = question.what == Topic::Round && answer.action == NOTHING;
    if present && slow::answer(facts, None).asks_to_act() {
        answer.act(FASTER)
    } else {
        answer
    }
}

/// Puts troubles before an answer: the grave ones, and about a round also the others, or those that name `peer`.
fn led_by(mut troubles: Vec<Trouble>, mut answer: Answer, peer: Option<&String>) -> Answer {
    troubles.retain(|it| it.kind.is_grave() || peer.is_none_or(|peer| it.peers.contains(peer)));
    let Some(first) = troubles.first() else {
        return answer;
    };
    if first.kind.is_grave() || !answer.asks_to_act() {
        answer.action.clone_from(&first.action);
    }
    // An answer about something else begins with what is grave only.
    troubles.retain(|it| it.kind.is_grave() || answer.what == Topic::Round);
    let named = troubles.iter().flat_map(|trouble| &trouble.peers);
    for peer in named {
        if !answer.peers.contains(peer) {
            answer.peers.push(peer.clone());
        }
    }
    let lead = troubles.into_iter().map(|trouble| trouble.text);
    answer.sentences = lead.chain(answer.sentences).collect();
    answer
}

#[cfg(test)]
mod tests;
