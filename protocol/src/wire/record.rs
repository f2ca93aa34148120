//! Peer records: who can be reached where, signed and expiring.

use crate::limits::{ADDRESS_BYTES_MAX, RECORD_ADDRESSES_MAX, SIGNATURE_BYTES_MAX};
use crate::wire::WireError;
use crate::wire::check::ok;
use crate::wire::raw::RawBytes;
use crate::{Locality, PeerId, RunId, Time};
use core::fmt;
use core::ops::{Deref, DerefMut};
use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// Where a peer of a run can be reached, in its own words.
///
/// The shell signs its own and checks the signatures of all others: records reach the
/// [`Peer`](crate::Peer) verified.
///
/// A record is a handle on its contents, and its copies share them until one is written to: a swarm's
/// roll names thousands of peers, and lists, views and messages hold the same records.
#[derive(Clone, PartialEq, Eq)]
pub struct PeerRecord(Arc<RecordFields>);

/// What a [`PeerRecord`] says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordFields {
    /// The peer.
    pub peer: PeerId,
    /// The run it takes part in.
    pub run: RunId,
    /// Raised with every change; the highest wins. Below 2^63.
    pub sequence: u64,
    /// When it is no longer believed, by the clock of the peer that made it.
    pub expires: Time,
    /// Multiaddresses in their binary form, opaque here.
    pub addresses: Vec<Vec<u8>>,
    /// Where in the network the peer is.
    pub locality: Locality,
    /// By `peer`, over [`PeerRecord::signed_bytes`].
    pub signature: Vec<u8>,
}

impl From<RecordFields> for PeerRecord {
    fn from(fields: RecordFields) -> Self {
        Self(Arc::new(fields))
    }
}

impl Deref for PeerRecord {
    type Target = RecordFields;

    fn deref(&self) -> &RecordFields {
        &self.0
    }
}

impl DerefMut for PeerRecord {
    fn deref_mut(&mut self) -> &mut RecordFields {
        Arc::make_mut(&mut self.0)
    }
}

impl fmt::Debug for PeerRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Only grids use localities, so this bit of the sequence number says that one follows.
const LOCATED: u64 = 1 << 63;

impl Serialize for PeerRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let located = self.is_located();
        let mut fields = serializer.serialize_tuple(FIELDS + usize::from(located))?;
        let flag = if located { LOCATED } else { 0 };
        fields.serialize_element(&self.peer)?;
        fields.serialize_element(&self.run)?;
        fields.serialize_element(&(self.sequence & !LOCATED | flag))?;
        fields.serialize_element(&self.expires)?;
        fields.serialize_element(&Addresses(&self.addresses))?;
        fields.serialize_element(&RawBytes(&self.signature))?;
        if located {
            fields.serialize_element(&self.locality)?;
        }
        fields.end()
    }
}

/// Fields of a record without a locality.
const FIELDS: usize = 6;

impl<'de> Deserialize<'de> for PeerRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_tuple(FIELDS + 1, Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = PeerRecord;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a peer record")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<PeerRecord, A::Error> {
        fn next<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(seq: &mut A) -> Result<T, A::Error> {
            let missing = || Error::custom("a record ends early");
            seq.next_element()?.ok_or_else(missing)
        }
        let (peer, run, sequence): (_, _, u64) =
            (next(&mut seq)?, next(&mut seq)?, next(&mut seq)?);
        let expires = next(&mut seq)?;
        let addresses: Vec<RawBytes<Vec<u8>>> = next(&mut seq)?;
        let addresses = addresses.into_iter().map(|RawBytes(bytes)| bytes).collect();
        let RawBytes(signature) = next(&mut seq)?;
        let locality = match sequence & LOCATED {
            0 => Locality::default(),
            _ => next(&mut seq)?,
        };
        if sequence & LOCATED != 0 && locality == Locality::default() {
            return Err(Error::custom(
                "a record that says twice that it has no locality",
            ));
        }
        Ok(PeerRecord::from(RecordFields {
            peer,
            run,
            sequence: sequence & !LOCATED,
            expires,
            addresses,
            locality,
            signature,
        }))
    }
}

/// Addresses, one after the other.
struct Addresses<'a>(&'a [Vec<u8>]);

impl Serialize for Addresses<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(RawBytes))
    }
}

impl PeerRecord {
    /// A copy that shares its contents with this one.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The bytes that the signature is over: everything but the signature itself.
    pub fn signed_bytes(&self) -> Vec<u8> {
        let unsigned = RecordFields {
            signature: Vec::new(),
            ..(**self).clone()
        };
        crate::wire::canonical(&("murmurate peer record", unsigned))
    }

    fn is_located(&self) -> bool {
        self.locality != Locality::default()
    }

    /// Bytes on the wire: the fixed fields, and every list with its length.
    pub fn wire_bytes(&self) -> usize {
        const LENGTH: usize = 8;
        const FIXED: usize = 32 + 32 + 8 + 8;
        let addresses = self.addresses.iter().map(|a| LENGTH + a.len());
        let addresses = LENGTH + addresses.sum::<usize>();
        let locality = self.is_located().then(|| self.locality.wire_bytes());
        FIXED + addresses + LENGTH + self.signature.len() + locality.unwrap_or(0)
    }

    /// Checks lengths and counts.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] with the field that is too long.
    pub fn check(&self) -> Result<(), WireError> {
        ok(self.sequence & LOCATED == 0, "record.sequence")?;
        let addresses = &self.addresses;
        ok(addresses.len() <= RECORD_ADDRESSES_MAX, "record.addresses")?;
        let short = addresses.iter().all(|a| a.len() <= ADDRESS_BYTES_MAX);
        ok(short, "record.address")?;
        let signature = self.signature.len() <= SIGNATURE_BYTES_MAX;
        ok(signature, "record.signature")?;
        self.locality.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RateClass, Site};

    #[test]
    fn a_record_knows_its_bytes_and_copies_share_them_until_one_is_written_to() {
        let record = PeerRecord::from(RecordFields {
            peer: PeerId::from_bytes([1; 32]),
            run: RunId::from_bytes([2; 32]),
            sequence: 3,
            expires: Time::ZERO,
            addresses: vec![vec![4; 5], vec![6; 70]],
            locality: Locality {
                site: Some(Site::measured(b"here")),
                rate: Some(RateClass::of(1 << 20)),
            },
            signature: vec![7; 64],
        });
        for locality in [record.locality.clone(), Locality::default()] {
            let mut record = record.clone();
            record.locality = locality;
            let bytes = crate::wire::encode_value(&record);
            assert_eq!(record.wire_bytes(), bytes.len());
            assert_eq!(crate::wire::decode_value(&bytes), Ok(record.clone()));
            let mut twice = bytes.clone();
            twice[71] ^= 0x80;
            let twice = crate::wire::decode_value::<PeerRecord>(&twice);
            assert!(
                twice.is_err(),
                "a flag without a locality, or none with one"
            );
            let short = crate::wire::decode_value::<PeerRecord>(&bytes[..bytes.len() - 1]);
            assert!(short.is_err());
        }
        let mut copy = record.clone();
        assert!(Arc::ptr_eq(&copy.0, &record.0));
        copy.sequence += 1;
        assert_eq!((record.sequence, copy.sequence), (3, 4));
        copy.sequence |= LOCATED;
        assert!(record.check().is_ok() && copy.check().is_err());
    }
}
