//! What the checks found: findings with their codes, and the report of all. docs/errors.md explains each code.

use serde::Serialize;
use std::fmt;

/// How grave it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// As it should be.
    Ok,
    /// The daemon works, but worse than it could.
    Warning,
    /// The daemon does not start, or does not do as it is asked.
    Failed,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Finding {
    /// The name of the check, in a word or two.
    pub(crate) check: &'static str,
    pub(crate) state: State,
    pub(crate) code: Option<String>,
    /// The fact that was found.
    pub(crate) text: String,
    /// Why it is so.
    pub(crate) cause: Option<String>,
    /// The command or key that mends it.
    pub(crate) fix: Option<String>,
}

impl Finding {
    /// All is well.
    pub(crate) fn ok(check: &'static str, text: impl Into<String>) -> Self {
        Self {
            check,
            state: State::Ok,
            code: None,
            text: text.into(),
            cause: None,
            fix: None,
        }
    }

    /// Something could be better.
    pub(crate) fn warning(check: &'static str, code: Code, text: impl Into<String>) -> Self {
        Self {
            state: State::Warning,
            code: Some(code.name()),
            ..Self::ok(check, text)
        }
    }

    /// Something does not work.
    pub(crate) fn failed(check: &'static str, code: Code, text: impl Into<String>) -> Self {
        Self {
            state: State::Failed,
            ..Self::warning(check, code, text)
        }
    }

    pub(crate) fn because(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// With what mends it.
    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Ok => "ok",
            State::Warning => "warning",
            State::Failed => "failed",
        };
        let code = self.code.as_deref();
        let named = code.map_or(String::new(), |code| format!("{code} "));
        writeln!(f, "{state:<8} {:<13} {named}{}", self.check, self.text)?;
        if let Some(cause) = &self.cause {
            writeln!(f, "  Cause: {cause}")?;
        }
        if let Some(fix) = &self.fix {
            writeln!(f, "  Fix: {fix}")?;
        }
        match code {
            Some(code) => writeln!(f, "  More: murmurate explain {code}"),
            None => Ok(()),
        }
    }
}

/// A problem with a section of its own in docs/errors.md. Its number never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// The configuration cannot be used.
    Configuration = 1,
    /// The running daemon is of another version.
    Version = 2,
    /// The daemon's directory cannot be used.
    Directory = 3,
    /// Others can read a secret.
    Permissions = 4,
    /// The disk is too small.
    Disk = 5,
    /// The memory is too small.
    Memory = 6,
    /// The processor lacks vector instructions.
    Processor = 7,
    /// Data or a model file cannot be used.
    Data = 8,
    /// This daemon's part of the data is too small, or does not exist.
    Shard = 9,
    /// The device cannot be used.
    Device = 10,
    /// Another process has a port to listen on.
    Port = 11,
    /// Another process has the HTTP port.
    HttpPort = 12,
    /// Others can read the HTTP pages.
    HttpPublic = 13,
    /// The kernel allows small socket buffers only.
    Buffers = 14,
    /// The process may open few files only.
    Files = 15,
    /// A name cannot be looked up.
    Name = 20,
    /// A machine answers over TCP but not over UDP.
    Udp = 21,
    /// A machine does not answer.
    Unreachable = 22,
    /// Another daemon answers than the address names.
    OtherDaemon = 23,
    /// No daemon of this version answers.
    OtherProgram = 24,
    /// Other daemons of the run have other settings.
    OtherSettings = 25,
    /// The clock is wrong.
    Clock = 30,
    /// The certificate no longer lets this daemon in.
    Certificate = 31,
    /// The certificate ends soon.
    CertificateEnds = 32,
    /// The invite cannot be used.
    Invite = 33,
    /// Nothing lets this daemon into the run that it joins.
    NoMember = 34,
    /// The register of members cannot be read.
    Register = 35,
    /// The running daemon says that something is wrong.
    Trouble = 40,
    /// The daemon ended without leaving.
    Killed = 41,
    /// The daemon runs and does not answer.
    Silent = 42,
    /// The checkpoint cannot be used.
    Checkpoint = 43,
}

impl Code {
    /// As it is printed.
    pub(crate) fn name(self) -> String {
        format!("M{:03}", self as u16)
    }
}

pub(crate) const PAGE: &str = include_str!("../../../docs/errors.md");

/// The codes of the page.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let headings = PAGE.lines().filter_map(|line| line.strip_prefix("## "));
    headings.filter_map(|heading| Some(heading.split_once(':')?.0))
}

/// The object that `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// Version of the program.
    version: &'static str,
    /// The directory of the daemon.
    dir: String,
    failed: usize,
    /// Number of checks that found something worse than it could be.
    warnings: usize,
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn new(dir: String, findings: Vec<Finding>) -> Self {
        let count = |state| {
            findings
                .iter()
                .filter(|finding| finding.state == state)
                .count()
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            dir,
            failed: count(State::Failed),
            warnings: count(State::Warning),
            findings,
        }
    }

    /// The codes of the checks that failed; `None` if none did.
    pub(crate) fn failures(&self) -> Option<String> {
        let failed = self.findings.iter().filter(|f| f.state == State::Failed);
        let codes: Vec<&str> = failed.filter_map(|f| f.code.as_deref()).collect();
        (!codes.is_empty()).then(|| codes.join(", "))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            write!(f, "{finding}")?;
        }
        let ok = self.findings.len() - self.failed - self.warnings;
        writeln!(
            f,
            "{ok} ok, {} warnings, {} failed",
            self.warnings, self.failed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Code::*;
    use super::*;

    const ALL: [Code; 31] = [
        Configuration,
        Version,
        Directory,
        Permissions,
        Disk,
        Memory,
        Processor,
        Data,
        Shard,
        Device,
        Port,
        HttpPort,
        HttpPublic,
        Buffers,
        Files,
        Name,
        Udp,
        Unreachable,
        OtherDaemon,
        OtherProgram,
        OtherSettings,
        Clock,
        Certificate,
        CertificateEnds,
        Invite,
        NoMember,
        Register,
        Trouble,
        Killed,
        Silent,
        Checkpoint,
    ];

    #[test]
    fn every_code_has_its_section_and_no_section_is_left_over() {
        let expected = ALL.map(Code::name);
        assert_eq!(names().collect::<Vec<_>>(), expected);
    }
}
