//! Why a contribution counted, or did not.

use super::answer::{Answer, Facts, Topic};
use super::troubles::MEND;
use super::words::{described, percent};
use crate::api::insight::{RoundEntry, RoundResult, Share, Standing};

/// A share of rounds that counted below which something is wrong.
const GOOD_SHARE: f64 = 0.9;

pub(super) fn answer(facts: &Facts<'_>, round: Option<u64>, peer: Option<&str>) -> Answer {
    let ledger = &facts.insight.ledger;
    let me = facts.status.peer.as_str();
    let peer = peer.unwrap_or(me);
    let entry = match round {
        Some(round) => ledger.round(round),
        None => ledger.rounds().next_back(),
    };
    let Some(entry) = entry else {
        let answer = Answer::new(Topic::Contribution, round.unwrap_or(facts.status.round));
        return answer.say(match round {
            Some(round) => format!("Nothing is remembered of round {round}."),
            None => "No round has ended yet.".to_owned(),
        });
    };
    let answer = Answer::new(Topic::Contribution, entry.round).names(&[peer.to_owned()]);
    let failed = facts.insight.outages.failed.as_ref();
    if failed.is_some_and(|failed| peer == me && failed.round == entry.round) {
        let round = entry.round;
        return answer
            .say(format!(
                "Round {round} has nothing of this daemon, because its own work failed."
            ))
            .act(MEND);
    }
    let answer = answer.say(sentence(facts, entry, peer));
    in_all(facts, entry, peer, answer)
}

/// Whose contribution, as the subject of a sentence.
fn whose(facts: &Facts<'_>, peer: &str) -> String {
    if peer == facts.status.peer {
        "your contribution".to_owned()
    } else {
        format!("the contribution of {}", described(facts, peer))
    }
}

fn sentence(facts: &Facts<'_>, entry: &RoundEntry, peer: &str) -> String {
    let (round, whose) = (entry.round, whose(facts, peer));
    let decided = matches!(
        entry.result,
        Some(RoundResult::Decided | RoundResult::Partial)
    );
    let Some(share) = entry.peers.get(peer) else {
        return match entry.result {
            Some(RoundResult::Mixed) => {
                let inputs = entry.inputs.unwrap_or_default();
                format!(
                    "Round {round} mixed the parameters of {inputs} neighbours with this daemon's own; this \
                     method has no shared result that a contribution could be missing from."
                )
            }
            Some(RoundResult::Alone) => {
                format!("Round {round} had no group: no other daemon was ready, and it goes on.")
            }
            _ if decided => format!(
                "Round {round} was decided without {whose}: it was not in the group, because it was not \
                 ready or not linked when the group formed."
            ),
            _ => format!("This daemon cannot tell what happened to {whose} in round {round}."),
        };
    };
    let Share {
        standing,
        share,
        weight,
    } = share;
    let alone = entry.peers.len() == 1 && peer == facts.status.peer;
    match standing {
        Standing::Counted if alone => format!(
            "No other daemon is in the result of round {round}: it is what this daemon trained."
        ),
        Standing::Counted => format!(
            "The result of round {round} contains {whose}: {} of it, by weight {weight:.0}.",
            percent(*share)
        ),
        Standing::Partly => format!(
            "The result of round {round} contains {whose} in parts of the model only, {} of it: the other \
             parts arrived after the deadline.",
            percent(*share)
        ),
        Standing::LeftOut if entry.result == Some(RoundResult::Replayed) => format!(
            "Round {round} left {whose} out: the others decided it before this daemon was ready, as in the \
             rounds before. What it trained is lost."
        ),
        Standing::LeftOut => format!(
            "Round {round} left {whose} out: it was in the group, but what it sent came after the deadline \
             or not at all."
        ),
        Standing::NoResult => format!(
            "Round {round} had no result, so no contribution counted. The parameters stayed as they were."
        ),
        Standing::Kept => format!(
            "Round {round} left {whose} out: the others decided it before this daemon was ready. It is kept \
             for the next round."
        ),
        Standing::Absent => format!(
            "Round {round} was decided without this daemon, which took over the result: it was not there, \
             or still training an older round."
        ),
        Standing::Unknown => {
            format!("This daemon cannot tell whether {whose} counted in round {round}.")
        }
    }
}

/// Over all rounds, and what to do.
fn in_all(facts: &Facts<'_>, entry: &RoundEntry, peer: &str, answer: Answer) -> Answer {
    let Some(totals) = facts.insight.ledger.totals().get(peer) else {
        return answer;
    };
    let rounds = totals.counted + totals.partly + totals.left_out + totals.absent;
    if rounds == 0 {
        return answer;
    }
    let good = totals.counted as f64 / rounds as f64;
    let answer = answer.say(format!(
        "Since this daemon started, {} counted in {} of {rounds} rounds ({} in parts, {} left out, {} \
         absent).",
        whose(facts, peer),
        totals.counted,
        totals.partly,
        totals.left_out,
        totals.absent
    ));
    let counted = entry.peers.get(peer).map(|share| share.standing) == Some(Standing::Counted);
    let own = peer == facts.status.peer;
    match (good < GOOD_SHARE && !counted, own) {
        (false, _) => answer,
        (true, true) => answer.act(
            "This machine is slower than the others: give it fewer inner steps, or a fixed time for \
             training; `murmurate why slow` shows what takes its time.",
        ),
        (true, false) => answer.act(format!(
            "Run `murmurate why contribution` at {}: its own log says more.",
            described(facts, peer)
        )),
    }
}
