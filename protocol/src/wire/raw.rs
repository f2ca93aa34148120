//! Long lists of bytes, copied at once. Their encoding is that of any list.

use core::fmt;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// One list of bytes among other values.
pub(crate) struct RawBytes<B>(pub(crate) B);

impl<B: AsRef<[u8]>> Serialize for RawBytes<B> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self.0.as_ref(), serializer)
    }
}

impl<'de> Deserialize<'de> for RawBytes<Vec<u8>> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer).map(Self)
    }
}

pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    deserializer.deserialize_byte_buf(Raw)
}

struct Raw;

impl<'de> Visitor<'de> for Raw {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }

    /// Formats for people have no bytes but lists of numbers.
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<u8>, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = list.next_element()? {
            bytes.push(byte);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use crate::wire::{decode_value, encode_value};
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Value(#[serde(with = "super")] Vec<u8>, u8);

    #[test]
    fn the_encoding_is_that_of_a_list() {
        for list in [Vec::new(), vec![1, 2, 3]] {
            let bytes = encode_value(&Value(list.clone(), 9));
            assert_eq!(bytes, encode_value(&(list.clone(), 9u8)));
            assert_eq!(decode_value::<Value>(&bytes), Ok(Value(list, 9)));
        }
    }
}
