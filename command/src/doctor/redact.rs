//! Takes secrets out of a report.

use super::home::SECRETS;
use std::path::Path;

/// What stands in place of a secret.
pub(super) const REDACTED: &str = "[redacted]";

/// How every invite begins.
const INVITE: &str = "murmurate-invite-";

/// Shorter words of a secret file are no secrets, and stand in many places.
const SECRET_MIN: usize = 16;

/// The text without the secrets of a daemon's directory, without the secrets in `more`, and without
/// invites.
pub(super) fn redacted(text: &str, dir: &Path, more: &[String]) -> String {
    let files = SECRETS.iter().map(|name| dir.join(name));
    let contents: Vec<String> = files
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .collect();
    // The run's public key and the name of a run are in all reports. Everything long that is quoted or
    // stands alone in a line of a private file is taken for a secret.
    let words = contents
        .iter()
        .flat_map(|content| content.lines().filter(|line| !line.starts_with("run_key")))
        .flat_map(|line| line.split(|c: char| c.is_whitespace() || c == '"'));
    let mut clean = text.to_owned();
    for secret in words.chain(more.iter().map(String::as_str)) {
        if secret.len() >= SECRET_MIN {
            clean = clean.replace(secret, REDACTED);
        }
    }
    without_invites(&clean)
}

fn without_invites(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(INVITE) {
        let (before, invite) = rest.split_at(at);
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let end = invite.find(|c| !plain(c)).unwrap_or(invite.len());
        clean.push_str(before);
        clean.push_str(REDACTED);
        rest = &invite[end..];
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_files_and_invites_are_taken_out() {
        let dir = tempfile::tempdir().unwrap();
        let (seed, secret, public) = ("1f".repeat(32), "2e".repeat(32), "3d".repeat(32));
        std::fs::write(dir.path().join("identity.key"), format!("{seed}\n")).unwrap();
        let card =
            format!("# note\nname = \"birds\"\nrun_key = \"{public}\"\nsecret = \"{secret}\"\n");
        std::fs::write(dir.path().join("membership.toml"), card).unwrap();
        let text = format!(
            "{seed} of birds {public}, {secret}; murmurate-invite-1.AbC_-9 end, my-own-password!"
        );
        let clean = redacted(&text, dir.path(), &["my-own-password!".to_owned()]);
        let expected =
            format!("[redacted] of birds {public}, [redacted]; [redacted] end, [redacted]");
        assert_eq!(clean, expected);
    }
}
