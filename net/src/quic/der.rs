//! DER, as far as libp2p's certificates need it.
//!
//! **Source:** ITU-T X.690, sections 8 and 10: one byte of tag, and the shortest form of the length.

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OID: u8 = 0x06;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;

/// A value with its parts one after another.
pub(super) fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let bytes = len.to_be_bytes();
    let first = bytes.iter().position(|byte| *byte != 0);
    let bytes = &bytes[first.unwrap_or(bytes.len() - 1)..];
    let mut value = vec![tag];
    if len > 0x7f {
        value.push(0x80 | bytes.len() as u8);
    }
    value.extend(bytes);
    value.extend(parts.concat());
    value
}

/// Values one after another.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The contents of the next value, if it has this tag.
    pub(super) fn contents(&mut self, tag: u8) -> Option<&'a [u8]> {
        Some(self.both(tag)?.1)
    }

    /// The values in the next value, if it has this tag.
    pub(super) fn inside(&mut self, tag: u8) -> Option<Self> {
        self.contents(tag).map(Self)
    }

    /// The next value with its tag and length, and its contents.
    pub(super) fn both(&mut self, tag: u8) -> Option<(&'a [u8], &'a [u8])> {
        let (found, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (len, rest) = match *first {
            short @ 0..=0x7f => (usize::from(short), rest),
            // 64 KiB are enough for a certificate.
            0x81 | 0x82 => {
                let (len, rest) = rest.split_at_checked(usize::from(*first - 0x80))?;
                let len = len
                    .iter()
                    .fold(0, |len, byte| len << 8 | usize::from(*byte));
                let shortest = len >= [0x80, 0x100][usize::from(*first - 0x81)];
                (shortest.then_some(len)?, rest)
            }
            _ => return None,
        };
        let (contents, after) = rest.split_at_checked(len)?;
        if *found != tag {
            return None;
        }
        let whole = &self.0[..self.0.len() - after.len()];
        self.0 = after;
        Some((whole, contents))
    }

    /// The contents of the next value if it has this tag; otherwise that value stays the next.
    pub(super) fn optional(&mut self, tag: u8) -> Option<&'a [u8]> {
        (self.0.first() == Some(&tag)).then(|| self.contents(tag))?
    }

    /// Nothing follows.
    pub(super) fn is_at_end(self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_length_come_back() {
        for len in [0, 1, 127, 128, 255, 256, 65_535] {
            let bytes = value(OCTET_STRING, &[&vec![7; len], &[]]);
            let mut reader = Reader::new(&bytes);
            let (whole, contents) = reader.both(OCTET_STRING).unwrap();
            assert_eq!((whole, contents.len()), (&bytes[..], len));
            assert!(reader.is_at_end());
            for cut in 0..bytes.len().min(300) {
                assert!(Reader::new(&bytes[..cut]).contents(OCTET_STRING).is_none());
            }
        }
        assert_eq!(value(INTEGER, &[&[5]]), [2, 1, 5]);
    }

    #[test]
    fn lengths_in_more_bytes_than_they_need_are_refused() {
        for bytes in [&[4, 0x80, 0, 0][..], &[4, 0x81, 1, 0], &[4, 0x82, 0, 1, 0]] {
            assert!(Reader::new(bytes).contents(OCTET_STRING).is_none());
        }
        let mut reader = Reader::new(&[2, 1, 5, 1, 1, 255]);
        assert!(reader.optional(BOOLEAN).is_none());
        assert_eq!(reader.optional(INTEGER), Some(&[5][..]));
        assert_eq!(reader.contents(BOOLEAN), Some(&[255][..]));
    }
}
