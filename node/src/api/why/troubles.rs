//! The troubles of the moment. Every view of a daemon shows these: `/status`, `/metrics`, the page, `top`, `why` and
//! `doctor`.

use super::answer::Facts;
use super::words::{described, listed, short, time};
use crate::api::insight::{RoundEntry, RoundResult, Standing};
use crate::api::{PeerStatus, Trouble, TroubleKind};
use murmurate_protocol::Phase;
use murmurate_protocol::limits::LOST_MEMBER_WAIT;
use murmurate_trust::{Flaw, Refusal};

/// Rounds in a row without a result, or without this daemon, from which on something is wrong. One is no news:
/// a daemon has died, or was late.
const ROUNDS_MIN: usize = 5;

/// A daemon that is gone for longer than this is not missed any more, seconds.
const MISSED_S: f64 = 86_400.0;

const NAMED_MAX: usize = 4;

/// The way back in for a member that is out.
const NEW_INVITE: &str = "Ask the owner of the run, or a member with the role admit, for a new invite, and enter \
                          with it in a new directory: `murmurate run --dir NEW --invite FILE`.";

/// That another daemon has this one's identity, and the remedy.
pub(crate) const ELSEWHERE: &str = "This identity runs elsewhere: another daemon has the same identity.key, and the others \
                                    take the two for one.";
pub(crate) const ONE_IDENTITY: &str = "Stop one of the two; a copied directory enters the run as a new member in a new \
                            directory: `murmurate run --dir NEW --invite FILE`.";

/// Remedy where this daemon's own work fails.
pub(super) const MEND: &str = "Mend what the message names; the log of this daemon says more.";

/// Remedy for two daemons that train the same.
pub(crate) const SAME_DATA_ACTION: &str = "Give each daemon data of its own: in a loop of your own ask \
                                           `swarm.shard` after `attach`, otherwise leave `shards.kind` at \
                                           \"dealt\", or give each another `shards.index`.";

/// That a daemon trains the same as this one, and how that shows.
pub(crate) fn trains_the_same(peer: &str, [first, second]: [u64; 2]) -> String {
    format!(
        "Daemon {} trains the same data as this daemon, so the run learns nothing from one of the two: their training \
         losses of rounds {first} and {second} are equal to the last bit",
        short(peer)
    )
}

/// Present troubles, the gravest first.
pub(crate) fn troubles(facts: &Facts<'_>) -> Vec<Trouble> {
    let single = [
        refused(facts),
        // Two with one identity take each other's links, and one that misses all daemons misses each of them.
        elsewhere(facts)
            .or_else(|| isolated(facts))
            .or_else(|| lost(facts)),
        failing(facts),
        unsaved(facts),
        no_result(facts),
        left_out(facts),
        silent(facts),
        idle(facts),
    ];
    let found = single.into_iter().flatten();
    let found = found.chain(equal(facts)).chain(lied(facts));
    let mut found: Vec<Trouble> = found.chain(altered(facts)).collect();
    found.sort_by_key(|trouble| trouble.kind);
    found
}

