//! Checkpoints after every kind of failure.

use super::*;
use crate::store::StoreError;
use crate::tests::assert_has;
use murmurate_protocol::{LayoutHash, PlanHash, RunId};
use murmurate_strategies::Layout;
use murmurate_strategies::state::{StateError, StateSink, StateSource};
use std::path::Path;
use std::sync::Arc;

fn layout() -> Arc<Layout> {
    Arc::new(Layout::new([
        ("layer1.weight", vec![3, 2]),
        ("layer1.bias", vec![3]),
    ]))
}

fn expected() -> Expected {
    Expected {
        run: RunId::from_bytes([1; 32]),
        plan: PlanHash::from_bytes([2; 32]),
        layout: layout().hash(),
    }
}

fn parameters(start: f32) -> Vec<f32> {
    (0..9).map(|i| start + i as f32).collect()
}

fn save(dir: &Path, round: u64, start: f32) {
    let writer = CheckpointWriter::begin(dir, round, layout()).unwrap();
    let (mut train, mut mix) = (writer.sink("train").unwrap(), writer.sink("mix").unwrap());
    let values = parameters(start);
    // The lanes save on their own threads.
    let (train, mix) = std::thread::scope(|scope| {
        let train = scope.spawn(|| {
            for spec in layout().tensors() {
                let name = format!("parameters.{}", spec.name);
                train.tensor(&name, &values[spec.range()]).unwrap();
            }
            train.bytes("trainer.position", &[1, 2, 3]).unwrap();
            train.finish().unwrap()
        });
        let mix = scope.spawn(|| {
            mix.tensor("anchor", &values).unwrap();
            mix.tensor("residual.0", &[0.5, -0.5]).unwrap();
            mix.finish().unwrap()
        });
        (train.join().unwrap(), mix.join().unwrap())
    });
    let manifest = Manifest::new(&expected(), round, layout().tensors());
    writer.commit(manifest, vec![train, mix]).unwrap();
}

fn resume(dir: &Path) -> Result<Option<Checkpoint>, StoreError> {
    let Some(checkpoint) = Checkpoint::open(dir)? else {
        return Ok(None);
    };
    checkpoint.require(&expected())?;
    checkpoint.verify()?;
    Ok(Some(checkpoint))
}

fn first_parameter(dir: &Path) -> f32 {
    let mut values = vec![0.0; 9];
    resume(dir)
        .unwrap()
        .unwrap()
        .tensor("parameters", &mut values)
        .unwrap();
    values[0]
}

#[test]
fn both_lanes_come_back_by_every_name() {
    let dir = tempfile::tempdir().unwrap();
    assert!(resume(dir.path()).unwrap().is_none());
    save(dir.path(), 4, 10.0);
    let checkpoint = resume(dir.path()).unwrap().unwrap();
    assert_eq!(checkpoint.manifest().round, 4);
    let mut all = vec![0.0; 9];
    for store in ["anchor", "parameters"] {
        checkpoint.tensor(store, &mut all).unwrap();
        assert_eq!(all, parameters(10.0));
    }
    let mut bias = vec![0.0; 3];
    checkpoint.tensor("anchor.layer1.bias", &mut bias).unwrap();
    assert_eq!(bias, [16.0, 17.0, 18.0]);
    let mut residual = vec![0.0; 2];
    checkpoint.tensor("residual.0", &mut residual).unwrap();
    assert_eq!(residual, [0.5, -0.5]);
    assert_eq!(checkpoint.bytes("trainer.position").unwrap(), [1, 2, 3]);
    assert!(checkpoint.contains("anchor") && !checkpoint.contains("velocity"));
    assert!(matches!(
        checkpoint.tensor("anchor", &mut residual),
        Err(StateError::Size {
            found: 9,
            needed: 2,
            ..
        })
    ));
    assert!(matches!(
        checkpoint.tensor("velocity", &mut all),
        Err(StateError::Missing { .. })
    ));
}

#[test]
fn shapes_are_those_of_the_layout() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), 0, 0.0);
    let bytes = std::fs::read(dir.path().join("checkpoint-0-0/train.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(
        tensors.tensor("parameters.layer1.weight").unwrap().shape(),
        [3, 2]
    );
}

#[test]
fn the_last_commit_wins_and_the_one_before_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), 1, 1.0);
    save(dir.path(), 1, 2.0);
    save(dir.path(), 5, 3.0);
    assert_eq!(first_parameter(dir.path()), 3.0);
    let names: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn a_crash_before_the_commit_leaves_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), 1, 1.0);
    let writer = CheckpointWriter::begin(dir.path(), 2, layout()).unwrap();
    let mut sink = writer.sink("train").unwrap();
    sink.tensor("parameters", &parameters(9.0)).unwrap();
    // A killed process runs no destructor, so the incomplete checkpoint stays.
    std::mem::forget(writer);
    drop(sink);
    assert_eq!(first_parameter(dir.path()), 1.0);
    save(dir.path(), 2, 2.0);
    assert_eq!(first_parameter(dir.path()), 2.0);
}

#[test]
fn an_abandoned_checkpoint_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), 1, 1.0);
    drop(CheckpointWriter::begin(dir.path(), 2, layout()).unwrap());
    assert!(!dir.path().join("checkpoint-2-1").exists());
    assert_eq!(first_parameter(dir.path()), 1.0);
}

