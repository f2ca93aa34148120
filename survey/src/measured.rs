//! The measurements: a CSV file with one row for each model, network and method, and one column of
//! samples/s for each number of GPUs (`g1`, `g4`, ...). Quoting is not supported, because no field
//! contains a comma.

use crate::error::SurveyError;
use crate::model::NAMES;
use crate::schedule::Method;
use std::collections::BTreeSet;
use std::path::Path;

/// One row of the measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The model's name.
    pub model: String,
    /// Batch size of one GPU in samples.
    pub batch: u32,
    /// The network's name.
    pub network: String,
    /// The method.
    pub method: Method,
    /// Speed of one GPU in samples per second.
    pub single: f64,
    /// Numbers of GPUs, each with the samples per second of all of them together.
    pub speeds: Vec<(usize, f64)>,
}

impl Row {
    /// Seconds of an iteration at a measured speed of `ranks` GPUs.
    pub fn seconds(&self, ranks: usize, speed: f64) -> f64 {
        ranks as f64 * f64::from(self.batch) / speed
    }

    /// Seconds of an iteration on one GPU.
    pub fn single_seconds(&self) -> f64 {
        f64::from(self.batch) / self.single
    }
}

/// A valid file of measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The file's name in errors.
    pub file: String,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// The columns that identify a row.
const NAMED: [&str; 4] = ["dnn", "bs", "net", "method"];

impl Measured {
    /// Reads measurements from a file.
    ///
    /// # Errors
    /// If the file cannot be read or a cell is invalid: file, line, column and reason.
    pub fn from_file(path: &Path) -> Result<Self, SurveyError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| SurveyError::Read {
            path: file.clone(),
            source,
        })?;
        Self::from_text(&text, &file)
    }

    /// Parses measurements. `file` is the name that errors give the text.
    ///
    /// # Errors
    /// As [`Measured::from_file`].
    pub fn from_text(text: &str, file: &str) -> Result<Self, SurveyError> {
        let mut lines = text.lines().enumerate();
        let header = lines.next().map_or("", |(_, line)| line);
        let columns = Columns::read(header, file)?;
        let mut rows = Vec::new();
        let mut seen = BTreeSet::new();
        for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let at = At {
                file,
                line: index + 1,
            };
            let row = columns.row(line, &at)?;
            let name = (row.network.clone(), row.model.clone(), row.method);
            if !seen.insert(name) {
                let reason = format!("{} of {} is there twice", row.method.name(), row.model);
                return Err(at.refuse("method", reason));
            }
            rows.push(row);
        }
        if rows.is_empty() {
            let at = At { file, line: 2 };
            return Err(at.refuse("dnn", "is missing: there is no row".to_owned()));
        }
        Ok(Self {
            file: file.to_owned(),
            rows,
        })
    }
}

/// A position in the file.
struct At<'a> {
    file: &'a str,
    line: usize,
}

impl At<'_> {
    fn refuse(&self, key: &str, reason: String) -> SurveyError {
        SurveyError::Value {
            file: self.file.to_owned(),
            line: self.line,
            key: key.to_owned(),
            reason,
        }
    }
}

/// The header: the position of each field.
struct Columns {
    names: Vec<String>,
    /// Columns of speeds, by number of GPUs.
    gpus: Vec<Option<usize>>,
}

impl Columns {
    fn read(header: &str, file: &str) -> Result<Self, SurveyError> {
        let at = At { file, line: 1 };
        let names: Vec<String> = header.split(',').map(|n| n.trim().to_owned()).collect();
        let gpus: Vec<Option<usize>> = names
            .iter()
            .map(|name| name.strip_prefix('g')?.parse().ok().filter(|n| *n > 0))
            .collect();
        for (index, name) in names.iter().enumerate() {
            if gpus[index].is_none() && !NAMED.contains(&name.as_str()) {
                let reason = "is not a column: there are dnn, bs, net, method and g1, g4, g8, ...";
                return Err(at.refuse(name, reason.to_owned()));
            }
            if names[..index].contains(name) {
                return Err(at.refuse(name, "is there twice".to_owned()));
            }
        }
        for name in NAMED.into_iter().chain(["g1"]) {
            if !names.iter().any(|n| n == name) {
                return Err(at.refuse(name, "is missing: every file needs it".to_owned()));
            }
        }
        Ok(Self { names, gpus })
    }