/// State of the daemon in one word: a grave trouble, or else its work.
pub(crate) fn state(facts: &Facts<'_>, troubles: &[Trouble]) -> &'static str {
    let grave = troubles.first().filter(|trouble| trouble.kind.is_grave());
    let (status, outages) = (facts.status, &facts.insight.outages);
    let alone = status.linked() == 0;
    match (grave, phase(facts)) {
        (Some(trouble), _) => trouble.kind.word(),
        (None, Some(Phase::New | Phase::Join) | None) => "starting",
        (None, Some(phase @ (Phase::Finished | Phase::Leaving | Phase::Left))) => phase.word(),
        _ if status.control.paused => Phase::Paused.word(),
        _ if outages.merging_branch(status.branch).is_some() => "merging",
        _ if alone => "alone",
        _ => "training",
    }
}

fn phase(facts: &Facts<'_>) -> Option<Phase> {
    Phase::of_word(&facts.status.phase)
}

fn has_begun(facts: &Facts<'_>) -> bool {
    !matches!(phase(facts), Some(Phase::New | Phase::Join) | None)
}

/// There is no round to miss: the run is paused, or the daemon takes part in none any more.
fn rests(facts: &Facts<'_>) -> bool {
    facts.status.control.paused || is_over(facts)
}

/// The daemon takes part in no round any more.
fn is_over(facts: &Facts<'_>) -> bool {
    use Phase::{Finished, Leaving, Left};
    matches!(phase(facts), Some(Finished | Leaving | Left))
}

pub(super) fn named(facts: &Facts<'_>, peers: &[String]) -> String {
    let shown = peers.iter().take(NAMED_MAX);
    let shown: Vec<String> = shown.map(|peer| described(facts, peer)).collect();
    match peers.len().saturating_sub(NAMED_MAX) {
        0 => listed(&shown),
        more => format!("{}, and {more} more", shown.join(", ")),
    }
}

/// Members that refuse this daemon. Those that link with it again do not.
fn refused(facts: &Facts<'_>) -> Option<Trouble> {
    let all = &facts.insight.outages.refused;
    let (first, (refusal, since_s)) = all.iter().min_by(|a, b| a.1.1.total_cmp(&b.1.1))?;
    let (kind, what) = match refusal {
        Refusal::Revoked => (TroubleKind::Revoked, "its membership was revoked"),
        Refusal::Flaw(Flaw::Expired { .. }) => (TroubleKind::Expired, "its certificate has ended"),
        Refusal::Banned => (TroubleKind::Banned, "it is banned, because it lied"),
        _ => (TroubleKind::Refused, "its certificate is not accepted"),
    };
    let peers: Vec<String> = all.keys().cloned().collect();
    let ago = time((facts.now - since_s).max(0.0));
    let text = format!(
        "Daemon {} refuses this daemon since {ago}: {what}. What this daemon trains is of no use to the run.",
        short(first)
    );
    let found = Trouble::new(kind, text, NEW_INVITE).of(peers);
    Some(found.since(*since_s))
}

/// Daemons that took part, are gone, and did not leave in order; those that are gone longest first.
fn lost_peers(facts: &Facts<'_>) -> Vec<(String, f64)> {
    let peers = facts.status.peers.iter();
    let lost = peers.filter_map(|(id, known)| Some((id.clone(), known.presence.lost_unix_s()?)));
    let mut lost: Vec<_> = lost.filter(|(_, at)| facts.now - at < MISSED_S).collect();
    lost.sort_by(|a, b| a.1.total_cmp(&b.1));
    lost
}

/// Those that count in a round: a result needs a quorum of them.
pub(super) struct Count {
    /// Linked, this daemon included.
    pub(super) here: usize,
    /// Gone, and still counted.
    pub(super) gone: Vec<String>,
    pub(super) needed: usize,
}

impl Count {
    pub(super) fn of(facts: &Facts<'_>) -> Self {
        let (here, agreement) = (1 + facts.status.linked(), &facts.about.agreement);
        let gone = facts.status.peers.iter().filter(|_| agreement.signs());
        let gone: Vec<String> = gone
            .filter(|(_, peer)| counts_still(facts, peer))
            .map(|(id, _)| short(id))
            .collect();
        Self {
            needed: agreement.quorum_of(here + gone.len()),
            here,
            gone,
        }
    }

    /// No round has a result until some of those that are gone come back, or count no longer.
    pub(super) const fn too_few(&self) -> bool {
        self.here < self.needed
    }

    pub(super) fn remedy(&self) -> String {
        format!(
            "Start daemon {} again, or wait: one that is gone counts for {} s.",
            listed(&self.gone),
            LOST_MEMBER_WAIT.as_secs()
        )
    }
}

/// A peer that is gone counts as a member still, in a run that survives liars.
fn counts_still(facts: &Facts<'_>, peer: &PeerStatus) -> bool {
    let wait = LOST_MEMBER_WAIT.as_secs_f64();
    let lost = peer.presence.lost_unix_s();
    lost.is_some_and(|at| facts.now - at < wait)
}

fn isolated(facts: &Facts<'_>) -> Option<Trouble> {
    let lost = lost_peers(facts);
    let linked = facts.status.linked() > 0;
    let met_none = facts.status.peers.values().all(|peer| peer.round.is_none());
    if facts.insight.outages.is_thrown_out() {
        // Why it has no links is known.
        return None;
    }
    // All others may have left in order.
    let expects = !lost.is_empty() || (facts.about.expects_others && met_none);
    if linked || !has_begun(facts) || !expects {
        return None;
    }
    let peers: Vec<String> = lost.iter().map(|(peer, _)| peer.clone()).collect();
    let Some((_, last)) = lost.last() else {
        let text =
            "This daemon trains alone: it has reached no other daemon of the run since it started.";
        let action = "Check that the others run and that this machine can reach them, or give an address with \
                      --join; `murmurate doctor` tries them.";
        return Some(Trouble::new(TroubleKind::Isolated, text, action));
    };
    let text = format!(
        "This daemon is cut off since {}: it has no link to {}. What it trains reaches no other daemon.",
        time((facts.now - last).max(0.0)),
        named(facts, &peers)
    );
    let action = "Check the network of this machine, and that the others run; it links with them again by \
                  itself.";
    let found = Trouble::new(TroubleKind::Isolated, text, action);
    Some(found.of(peers).since(*last))
}

fn elsewhere(facts: &Facts<'_>) -> Option<Trouble> {
    let at = facts.insight.outages.elsewhere?;
    Some(Trouble::new(TroubleKind::Elsewhere, ELSEWHERE, ONE_IDENTITY).since(at))
}

fn failing(facts: &Facts<'_>) -> Option<Trouble> {
    let failed = facts.insight.outages.failed.as_ref()?;
    let what = failed.what.trim_end_matches('.');
    let text = format!(
        "This daemon's own work failed in round {}: {what}.",
        failed.round
    );
    Some(Trouble::new(TroubleKind::Failing, text, MEND))
}

fn unsaved(facts: &Facts<'_>) -> Option<Trouble> {
    if !facts.insight.outages.unsaved {
        return None;
    }
    let before = facts.status.saved_round;
    let intact = before.map(|round| format!("; that of round {round} is intact"));
    let intact = intact.unwrap_or_default();
    let text = format!("The last checkpoint could not be written{intact}.");
    let action = "Free space on the disk of the daemon's directory, and check that it can be written; the daemon \
                  tries again.";
    Some(Trouble::new(TroubleKind::Unsaved, text, action))
}

/// The last rounds for which something holds, newest first.
fn row<'a>(facts: &Facts<'a>, holds: impl Fn(&RoundEntry) -> bool) -> Vec<&'a RoundEntry> {
    let newest = facts.insight.ledger.rounds().rev();
    let row: Vec<_> = newest.take_while(|entry| holds(entry)).collect();
    if row.len() < ROUNDS_MIN {
        Vec::new()
    } else {
        row
    }
}

