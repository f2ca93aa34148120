//! The names of a structure's fields, taken from serde so that no second list has to follow them.

use serde::de::value::Error;
use serde::de::{Deserializer, Error as _, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

/// The names of a structure's fields, as serde reads them.
pub(super) fn fields<T: for<'a> Deserialize<'a>>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    // Ends with an error on purpose: serde has named the fields by then.
    let _ = T::deserialize(Fields(&mut fields));
    fields
}

/// A deserializer that notes which fields a structure asks for and gives it none.
struct Fields<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("a structure with fields was expected"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("its fields are noted"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
