//! The first bytes of a file: those of formats that are not text, and the mark before a text.

/// How many of them are needed.
pub(super) const FIRST_BYTES: usize = 64;

/// The byte-order mark of UTF-8, which some programs write before a text.
pub(super) const MARK: &[u8] = b"\xef\xbb\xbf";

/// A format that is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Foreign {
    /// Its name.
    pub name: &'static str,
    /// Advice for such a file.
    pub advice: &'static str,
}

const fn foreign(name: &'static str, advice: &'static str) -> Foreign {
    Foreign { name, advice }
}

/// A table of a text's path, by its name: its rows would be trained as they are written.
pub(super) const TABLE: Foreign = foreign(
    "a table",
    "write its column of text as JSON Lines; kind = \"tabular\" predicts a column",
);

/// Files that people have beside text. A byte-level model would train on them without a word.
const BINARY: [(&[u8], Foreign); 10] = [
    (
        b"PAR1",
        foreign(
            "Parquet",
            "write a table as CSV, and text under a name in .parquet",
        ),
    ),
    (b"ARROW1", ARROW),
    (b"\xff\xff\xff\xff", ARROW),
    (b"\x1f\x8b", foreign("gzip", "unpack it")),
    (
        b"PK\x03\x04",
        foreign("a zip archive", "unpack it, or save a spreadsheet as CSV"),
    ),
    (b"\x28\xb5\x2f\xfd", foreign("zstd", "unpack it")),
    (b"\xfd7zXZ\0", foreign("xz", "unpack it")),
    (b"BZh", foreign("bzip2", "unpack it")),
    (b"%PDF", foreign("PDF", "extract its text")),
    (
        b"SQLite format 3",
        foreign("an SQLite database", "export its table"),
    ),
];

const ARROW: Foreign = foreign("Arrow", "write it as Parquet: `to_parquet` of a data set");
const UTF_16: Foreign = foreign("UTF-16", "convert it to UTF-8: iconv -f UTF-16 -t UTF-8");

/// The format of a file that begins with these bytes, if it is not text in UTF-8.
pub(super) fn foreign_format(bytes: &[u8]) -> Option<Foreign> {
    let known = BINARY.iter().find(|(magic, _)| bytes.starts_with(magic));
    let known = known.map(|(_, format)| *format);
    known.or_else(|| is_utf_16(bytes).then_some(UTF_16))
}

/// By the mark; without one, if most characters have a zero as their one byte and none as their other.
fn is_utf_16(bytes: &[u8]) -> bool {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return true;
    }
    let (pairs, _) = bytes[..bytes.len().min(FIRST_BYTES)].as_chunks::<2>();
    let zeros = |at: usize| pairs.iter().filter(|pair| pair[at] == 0).count();
    let (high, low) = (zeros(0).max(zeros(1)), zeros(0).min(zeros(1)));
    high >= 2 && low == 0 && 4 * high >= 3 * pairs.len()
}

/// The bytes after the mark, if there is one.
pub(super) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(MARK).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_not_taken_for_another_format() {
        for text in [
            "",
            "a",
            "PAR",
            "Größe\n",
            "{\"text\": \"a\"}",
            "\u{feff}text",
            "中文字",
        ] {
            assert_eq!(foreign_format(text.as_bytes()), None, "{text}");
        }
        assert_eq!(foreign_format(b"\0\x01\0\x01"), Some(UTF_16));
        assert_eq!(foreign_format(b"\0\0\0\0"), None, "bytes of another kind");
        assert_eq!(without_mark("\u{feff}text".as_bytes()), b"text");
    }

    #[test]
    fn utf_16_is_known_with_a_mark_and_without() {
        let little =
            |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
        let big =
            |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_be_bytes).collect() };
        for text in ["\u{feff}中文", "A sentence with – a dash.", "\u{feff}a"] {
            assert_eq!(foreign_format(&little(text)), Some(UTF_16), "{text}");
            assert_eq!(foreign_format(&big(text)), Some(UTF_16), "{text}");
        }
    }
}
