//! Finds the line of a key in a TOML file, for errors. It reads lines and does not parse TOML. For
//! a key in an unknown notation it returns the line of the table.

/// The line, from one, of a key such as `peers`, `network.loss` or `fault[1].peer`. If the key is
/// missing or part of an inline table, the line of its table; without a table, the first line.
pub(crate) fn line_of(text: &str, key: &str) -> usize {
    let (table, leaf) = key.rsplit_once('.').unwrap_or(("", key));
    let (table, wanted) = match table.split_once('[') {
        Some((name, index)) => (name, index.trim_end_matches(']').parse().unwrap_or(0)),
        None => (table, 0),
    };
    let mut inside = table.is_empty();
    let mut seen = 0;
    let mut nearest = 1;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if let Some(header) = line.strip_prefix('[') {
            let name = header.trim_start_matches('[');
            let name = name.split(']').next().unwrap_or("").trim();
            inside = !table.is_empty() && name == table && {
                seen += 1;
                seen == wanted + 1
            };
            if inside {
                nearest = index + 1;
            }
            continue;
        }
        let name = line.split('=').next().unwrap_or("").trim();
        if inside && name == leaf && line.contains('=') {
            return index + 1;
        }
        // `fault = [{ ... }]` and `network = { ... }` are on the line of their name.
        if !table.is_empty() && seen == 0 && name == table {
            nearest = index + 1;
        }
    }
    nearest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_where_they_stand() {
        let text = "peers = 2\n[network]\nloss = 0.1\n[[fault]]\nkind = \"x\"\n\n[[fault]]\n# loss\n\
                    peer = 3\nat_s = 1\n[compute]\nloss = 3\n";
        for (key, line) in [
            ("peers", 1),
            ("network.loss", 3),
            ("network.jitter_ms", 2),
            ("fault[0].kind", 5),
            ("fault[0].peer", 4),
            ("fault[1].peer", 9),
            ("compute.loss", 12),
            ("seed", 1),
            ("nowhere.at", 1),
        ] {
            assert_eq!(line_of(text, key), line, "{key}");
        }
        assert_eq!(
            line_of("a = 1\nnetwork = { loss = 2 }\n", "network.loss"),
            2
        );
    }
}
