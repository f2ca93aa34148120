//! Transferred states: in files and in memory, over restarts, with damaged files and full disks.

use super::*;
use murmurate_strategies::executor::state_in_memory;
use std::fs;

const BYTES: usize = 3 * STATE_CHUNK_BYTES + 17;

/// A state of `round` with its manifest and bytes.
fn state(round: u64) -> (StateId, Bytes, Bytes) {
    let bytes: Vec<u8> = (0..BYTES)
        .map(|i| (i as u64 * (round + 7) % 251) as u8)
        .collect();
    state_in_memory(Round(round), &mut |out| out.write_all(&bytes)).unwrap()
}

fn chunk(bytes: &Bytes, index: u32) -> Bytes {
    crate::bulk::chunk(bytes, index).unwrap()
}

fn read(taken: &dyn StateBytes) -> Vec<u8> {
    let mut bytes = vec![0; taken.bytes() as usize];
    taken.read_at(0, &mut bytes).unwrap();
    bytes
}

fn names(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

#[test]
fn a_state_is_taken_only_when_every_chunk_is_here() {
    let dir = tempfile::tempdir().unwrap();
    for mut states in [States::default(), States::in_dir(dir.path(), u64::MAX)] {
        let (id, manifest, bytes) = state(4);
        states.begin(&id, &manifest);
        for index in [0, 2, 3] {
            states.put_chunk(&id, index, &chunk(&bytes, index)).unwrap();
        }
        assert!(states.take(&id).is_none());
        let transfer = states.transfer().unwrap();
        assert!(transfer.bytes < transfer.of, "{transfer:?}");
        states.begin(&id, &manifest);
        assert!(states.has_chunk(&id, 0), "an interrupted fetch goes on");
        assert_eq!(states.put_chunk(&id, 3, &[2; 18]), Err(Refusal::TooLong));
        assert_eq!(states.put_chunk(&id, 4, &[2; 1]), Err(Refusal::TooLong));
        states.put_chunk(&id, 1, &chunk(&bytes, 1)).unwrap();
        assert_eq!(read(&*states.take(&id).unwrap()), bytes);
        assert!(states.transfer().is_none());
        assert_eq!(names(dir.path()), 0, "no file stays");
    }
}

#[test]
fn a_pinned_state_is_served_until_it_is_released() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    for place in [None, Some(dir.path()), Some(missing.as_path())] {
        let (id, manifest, bytes) = state(4);
        let pinned = Pinned::write(Round(4), place, &mut |out| out.write_all(&bytes)).unwrap();
        let mut states = States::default();
        assert_eq!(states.pin(pinned), id);
        assert_eq!(states.manifest(&id).unwrap(), manifest);
        let served = states.pinned(&id).unwrap();
        for index in 0..4 {
            assert_eq!(served.chunk(index).unwrap(), chunk(&bytes, index));
        }
        assert!(served.chunk(4).is_none() && served.chunk(u32::MAX).is_none());
        states.unpin(Round(3));
        assert!(states.manifest(&id).is_some());
        states.unpin(Round(4));
        assert!(states.manifest(&id).is_none());
        assert_eq!(names(dir.path()), 0, "a crash leaves no file behind");
    }
}

#[test]
fn a_restarted_daemon_keeps_the_whole_chunks_and_no_damaged_one() {
    let dir = tempfile::tempdir().unwrap();
    let (id, manifest, bytes) = state(4);
    let mut states = States::in_dir(dir.path(), u64::MAX);
    states.begin(&id, &manifest);
    for index in [0, 1, 3] {
        states.put_chunk(&id, index, &chunk(&bytes, index)).unwrap();
    }
    drop(states);
    // A torn chunk, as after a power failure.
    let file = fs::OpenOptions::new()
        .write(true)
        .open(dir.path().join("incoming.state"))
        .unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[9; 100], STATE_CHUNK_BYTES as u64 + 5)
        .unwrap();
    let mut states = States::in_dir(dir.path(), u64::MAX);
    let here: Vec<bool> = (0..4).map(|index| states.has_chunk(&id, index)).collect();
    assert_eq!(here, [true, false, false, true]);
    for index in [1, 2] {
        states.put_chunk(&id, index, &chunk(&bytes, index)).unwrap();
    }
    assert_eq!(read(&*states.take(&id).unwrap()), bytes);
}

#[test]
fn files_that_are_of_no_use_are_removed() {
    let (id, manifest, bytes) = state(4);
    let fetched = |dir: &Path| {
        let mut states = States::in_dir(dir, u64::MAX);
        states.begin(&id, &manifest);
        states.put_chunk(&id, 0, &chunk(&bytes, 0)).unwrap();
        states
    };
    type Damage = fn(&Path);
    let damages: [Damage; 5] = [
        |dir| fs::write(dir.join("incoming.manifest"), b"short").unwrap(),
        |dir| fs::write(dir.join("incoming.manifest"), vec![7; 4096]).unwrap(),
        |dir| fs::write(dir.join("incoming.state"), b"short").unwrap(),
        |dir| fs::write(dir.join("incoming.state"), vec![0; BYTES]).unwrap(),
        |dir| fs::remove_file(dir.join("incoming.state")).unwrap(),
    ];
    for (case, damage) in damages.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        drop(fetched(dir.path()));
        damage(dir.path());
        assert!(
            States::in_dir(dir.path(), u64::MAX).transfer().is_none(),
            "{case}"
        );
        assert_eq!(names(dir.path()), 0, "{case}");
    }
    // Larger than the plan allows, and of a round that this daemon has passed.
    let dir = tempfile::tempdir().unwrap();
    drop(fetched(dir.path()));
    assert!(States::in_dir(dir.path(), 1000).transfer().is_none());
    let mut states = fetched(dir.path());
    states.begun(Round(4));
    assert!(states.has_chunk(&id, 0));
    states.begun(Round(5));
    assert_eq!((states.transfer(), names(dir.path())), (None, 0));
}

/// After a restart of all, a daemon whose newest state no other confirms goes back to an earlier one.
#[test]
fn a_state_of_an_earlier_round_that_is_fetched_on_purpose_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut states = States::in_dir(dir.path(), u64::MAX);
    states.begun(Round(5));
    let (id, manifest, bytes) = state(4);
    states.begin(&id, &manifest);
    for index in 0..bytes.len().div_ceil(STATE_CHUNK_BYTES) as u32 {
        states.put_chunk(&id, index, &chunk(&bytes, index)).unwrap();
        states.begun(Round(5));
    }
    assert!(states.take(&id).is_some());
}

/// As on a full disk: the file takes no more bytes.
#[test]
fn a_state_whose_file_cannot_be_written_goes_on_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (id, manifest, bytes) = state(4);
    let mut states = States::in_dir(dir.path(), u64::MAX);
    states.begin(&id, &manifest);
    states.put_chunk(&id, 0, &chunk(&bytes, 0)).unwrap();
    states
        .incoming
        .as_mut()
        .unwrap()
        .read_only_for_tests(dir.path());
    for index in [1, 2, 3] {
        states.put_chunk(&id, index, &chunk(&bytes, index)).unwrap();
    }
    assert_eq!(names(dir.path()), 0);
    assert_eq!(read(&*states.take(&id).unwrap()), bytes);
}
