//! Tests of passages: whatever their size, they are the documents in their order.

use super::*;
use crate::config::OnBadRecord;
use crate::data::{BadRecords, DataError, Problem};
use crate::tests::{assert_ends, assert_has};
use std::fs;
use std::path::Path;

/// All documents, read in passages of about this size; tokens are shown as text.
fn documents(path: &Path, column: Option<&str>, bytes: u64) -> Result<Vec<String>, DataError> {
    let source = Source::open(path, column)?;
    let (mut all, mut open) = (Vec::new(), String::new());
    let passages = source.passages(bytes);
    assert_eq!(
        passages.iter().map(|p| p.bytes).sum::<u64>(),
        source.bytes()
    );
    source.read(&passages, Some(10), &mut |_, piece| {
        match piece {
            Piece::Text { text, ends } => {
                open.push_str(&text);
                if ends {
                    all.push(std::mem::take(&mut open));
                }
            }
            Piece::Tokens(tokens) => all.push(format!("{tokens:?}")),
        }
        Ok(())
    })?;
    assert!(open.is_empty(), "the last piece ends its document");
    Ok(all)
}

fn refusal(path: &Path, column: Option<&str>) -> String {
    let error = documents(path, column, 1 << 20).unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn passages_of_any_size_are_the_documents() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("json");
    let text = dir.path().join("text");
    fs::create_dir_all(json.join("b")).unwrap();
    fs::create_dir_all(&text).unwrap();
    let long = "h\u{f6}fisch ".repeat(20_000);
    let lines: Vec<String> = (0..30)
        .map(|i| {
            format!("{{\"id\": {i}, \"text\": \"line\\n{i}\", \"more\": [1, {{\"text\": 2}}]}}")
        })
        .collect();
    fs::write(json.join("b/1.jsonl"), lines[..20].join("\n")).unwrap();
    fs::write(
        json.join("c.jsonl"),
        format!("\n{}\r\n\n", lines[20..].join("\n")),
    )
    .unwrap();
    fs::write(json.join("a.jsonl"), "{\"text\": [3, 1]}\n{\"text\": []}").unwrap();
    fs::write(text.join("a.txt"), format!("one\ntwo\n{long}\nend")).unwrap();
    fs::write(text.join("b.txt"), format!("{long}\n")).unwrap();
    let mut expected = vec!["[3, 1]".to_owned(), "[]".to_owned()];
    expected.extend((0..30).map(|i| format!("line\n{i}")));
    for bytes in [1, 7, 50, 1000, 1 << 20] {
        assert_eq!(documents(&json, None, bytes).unwrap(), expected, "{bytes}");
    }
    let expected = [format!("one\ntwo\n{long}\nend\n"), format!("{long}\n")];
    for bytes in [3, 1000, 65_536, 1 << 20] {
        assert!(
            documents(&text, None, bytes).unwrap() == expected,
            "{bytes}"
        );
    }
    let parquet = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet/zstd.parquet");
    for bytes in [1, 40, 1000] {
        let found = documents(&parquet, None, bytes).unwrap();
        assert_eq!(found.len(), 9, "row 3 has no text");
        assert_eq!(found[8], "row 9 \u{e9}");
        let found = documents(&parquet, Some("tokens"), bytes).unwrap();
        assert_eq!((found.len(), found[3].as_str()), (10, "[0, 1, 2]"));
    }
}

#[test]
fn what_is_wrong_is_named_with_its_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.jsonl");
    let refused = |text: &str, expected: &str| {
        fs::write(&file, text).unwrap();
        let error = refusal(&file, None);
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("a.jsonl: "), "{error}");
    };
    refused(
        "{\"text\": 1}",
        "line 1 is not a JSON object: the text is neither a string nor",
    );
    refused(
        "{\"text\": \"a\"}\n\n{\"text\": \"b\"\n",
        "line 3 is not a JSON object: EOF",
    );
    refused(
        "[{\"text\": \"a\"}]",
        "line 1 is not a JSON object: it begins an array",
    );
    refused(
        "{\"text\": \"a\"} x",
        "line 1 is not a JSON object: trailing characters at column 15",
    );
    refused(
        "{\"text\": \"a\"}\n{\"body\": \"b\", \"id\": 1}",
        "line 2 has no `text` (it has `body`, `id`): `task.column` chooses another",
    );
    refused(
        "{\"text\": \"a\"}\n{\"text\": \"cut o\n",
        "line 2 is not a JSON object: EOF while parsing a string at column 15",
    );
    refused(
        "{\"text\": [1, 10]}",
        "line 1 has token 10, the model has tokens from 0 to 9",
    );
    refused("{\"text\": [-1]}", "line 1 has token -1");
    let parquet = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet/zstd.parquet");
    let error = refusal(&parquet, Some("body"));
    assert_has(&error, "no column `body` (it has `text`, ");
    assert_ends(&error, "): `task.column` chooses another");
    let error = refusal(&parquet, Some("label"));
    assert_has(&error, "has integers, text or lists of tokens is needed");
    let source = Source::open(&parquet, Some("tokens")).unwrap();
    let tokens = |vocabulary| {
        let read = source.read(&source.passages(1000), vocabulary, &mut |_, _| Ok(()));
        read.unwrap_err().to_string()
    };
    let error = tokens(Some(6));
    assert_has(&error, "zstd.parquet: row 7 has token 6, the model");
    let error = tokens(None);
    assert_has(&error, "row 0 has tokens, this model reads text");
}

