//! `murmurate control`: what the owner of a run changes while it trains.

use crate::cli::ControlArgs;
use crate::commands::daemon_http;
use crate::commands::membership::source;
use crate::out;
use anyhow::{bail, ensure};
use comfy_table::{Table, presets};
use murmurate_node::api::ControlStatus;
use murmurate_node::directive::{DirectiveStatus, directive_words};
use murmurate_node::membership::{Owner, directives};
use murmurate_protocol::{Change, Directive, Round};
use murmurate_strategies::compress::by_tag;
use serde::Deserialize;
use serde_json::json;
use std::path::Path;

/// Rounds between the present one and the first with a change, at least: all daemons must have heard of it.
const MARGIN_ROUNDS: u64 = 3;

/// The same in seconds, where rounds are short.
const MARGIN_S: f64 = 5.0;

/// Of the daemon's status, what a directive depends on.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Now {
    round: u64,
    control: ControlStatus,
    measured: Option<Pace>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pace {
    round_s: f64,
}

pub(crate) fn run(args: &ControlArgs) -> anyhow::Result<()> {
    let dir = &args.office.dir;
    let now = now(dir);
    let Some((change, at)) = args.what.change() else {
        return list(dir, now.ok(), args.json);
    };
    let owner = Owner::of(&source(&args.office))?;
    let from = match (change, &now) {
        (Change::Resume | Change::Rounds(_), Err(_)) => 0,
        (change, Ok(now)) => first_round(now, change, at)?,
        (_, Err(error)) => match at {
            Some(at) => at,
            None => bail!("{error:#}; or give the round with --at ROUND"),
        },
    };
    let signed = owner.direct(Round(from), change)?;
    said(args, signed.directive(), now.ok().as_ref())
}

/// What the daemon of a directory says of itself.
fn now(dir: &Path) -> anyhow::Result<Now> {
    let answer = daemon_http::get(dir, "/status")?;
    ensure!(
        answer.ok,
        "the daemon does not answer: {}",
        answer.content.trim()
    );
    Ok(serde_json::from_str(&answer.content)?)
}

/// The first round with a change; zero for those that count at once.
fn first_round(now: &Now, change: Change, at: Option<u64>) -> anyhow::Result<u64> {
    let Now { round, control, .. } = now;
    let pending = |kind: &str| {
        let mut known = control.directives.iter();
        known.any(|d| d.change == kind && matches!(d.state.as_str(), "in force" | "pending"))
    };
    match change {
        Change::Resume => {
            ensure!(
                pending("pause"),
                "the run is not paused, and no pause is to come"
            );
            return Ok(0);
        }
        Change::Rounds(rounds) => {
            ensure!(
                rounds == 0 || rounds > *round,
                "the run is in round {round} already: give a number above it"
            );
            return Ok(0);
        }
        Change::Pause => ensure!(
            control.paused_from.is_none(),
            "the run is paused already; `murmurate control resume` ends the pause"
        ),
        Change::InnerSteps(steps) => {
            let least = control.inner_steps_least;
            let Some(least) = least else {
                bail!(
                    "the strategy of this run fixes the inner steps of a round: they cannot be changed"
                );
            };
            ensure!(
                steps >= least,
                "the strategy of this run needs {least} inner steps at least"
            );
        }
        Change::LearningRate(_) | Change::Codec(None) => {}
        Change::Codec(Some(byte)) => may_choose(control, byte)?,
    }
    // In a pause no round is under way.
    let next = if control.paused { *round } else { round + 1 };
    let usual = if control.paused {
        *round
    } else {
        round + margin(now)
    };
    match at {
        Some(at) if at < next => bail!(
            "--at {at}: the run is in round {round} already; give a later one, such as --at {usual}"
        ),
        at => Ok(at.unwrap_or(usual)),
    }
}

/// Checks that the run can go on with the codec that has this byte.
fn may_choose(control: &ControlStatus, byte: u8) -> anyhow::Result<()> {
    ensure!(
        !control.codecs.is_empty(),
        "the codec of this run cannot be changed: it keeps a state, or the strategy needs it"
    );
    let name = by_tag(byte).map_or("", |spec| spec.name);
    ensure!(
        control.codecs.iter().any(|codec| codec == name),
        "the codec {name} cannot take the place of the configured one: choose one of {}",
        control.codecs.join(", ")
    );
    Ok(())
}

fn margin(now: &Now) -> u64 {
    let round_s = now.measured.as_ref().map_or(0.0, |pace| pace.round_s);
    if round_s > 0.0 {
        MARGIN_ROUNDS.max((MARGIN_S / round_s).ceil() as u64)
    } else {
        MARGIN_ROUNDS
    }
}

