//! Lists of encoded images. Finds those of a folder: their files, classes, and which are held out.

use super::place::{Pack, Place, Row};
use crate::config::Classes;
use crate::data::error::{DEPTH_MAX, DataError, Problem, at};
use crate::rng;
use murmurate_strategies::names::hint;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Endings of files that are read, in lower case.
const ENDINGS: [&str; 3] = ["png", "jpg", "jpeg"];

/// Folders of held-out images beside `train`, the first one first.
pub(super) const HELD: [&str; 3] = ["val", "validation", "test"];

/// Share of each class that is held out if there is no folder for it.
pub(super) const SHARE: f64 = 0.1;

/// Encoded images with labels.
#[derive(Clone, Debug)]
pub(in crate::data) struct Files {
    places: Places,
    pub(in crate::data) labels: Vec<u16>,
}

#[derive(Clone, Debug)]
enum Places {
    /// Files in the order of their names.
    Folders {
        /// The folder of each class.
        folders: Vec<PathBuf>,
        /// Each file below the folder of its class.
        names: Vec<Box<OsStr>>,
    },
    /// Rows of Parquet files.
    Rows {
        packs: Arc<[Arc<Pack>]>,
        rows: Vec<Row>,
    },
}

impl Files {
    /// Where one image is.
    pub(in crate::data) fn place(&self, index: u32) -> Place {
        let index = index as usize;
        match &self.places {
            Places::Folders { folders, names } => {
                let folder = &folders[usize::from(self.labels[index])];
                Place::File(folder.join(&*names[index]))
            }
            Places::Rows { packs, rows } => {
                let Row { pack, group, row } = rows[index];
                let pack = Arc::clone(&packs[pack as usize]);
                Place::Row(pack, group as usize, row as usize)
            }
        }
    }

    pub(in crate::data) fn len(&self) -> usize {
        self.labels.len()
    }

    /// Keeps the images with these indices.
    pub(in crate::data) fn keep(&mut self, indices: &[u32]) {
        let indices = || indices.iter().map(|&index| index as usize);
        match &mut self.places {
            Places::Folders { names, .. } => {
                *names = indices().map(|index| names[index].clone()).collect();
            }
            Places::Rows { rows, .. } => *rows = indices().map(|index| rows[index]).collect(),
        }
        self.labels = indices().map(|index| self.labels[index]).collect();
    }

    /// No rows of these Parquet files yet.
    pub(super) fn of_packs(packs: &Arc<[Arc<Pack>]>) -> Self {
        let (packs, rows) = (Arc::clone(packs), Vec::new());
        Self {
            places: Places::Rows { packs, rows },
            labels: Vec::new(),
        }
    }

    /// Adds a row of a Parquet file.
    pub(super) fn push(&mut self, row: Row, label: u16) {
        if let Places::Rows { rows, .. } = &mut self.places {
            rows.push(row);
            self.labels.push(label);
        }
    }

    fn of(folders: Vec<PathBuf>) -> Self {
        let names = Vec::new();
        Self {
            places: Places::Folders { folders, names },
            labels: Vec::new(),
        }
    }

    fn extend(&mut self, label: usize, more: impl IntoIterator<Item = Box<OsStr>>) {
        if let Places::Folders { names, .. } = &mut self.places {
            names.extend(more);
            self.labels.resize(names.len(), label as u16);
        }
    }
}

/// All images of a folder.
#[derive(Debug)]
pub(in crate::data) struct Listing {
    pub(in crate::data) train: Files,
    pub(in crate::data) held: Files,
    /// Number of classes.
    pub(in crate::data) classes: usize,
}

impl Listing {
    /// Finds the images below `dir`. `share` of each class is held out; `None` for the folder of held-out
    /// images, or [`SHARE`] if there is none.
    ///
    /// # Errors
    /// If there is no folder for each class, a class has no images, or a folder is of no class.
    pub(in crate::data) fn read(
        dir: &Path,
        share: Option<f64>,
        classes: Option<&Classes>,
    ) -> Result<Self, DataError> {
        let train_dir = Some(dir.join("train")).filter(|dir| has_folders(dir));
        let held_dir = HELD.iter().map(|name| dir.join(name));
        let held_dir = match (&train_dir, share) {
            (Some(_), None) => held_dir.into_iter().find(|dir| has_folders(dir)),
            _ => None,
        };
        let train_dir = train_dir.unwrap_or_else(|| dir.to_path_buf());
        let names = class_names(&train_dir, classes)?;
        let folders: Vec<_> = names.iter().map(|name| train_dir.join(name)).collect();
        let mut train = Files::of(folders.clone());
        let mut held = train.clone();
        let share = share.unwrap_or(SHARE);
        for (label, name) in names.iter().enumerate() {
            let Some(files) = class(&folders[label], classes.and_then(Classes::names).is_some())?
            else {
                continue;
            };
            let (kept, out) = match held_dir {
                Some(_) => (files, Vec::new()),
                None => split(name, files, share),
            };
            train.extend(label, kept);
            held.extend(label, out);
        }
        if let Some(held_dir) = held_dir {
            held = held_out(&held_dir, &names)?;
        }
        if train.len() == 0 || held.len() == 0 {
            let (train, held) = (train.len(), held.len());
            return Err(at(dir)(Problem::TooFewImages { train, held }));
        }
        Ok(Self {
            train,
            held,
            classes: classes.map_or(names.len(), Classes::count),
        })
    }
}

