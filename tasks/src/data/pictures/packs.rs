//! Finds the images of Parquet files, as data sets for image classification are published: a column of
//! encoded images and a column of labels.

use super::listing::{Files, HELD, Listing, SHARE, entries};
use super::place::{Pack, Row};
use crate::data::error::{DataError, Problem, at};
use crate::data::labels::{check_held, count_classes};
use crate::data::parquet::{Column, ColumnKind, ParquetFile};
use crate::rng;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names of the column of images, the first one first.
const IMAGES: [&str; 4] = ["image.bytes", "img.bytes", "image", "img"];

/// Names of the column of labels.
const LABELS: [&str; 2] = ["label", "labels"];

/// The Parquet files at a path: the file itself, or those of the folder and of the folders in it, sorted by
/// name. Empty if there are none.
///
/// # Errors
/// If a folder cannot be read.
pub(in crate::data) fn find(path: &Path) -> Result<Vec<PathBuf>, DataError> {
    let is_parquet = |path: &Path| path.extension().is_some_and(|ending| ending == "parquet");
    if !path.is_dir() {
        return Ok(Some(path.to_path_buf())
            .filter(|path| is_parquet(path))
            .into_iter()
            .collect());
    }
    let mut files = Vec::new();
    for (name, is_folder) in entries(path)? {
        let below = path.join(name);
        if is_folder {
            let inside = entries(&below)?
                .into_iter()
                .filter(|(_, is_folder)| !is_folder);
            files.extend(inside.map(|(name, _)| below.join(name)));
        } else {
            files.push(below)
        }
    }
    files.retain(|path| is_parquet(path));
    Ok(files)
}

/// Lists the images of Parquet files. Those of files whose name begins with `val` or `test` are held out;
/// without such a file, or with `share`, a share of all rows of the others is, chosen by a hash of file
/// name and row.
///
/// # Errors
/// If a file cannot be read, lacks a column, or has a label that cannot be right.
pub(in crate::data) fn list(
    paths: &[PathBuf],
    share: Option<f64>,
    classes: Option<usize>,
) -> Result<Listing, DataError> {
    let held_name = |path: &PathBuf| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        HELD.iter().any(|held| name.starts_with(held))
    };
    let apart = share.is_none() && paths.iter().any(held_name);
    let packs = paths
        .iter()
        .map(|path| open(path))
        .collect::<Result<Vec<_>, _>>()?;
    let packs: Arc<[Arc<Pack>]> = packs.into();
    let (mut train, mut held) = (Files::of_packs(&packs), Files::of_packs(&packs));
    let mut count = classes;
    for (at, path) in paths.iter().enumerate() {
        let labels = labels_of(&packs[at].file)?;
        let out = held_name(path);
        if out && !apart {
            continue;
        }
        if let Some(classes) = classes {
            check_held(path, &labels, classes, true)?;
        }
        let mut labels = labels.into_iter();
        for group in 0..packs[at].file.row_groups() {
            for row in 0..packs[at].file.rows(group) {
                let Some(label) = labels.next() else { break };
                let place = Row {
                    pack: at as u32,
                    group: group as u32,
                    row: row as u32,
                };
                let hidden = if apart {
                    out
                } else {
                    is_held(path, group, row, share.unwrap_or(SHARE))
                };
                let side = if hidden { &mut held } else { &mut train };
                side.push(place, label);
            }
        }
    }
    let first = paths[0].as_path();
    if count.is_none() {
        count = Some(count_classes(first, &train.labels, None)?);
        check_held(first, &held.labels, count.unwrap_or(0), false)?;
    }
    if train.len() == 0 || held.len() == 0 {
        let (train, held) = (train.len(), held.len());
        return Err(at(first)(Problem::TooFewImages { train, held }));
    }
    let classes = count.unwrap_or(0);
    Ok(Listing {
        train,
        held,
        classes,
    })
}

fn is_held(path: &Path, group: usize, row: usize, share: f64) -> bool {
    let name = path.file_name().unwrap_or_default();
    let bytes = name.as_encoded_bytes().iter();
    let hash = bytes.fold(0, |hash, &byte| rng::mix(hash ^ u64::from(byte)));
    let hash = rng::mix(rng::mix(hash ^ group as u64) ^ row as u64);
    (hash as f64) < share * u64::MAX as f64
}

fn open(path: &Path) -> Result<Arc<Pack>, DataError> {
    let file = ParquetFile::open(path)?;
    let of_bytes = |column: &&Column| column.kind == ColumnKind::Bytes && !column.is_list;
    let named = |name: &&str| {
        file.columns()
            .iter()
            .filter(of_bytes)
            .find(|c| c.name == **name)
    };
    let Some(images) = IMAGES.iter().find_map(named) else {
        let there: Vec<_> = file
            .columns()
            .iter()
            .map(|c| format!("`{}`", c.name))
            .collect();
        return Err(at(path)(Problem::NoImages(there.join(", "))));
    };
    let images = images.clone();
    Ok(Arc::new(Pack { file, images }))
}

/// The labels of all rows.
fn labels_of(file: &ParquetFile) -> Result<Vec<u16>, DataError> {
    let known = |name: &str| file.columns().iter().any(|column| column.name == name);
    let name = LABELS.into_iter().find(|name| known(name));
    let name = name.unwrap_or(LABELS[0]);
    let column = file.column(name)?;
    let mut labels = Vec::new();
    for group in 0..file.row_groups() {
        let found = file.ints(column, group, 0..file.rows(group))?;
        for label in found {
            let label = label.and_then(|label| u16::try_from(label).ok());
            let label = label.ok_or_else(|| at(file.path())(Problem::NoLabel(labels.len())))?;
            labels.push(label);
        }
    }
    Ok(labels)
}
