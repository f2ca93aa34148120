//! Codec `clt-k`: values at places that one member chooses for all, in turn. Biased: needs error feedback.

use crate::compress::codec::{Agreed, Bad, Gathering};
use crate::compress::raw::{Header, Inner, hash, of_digits, take, to_digits};
use crate::compress::sparse::largest::Largest;
use crate::compress::sparse::pick::{DENSITY, kept};
use crate::compress::sparse::places;
use crate::compress::sparse::random_k::RandomK;
use crate::compress::sparse::select::Source;
use crate::compress::sparse::values::{self, VALUES};
use crate::compress::{
    Codec, CodecError, CodecProperties, CodecSpec, EncodeContext, Reduction, Sparse,
};
use core::cell::RefCell;
use murmurate_protocol::BytesBound;

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "clt-k",
    tag: 52,
    summary: "values at the places that one member chooses in turn, the same for all",
    equation: "C(x)_i = x_i at the places of the k largest of the leader's residual, the leader being round mod n",
    source: "Chen et al., NeurIPS 2020",
    parameters: &[DENSITY, VALUES],
    build: |kind| {
        Box::new(CltK {
            density: kind.number("density"),
            values: Inner::new(values::build(kind)),
            turn: None,
            largest: Largest::default(),
            left: Vec::new(),
            proposal: Vec::new(),
            scratch: RefCell::default(),
        })
    },
};

/// All members send the values at the places of the largest residuals of one of them.
///
/// ```text
/// v_i      = delta_i + e_i
/// q_i      = v_i at the places P, 0 elsewhere,   e_i' = v_i - q_i
/// P'       = places of the k largest |e_l'|,   l the contributor whose turn it is: (round mod n)-th of those
///            of the round before
/// ```
///
/// All values are at the same places, so the mean of n contributions has k of them, not n k, and
/// only one member sends places. The leader in the paper sends the places before the others encode.
/// Here it sends those of the next round with its contribution. That saves a round trip and makes
/// the places one round old; according to the paper, the largest residuals hardly change within a
/// round. `||C(x) - x||^2 <= ||x||^2`; for the leader's own residual the bound is `1 - k / d`.
/// Members keep k places in common. Contributions are sent relative to the anchor.
///
/// Size: 4 bytes for each kept value and 18; for the leader also as much as the places of `top-k`.
/// In the first round, and after a round without the leader, the places are those of `random-k`.
///
/// Layout: the codec's byte, the density (f64), whether the places are those agreed on (u8), their
/// hash or their seed (u64), whether places for the next round follow (u8), these packed, the
/// values.
///
/// Source: Chen et al., "ScaleCom: scalable sparsified gradient compression" (NeurIPS 2020),
/// equation 4 and algorithm 1 with beta = 1 (numbers not verified).
struct CltK {
    density: f64,
    values: Inner,
    /// Which of the last round's contributors this peer was, and how many they were.
    turn: Option<(u64, u64)>,
    largest: Largest,
    /// Residual of the leader, from which it chooses the next places.
    left: Vec<f32>,
    proposal: Vec<u32>,
    scratch: RefCell<Scratch>,
}

#[derive(Default)]
struct Scratch {
    places: Vec<u32>,
    values: Vec<f32>,
    proposal: Vec<u32>,
}

impl CltK {
    fn header(&self) -> Header {
        Header::new(SPEC.tag).with(self.density.to_le_bytes())
    }

    /// The places of `len` values, and what names them: whether they are agreed on, and hash or seed.
    fn agreed(&self, len: usize, shared: &[f32], seed: u64, into: &mut Vec<u32>) -> (u8, u64) {
        if shared.is_empty() {
            RandomK::new(self.density, false).places(len, seed, into);
            return (0, seed);
        }
        into.clear();
        let pairs = shared.as_chunks::<2>().0.iter();
        into.extend(pairs.map(|digits| of_digits(*digits) as u32));
        (1, hash(into.iter().map(|place| place.to_le_bytes())))
    }

    /// Leaves the places, the values and the proposed places in the scratch.
    fn read(
        &self,
        bytes: &[u8],
        len: usize,
        shared: &[f32],
        scratch: &mut Scratch,
    ) -> Result<(), CodecError> {
        let ([mode], rest) = take::<1>(self.header().expect(bytes)?, "places")?;
        let (name, rest) = take::<8>(rest, "places")?;
        let name = u64::from_le_bytes(name);
        match mode {
            0 => {
                RandomK::new(self.density, false).places(len, name, &mut scratch.places);
            }
            1 => {
                let held = self.agreed(len, shared, name, &mut scratch.places);
                let within = scratch.places.last().is_none_or(|p| (*p as usize) < len);
                if held != (1, name) || !within {
                    return Err(CodecError::NotHeld { field: "places" });
                }
            }
            _ => return Err(CodecError::OutOfRange { field: "places" }),
        }
        let ([proposes], mut rest) = take::<1>(rest, "proposal")?;
        scratch.proposal.clear();
        match proposes {
            0 => {}
            1 => {
                let most = kept(self.density, len);
                rest = places::read(rest, len, most, &mut scratch.proposal)?;
            }
            _ => return Err(CodecError::OutOfRange { field: "proposal" }),
        }
        scratch.values.clear();
        scratch.values.resize(scratch.places.len(), 0.0);
        self.values.decode_add(rest, 1.0, &mut scratch.values)
    }

