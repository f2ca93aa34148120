//! What the tests of several modules share.

/// Fails unless a text has this part.
#[track_caller]
pub(crate) fn assert_has(text: &str, part: &str) {
    assert!(text.contains(part), "{text}");
}

/// Fails unless a text begins so.
#[track_caller]
pub(crate) fn assert_begins(text: &str, start: &str) {
    assert!(text.starts_with(start), "{text}");
}

/// Fails unless a text ends so.
#[track_caller]
pub(crate) fn assert_ends(text: &str, end: &str) {
    assert!(text.ends_with(end), "{text}");
}