fn no_result(facts: &Facts<'_>) -> Option<Trouble> {
    use RoundResult::{Alone, Void};
    let row = row(facts, |entry| matches!(entry.result, Some(Void | Alone)));
    let first = row.last()?;
    let text = format!(
        "The last {} rounds had no result, so the model stands still since round {}.",
        row.len(),
        first.round
    );
    let action = match facts.about.agreement.whole {
        true => {
            "Masked contributions are summed all or none: stop daemons that come and go, give slow ones fewer inner \
             steps, or raise `strategy.deadlines.ceiling_ms` at all daemons."
        }
        false => {
            "Send less (a codec such as int8), train longer between exchanges, or raise \
             `strategy.deadlines.ceiling_ms` at all daemons (and `initial_ms`, so that the first rounds count too)."
        }
    };
    let found = Trouble::new(TroubleKind::NoResult, text, action);
    Some(found.since(first.unix_s.unwrap_or(facts.now)))
}

/// Seconds for which a daemon may take over rounds instead of taking part before that is called a trouble.
const BEHIND_S: f64 = 30.0;

fn left_out(facts: &Facts<'_>) -> Option<Trouble> {
    use Standing::{Absent, Kept, LeftOut};
    let me = &facts.status.peer;
    let out = |entry: &RoundEntry| {
        let mine = entry.peers.get(me).map(|share| share.standing);
        entry.trained && matches!(mine, Some(LeftOut | Kept | Absent))
    };
    // One that is behind takes over most of what it is too late for.
    let taken_over = |entry: &RoundEntry| {
        matches!(
            entry.result,
            Some(RoundResult::Replayed | RoundResult::Skipped)
        )
    };
    let row = row(facts, |entry| out(entry) || taken_over(entry));
    let first = row.last()?;
    let lasts_s = facts.now - first.unix_s.unwrap_or(facts.now);
    let some_taken_over = row.iter().any(|entry| taken_over(entry));
    if !row.iter().any(|entry| entry.trained) || (some_taken_over && lasts_s < BEHIND_S) {
        return None;
    }
    let text = format!(
        "The last {} rounds were decided without what this daemon trained: it came too late for each.",
        row.len()
    );
    let action = "Give this daemon fewer inner steps, or a fixed time for training; `murmurate why slow` shows \
                  what takes its time.";
    let found = Trouble::new(TroubleKind::LeftOut, text, action);
    Some(found.since(first.unix_s.unwrap_or(facts.now)))
}

