//! What a peer says of its contribution, as it is written.

use crate::Taken;
use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A contribution's weight and the data behind it. Most peers say nothing of their data: then only the weight is
/// written. Otherwise its sign bit is set, and the data follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Said {
    /// Samples behind it; not negative.
    pub weight: f64,
    /// The data behind it, where peers agree on the data.
    pub taken: Option<Taken>,
}

impl Serialize for Said {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut parts = serializer.serialize_tuple(2)?;
        match &self.taken {
            None => parts.serialize_element(&self.weight.abs())?,
            Some(taken) => {
                parts.serialize_element(&-self.weight.abs())?;
                parts.serialize_element(taken)?;
            }
        }
        parts.end()
    }
}

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = Said;

            fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str("a weight, and the data behind it if its sign bit is set")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Said, A::Error> {
                let missing = || A::Error::custom("a part of what a peer says is missing");
                let weight: f64 = parts.next_element()?.ok_or_else(missing)?;
                let taken = match weight.is_sign_negative() {
                    true => Some(parts.next_element()?.ok_or_else(missing)?),
                    false => None,
                };
                let weight = weight.abs();
                Ok(Said { weight, taken })
            }
        }
        deserializer.deserialize_tuple(2, Parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{decode_value, encode_value};

    #[test]
    fn who_says_nothing_of_its_data_writes_a_weight_alone() {
        let (pool, blocks, from) = (3, 4, Some(5));
        let data = Taken { pool, blocks, from };
        for weight in [0.0, 0.5, 320.0] {
            let said = |taken| Said { weight, taken };
            let plain = encode_value(&said(None));
            assert_eq!(plain, encode_value(&weight));
            assert_eq!(decode_value(&plain), Ok(said(None)));
            let both = encode_value(&said(Some(data)));
            assert_eq!(both.len(), 8 + encode_value(&data).len());
            assert_eq!(decode_value(&both), Ok(said(Some(data))));
            assert!(decode_value::<Said>(&both[..8]).is_err());
        }
    }
}