/// A folder that has folders.
fn has_folders(dir: &Path) -> bool {
    folders(dir).is_ok_and(|names| !names.is_empty())
}

/// The names of the classes, in the order of their labels.
fn class_names(dir: &Path, classes: Option<&Classes>) -> Result<Vec<OsString>, DataError> {
    let found = folders(dir)?;
    if found.is_empty() {
        return Err(at(dir)(Problem::NoClasses));
    }
    if let Some(names) = classes.and_then(Classes::names) {
        let names: Vec<OsString> = names.iter().map(OsString::from).collect();
        known(dir, &found, &names)?;
        return Ok(names);
    }
    match classes.map(Classes::count) {
        Some(classes) if found.len() > classes => {
            let label = classes;
            let more = Problem::MoreClasses { label, classes };
            Err(at(&dir.join(&found[classes]))(more))
        }
        _ => Ok(found),
    }
}

/// Checks that all folders are classes.
fn known(dir: &Path, found: &[OsString], names: &[OsString]) -> Result<(), DataError> {
    let Some(other) = found.iter().find(|name| !names.contains(name)) else {
        return Ok(());
    };
    let names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
    Err(at(&dir.join(other))(Problem::OtherClass {
        classes: names.len(),
        hint: hint(&other.to_string_lossy(), &names),
    }))
}

fn held_out(dir: &Path, names: &[OsString]) -> Result<Files, DataError> {
    known(dir, &folders(dir)?, names)?;
    let folders: Vec<_> = names.iter().map(|name| dir.join(name)).collect();
    let mut held = Files::of(folders.clone());
    for (label, folder) in folders.iter().enumerate() {
        let files = class(folder, true)?;
        held.extend(label, files.into_iter().flatten());
    }
    Ok(held)
}

/// The images of a class; `None` if its folder is missing and may be.
fn class(dir: &Path, may_miss: bool) -> Result<Option<Vec<Box<OsStr>>>, DataError> {
    if may_miss && !dir.exists() {
        return Ok(None);
    }
    let mut files = Vec::new();
    walk(dir, Path::new(""), &mut files, 0)?;
    files.sort_unstable();
    if files.is_empty() {
        return Err(at(dir)(Problem::EmptyClass));
    }
    Ok(Some(files))
}

/// Divides the images of a class into those to train on and those held out, by a hash of their names: an
/// image is on the same side on every machine that has it, whatever else is there. At least one is held
/// out of two or more.
fn split(class: &OsStr, files: Vec<Box<OsStr>>, share: f64) -> (Vec<Box<OsStr>>, Vec<Box<OsStr>>) {
    let out = (files.len() as f64 * share).round().max(1.0) as usize;
    let out = out.min(files.len() - 1);
    let hash = |file: &OsStr| {
        let bytes = [class.as_encoded_bytes(), b"/", file.as_encoded_bytes()];
        let bytes = bytes.into_iter().flatten();
        bytes.fold(0, |hash, &byte| rng::mix(hash ^ u64::from(byte)))
    };
    let mut order: Vec<(u64, usize)> = (0..files.len()).map(|i| (hash(&files[i]), i)).collect();
    order.sort_unstable();
    let mut is_held = vec![false; files.len()];
    order[..out].iter().for_each(|(_, i)| is_held[*i] = true);
    let mut is_held = is_held.into_iter();
    let (held, kept) = files
        .into_iter()
        .partition(|_| is_held.next().unwrap_or_default());
    (kept, held)
}

/// The names of the folders in a folder, sorted as bytes. Names that begin with a dot are left out.
fn folders(dir: &Path) -> Result<Vec<OsString>, DataError> {
    let entries = entries(dir)?.into_iter();
    let names = entries.filter(|(_, is_folder)| *is_folder);
    Ok(names.map(|(name, _)| name).collect())
}

