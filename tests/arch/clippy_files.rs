//! The lint settings of each crate. A clippy.toml in a crate hides the one at the root instead of adding to it.

use crate::files::{root, text};

/// The crates with settings of their own.
const CRATES: [&str; 3] = ["protocol", "strategies", "sim"];

/// The settings of the root which are missing or not the same in a crate's file.
fn not_repeated(ours: &str, of_root: &str) -> Vec<String> {
    let set = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    of_root
        .lines()
        .filter(set)
        .filter(|setting| !ours.lines().any(|line| line.trim() == setting.trim()))
        .map(str::to_owned)
        .collect()
}

#[test]
fn crates_repeat_the_settings_of_the_root() {
    let of_root = text("clippy.toml");
    for name in CRATES {
        let path = format!("{name}/clippy.toml");
        let missing = not_repeated(&text(&path), &of_root);
        assert!(
            missing.is_empty(),
            "{path} lacks settings of the root: {missing:#?}"
        );
    }
}

#[test]
fn no_other_crate_has_settings_of_its_own() {
    for name in [
        "native", "tasks", "attach", "net", "otlp", "node", "top", "bench", "command", "tests",
    ] {
        let path = root().join(name).join("clippy.toml");
        assert!(
            !path.exists(),
            "add {name} to CRATES, so that its settings are compared"
        );
    }
}

#[test]
fn crates_forbid_the_wall_clock() {
    for name in CRATES {
        let path = format!("{name}/clippy.toml");
        let file = text(&path);
        for path_of_type in ["std::time::SystemTime", "std::time::Instant"] {
            let entry = format!("path = \"{path_of_type}\", reason = ");
            assert!(
                file.contains(&entry),
                "{path} does not forbid {path_of_type}"
            );
        }
    }
}

#[test]
fn a_missing_setting_is_found() {
    let of_root = "# words\nallow = true\nthreshold = 70\n";
    assert!(not_repeated("threshold = 70\nmore = 1\nallow = true\n", of_root).is_empty());
    assert_eq!(not_repeated("allow = true\n", of_root), ["threshold = 70"]);
    assert_eq!(
        not_repeated("allow = true\nthreshold = 90\n", of_root),
        ["threshold = 70"]
    );
}
