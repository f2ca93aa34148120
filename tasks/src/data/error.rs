//! Why data cannot be used: one error for images, tables, text and the files that hold them.

use super::first_bytes::Foreign;
use super::idx::IdxProblem;
use std::fmt;
use std::io;
use std::path::Path;

/// Most bytes of text to read into memory.
pub(super) const TEXT_BYTES_MAX: u64 = 4 << 30;

/// The most cells of a table in memory, four bytes each.
pub(super) const CELLS_MAX: usize = 1 << 28;

/// Greatest depth of nested folders.
pub(super) const DEPTH_MAX: usize = 16;

/// Advice for any record that cannot be read.
pub(super) const OR_SKIP: &str = "or leave such records out: `task.on_bad_record = \"skip\"`";

/// Data that cannot be used, in one line that names the file.
#[derive(Debug, thiserror::Error)]
pub struct DataError {
    /// The file or folder, with the row or line of it where only that is wrong; empty where none is at fault.
    place: String,
    problem: Problem,
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        self.problem.fmt(f)
    }
}

impl DataError {
    /// A problem of no single file.
    pub(crate) const fn nowhere(problem: Problem) -> Self {
        let place = String::new();
        Self { place, problem }
    }

    /// The problem, without its file.
    pub(crate) const fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The same error with the advice to choose another column.
    pub(super) fn of_chosen_column(self) -> Self {
        Self {
            place: self.place,
            problem: Problem::ChosenColumn(Box::new(self.problem)),
        }
    }

    /// Tells a wrong record from a wrong source: only a record can be left out.
    pub(crate) const fn is_of_a_record(&self) -> bool {
        self.problem.is_of_a_record()
    }
}

/// Names the file or folder of a problem: `File::open(path).map_err(at(path))`.
pub(crate) fn at<P: Into<Problem>>(path: &Path) -> impl Fn(P) -> DataError + Copy {
    move |problem| DataError {
        place: path.display().to_string(),
        problem: problem.into(),
    }
}

