//! Tables that are read, and those that are refused.

use super::columns::Column;
use super::*;
use crate::config::{Classes, DataSource, Objective, OnBadRecord, TabularConfig};
use crate::data::BadRecords;
use crate::tests::assert_has;
use std::fs;
use std::path::{Path, PathBuf};

const PEOPLE: &str = "name,age,city,pay,class\n\
    ann,30,Oslo,1000,yes\n\
    bob,,Bonn,2000,no\n\
    \"cid, the\n third\",1e1,,3000,yes\n";

/// The settings for a table of people.
struct Wants {
    config: TabularConfig,
    bad: BadRecords,
}

impl Wants {
    fn of(target: &str, numbers: bool) -> Self {
        let objective = match numbers {
            true => Objective::Regression,
            false => Objective::Classification,
        };
        let mut config = TabularConfig::of(DataSource::Bundled, target.to_owned(), objective);
        config.categories.push("city".to_owned());
        config.ignore.push("name".to_owned());
        config.buckets = 4;
        let bad = BadRecords::default();
        Self { config, bad }
    }

    fn read(&self, path: &Path) -> Result<Table, String> {
        Table::read(path, &self.config, &self.bad).map_err(|error| error.to_string())
    }
}

fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("people.csv");
    fs::write(&file, text).unwrap();
    (dir, file)
}

fn row(table: &Table, row: usize) -> Vec<f32> {
    let mut values = Vec::new();
    table.append(row, &mut values);
    values
}

#[test]
fn numbers_are_scaled_and_names_hashed() {
    let (_dir, file) = written(PEOPLE);
    let mut wants = Wants::of("class", false);
    wants.config.scale.insert("age".to_owned(), [20.0, 10.0]);
    let table = wants.read(&file).unwrap();
    let names: Vec<&str> = table.columns.iter().map(Column::name).collect();
    assert_eq!((names, table.inputs()), (vec!["age", "city", "pay"], 8));
    let (first, second, third) = (row(&table, 0), row(&table, 1), row(&table, 2));
    assert_eq!(first[..2], [1.0, 0.0]);
    assert_eq!(second[..2], [0.0, 1.0], "an empty cell");
    assert_eq!(third[..2], [-1.0, 0.0]);
    assert_eq!(first[6..], [1000_f64.asinh() as f32, 0.0]);
    for row in [&first, &second, &third] {
        assert_eq!(row[2..6].iter().sum::<f32>(), 1.0, "one bucket");
    }
    let expected = Targets::Labels {
        labels: vec![1, 0, 1],
        classes: 2,
    };
    assert_eq!(*table.targets(), expected);
}

#[test]
fn the_order_of_columns_and_the_division_into_files_do_not_matter() {
    let (_dir, file) = written(PEOPLE);
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("1.csv"),
        "age,name,city,pay,class\n30,ann,Oslo,1000,yes\n",
    )
    .unwrap();
    let text = "class\tpay\tcity\tage\tname\nno\t2000\tBonn\t\tbob\nyes\t3000\t\t10\tcid\n";
    fs::write(dir.path().join("2.tsv"), text).unwrap();
    fs::write(dir.path().join("notes.txt"), "none").unwrap();
    let wants = Wants::of("class", false);
    let (one, two) = (wants.read(&file).unwrap(), wants.read(dir.path()).unwrap());
    for at in 0..3 {
        assert_eq!(row(&one, at), row(&two, at));
    }
    assert_eq!(one.targets(), two.targets());
    fs::write(
        dir.path().join("3.csv"),
        "age,name,city,class\n30,ann,Oslo,yes\n",
    )
    .unwrap();
    let line = wants.read(dir.path()).unwrap_err();
    assert!(line.contains("3.csv: its columns differ"), "{line}");
    assert!(line.ends_with("`pay`"), "{line}");
}

#[test]
fn targets_are_numbers_names_or_labels() {
    let (_dir, file) = written(PEOPLE);
    let mut wants = Wants::of("pay", true);
    wants.config.ignore.push("class".to_owned());
    wants.config.scale.insert("pay".to_owned(), [2000.0, 500.0]);
    let table = wants.read(&file).unwrap();
    assert_eq!(*table.targets(), Targets::Values(vec![-2.0, 0.0, 2.0]));
    let mut wants = Wants::of("class", false);
    wants.config.classes = Some(Classes::Names(
        ["maybe", "yes", "no"].map(str::to_owned).to_vec(),
    ));
    let expected = |labels: &[u16], classes| Targets::Labels {
        labels: labels.to_vec(),
        classes,
    };
    let table = wants.read(&file).unwrap();
    assert_eq!(*table.targets(), expected(&[1, 2, 1], 3));
    let (_dir, file) = written("x,class\n1,2\n2,0\n3,2\n");
    let mut wants = Wants::of("class", false);
    (wants.config.categories, wants.config.ignore) = (Vec::new(), Vec::new());
    assert_eq!(
        *wants.read(&file).unwrap().targets(),
        expected(&[2, 0, 2], 3)
    );
    wants.config.classes = Some(Classes::Count(7));
    assert_eq!(
        *wants.read(&file).unwrap().targets(),
        expected(&[2, 0, 2], 7)
    );
}