fn said(args: &ControlArgs, directive: &Directive, now: Option<&Now>) -> anyhow::Result<()> {
    let round = now.map(|now| now.round);
    let note = now.and_then(|now| of_schedule(now, directive.change));
    if args.json {
        let directive = DirectiveStatus::new(directive, "signed");
        return out::line(json!({ "directive": directive, "round": round, "note": note }));
    }
    let dir = args.office.dir.display();
    let told = match round {
        Some(round) => {
            format!("the run is in round {round}, and the daemon in {dir} tells the others now")
        }
        None => format!("the daemon in {dir} tells the others when it runs"),
    };
    let (number, words) = (directive.number, directive_words(directive));
    out::line(format_args!("directive {number}: {words}; {told}"))?;
    match note {
        Some(note) => out::line(note),
        None => Ok(()),
    }
}

/// What a changed number of rounds leaves as it is.
fn of_schedule(now: &Now, change: Change) -> Option<String> {
    let (Change::Rounds(rounds), Some(ends)) = (change, now.control.rate_ends) else {
        return None;
    };
    (rounds as f64 != ends).then(|| {
        format!(
            "the learning rate's schedule does not move with it: it ends after {ends} rounds, as configured \
             (`murmurate control lr FACTORx` changes the rate from then on)"
        )
    })
}

fn list(dir: &Path, now: Option<Now>, as_json: bool) -> anyhow::Result<()> {
    let all = match &now {
        Some(now) => now.control.directives.clone(),
        // The daemon does not run, so its round is not known.
        None => {
            let known = directives(dir)?;
            known
                .iter()
                .map(|directive| DirectiveStatus::new(directive, "known"))
                .collect()
        }
    };
    if as_json {
        let round = now.map(|now| now.round);
        let object = json!({ "directives": all, "round": round });
        return out::line(&serde_json::to_string_pretty(&object)?);
    }
    if all.is_empty() {
        return out::line("the owner has directed nothing");
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["directive", "change", "from round", "state"]);
    for directive in &all {
        let value = directive
            .value
            .map(|value| format!(" {value}"))
            .or(directive.codec.as_ref().map(|codec| format!(" {codec}")))
            .unwrap_or_default();
        table.add_row([
            directive.number.to_string(),
            format!("{}{value}", directive.change.replace('_', " ")),
            match directive.from_round {
                0 => "at once".to_owned(),
                round => round.to_string(),
            },
            directive.state.clone(),
        ]);
    }
    out::table(&table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::RateFactor;

    fn at(round: u64, round_s: f64) -> Now {
        Now {
            round,
            control: ControlStatus {
                inner_steps_least: Some(4),
                ..ControlStatus::default()
            },
            measured: Some(Pace { round_s }),
        }
    }

    fn refused(now: &Now, change: Change, at: Option<u64>) -> String {
        first_round(now, change, at)
            .expect_err("refused")
            .to_string()
    }

    #[test]
    fn a_change_is_far_enough_ahead_for_all_to_hear_of_it() {
        let half = Change::LearningRate(RateFactor::new(0.5).unwrap());
        for (round_s, from) in [(20.0, 43), (0.5, 50), (0.0, 43)] {
            assert_eq!(first_round(&at(40, round_s), half, None).unwrap(), from);
        }
        assert_eq!(
            first_round(&at(40, 1.0), Change::Pause, Some(41)).unwrap(),
            41
        );
        let line = refused(&at(40, 1.0), Change::Pause, Some(40));
        assert_eq!(
            line,
            "--at 40: the run is in round 40 already; give a later one, such as --at 45"
        );
    }

    #[test]
    fn a_schedule_that_does_not_move_is_told() {
        let mut now = at(40, 1.0);
        assert_eq!(
            of_schedule(&now, Change::Rounds(800)),
            None,
            "there is none"
        );
        now.control.rate_ends = Some(750.0);
        assert_eq!(of_schedule(&now, Change::Rounds(750)), None);
        assert_eq!(of_schedule(&now, Change::Pause), None);
        let note = of_schedule(&now, Change::Rounds(800)).unwrap();
        assert!(
            note.contains("it ends after 750 rounds, as configured"),
            "{note}"
        );
    }

    #[test]
    fn what_cannot_be_is_refused_before_it_is_signed() {
        let mut now = at(40, 1.0);
        assert!(refused(&now, Change::Resume, None).contains("not paused"));
        assert!(refused(&now, Change::Rounds(40), None).contains("round 40 already"));
        assert_eq!(first_round(&now, Change::Rounds(0), None).unwrap(), 0);
        assert!(refused(&now, Change::InnerSteps(3), None).contains("needs 4"));
        now.control.inner_steps_least = None;
        assert!(refused(&now, Change::InnerSteps(9), None).contains("cannot be changed"));
        now.control.paused = true;
        now.control.paused_from = Some(40);
        assert!(refused(&now, Change::Pause, None).contains("paused already"));
        let half = Change::LearningRate(RateFactor::new(0.5).unwrap());
        assert_eq!(first_round(&now, half, None).unwrap(), 40);
    }
}