    fn row(&self, line: &str, at: &At<'_>) -> Result<Row, SurveyError> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if fields.len() > self.names.len() {
            let last = self.names.last().map_or("", String::as_str);
            let (has, needs) = (fields.len(), self.names.len());
            return Err(at.refuse(
                last,
                format!("is not the last: {has} fields for {needs} columns"),
            ));
        }
        if let Some(missing) = self.names.get(fields.len()) {
            return Err(at.refuse(missing, "is missing: the row is too short".to_owned()));
        }
        let field = |name: &str| {
            let index = self.names.iter().position(|n| n == name);
            index.map_or("", |index| fields[index])
        };
        let model = field("dnn");
        if !NAMES.contains(&model) {
            let known = NAMES.join(", ");
            return Err(at.refuse("dnn", format!("is `{model}`: there are {known}")));
        }
        let method = Method::named(field("method")).ok_or_else(|| {
            let known = Method::ALL.map(Method::name).join(", ");
            at.refuse(
                "method",
                format!("is `{}`: there are {known}", field("method")),
            )
        })?;
        let batch = field("bs").parse().ok().filter(|batch| *batch > 0);
        let batch = batch.ok_or_else(|| {
            at.refuse(
                "bs",
                format!("is `{}`: give the samples of a batch", field("bs")),
            )
        })?;
        let mut single = 0.0;
        let mut speeds = Vec::new();
        for ((name, gpus), text) in self.names.iter().zip(&self.gpus).zip(&fields) {
            let Some(gpus) = *gpus else { continue };
            let speed: Option<f64> = text.parse().ok();
            let speed = speed.filter(|s| s.is_finite() && *s > 0.0 && *s < 1e12);
            let speed = speed.ok_or_else(|| {
                at.refuse(name, format!("is `{text}`: give samples a second, above 0"))
            })?;
            match gpus {
                1 => single = speed,
                gpus => speeds.push((gpus, speed)),
            }
        }
        Ok(Row {
            model: model.to_owned(),
            batch,
            network: field("net").to_owned(),
            method,
            single,
            speeds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "dnn,bs,net,method,g1,g4,g32\n";

    fn refusal(text: &str) -> String {
        Measured::from_text(text, "m.csv").unwrap_err().to_string()
    }

    #[test]
    fn a_row_is_read() {
        let text = format!("{HEADER}BERT-Large,8,IB,MG-WFBP,49.0,57.34,105.02\r\n\n");
        let measured = Measured::from_text(&text, "m.csv").unwrap();
        let row = &measured.rows[0];
        assert_eq!((row.method, row.batch), (Method::MgWfbp, 8));
        assert_eq!(row.speeds, [(4, 57.34), (32, 105.02)]);
        assert!((row.seconds(4, 57.34) - 32.0 / 57.34).abs() < 1e-12);
    }

    #[test]
    fn what_is_wrong_is_named_with_file_line_and_key() {
        let good = "ResNet-50,64,x,BSP-A2A,253.1,925,4920\n";
        for (text, start) in [
            (String::new(), "m.csv:1: `` is not a column"),
            (
                "dnn,bs,net,method,g4\n".to_owned(),
                "m.csv:1: `g1` is missing",
            ),
            ("dnn,dnn\n".to_owned(), "m.csv:1: `dnn` is there twice"),
            (
                "dnn,bs,net,method,g1,speed\n".to_owned(),
                "m.csv:1: `speed` is not a column",
            ),
            (HEADER.to_owned(), "m.csv:2: `dnn` is missing"),
            (
                format!("{HEADER}{}", good.replace("ResNet-50", "VGG")),
                "m.csv:2: `dnn` is `VGG`",
            ),
            (
                format!("{HEADER}{}", good.replace("BSP-A2A", "BSP")),
                "m.csv:2: `method` is `BSP`",
            ),
            (
                format!("{HEADER}{}", good.replace(",64,", ",0,")),
                "m.csv:2: `bs` is `0`",
            ),
            (
                format!("{HEADER}{good}{}", good.replace("925", "-1")),
                "m.csv:3: `g4` is `-1`",
            ),
            (
                format!("{HEADER}{}", good.replace("925", "NaN")),
                "m.csv:2: `g4` is `NaN`",
            ),
            (
                format!("{HEADER}{}", good.replace(",4920", "")),
                "m.csv:2: `g32` is missing",
            ),
            (
                format!("{HEADER}{}", good.replace("4920", "4920,1")),
                "m.csv:2: `g32` is not the last",
            ),
            (
                format!("{HEADER}{good}{good}"),
                "m.csv:3: `method` BSP-A2A of ResNet-50 is there twice",
            ),
        ] {
            let message = refusal(&text);
            assert!(message.starts_with(start), "{message}\nis not {start}");
            assert!(!message.contains('\n'));
        }
    }
}