    /// Set for the leader, which chooses the places of the next round.
    fn leads(&self, round: u64) -> bool {
        self.turn.is_some_and(|(own, all)| round % all == own)
    }
}

impl Codec for CltK {
    fn properties(&self) -> CodecProperties {
        let projection = CodecProperties {
            stochastic: true,
            shared_seed: true,
            ..CodecProperties::biased(1.0)
        };
        CodecProperties {
            reduction: Reduction::Gathered,
            ..projection.followed_by(self.values.properties())
        }
    }

    fn bytes_bound(&self) -> BytesBound {
        let (fixed, per_1024) = places::bound_with(self.density, self.values.bytes_bound());
        self.header().bound(10 + fixed + 16, per_1024)
    }

    fn encode(&mut self, all: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        let mut scratch = self.scratch.take();
        let seed = context.shared_seed;
        let (mode, name) = self.agreed(all.len(), context.shared, seed, &mut scratch.places);
        out.extend_from_slice(self.header().bytes());
        out.push(mode);
        out.extend_from_slice(&name.to_le_bytes());
        let leads = self.leads(context.round);
        out.push(u8::from(leads));
        if leads {
            self.left.clear();
            self.left.extend_from_slice(all);
            for place in &scratch.places {
                self.left[*place as usize] = 0.0;
            }
            let (wanted, seed) = (kept(self.density, all.len()), context.seed);
            let mut source = Source::Values(&self.left);
            let largest = &mut self.largest;
            largest.choose(&mut source, wanted, seed, &mut self.proposal);
            places::write(&self.proposal, all.len(), out);
        }
        scratch.values.clear();
        let kept = scratch.places.iter().map(|place| all[*place as usize]);
        scratch.values.extend(kept);
        self.values.encode(&scratch.values, context, out);
        self.scratch.replace(scratch);
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        self.decode_own(bytes, &[], weight, acc)
    }

    fn decode_own(
        &self,
        bytes: &[u8],
        shared: &[f32],
        weight: f32,
        acc: &mut [f32],
    ) -> Result<(), CodecError> {
        let scratch = &mut *self.scratch.borrow_mut();
        self.read(bytes, acc.len(), shared, scratch)?;
        for (place, value) in scratch.places.iter().zip(&scratch.values) {
            acc[*place as usize] += weight * value;
        }
        Ok(())
    }

    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        Some(self)
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(Sparse::default())
    }
}

impl Gathering for CltK {
    fn shared_most(&self, len: usize) -> usize {
        2 * kept(self.density, len)
    }

    fn gather(&mut self, agreed: &Agreed<'_>, moved: &mut [f32]) -> Result<(), Bad> {
        let mut held = Vec::new();
        let (shared, seed) = (agreed.shared, agreed.shared_seed);
        let (mode, name) = self.agreed(moved.len(), shared, seed, &mut held);
        let named: Vec<u8> = [mode].into_iter().chain(name.to_le_bytes()).collect();
        Bad::of_first(agreed.contributions, |one| {
            // All at the same places: other ones would not be a mean.
            let found = self.header().expect(one.bytes);
            if !found.is_ok_and(|body| body.starts_with(&named)) {
                return Err(CodecError::NotHeld { field: "places" });
            }
            self.decode_own(one.bytes, shared, one.share, moved)
        })
    }

    fn settle(&mut self, agreed: &Agreed<'_>, moved: &[f32], shared: &mut Vec<f32>) {
        let all = agreed.contributions.len() as u64;
        self.turn = agreed.own.map(|own| (own as u64, all));
        let scratch = self.scratch.get_mut();
        let mut scratch = core::mem::take(scratch);
        for one in agreed.contributions {
            let read = self.read(one.bytes, moved.len(), agreed.shared, &mut scratch);
            if read.is_ok() && !scratch.proposal.is_empty() {
                let places = scratch.proposal.iter();
                shared.extend(places.flat_map(|place| to_digits(*place as usize)));
                break;
            }
        }
        self.scratch.replace(scratch);
    }
}
