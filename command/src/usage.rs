//! The error of a command line, in words for its writer. Clap shows the parsed text; here are the values
//! and the names that were probably meant.

use crate::cli::Cli;
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use murmurate_strategies::names::meant;
use std::error::Error;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

/// A message that takes the place of clap's, where there is a better one.
pub(crate) fn explained(answer: &clap::Error) -> Option<String> {
    let context = |kind| match answer.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match answer.kind() {
        ErrorKind::ValueValidation => {
            let advice = of_number(answer.source()?)?;
            let (flag, value) = (
                context(ContextKind::InvalidArg)?,
                context(ContextKind::InvalidValue)?,
            );
            Some(format!("{flag}: {advice}, not `{value}`"))
        }
        ErrorKind::UnknownArgument => {
            let given = context(ContextKind::InvalidArg)?;
            let number = given.parse::<f64>().is_ok();
            number.then(|| format!("`{given}`: the flag before it takes a number from 0 on"))
        }
        ErrorKind::InvalidSubcommand if answer.get(ContextKind::SuggestedSubcommand).is_none() => {
            let given = context(ContextKind::InvalidSubcommand)?;
            Some(format!(
                "there is no command `{given}`; did you mean `{}`?",
                nearest(given)?
            ))
        }
        _ => None,
    }
}

fn of_number(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<ParseIntError>() {
        return Some(match error.kind() {
            IntErrorKind::PosOverflow => "give a smaller number".to_owned(),
            _ => "give a whole number from 0 on".to_owned(),
        });
    }
    if error.is::<ParseFloatError>() {
        return Some("give a number such as 0.5".to_owned());
    }
    // Clap's words for a range: 0 is not in 1..=4294967295.
    let text = error.to_string();
    let (_, range) = text.split_once(" is not in ")?;
    let (first, last) = range.split_once("..")?;
    let last = last.trim_start_matches('=');
    let endless = [u64::from(u16::MAX), u64::from(u32::MAX), u64::MAX].map(|most| most.to_string());
    Some(
        if last.is_empty() || endless.iter().any(|most| most == last) {
            format!("give a whole number from {first} on")
        } else {
            format!("give a whole number from {first} to {last}")
        },
    )
}

/// The command whose name has few letters more, less, changed or exchanged.
fn nearest(given: &str) -> Option<String> {
    let cli = Cli::command();
    let names = cli.get_subcommands().map(|command| command.get_name());
    meant(given, &names.collect::<Vec<_>>()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn wrong(line: &str) -> Option<String> {
        explained(&Cli::try_parse_from(line.split(' ')).unwrap_err())
    }

    #[test]
    fn wrong_values_say_what_is_right() {
        let cases = [
            (
                "murmurate run --rounds many",
                "--rounds <ROUNDS>: give a whole number from 0 on, not `many`",
            ),
            (
                "murmurate run --rounds=-5",
                "--rounds <ROUNDS>: give a whole number from 0 on, not `-5`",
            ),
            (
                "murmurate run --rounds -5",
                "`-5`: the flag before it takes a number from 0 on",
            ),
            (
                "murmurate run --until-accuracy much",
                "--until-accuracy <SHARE>: give a number such as 0.5, not `much`",
            ),
            (
                "murmurate control inner-steps 0",
                "<COUNT>: give a whole number from 1 on, not `0`",
            ),
            (
                "murmurate invite --uses 5000",
                "--uses <COUNT>: give a whole number from 1 to 4096, not `5000`",
            ),
            (
                "murmurate rnu",
                "there is no command `rnu`; did you mean `run`?",
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(wrong(line).as_deref(), Some(expected), "{line}");
        }
        // Clap's own words are good for the rest.
        for line in ["murmurate flocking", "murmurate run --ronds 5", "murmurate"] {
            assert_eq!(wrong(line), None, "{line}");
        }
    }
}