fn lost(facts: &Facts<'_>) -> Option<Trouble> {
    // Before the first round the daemon waits for them, and says so.
    if facts.insight.outages.is_thrown_out() || !has_begun(facts) {
        return None;
    }
    let lost = lost_peers(facts);
    let (name, at) = lost.first().map(|(peer, at)| (short(peer), *at))?;
    let peers: Vec<String> = lost.into_iter().map(|(peer, _)| peer).collect();
    let count = Count::of(facts);
    let text = if count.too_few() {
        format!(
            "Rounds have no result without {}: {} of {} are here, and a result needs {}.",
            named(facts, &peers),
            count.here,
            count.here + count.gone.len(),
            count.needed
        )
    } else {
        format!("Rounds go on without {}.", named(facts, &peers))
    };
    let action = if count.too_few() {
        count.remedy()
    } else if is_over(facts) {
        format!("If daemon {name} should have the result, start it again while this one stays.")
    } else {
        format!(
            "If daemon {name} should take part, check that it runs and that this machine can reach it; if not, \
             `murmurate revoke {name}` says so to all."
        )
    };
    let found = Trouble::new(TroubleKind::PeersLost, text, action);
    Some(found.of(peers).since(at))
}

fn silent(facts: &Facts<'_>) -> Option<Trouble> {
    let peers = facts.status.peers.iter();
    let silent = peers.filter(|(_, known)| known.suspected && known.is_linked());
    let silent: Vec<String> = silent.map(|(peer, _)| peer.clone()).collect();
    let name = short(silent.first().filter(|_| !rests(facts))?);
    let count = Count::of(facts);
    let too_few = facts.about.agrees && count.here.saturating_sub(silent.len()) < count.needed;
    let go_on = if too_few { "have no result" } else { "go on" };
    let text = format!("Rounds {go_on} without {}.", named(facts, &silent));
    let action = format!(
        "Look at the machine of daemon {name}: it is linked, but silent (stopped, swapping or overloaded?)."
    );
    Some(Trouble::new(TroubleKind::PeersSilent, text, action).of(silent))
}

fn idle(facts: &Facts<'_>) -> Option<Trouble> {
    let idle: Vec<String> = facts.insight.outages.idle.keys().cloned().collect();
    let name = short(idle.first().filter(|_| !rests(facts))?);
    let text = format!(
        "Rounds go on without {}, which contributed nothing for long.",
        named(facts, &idle)
    );
    let action = format!("Run `murmurate why` at daemon {name}: its own log says more.");
    Some(Trouble::new(TroubleKind::PeersIdle, text, action).of(idle))
}

fn equal<'a>(facts: &'a Facts<'_>) -> impl Iterator<Item = Trouble> + 'a {
    let equal = facts.insight.equals.all().filter(move |_| !is_over(facts));
    equal.map(|(peer, rounds)| {
        let text = format!("{}.", trains_the_same(peer, rounds));
        Trouble::new(TroubleKind::PeersEqual, text, SAME_DATA_ACTION).of(vec![peer.clone()])
    })
}

fn altered<'a>(facts: &'a Facts<'_>) -> impl Iterator<Item = Trouble> + 'a {
    let all = facts.insight.outages.altered.iter();
    all.map(|altered| {
        let text = format!("{}.", altered.text);
        Trouble::new(TroubleKind::Altered, text, &*altered.action)
    })
}

fn lied<'a>(facts: &'a Facts<'_>) -> impl Iterator<Item = Trouble> + 'a {
    let lied = facts.insight.outages.lied.iter();
    lied.map(|(peer, what)| {
        let name = short(peer);
        let text = format!("Daemon {name} lied, and this daemon has cut it off: {what}.");
        let action = format!(
            "Find out what daemon {name} runs; `murmurate revoke {name}` throws it out of a closed run."
        );
        Trouble::new(TroubleKind::PeersLied, text, action).of(vec![peer.clone()])
    })
}
