//! The entries of a record, and their bytes without checks. The first one is a header: all that a peer is made
//! from.

use crate::limits::{RECORD_ENTRY_BYTES_MAX, RECORD_REASON_BYTES_MAX, RECORD_TOPOLOGY_BYTES_MAX};
use crate::record::RecordError;
use crate::wire::{decode_limited, encode_value};
use crate::{Digest, Input, PeerConfig, Plan, Time};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// All that a peer is made from. The snapshot that it starts from is in its first input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordHeader {
    /// The plan.
    pub plan: Plan,
    /// The peer's own settings, its seed included.
    pub config: PeerConfig,
    /// The topology as the driver writes it, opaque here, where neighbours mix. Its seed is the
    /// peer's.
    pub topology: Option<Vec<u8>>,
}

impl RecordHeader {
    pub(super) fn check(&self) -> Result<(), RecordError> {
        self.plan.validate()?;
        let topology = self.topology.as_ref();
        let lacking = self.plan.exchange.has_neighbours() && topology.is_none();
        if lacking || topology.is_some_and(|bytes| bytes.len() > RECORD_TOPOLOGY_BYTES_MAX) {
            Err(RecordError::Topology)
        } else {
            Ok(())
        }
    }
}

/// Kinds of entries, as they open their bytes.
const HEADER: u8 = 0;
const INPUT: u8 = 1;
const END: u8 = 2;
const CUT: u8 = 3;

/// One entry of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// The first one.
    Header(Box<RecordHeader>),
    /// Something that went into the peer.
    Input {
        /// When, as the driver told it.
        at: Time,
        /// [`OutputHash::mark`](crate::record::OutputHash::mark) of all outputs before it.
        mark: u64,
        /// What.
        input: Box<Input>,
    },
    /// The driver ended, and with it the record.
    End {
        /// Inputs in all.
        inputs: u64,
        /// Outputs in all.
        outputs: u64,
        /// Hash of all outputs.
        digest: Digest,
    },
    /// The record ends here, but the peer continued.
    Cut {
        /// Inputs in the record.
        inputs: u64,
        /// Why, in words.
        reason: String,
    },
}

/// The bytes of one entry, within the limit and without checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryBytes(Vec<u8>);

impl EntryBytes {
    pub(super) fn header(header: &RecordHeader) -> Result<Self, RecordError> {
        Self::new(HEADER, header)
    }

    pub(super) fn input(at: Time, mark: u64, input: &Input) -> Result<Self, RecordError> {
        Self::new(INPUT, &(at, mark, input))
    }

    pub(super) fn end(inputs: u64, outputs: u64, digest: Digest) -> Result<Self, RecordError> {
        Self::new(END, &(inputs, outputs, digest))
    }

    pub(super) fn cut(inputs: u64, reason: &str) -> Result<Self, RecordError> {
        let mut end = reason.len().min(RECORD_REASON_BYTES_MAX);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        Self::new(CUT, &(inputs, &reason[..end]))
    }

    fn new<T: Serialize>(kind: u8, body: &T) -> Result<Self, RecordError> {
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&encode_value(body));
        if bytes.len() <= RECORD_ENTRY_BYTES_MAX {
            Ok(Self(bytes))
        } else {
            Err(RecordError::TooLong {
                bytes: bytes.len() as u64,
            })
        }
    }

    /// Returns `true` if it is the one that ends a record with its driver.
    pub fn is_end(&self) -> bool {
        self.0.first() == Some(&END)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Entry {
    /// Reads the bytes of the entry at `at`; the checks have been compared already.
    pub(super) fn decode(at: u64, bytes: &[u8]) -> Result<Self, RecordError> {
        fn value<T: DeserializeOwned>(at: u64, body: &[u8]) -> Result<T, RecordError> {
            let body = decode_limited::<_, RECORD_ENTRY_BYTES_MAX>(body);
            body.map_err(|source| RecordError::Undecodable { at, source })
        }
        let (kind, body) = bytes.split_first().ok_or(RecordError::Impossible {
            at,
            what: "it is empty",
        })?;
        Ok(match *kind {
            HEADER => Self::Header(value(at, body)?),
            INPUT => {
                let (time, mark, input): (Time, u64, Box<Input>) = value(at, body)?;
                if let Input::Received { message, .. } = input.as_ref() {
                    let check = message.check();
                    check.map_err(|source| RecordError::Undecodable { at, source })?;
                }
                Self::Input {
                    at: time,
                    mark,
                    input,
                }
            }
            END => {
                let (inputs, outputs, digest) = value(at, body)?;
                Self::End {
                    inputs,
                    outputs,
                    digest,
                }
            }
            CUT => {
                let (inputs, reason) = value(at, body)?;
                Self::Cut { inputs, reason }
            }
            kind => return Err(RecordError::UnknownKind { at, kind }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::SNAPSHOT_BYTES_MAX;
    use crate::{Digest, Done, OrderId};

    #[test]
    fn the_largest_snapshot_and_the_largest_roll_fit() {
        let done = Input::Done {
            order: OrderId::default(),
            done: Done::Loaded {
                digests: vec![Digest::of(b"one")],
                note: vec![7; SNAPSHOT_BYTES_MAX],
            },
        };
        let entry = EntryBytes::input(Time::ZERO, 0, &done).unwrap();
        let read = Entry::decode(0, entry.as_bytes()).unwrap();
        let Entry::Input { input, .. } = read else {
            panic!("{read:?}");
        };
        assert_eq!(*input, done);
    }
}