/// The error of a table with the columns `x` and `class`.
fn line(text: &str, change: &dyn Fn(&mut Wants)) -> String {
    let (_dir, file) = written(text);
    let mut wants = Wants::of("class", false);
    (wants.config.categories, wants.config.ignore) = (Vec::new(), Vec::new());
    change(&mut wants);
    let line = wants.read(&file).unwrap_err();
    assert_has(&line, "people.csv");
    assert!(!line.contains('\n'), "{line}");
    line.rsplit('/').next().unwrap().to_owned()
}

#[test]
fn wrong_cells_name_file_line_column_and_value() {
    let as_is = |_: &mut Wants| {};
    let cases = [
        (
            "x,class\n1,a\noak,b\n",
            "people.csv:3: column `x` has `oak`: it is no number",
        ),
        (
            "x,class\n1,a\nNaN,b\n",
            "people.csv:3: column `x` has `NaN`: it is no number",
        ),
        (
            "x,class\n1,a\n2,\n",
            "people.csv:3: column `class` has ``: it is what to predict",
        ),
        (
            "x,class\n1,a\n2\n",
            "people.csv:3: it has 1 cells, but the header 2",
        ),
        (
            "x,klass\n1,a\n",
            "people.csv: it has no column `class` (`task.target`); did you mean `klass`? There are: x, klass",
        ),
        (
            "x,x,class\n1,2,a\n",
            "people.csv: two columns are called `x`",
        ),
        ("class\na\n", "people.csv: no column is left"),
        (
            "x,class\n1,0\n2,200\n3,1\n",
            "people.csv:3: column `class` has `200`: only 3 of the labels",
        ),
    ];
    for (text, expected) in cases {
        let found = line(text, &as_is);
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn values_that_do_not_fit_the_configuration_are_named() {
    let few = line("x,class\n1,0\n2,5\n", &|wants| {
        wants.config.classes = Some(Classes::Count(5))
    });
    assert_has(&few, ":3: column `class` has `5`: `task.classes` is 5");
    let named = line("x,class\n1,yes\n2,nope\n", &|wants| {
        wants.config.classes = Some(Classes::Names(vec!["yes".to_owned(), "no".to_owned()]));
    });
    assert_has(&named, "has `nope`: it is none of `task.classes`");
    assert!(named.contains("did you mean `no`?"), "{named}");
    let number = line("x,class\n1,3\n2,many\n", &|wants| {
        wants.config.objective = Objective::Regression
    });
    assert_has(&number, "has `many`: it is no number (for classes");
    let scale = line("x,class\n1,3\n", &|wants| {
        wants.config.scale.insert("y".to_owned(), [0.0, 1.0]);
    });
    assert!(scale.contains("no column `y` (`task.scale`)"), "{scale}");
    let missing = Wants::of("class", false).read(Path::new("none.csv"));
    assert!(missing.unwrap_err().starts_with("none.csv: No such file"));
    let (_dir, file) = written("x,class\n1,a\n\u{e9},b\n");
    fs::write(&file, b"x,class\n1,a\n\xff,b\n").unwrap();
    let mut wants = Wants::of("class", false);
    (wants.config.categories, wants.config.ignore) = (Vec::new(), Vec::new());
    let line = wants.read(&file).unwrap_err();
    assert!(line.contains("people.csv:3: it is no UTF-8"), "{line}");
}

#[test]
fn a_share_of_the_rows_is_held_out() {
    let rows: String = (0..100).map(|row| format!("{row},{}\n", row % 2)).collect();
    let (_dir, file) = written(&format!("x,class\n{rows}"));
    let mut wants = Wants::of("class", false);
    (wants.config.categories, wants.config.ignore) = (Vec::new(), Vec::new());
    let table = wants.read(&file).unwrap();
    let (train, held) = table.split(0.2).unwrap();
    assert_eq!((train.len(), held.len()), (80, 20));
    let mut all = [train, held.clone()].concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..100));
    assert!(
        held.windows(2)
            .any(|pair| pair[1] - pair[0] != held[1] - held[0])
    );
    let (_dir, file) = written("x,class\n1,a\n");
    let line = wants
        .read(&file)
        .unwrap()
        .split(0.1)
        .unwrap_err()
        .to_string();
    assert!(line.contains("1 rows are too few"), "{line}");
}