fn walk(
    dir: &Path,
    below: &Path,
    files: &mut Vec<Box<OsStr>>,
    depth: usize,
) -> Result<(), DataError> {
    if depth > DEPTH_MAX {
        return Err(at(dir)(Problem::DeepClass));
    }
    for (name, is_folder) in entries(dir)? {
        let path = below.join(&name);
        if is_folder {
            walk(&dir.join(&name), &path, files, depth + 1)?;
        } else if is_image(&path) {
            files.push(path.into_os_string().into_boxed_os_str());
        }
    }
    Ok(())
}

fn is_image(path: &Path) -> bool {
    let ending = path.extension().and_then(OsStr::to_str);
    ending.is_some_and(|ending| ENDINGS.contains(&ending.to_ascii_lowercase().as_str()))
}

/// Names in a folder and whether they are folders, links followed, sorted as bytes.
pub(super) fn entries(dir: &Path) -> Result<Vec<(OsString, bool)>, DataError> {
    let io = at(dir);
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let kind = entry.file_type().map_err(io)?;
        let is_folder = if kind.is_symlink() {
            fs::metadata(entry.path()).is_ok_and(|kind| kind.is_dir())
        } else {
            kind.is_dir()
        };
        found.push((name, is_folder));
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(dir: &Path, files: &[&str]) {
        for file in files {
            let path = dir.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
    }

    fn all(files: &Files) -> Vec<(String, u16)> {
        let name = |index| files.place(index).name().display().to_string();
        let indices = 0..files.len() as u32;
        indices
            .map(|index| (name(index), files.labels[index as usize]))
            .collect()
    }

    #[test]
    fn folders_are_classes_in_the_order_of_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            "train/b/2.png",
            "train/b/x/1.JPG",
            "train/a/1.jpeg",
            "train/a/notes.txt",
        ];
        touch(dir.path(), &files);
        touch(dir.path(), &["test/b/1.png", ".cache/x/1.png"]);
        let listing = Listing::read(dir.path(), None, None).unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        assert_eq!(
            all(&listing.train),
            [
                (path("train/a/1.jpeg"), 0),
                (path("train/b/2.png"), 1),
                (path("train/b/x/1.JPG"), 1)
            ]
        );
        assert_eq!(all(&listing.held), [(path("test/b/1.png"), 1)]);
        assert_eq!(listing.classes, 2);
    }

    #[test]
    fn a_share_of_each_class_is_held_out_by_name() {
        let dir = tempfile::tempdir().unwrap();
        for class in ["a", "b"] {
            for image in 0..20 {
                touch(dir.path(), &[&format!("{class}/{image}.png")]);
            }
        }
        let read = || Listing::read(dir.path(), Some(0.25), None).unwrap();
        let listing = read();
        assert_eq!((listing.train.len(), listing.held.len()), (30, 10));
        let of_a = |files: &Files| files.labels.iter().filter(|label| **label == 0).count();
        assert_eq!((of_a(&listing.train), of_a(&listing.held)), (15, 5));
        // Both sides together are all images, and another class changes nothing in these two.
        let before = all(&listing.held);
        let mut both = [before.clone(), all(&listing.train)].concat();
        both.sort();
        both.dedup();
        assert_eq!(both.len(), 40);
        touch(dir.path(), &["c/1.png", "c/2.png"]);
        assert_eq!(all(&read().held)[..10], before);
    }

    #[test]
    fn a_class_called_train_is_one() {
        let dir = tempfile::tempdir().unwrap();
        touch(
            dir.path(),
            &["car/1.png", "car/2.png", "train/1.png", "train/2.png"],
        );
        let listing = Listing::read(dir.path(), None, None).unwrap();
        assert_eq!((listing.classes, listing.train.labels), (2, vec![0, 1]));
    }

    #[test]
    fn wrong_folders_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let line = |classes: Option<&Classes>| {
            let found = Listing::read(dir.path(), None, classes);
            found.map(|found| found.classes).map_err(|e| e.to_string())
        };
        let error = line(None).unwrap_err();
        assert!(error.contains("DIR/CLASS/IMAGE.png"), "{error}");
        touch(
            dir.path(),
            &["cat/1.png", "cat/2.png", "dog/1.png", "dog/2.png"],
        );
        assert_eq!(line(Some(&Classes::Count(5))), Ok(5));
        let error = line(Some(&Classes::Count(1))).unwrap_err();
        assert!(error.contains("dog: it has label 1"), "{error}");
        let names = Classes::Names(["cat", "cow", "dog"].map(str::to_owned).to_vec());
        assert_eq!(line(Some(&names)), Ok(3));
        touch(dir.path(), &["cats/1.png"]);
        let error = line(Some(&names)).unwrap_err();
        assert!(error.contains("cats: its name is none of the 3"), "{error}");
        assert!(error.contains("did you mean `cat`?"), "{error}");
        touch(dir.path(), &["eel/notes.txt"]);
        let error = line(None).unwrap_err();
        assert!(error.contains("eel: no image of this class"), "{error}");
    }
}
