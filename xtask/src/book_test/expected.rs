//! Compares what a page shows with what a command printed.
//!
//! Ids, times and figures differ in every run. So a word with a digit stands for any word with one; only
//! whole numbers below 100 stand for themselves. `...` stands for any words, and at the end of a word for
//! the rest of it.

/// The first line that is not in the output at its place, if there is one.
pub(super) fn missing<'a>(expected: &'a [String], output: &str) -> Option<&'a str> {
    let mut printed = output.lines();
    expected.iter().map(String::as_str).find(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        !printed.any(|line| agrees(&words, &line.split_whitespace().collect::<Vec<_>>()))
    })
}

fn agrees(expected: &[&str], printed: &[&str]) -> bool {
    match expected {
        [] => printed.is_empty(),
        ["...", rest @ ..] => (0..=printed.len()).any(|skip| agrees(rest, &printed[skip..])),
        [word, rest @ ..] => match printed {
            [found, after @ ..] => same(word, found) && agrees(rest, after),
            [] => false,
        },
    }
}

fn same(expected: &str, printed: &str) -> bool {
    let small = |word: &str| word.parse::<u64>().is_ok_and(|number| number < 100);
    let digits = |word: &str| word.contains(|c: char| c.is_ascii_digit());
    let has_digit = |word: &str| digits(word) && !small(word);
    match expected.strip_suffix("...") {
        Some(start) => printed.starts_with(start) || (has_digit(start) && has_digit(printed)),
        None => expected == printed || (has_digit(expected) && has_digit(printed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(expected: &[&str], output: &str) -> bool {
        let expected: Vec<String> = expected.iter().map(|line| (*line).to_owned()).collect();
        missing(&expected, output).is_none()
    }

    #[test]
    fn lines_come_in_order_with_others_between() {
        let output =
            "peer ab12 of birds\nnote\npage at http://127.0.0.1:4000/, with /status\ndone\n";
        assert!(complete(
            &["peer 3f9c... of birds", "page at ...", "done"],
            output
        ));
        assert!(complete(
            &["page at http://127.0.0.1:46367/, with /status"],
            output
        ));
        assert!(complete(&["peers 2 of 1024"], "peers 2 of 2048"));
        assert!(!complete(&["peers 2 of 1024"], "peers 0 of 2048"));
        assert!(complete(&[], ""));
        assert!(!complete(&["done", "peer ab12 of birds"], output));
        assert!(!complete(&["peer ab12 of bees"], output));
        assert!(!complete(&["done already"], output));
        assert!(!complete(&["page at http, with /status"], output));
    }
}
