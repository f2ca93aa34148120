//! Tests with files of Arrow's writer, which `tasks/tests/fixtures/parquet/make.py` makes.

use super::*;
use crate::data::{DataError, Problem};
use crate::tests::{assert_ends, assert_has};
use ::parquet::data_type::Int32Type;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/parquet")
        .join(name)
}

/// All rows of a column by reads of one to three rows.
fn all<T>(
    file: &ParquetFile,
    name: &str,
    read: impl Fn(&Column, usize, std::ops::Range<usize>) -> Result<Vec<T>, DataError>,
) -> Vec<T> {
    let column = file.column(name).unwrap();
    let mut all = Vec::new();
    for group in 0..file.row_groups() {
        let rows = file.rows(group);
        let mut start = 0;
        for length in (1..=3).cycle() {
            let end = rows.min(start + length);
            all.extend(read(column, group, start..end).unwrap());
            start = end;
            if start == rows {
                break;
            }
        }
    }
    all
}

#[test]
fn every_type_of_column_is_read_with_every_codec() {
    for codec in ["snappy", "zstd", "gzip", "lz4"] {
        let file = ParquetFile::open(&fixture(&format!("{codec}.parquet"))).unwrap();
        assert_eq!(
            (0..file.row_groups()).map(|g| file.rows(g)).sum::<usize>(),
            10
        );
        let text = |i: u8| (i != 3).then(|| format!("row {i} \u{e9}").into_bytes());
        assert!(
            all(&file, "text", |c, g, r| file.bytes(c, g, r))
                .into_iter()
                .eq((0..10).map(text))
        );
        let ints = |name| all(&file, name, |c, g, r| file.ints(c, g, r));
        assert!(ints("label").into_iter().eq((0..10).map(Some)));
        assert!(
            ints("count")
                .into_iter()
                .eq((0..10).map(|i| Some(u32::MAX as i64 - i)))
        );
        assert!(
            ints("flag")
                .into_iter()
                .eq((0..10).map(|i| Some(1 - i % 2)))
        );
        let image = all(&file, "image.bytes", |c, g, r| file.bytes(c, g, r));
        assert!(
            image
                .into_iter()
                .eq((0..10_u8).map(|i| Some(vec![i; i.into()])))
        );
        let path = all(&file, "image.path", |c, g, r| file.bytes(c, g, r));
        assert!(path.iter().all(Option::is_none));
        let list = |i: i64| if i == 4 { Vec::new() } else { (0..i).collect() };
        let tokens = all(&file, "tokens", |c, g, r| file.int_lists(c, g, r));
        assert!(tokens.into_iter().eq((0..10).map(list)));
    }
}

#[test]
fn columns_have_their_types() {
    let file = ParquetFile::open(&fixture("snappy.parquet")).unwrap();
    let found: Vec<String> = file
        .columns()
        .iter()
        .map(|column| format!("{}: {column}", column.name))
        .collect();
    assert_eq!(
        found,
        [
            "text: text",
            "label: integers",
            "count: integers",
            "score: floating-point numbers",
            "flag: integers",
            "image.bytes: bytes",
            "image.path: text",
            "tokens: lists of integers",
            "holes: lists of floating-point numbers",
            "when: values that are not text, bytes or numbers",
        ]
    );
}

#[test]
fn what_cannot_be_read_is_refused_in_one_line() {
    let path = fixture("snappy.parquet");
    let file = ParquetFile::open(&path).unwrap();
    let column = |name| file.column(name).unwrap();
    let error = file.column("texts").unwrap_err().to_string();
    assert_has(&error, "there is no column `texts` (it has `text`, `label`");
    let error = file
        .bytes(column("label"), 0, 0..1)
        .unwrap_err()
        .to_string();
    assert_ends(
        &error,
        "column `label` has integers, text or bytes is needed",
    );
    let error = file
        .ints(column("tokens"), 0, 0..1)
        .unwrap_err()
        .to_string();
    assert_has(&error, "has lists of integers, integers is needed");
    let error = file.ints(column("when"), 0, 0..1).unwrap_err().to_string();
    assert!(error.contains("has values that are not text"), "{error}");
    let brotli = ParquetFile::open(&fixture("brotli.parquet")).unwrap();
    let error = brotli
        .ints(brotli.column("label").unwrap(), 0, 0..1)
        .unwrap_err()
        .to_string();
    assert_has(
        &error,
        "cannot be read from row 0 on (it is packed with brotli",
    );
}

#[test]
fn torn_and_foreign_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("torn.parquet");
    let whole = fs::read(fixture("snappy.parquet")).unwrap();
    let open = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let error = ParquetFile::open(&path).unwrap_err().to_string();
        assert_has(&error, "torn.parquet: ");
        assert!(!error.contains('\n'), "{error}");
        error
    };
    for length in [4, 11, 12, 500, whole.len() - 1] {
        let error = open(&whole[..length]);
        assert_has(&error, "cut off or damaged, its footer is missing");
    }
    let mut torn = whole.clone();
    torn.drain(200..700);
    fs::write(&path, &torn).unwrap();
    let file = ParquetFile::open(&path).unwrap();
    let last = file.row_groups() - 1;
    let error = file
        .bytes(file.column("text").unwrap(), last, 0..1)
        .unwrap_err();
    assert_has(&error.to_string(), "cannot be read from row 8 on");
    let mut bad = whole.clone();
    let footer = bad.len() - 8;
    bad[footer..footer + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(open(&bad).contains("its footer cannot be read"));
    assert!(open(b"{\"text\": 1}\n").contains("this is not a Parquet file"));
    assert!(open(b"").contains("this is not a Parquet file"));
    let missing = ParquetFile::open(&dir.path().join("none.parquet")).unwrap_err();
    assert!(matches!(missing.problem(), Problem::Io(_)), "{missing}");
}

/// A file with lists of integers, of which that of row 1 has an empty value.
fn with_a_hole(path: &Path) {
    let schema = "message m { optional group tokens (LIST) { \
                  repeated group list { optional int32 element; } } }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let typed = column.typed::<Int32Type>();
    // A list of one value, and one of a value and a hole.
    let written = typed.write_batch(&[7, 8], Some(&[3, 3, 2]), Some(&[0, 0, 1]));
    written.unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn a_list_with_an_empty_value_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("holes.parquet");
    with_a_hole(&path);
    let file = ParquetFile::open(&path).unwrap();
    let tokens = file.column("tokens").unwrap();
    assert_eq!(file.int_lists(tokens, 0, 0..1).unwrap(), [[7]]);
    let error = file.int_lists(tokens, 0, 0..2).unwrap_err().to_string();
    assert!(
        error.contains("row 1 of column `tokens` has a list with an empty value"),
        "{error}"
    );
}