/// The problem, with advice.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// A file or folder is missing or unreadable.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A file in a format that is not read here.
    #[error("this is {}, not {needed} ({})", format.name, format.advice)]
    Foreign {
        format: Foreign,
        needed: &'static str,
    },

    // Text.
    /// There is no text.
    #[error("there is no text in it (give a file, or a folder of files)")]
    Empty,
    /// There is too much text.
    #[error("more than {TEXT_BYTES_MAX} bytes of text (give a part of it)")]
    TooLarge,
    /// Folders are nested too deeply, for example by circular links.
    #[error("folders more than {DEPTH_MAX} deep are not followed")]
    TooDeep,
    /// Bytes of a text that are not UTF-8, the first of them at this position.
    #[error("byte {0} is no UTF-8 (convert the file, {OR_SKIP})")]
    NotText(usize),
    /// The tokenizer failed.
    #[error("the tokenizer cannot encode it ({0})")]
    Encoding(String),
    /// Too few tokens for training or held-out data.
    #[error(
        "{train} tokens to train on and {held} held out, a window is {window} (give more text, \
         a smaller `task.context` or another `task.held_out`)"
    )]
    TooFewTokens {
        train: usize,
        held: usize,
        window: usize,
    },
    /// A folder with files of two formats.
    #[error("this is {format}, but {other} is {other_format} (give a folder with one format)")]
    Mixed {
        format: &'static str,
        other: String,
        other_format: &'static str,
    },
    /// A column is chosen, but plain text has none.
    #[error("this is text without columns (leave out `task.column`)")]
    NoColumns,
    /// The column of the configuration cannot be read as documents.
    #[error("{0}: `task.column` chooses another")]
    ChosenColumn(Box<Self>),
    /// A line, counted from 1, is not JSON.
    #[error("line {line} is not a JSON object: {reason} (mend the line, {OR_SKIP})")]
    Json { line: u64, reason: String },
    /// Conversations, and no folder with their template.
    #[error(
        "this has conversations, which need a chat template (set `task.tokenizer` or `task.model` to a folder \
         with tokenizer.json and a chat template)"
    )]
    NoTemplate,
    /// A conversation that cannot be trained.
    #[error("line {line}: {reason}; {OR_SKIP}")]
    Chat { line: u64, reason: String },
    /// A JSON object without the key of the text.
    #[error(
        "line {line} has no `{key}` (it has {known}): `task.column` chooses another, {OR_SKIP}"
    )]
    NoKey {
        line: u64,
        key: String,
        known: String,
    },
    /// A row, counted from 0, is not text.
    #[error("row {row} of column `{column}` is not UTF-8 (mend the row, {OR_SKIP})")]
    NotTextRow { column: String, row: u64 },
    /// A token that the model does not have.
    #[error(
        "{place} has token {token}, the model has tokens from 0 to {} (use the tokenizer \
         that made them, {OR_SKIP})", vocabulary.saturating_sub(1)
    )]
    Token {
        place: String,
        token: i64,
        vocabulary: usize,
    },
    /// Tokens where a byte-level model needs text.
    #[error("{0} has tokens, this model reads text (kind = \"causal-lm\" reads both)")]
    Tokens(String),
    /// A part of a large text that has less than a window.
    #[error(
        "{part} has less than a window of {window} tokens (give more text, or a smaller `task.context`)"
    )]
    NoWindow { part: &'static str, window: usize },
    /// Too few bytes for training and held-out data.
    #[error("{found} bytes of text, at least {needed} are needed")]
    TooShort { found: usize, needed: usize },

    // Parquet.
    /// A file that does not begin as a Parquet file does.
    #[error("this is not a Parquet file")]
    NotParquet,
    /// The footer, which lists what a file has, is missing or damaged.
    #[error("the Parquet file is cut off or damaged, its footer {0} (copy it again)")]
    Footer(String),
    /// A part of a column that cannot be unpacked.
    #[error("column `{column}` cannot be read from row {row} on ({reason})")]
    Pages {
        column: String,
        row: u64,
        reason: String,
    },
    /// There is no such column.
    #[error("there is no column `{name}` (it has {known})")]
    NoColumn { name: String, known: String },
    /// A column has values of another type.
    #[error("column `{column}` has {found}, {needed} is needed")]
    Kind {
        column: String,
        found: String,
        needed: &'static str,
    },
    /// A value is missing in a list.
    #[error("row {row} of column `{column}` has a list with an empty value")]
    EmptyValue { column: String, row: u64 },

    // Images and their labels.
    /// An IDX file is invalid.
    #[error(transparent)]
    Idx(#[from] IdxProblem),
    /// A file that no image can be read from.
    #[error("it cannot be read as PNG or JPEG: {0} (replace or remove the file, {OR_SKIP})")]
    Unreadable(String),
    /// A JPEG file that ends too early.
    #[error("the JPEG ends before its last marker (copy or download the file again, {OR_SKIP})")]
    Torn,
    /// A Parquet file without a column of images.
    #[error(
        "there is no column of bytes called `image`, `image.bytes`, `img` or `img.bytes` (it has \
         {0}; rename the column of images)"
    )]
    NoImages(String),
    /// A row of a Parquet file without an image.
    #[error("there is no image (remove the row, {OR_SKIP})")]
    NoImage,
    /// A row of a Parquet file, counted from 0, without a label that can be right.
    #[error("row {0} has no label from 0 to 65535 (remove the row or the file)")]
    NoLabel(usize),
    /// An IDX file is missing.
    #[error(
        "neither `{0}` nor `{0}.gz` is there (a data folder needs the four IDX files \
         that MNIST comes in; with `held_out` = a share, only the two `train-` files)"
    )]
    Missing(&'static str),
    /// One file that holds no images.
    #[error(
        "images are in a folder or in Parquet files, and this is another file (for a text set `task.kind` = \
         \"language-model\", or \"causal-lm\" with a model; for a table \"tabular\")"
    )]
    NotImages,
    /// The numbers of images and labels differ.
    #[error("{images} {set} images but {labels} labels (copy the files again)")]
    Count {
        set: &'static str,
        images: usize,
        labels: usize,
    },
    /// IDX images have another shape than the configuration says.
    #[error(
        "it has {height} x {width} grey images, which are not resized (leave out `task.size` and \
         `task.channels`)"
    )]
    Shape { height: usize, width: usize },
    /// Training and held-out images have different sizes.
    #[error("training and held-out images differ in size, or one is empty")]
    Differ,
    /// A folder without a folder for each class.
    #[error(
        "it has neither the IDX files that MNIST comes in nor a folder of PNG or JPEG files for \
         each class (DIR/CLASS/IMAGE.png, or DIR/train/CLASS/IMAGE.png beside DIR/test)"
    )]
    NoClasses,
    /// The folder of a class has no images.
    #[error("no image of this class is in it (files that end in .png, .jpg or .jpeg are read)")]
    EmptyClass,
    /// A folder whose name is not one of the classes.
    #[error("its name is none of the {classes} classes; {hint}")]
    OtherClass { classes: usize, hint: String },
    /// More folders than classes.
    #[error("it has label {label}, but `task.classes` is {classes} (labels count from 0)")]
    MoreClasses { label: usize, classes: usize },
    /// No image to train on or none to hold out.
    #[error(
        "{train} images to train on and {held} held out (add images, or choose another `task.held_out`)"
    )]
    TooFewImages { train: usize, held: usize },
    /// Folders of a class are nested too deeply, for example by circular links.
    #[error("folders this deep are not followed (is it a circular link?)")]
    DeepClass,
    /// Every image of a batch is left out.
    #[error("none of the images of a batch can be read (replace or remove them)")]
    NoneLeft,
    /// The thread that decodes images ended.
    #[error(
        "the thread that decodes images ended, which is a bug of a decoder (decode the images again with another program)"
    )]
    Stopped,
    /// The configuration has fewer classes.
    #[error(
        "item {index} has label {label}, but `task.classes` is {classes} (labels count from 0, as items do)"
    )]
    LabelAbove {
        index: usize,
        label: usize,
        classes: usize,
    },
    /// Held-out data have a class that the training data lack.
    #[error(
        "item {index} has label {label}, but the training data have {classes} classes (set \
         `task.classes` if that is right; labels count from 0, as items do)"
    )]
    LabelHeld {
        index: usize,
        label: usize,
        classes: usize,
    },
    /// Most labels below the largest one do not occur.
    #[error(
        "item {index} has label {label}, but only {found} of the labels up to it occur (copy the \
         file again, or set `task.classes` = {} if that is right)", label + 1
    )]
    LabelSparse {
        index: usize,
        label: usize,
        found: usize,
    },

    // Tables.
    /// A folder without tables.
    #[error("no table is in it (give a CSV file, or a folder of files that end in .csv or .tsv)")]
    NoTables,
    /// A line that is no row of a table.
    #[error("{0}")]
    Malformed(String),
    /// A column of the configuration is not in the header.
    #[error("it has no column `{name}` (`task.{key}`); {hint}")]
    NotInHeader {
        key: &'static str,
        name: String,
        hint: String,
    },
    /// Two columns have one name.
    #[error("two columns are called `{0}` (rename one)")]
    SameName(String),
    /// A file of a folder has other columns than the first.
    #[error("its columns differ from those of the first file, the first difference is `{0}`")]
    OtherColumns(String),
    /// There is no column beside the target.
    #[error("no column is left as an input")]
    NoInputs,
    /// A cell has a value that its column cannot have.
    #[error("column `{column}` has `{value}`: {reason}")]
    Cell {
        column: String,
        value: String,
        reason: String,
    },
    /// Too many cells.
    #[error("more than {CELLS_MAX} cells (give a part of the table to each daemon)")]
    TooManyCells,
    /// Too few rows.
    #[error("{0} rows are too few to train on some and hold out others")]
    TooFewRows(usize),
}

impl Problem {
    const fn is_of_a_record(&self) -> bool {
        matches!(
            self,
            Self::Json { .. }
                | Self::Chat { .. }
                | Self::NoKey { .. }
                | Self::NotText(_)
                | Self::NotTextRow { .. }
                | Self::Token { .. }
                | Self::Encoding(_)
                | Self::Unreadable(_)
                | Self::NoImage
                | Self::Torn
        )
    }
}
