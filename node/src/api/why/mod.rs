//! Explains in sentences why a round does not end, why a contribution did not count, and why rounds are
//! slow. Every answer ends in one action, or in "nothing to do".

mod accuracy;
mod answer;
mod contribution;
mod round;
mod slow;
pub mod words;

#[cfg(test)]
use super::{Insight, Status};
#[cfg(test)]
use answer::NOTHING;
pub use answer::{Answer, Facts, Question, Topic};

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
    let peer = match question
        .peer
        .as_deref()
        .map(|peer| words::find(facts, peer))
    {
        None => None,
        Some(Ok(peer)) => Some(peer),
        Some(Err(sentence)) => {
            let answer = Answer::new(question.what, facts.status.round).say(sentence);
            return answer
                .act("Use the beginning of an id that `murmurate why` or the page shows.");
        }
    };
    match question.what {
        Topic::Round => round::answer(facts, question.round, peer.as_deref()),
        Topic::Contribution => contribution::answer(facts, question.round, peer.as_deref()),
        Topic::Slow => slow::answer(facts, peer.as_deref()),
        Topic::Accuracy => accuracy::answer(facts, question.round, peer.as_deref()),
    }
}

#[cfg(test)]
mod tests;
