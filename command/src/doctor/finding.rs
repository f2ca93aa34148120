//! What a check found.

use super::code::Code;
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
    /// The daemon does not start, or does not do what it is asked for.
    Failed,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Finding {
    /// What was checked, in a word or two.
    pub(crate) check: &'static str,
    pub(crate) state: State,
    pub(crate) code: Option<String>,
    /// What is so.
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

    /// With its cause.
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
