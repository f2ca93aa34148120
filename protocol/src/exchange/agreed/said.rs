//! What a peer says of its contribution, as it is written.

use crate::{Loss, Taken};
use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What is written before a loss: no weight is infinite.
const LOSS_FOLLOWS: f64 = f64::INFINITY;

/// A mark and a loss, a weight, and the data.
const PARTS_MAX: usize = 4;

/// A contribution's weight, the data behind it, and its loss. Most peers say nothing but a weight: then only that
/// is written. If they say something of their data, the weight's sign bit is set, and the data follows. Where
/// peers agree on their loss, an infinite number and the loss are written before all that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Said {
    /// Samples behind it; not negative.
    pub weight: f64,
    /// The data behind it, where peers agree on the data.
    pub taken: Option<Taken>,
    /// The mean training loss of the round, where the pace follows it.
    pub loss: Option<Loss>,
}

impl Serialize for Said {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut parts = serializer.serialize_tuple(PARTS_MAX)?;
        if let Some(loss) = &self.loss {
            parts.serialize_element(&LOSS_FOLLOWS)?;
            parts.serialize_element(loss)?;
        }
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
                f.write_str("a weight, and the data behind it if its sign bit is set; perhaps a loss before it")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Said, A::Error> {
                let missing = || A::Error::custom("a part of what a peer says is missing");
                let mut weight: f64 = parts.next_element()?.ok_or_else(missing)?;
                let mut loss = None;
                if weight == LOSS_FOLLOWS {
                    loss = Some(parts.next_element()?.ok_or_else(missing)?);
                    weight = parts.next_element()?.ok_or_else(missing)?;
                }
                let taken = match weight.is_sign_negative() {
                    true => Some(parts.next_element()?.ok_or_else(missing)?),
                    false => None,
                };
                let weight = weight.abs();
                Ok(Said {
                    weight,
                    taken,
                    loss,
                })
            }
        }
        deserializer.deserialize_tuple(PARTS_MAX, Parts)
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
            let said = |taken| Said {
                weight,
                taken,
                loss: None,
            };
            let plain = encode_value(&said(None));
            assert_eq!(plain, encode_value(&weight));
            assert_eq!(decode_value(&plain), Ok(said(None)));
            let both = encode_value(&said(Some(data)));
            assert_eq!(both.len(), 8 + encode_value(&data).len());
            assert_eq!(decode_value(&both), Ok(said(Some(data))));
            assert!(decode_value::<Said>(&both[..8]).is_err());
            // A loss comes before all that, and changes nothing of it.
            for (taken, plain) in [(None, plain), (Some(data), both)] {
                let loss = Some(Loss::of(2.5));
                let said = Said {
                    loss,
                    ..said(taken)
                };
                let bytes = encode_value(&said);
                let head = [&f64::INFINITY.to_le_bytes()[..], &2.5f32.to_le_bytes()].concat();
                assert_eq!(bytes, [head, plain].concat());
                assert_eq!(decode_value(&bytes), Ok(said));
                for end in 0..bytes.len() {
                    assert!(decode_value::<Said>(&bytes[..end]).is_err(), "{end}");
                }
            }
        }
    }

    #[test]
    fn a_loss_that_is_none_and_a_second_one_are_refused() {
        let mark = f64::INFINITY.to_le_bytes();
        let with = |loss: f32| [&mark[..], &loss.to_le_bytes(), &320.0f64.to_le_bytes()].concat();
        assert!(decode_value::<Said>(&with(2.5)).is_ok());
        for bad in [f32::NAN, f32::INFINITY, -1.0, f32::MAX] {
            assert!(decode_value::<Said>(&with(bad)).is_err(), "{bad}");
        }
        // What follows a loss is a weight, and an infinite one is refused where weights are checked.
        let twice = decode_value::<Said>(&[&with(2.5)[..12], &with(2.5)].concat());
        assert!(twice.is_err());
    }
}
