//! Keys of `[synchronization]` and `[agreement]` that several exchanges share.

use super::super::entry::{Entry, Key, key};
use crate::parameter::Parameters;

pub(in crate::grid) const ENOUGH: Key = key(
    "synchronization.enough",
    "from 0 to 64",
    "0",
    "contributions that are enough; 0 is all",
);

pub(in crate::grid) const GRACE: Key = key(
    "synchronization.grace",
    "fixed, adaptive",
    "\"fixed\"",
    "how long to wait for the others once there are enough: a time, or twice their median lateness",
);

pub(in crate::grid) const GRACE_MS: Key = key(
    "synchronization.grace_ms",
    "from 0 milliseconds to a day",
    "0",
    "the time of a fixed grace",
);

pub(in crate::grid) const FRACTION: Key = key(
    "synchronization.fraction",
    "from a millionth to 1",
    "1.0",
    "probability that a peer trains in a round, drawn in each",
);

pub(in crate::grid) const GROUPING: Key = key(
    "agreement.grouping",
    "auto, flat, grid, cells",
    "\"auto\"",
    "one group of 64, rows and columns, or cells; auto takes rows and columns above 64 peers",
);

pub(in crate::grid) const ROW: Key = key(
    "agreement.row",
    "from 0 to 256",
    "0",
    "peers in a row of a grid; 0 chooses by the size",
);

pub(in crate::grid) const CELL: Key = key(
    "agreement.cell",
    "from 2 to 64",
    "16",
    "peers of a cell, of which those of the last axis have up to a quarter more",
);

pub(in crate::grid) const DEALING: Key = key(
    "agreement.dealing",
    "axes, random",
    "\"axes\"",
    "cells along the axes of a grid, exact after a round for each, or random ones in every round",
);

pub(in crate::grid) const LIARS: Key = key(
    "agreement.liars",
    "from 0 to 21, or \"max\"",
    "0",
    "members of a group that may lie without harm, (n - 1) / 3 of n at most; above 0 members sign",
);

/// A mode's own keys of `[synchronization]`.
pub(super) fn keys_of(mode: &Entry) -> Parameters {
    Parameters::new("synchronization", mode.name, mode.parameters)
}