fn of_class() -> Wants {
    let mut wants = Wants::of("class", false);
    (wants.config.categories, wants.config.ignore) = (Vec::new(), Vec::new());
    wants
}

#[test]
fn tables_are_read_as_spreadsheets_write_them() {
    let (_dir, file) = written("x,y,class\n1,2,a\n3,4,b\n");
    let expected = of_class().read(&file).unwrap();
    for text in [
        "\u{feff}x,y,class\n1,2,a\n3,4,b\n",
        "sep=;\r\nx;y;class\r\n1;2;a\r\n3;4;b\r\n",
        "\u{feff}sep=,\nx,y,class\n1,2,a\n3,4,b\n",
        "x;y;class\n1;2;a\n3;4;b\n",
        "x\ty\tclass\n1\t2\ta\n3\t4\tb\n",
    ] {
        let (_dir, file) = written(text);
        let found = of_class().read(&file).unwrap();
        assert_eq!(
            (row(&found, 0), row(&found, 1)),
            (row(&expected, 0), row(&expected, 1))
        );
        assert_eq!(found.targets(), expected.targets(), "{text}");
    }
    let (_dir, file) = written("sep=;\nx;class\n1;a\noak;b\n");
    let line = of_class().read(&file).unwrap_err();
    assert_has(&line, "people.csv:4: column `x` has `oak`");
}

#[test]
fn a_folder_has_all_its_tables_whatever_the_case_of_their_names() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("more")).unwrap();
    for (name, text) in [
        ("a.csv", "x,class\n1,a\n"),
        ("B.CSV", "x,class\n2,b\n"),
        ("more/c.TSV", "x\tclass\n3\ta\n"),
        (".d.csv", "none"),
        ("notes.txt", "none"),
    ] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let table = of_class().read(dir.path()).unwrap();
    let labels = vec![1, 0, 0];
    let expected = Targets::Labels { labels, classes: 2 };
    // Names are sorted as bytes, so capitals come first.
    assert_eq!(*table.targets(), expected);
    fs::write(dir.path().join("e.csv.gz"), b"\x1f\x8b\x08").unwrap();
    let line = of_class().read(dir.path()).unwrap_err();
    assert_has(&line, "e.csv.gz: this is gzip, not a table");
}

#[test]
fn cells_that_mean_nothing_are_empty_and_the_advice_says_how() {
    let (_dir, file) = written("x,class\n1,a\nNA,b\n?,a\n,b\n");
    let line = of_class().read(&file).unwrap_err();
    assert!(line.contains(":3: column `x` has `NA`"), "{line}");
    assert!(line.contains("write `task.missing = [\"NA\"]`"), "{line}");
    let mut wants = of_class();
    wants.config.missing = vec!["NA".to_owned(), "?".to_owned()];
    let table = wants.read(&file).unwrap();
    for at in 1..4 {
        assert_eq!(row(&table, at), [0.0, 1.0]);
    }
}

#[test]
fn rows_that_cannot_be_read_are_left_out_and_counted() {
    let (_dir, file) = written("x,y,class\n1,2,a\n1,oak,a\n2\n5,6,\n3,4,b\n");
    let mut wants = of_class();
    wants.bad = BadRecords::new(OnBadRecord::Skip);
    let table = wants.read(&file).unwrap();
    let (_dir, file) = written("x,y,class\n1,2,a\n3,4,b\n");
    let expected = of_class().read(&file).unwrap();
    assert_eq!(
        (row(&table, 0), row(&table, 1)),
        (row(&expected, 0), row(&expected, 1))
    );
    assert_eq!(table.targets(), expected.targets());
    let report = wants.bad.report();
    assert_eq!(report.skipped(), 3);
    let told = report.take_untold();
    assert!(
        told[0].contains("people.csv:3: column `y` has `oak`"),
        "{told:?}"
    );
    assert!(told[1].contains("people.csv:4: it has 1 cells"), "{told:?}");
    assert!(
        told[2].contains("people.csv:5: column `class` has ``"),
        "{told:?}"
    );
}
