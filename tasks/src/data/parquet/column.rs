//! The columns of a Parquet file, from its schema.

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type};
use std::fmt;

/// A column with one value, or one list of values, in each row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    /// Its name. The field of a nested value has the path to it, joined by dots: `image.bytes`.
    pub name: String,
    /// The type of its values.
    pub kind: ColumnKind,
    /// Each row has a list of values.
    pub is_list: bool,
    /// Its place in the file.
    pub(super) leaf: usize,
}

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// Text in UTF-8.
    Text,
    /// Bytes, such as those of an image file.
    Bytes,
    /// Integers, also `false` and `true` as 0 and 1.
    Int,
    /// Integers without a sign of up to 64 bits.
    Unsigned,
    /// Floating-point numbers.
    Float,
    /// Anything else: dates, decimals, nested lists. It cannot be read.
    Other,
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = match self.kind {
            ColumnKind::Text => "text",
            ColumnKind::Bytes => "bytes",
            ColumnKind::Int | ColumnKind::Unsigned => "integers",
            ColumnKind::Float => "floating-point numbers",
            ColumnKind::Other => "values that are not text, bytes or numbers",
        };
        if self.is_list {
            write!(f, "lists of {values}")
        } else {
            f.write_str(values)
        }
    }
}

/// All columns of a schema in their order.
pub(super) fn columns(schema: &SchemaDescriptor) -> Vec<Column> {
    let leaves = schema.columns().iter().enumerate();
    leaves
        .map(|(leaf, descriptor)| Column {
            name: name(schema.root_schema(), descriptor),
            kind: match descriptor.max_rep_level() {
                0 | 1 => kind(descriptor),
                _ => ColumnKind::Other,
            },
            is_list: descriptor.max_rep_level() > 0,
            leaf,
        })
        .collect()
}

/// The path to a leaf. A list's path leads to the list, without the groups `list.element` below it
/// that writers name differently.
fn name(root: &Type, descriptor: &ColumnDescriptor) -> String {
    let path = descriptor.path().parts();
    let (mut at, mut in_list) = (root, false);
    for (depth, part) in path.iter().enumerate() {
        let Some(next) = at.get_fields().iter().find(|field| field.name() == part) else {
            break;
        };
        let info = next.get_basic_info();
        if info.has_repetition() && info.repetition() == Repetition::REPEATED {
            let end = if in_list { depth } else { depth + 1 };
            return path[..end].join(".");
        }
        in_list = info.converted_type() == ConvertedType::LIST
            || matches!(info.logical_type_ref(), Some(LogicalType::List));
        if next.is_primitive() {
            break;
        }
        at = next;
    }
    path.join(".")
}

fn kind(descriptor: &ColumnDescriptor) -> ColumnKind {
    let integer = |signed: bool| {
        if signed {
            ColumnKind::Int
        } else {
            ColumnKind::Unsigned
        }
    };
    use ConvertedType as C;
    match (descriptor.physical_type(), descriptor.logical_type_ref()) {
        (
            Physical::BYTE_ARRAY,
            Some(LogicalType::String | LogicalType::Json | LogicalType::Enum),
        ) => ColumnKind::Text,
        (Physical::INT32 | Physical::INT64, Some(LogicalType::Integer(int))) => {
            integer(int.is_signed)
        }
        // A column of a type that this reader does not know, such as a date.
        (_, Some(logical)) if !matches!(logical, LogicalType::Unknown) => ColumnKind::Other,
        (physical, _) => match (physical, descriptor.converted_type()) {
            (Physical::BYTE_ARRAY, C::UTF8 | C::JSON | C::ENUM) => ColumnKind::Text,
            (Physical::BYTE_ARRAY, C::NONE) => ColumnKind::Bytes,
            (Physical::BOOLEAN, _) => ColumnKind::Int,
            (
                Physical::INT32 | Physical::INT64,
                C::NONE | C::INT_8 | C::INT_16 | C::INT_32 | C::INT_64,
            ) => ColumnKind::Int,
            (
                Physical::INT32 | Physical::INT64,
                C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64,
            ) => ColumnKind::Unsigned,
            (Physical::FLOAT | Physical::DOUBLE, _) => ColumnKind::Float,
            _ => ColumnKind::Other,
        },
    }
}
