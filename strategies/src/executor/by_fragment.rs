//! The codecs of contributions: one for all fragments, or one for each density that fragments have.

use crate::compress::{Codec, CodecKind, Named};
use murmurate_protocol::FragmentId;

/// Which codec encodes the contributions to a fragment.
pub struct ByFragment {
    codecs: Vec<Box<dyn Codec>>,
    /// The place of each fragment's codec; empty where all fragments have the first.
    places: Vec<u16>,
}

impl From<Box<dyn Codec>> for ByFragment {
    fn from(codec: Box<dyn Codec>) -> Self {
        Self {
            codecs: vec![codec],
            places: Vec::new(),
        }
    }
}

impl ByFragment {
    /// A codec for each fragment, in order. Fragments of the same kind share one, and its scratch memory.
    ///
    /// # Panics
    /// Without fragments.
    pub fn each(kinds: &[CodecKind]) -> Self {
        assert!(!kinds.is_empty(), "a plan has a fragment");
        let mut different: Vec<CodecKind> = Vec::new();
        let mut places = Vec::with_capacity(kinds.len());
        for kind in kinds {
            let known = different.iter().position(|other| other == kind);
            let place = known.unwrap_or(different.len());
            if known.is_none() {
                different.push(*kind);
            }
            places.push(place as u16);
        }
        Self {
            codecs: different.iter().map(CodecKind::build).collect(),
            places,
        }
    }

    fn place(&self, fragment: FragmentId) -> usize {
        let place = self.places.get(usize::from(fragment.0));
        place.map_or(0, |place| usize::from(*place))
    }

    /// The codec of a fragment.
    pub(super) fn of(&self, fragment: FragmentId) -> &dyn Codec {
        self.codecs[self.place(fragment)].as_ref()
    }

    /// The codec of a fragment.
    pub(super) fn of_mut(&mut self, fragment: FragmentId) -> &mut dyn Codec {
        let place = self.place(fragment);
        self.codecs[place].as_mut()
    }

    /// A codec that has what all of them have in common: they differ in their density alone.
    pub(super) fn any(&mut self) -> &mut dyn Codec {
        self.codecs[0].as_mut()
    }

    /// The owner of the run has directed the codec of a round, or its members have chosen it.
    pub(super) fn direct(&mut self, round: u64, codec: Option<Named>) {
        self.codecs
            .iter_mut()
            .for_each(|own| own.direct(round, codec));
    }
}
