//! `murmurate sim survey`: predicts a table of measured training speeds.

use crate::cli::SurveyArgs;
use crate::out;
use murmurate_survey::{Constants, run_survey};

pub(crate) fn run(args: &SurveyArgs) -> anyhow::Result<()> {
    let constants = match &args.constants {
        Some(path) => Constants::from_file(path)?,
        None => Constants::shipped()?,
    };
    let report = run_survey(&args.measured, &constants)?;
    match args.json {
        true => out::line(report.to_json()),
        false => out::text(&report),
    }
}