#[test]
fn every_flipped_byte_and_every_truncation_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), 3, 1.0);
    for name in ["train", "mix"] {
        let path = dir
            .path()
            .join(format!("checkpoint-3-0/{name}.safetensors"));
        let whole = std::fs::read(&path).unwrap();
        for at in [0, 9, 4000, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert!(
                matches!(resume(dir.path()), Err(StoreError::Damaged { .. })),
                "{at}"
            );
        }
        for keep in [0, 7, 100, whole.len() - 4] {
            std::fs::write(&path, &whole[..keep]).unwrap();
            assert!(
                matches!(resume(dir.path()), Err(StoreError::Damaged { .. })),
                "{keep}"
            );
        }
        std::fs::write(&path, &whole).unwrap();
    }
    assert_eq!(first_parameter(dir.path()), 1.0);
}

#[test]
fn a_damaged_manifest_is_named_and_never_written_over() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), 3, 1.0);
    let path = dir.path().join(MANIFEST);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let line = resume(dir.path()).unwrap_err().to_string();
    assert!(line.contains("checkpoint.json is damaged"), "{line}");
    assert!(
        line.ends_with(
            "move checkpoint.json and the directories checkpoint-* away to start afresh"
        ),
        "{line}"
    );
    assert!(CheckpointWriter::begin(dir.path(), 4, layout()).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), &whole[..whole.len() / 2]);
}

/// Otherwise the daemon would begin with round 0, and its first commit would remove the files.
#[test]
fn files_without_their_manifest_are_refused_and_its_copy_brings_them_back() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), 3, 1.0);
    let path = dir.path().join(MANIFEST);
    std::fs::remove_file(&path).unwrap();
    let line = resume(dir.path()).unwrap_err().to_string();
    let home = dir.path().display();
    let expected = format!(
        "{home} holds checkpoint-3-0 but no checkpoint.json, which says that it is whole: copy \
         checkpoint-3-0/checkpoint.json to {home} to go on from it, or move checkpoint-3-0 away to start afresh"
    );
    assert_eq!(line, expected);
    assert!(dir.path().join("checkpoint-3-0/mix.safetensors").exists());
    std::fs::copy(dir.path().join("checkpoint-3-0").join(MANIFEST), &path).unwrap();
    assert_eq!(first_parameter(dir.path()), 1.0);
    // A checkpoint of a version that wrote no copy had another one before it.
    save(dir.path(), 4, 2.0);
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(dir.path().join("checkpoint-4-1").join(MANIFEST)).unwrap();
    let line = resume(dir.path()).unwrap_err().to_string();
    assert_has(&line, "whole: restore checkpoint.json to go on");
}

#[test]
fn a_first_checkpoint_that_was_never_committed_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let writer = CheckpointWriter::begin(dir.path(), 2, layout()).unwrap();
    let mut sink = writer.sink("train").unwrap();
    sink.tensor("parameters", &parameters(9.0)).unwrap();
    // A killed process runs no destructor, so the incomplete checkpoint stays.
    std::mem::forget(writer);
    drop(sink);
    assert!(dir.path().join("checkpoint-2-0").exists());
    assert!(resume(dir.path()).unwrap().is_none());
    save(dir.path(), 2, 2.0);
    assert_eq!(first_parameter(dir.path()), 2.0);
}

#[test]
fn a_foreign_checkpoint_is_refused_by_what_differs() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), 3, 1.0);
    let checkpoint = resume(dir.path()).unwrap().unwrap();
    let cases = [
        (
            "run",
            Expected {
                run: RunId::from_bytes([9; 32]),
                ..expected()
            },
        ),
        (
            "plan",
            Expected {
                plan: PlanHash::from_bytes([9; 32]),
                ..expected()
            },
        ),
        (
            "model",
            Expected {
                layout: LayoutHash::from_bytes([9; 32]),
                ..expected()
            },
        ),
    ];
    for (what, other) in cases {
        let line = checkpoint.require(&other).unwrap_err().to_string();
        assert_has(&line, &format!("belongs to another {what} (it has "));
        assert!(line.contains("this configuration gives 09090909"), "{line}");
    }
}

#[test]
fn a_manifest_cannot_name_files_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), 3, 1.0);
    let path = dir.path().join(MANIFEST);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("checkpoint-3-0", "../elsewhere")).unwrap();
    assert!(matches!(
        resume(dir.path()),
        Err(StoreError::Damaged { .. })
    ));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_apart() {
    let error = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let line = StoreError::io(
        "write",
        Path::new("d/checkpoint-1-0/mix.safetensors"),
        error,
    );
    assert_eq!(
        line.to_string(),
        "no space left while writing d/checkpoint-1-0/mix.safetensors; \
         earlier checkpoints are intact, free some space"
    );
    // Writing to /dev/full fails like writing to a full disk.
    let mut writer =
        crate::store::tensors::TensorWriter::create(Path::new("/dev/full"), 8).unwrap();
    let result = writer.tensor("a", &[1], &[1.0]);
    assert!(matches!(result, Err(StoreError::Full { .. })), "{result:?}");
}
