//! `murmurate doctor` checks a daemon and its machine; `explain` prints what docs/errors.md says of a code.

use super::{environment, invite};
use crate::cli::{DoctorArgs, ExplainArgs};
use crate::doctor::{PAGE, examine};
use crate::exit::{Ended, Exit};
use crate::out;
use murmurate_node::config::Overrides;

pub(crate) fn doctor(args: &DoctorArgs) -> anyhow::Result<()> {
    let overrides = Overrides {
        dir: args.dir.clone(),
        join: args.join.clone(),
        open: args.open,
        environment: environment(),
        ..Overrides::default()
    };
    let invite = invite(args.invite.clone());
    let (file, bundle) = (args.config.as_deref(), args.bundle.as_deref());
    let report = examine(file, &overrides, invite.as_deref(), bundle)?;
    let printed = if args.json {
        out::json(&report)
    } else {
        out::folded(&report.to_string())
    };
    if let Some(file) = &args.bundle {
        out::tell(format_args!(
            "wrote {}: keys, tokens and invites are left out; look through it before you send it",
            file.display()
        ));
    }
    match report.failures() {
        Some(codes) => Err(Ended::new(Exit::Failed, format!("checks failed: {codes}")).into()),
        None => printed,
    }
}

/// How a section begins.
const HEADING: &str = "## M";

pub(crate) fn explain(args: &ExplainArgs) -> anyhow::Result<()> {
    let Some(code) = &args.code else {
        let headings = PAGE.lines().filter(|line| line.starts_with(HEADING));
        let all: String = headings.map(|line| format!("{}\n", &line[3..])).collect();
        return out::folded(&all);
    };
    match section(code) {
        Some(text) => out::folded(&text),
        None => Err(Ended::usage(format!(
            "there is no code `{code}`; `murmurate explain` lists all"
        ))),
    }
}

/// The section of a code: M021, m021 and 21 are the same.
fn section(code: &str) -> Option<String> {
    let digits = code.trim_start_matches(['M', 'm']);
    let number: u16 = digits.parse().ok()?;
    let heading = format!("{HEADING}{number:03}:");
    let mut lines = PAGE.lines().skip_while(|line| !line.starts_with(&heading));
    let title = lines.next()?;
    let body = lines.take_while(|line| !line.starts_with("## "));
    let body: Vec<&str> = body.collect();
    Some(format!("{}\n{}\n", &title[3..], body.join("\n").trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_one_section_however_it_is_written() {
        let text = section("M021").unwrap();
        assert!(text.starts_with("M021: ") && text.contains("UDP"), "{text}");
        assert!(!text.contains("M022:"), "{text}");
        assert_eq!(section("m021"), Some(text.clone()));
        assert_eq!(section("21"), Some(text));
        assert_eq!(section("M999"), None);
        assert_eq!(section("speed"), None);
    }

    #[test]
    fn every_section_says_cause_and_fix() {
        let codes = PAGE.lines().filter_map(|line| line.strip_prefix(HEADING));
        for code in codes {
            let text = section(&code[..3]).unwrap();
            for part in ["**Cause.**", "**Effect.**", "**Fix.**"] {
                assert!(text.contains(part), "M{}: {part}", &code[..3]);
            }
        }
    }
}