#[test]
fn a_folder_has_one_format() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("a.jsonl"), "{\"text\": \"a\"}").unwrap();
    fs::write(path("b.txt"), "b").unwrap();
    let error = refusal(dir.path(), None);
    assert_has(&error, "a.jsonl: this is JSON Lines, but ");
    assert_has(&error, "b.txt is text (give a folder with one format)");
    let error = refusal(&path("b.txt"), Some("text"));
    assert!(error.contains("this is text without columns"), "{error}");
    fs::write(path("c.jsonl.gz"), b"\x1f\x8b\x08").unwrap();
    assert!(refusal(&path("c.jsonl.gz"), None).contains("this is gzip, not text"));
    fs::write(path("d.parquet"), b"PAR1").unwrap();
    assert!(refusal(&path("d.parquet"), None).contains("its footer is missing"));
    fs::write(path("b.txt"), b"abc\xff").unwrap();
    assert!(refusal(&path("b.txt"), None).contains("byte 3 is no UTF-8"));
    fs::write(path("b.txt"), b"").unwrap();
    let empty = Source::open(&path("b.txt"), None).unwrap_err();
    assert!(matches!(empty.problem(), Problem::Empty));
}

#[test]
fn a_mark_before_a_text_is_no_part_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let (json, text) = (dir.path().join("json"), dir.path().join("text"));
    for (folder, ending, contents) in [
        (
            &json,
            "jsonl",
            ["{\"text\": \"a\"}\n", "{\"text\": \"b\"}\n"],
        ),
        (&text, "txt", ["a", "b"]),
    ] {
        fs::create_dir(folder).unwrap();
        for (name, content) in ["1", "2"].iter().zip(contents) {
            let file = folder.join(format!("{name}.{ending}"));
            fs::write(file, format!("\u{feff}{content}")).unwrap();
        }
    }
    assert_eq!(documents(&json, None, 1000).unwrap(), ["a", "b"]);
    assert_eq!(documents(&text, None, 1000).unwrap(), ["a\n", "b\n"]);
    assert_eq!(
        read_text(&text, None, &BadRecords::default()).unwrap(),
        b"a\nb"
    );
}

#[test]
fn files_that_are_no_text_are_named_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |name: &str, bytes: &[u8]| {
        let file = dir.path().join(name);
        fs::write(&file, bytes).unwrap();
        refusal(&file, None)
    };
    let utf_16: Vec<u8> = "A text."
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert!(refused("a.txt", &utf_16).contains("a.txt: this is UTF-16, not text (convert it"));
    assert!(refused("a.csv", b"text\na\n").contains("this is a table, not text (write its"));
    let arrow = refused("a.arrow", b"\xff\xff\xff\xff\x10\0\0\0");
    assert_has(&arrow, "this is Arrow, not text (write it as Parquet");
}

#[test]
fn a_null_is_no_document() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.jsonl");
    fs::write(&file, "{\"text\": null}\n{\"text\": \"b\"}\n").unwrap();
    assert_eq!(documents(&file, None, 1000).unwrap(), ["b"]);
}

#[test]
fn records_that_cannot_be_read_are_left_out_and_counted_once() {
    let dir = tempfile::tempdir().unwrap();
    let read = |path: &Path| {
        let mut source = Source::open(path, None).unwrap();
        source.bad = BadRecords::new(OnBadRecord::Skip);
        let mut all = Vec::new();
        for _ in 0..2 {
            all.clear();
            let read = source.read(&source.passages(7), Some(10), &mut |_, piece| {
                match piece {
                    Piece::Text { text, .. } => all.push(text),
                    Piece::Tokens(tokens) => all.push(format!("{tokens:?}")),
                }
                Ok(())
            });
            read.unwrap();
        }
        let report = source.bad.report();
        (all.concat(), report.skipped(), report.take_untold())
    };
    let json = dir.path().join("a.jsonl");
    let lines =
        "{\"text\": \"a\"}\n{\"text\": \"b\n{\"body\": 1}\n{\"text\": [99]}\n{\"text\": \"c\"}";
    fs::write(&json, lines).unwrap();
    let (all, skipped, told) = read(&json);
    assert_eq!((all.as_str(), skipped), ("ac", 3));
    assert!(
        told[0].contains("a.jsonl: line 2 is not a JSON object"),
        "{told:?}"
    );
    let text = dir.path().join("a.txt");
    fs::write(&text, b"one\ntw\xff\nthree\n").unwrap();
    let (all, skipped, told) = read(&text);
    assert_eq!((all.as_str(), skipped), ("one\nthree\n", 1));
    assert!(told[0].contains("a.txt: byte 6 is no UTF-8"), "{told:?}");
}
