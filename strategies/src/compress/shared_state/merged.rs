//! Codecs `g-top-k` and `ok-top-k`: each member sends its largest values, and only the largest of
//! the sum are applied.

use crate::compress::codec::{Agreed, Bad, Gathering};
use crate::compress::raw::Header;
use crate::compress::sparse::largest::Largest;
use crate::compress::sparse::pick::{DECAY, DENSITY, Pick, Picked, kept};
use crate::compress::sparse::select::{Source, magnitude};
use crate::compress::sparse::top_k::{self, TopK};
use crate::compress::sparse::values::VALUES;
use crate::compress::{
    Codec, CodecError, CodecKind, CodecProperties, CodecSpec, EncodeContext, Parameter, Range,
    Reduction,
};
use murmurate_protocol::BytesBound;

pub(in crate::compress) const G_TOP_K_SPEC: CodecSpec = CodecSpec {
    name: "g-top-k",
    tag: 50,
    summary: "the largest values of each, and only the largest of their sum; the rest returns to the senders",
    equation: "moved = top_k(mean top_k(v_i)), e_i = v_i - top_k(v_i) where it moved, v_i elsewhere",
    source: "Shi et al., ICDCS 2019",
    parameters: &[DENSITY, VALUES, DECAY],
    build: |kind| {
        let pick = TopK::new(kind.number("density"));
        Box::new(Merged::new(kind, Picked::of(kind, pick), None))
    },
};

pub(in crate::compress) const OK_TOP_K_SPEC: CodecSpec = CodecSpec {
    name: "ok-top-k",
    tag: 51,
    summary: "as g-top-k, by thresholds that are computed once in some rounds",
    equation: "as g-top-k, with |x| >= t for top_k, t computed every `every` rounds",
    source: "Li and Hoefler, PPoPP 2022",
    parameters: &[DENSITY, EVERY, VALUES, DECAY],
    build: |kind| {
        let every = kind.count("every") as u64;
        let pick = OkTopK::new(kind.number("density"), every);
        Box::new(Merged::new(kind, Picked::of(kind, pick), Some(every)))
    },
};

/// Rounds between computations of a threshold.
const EVERY: Parameter = Parameter {
    name: "every",
    range: Range::Whole(1, 1_000_000),
    default: Some(32.0),
    about: "rounds between computations of a threshold, such as 32",
};

/// The largest values of the sum.
///
/// ```text
/// q_i    = top_k(v_i),  v_i = delta_i + decay e_i       what member i sends
/// moved  = top_k(sum_i w_i q_i / sum_i w_i)             ok-top-k: all of at least t, the k-th largest
///                                                       when it was last computed
/// e_i'   = v_i - q_i where moved is not zero, v_i elsewhere
/// ```
///
/// Values that are not applied return to the residuals of their senders, so nothing is lost. The
/// model changes at k places in a round for any number of members. `||C(x) - x||^2 <= (1 - density)
/// ||x||^2` for what each member sends (`ok-top-k`: half the density). Biased: needs error
/// feedback; `ok-top-k` also keeps two thresholds. Contributions are sent relative to the anchor.
///
/// Here every member holds all contributions and finds the k largest of their mean exactly. gTop-k
/// merges contributions in pairs along a tree and drops values on the way; Ok-Topk reduces regions
/// of equal load at their owners. The result is that of the papers; the traffic is that of an
/// all-gather of k values.
///
/// Size and layout: as `top-k`, with `every` (u32) after the density of `ok-top-k`. The result of a
/// single member is its contribution.
///
/// Source: Shi et al., "A distributed synchronous SGD algorithm with global top-k sparsification"
/// (ICDCS 2019), algorithm 4; Li and Hoefler, "Near-optimal sparse allreduce" (PPoPP 2022),
/// algorithm 2 (numbers not verified).
struct Merged {
    codec: Box<dyn Codec>,
    density: f64,
    /// Rounds between computations of the threshold of the sum; `None` computes it in each.
    every: Option<u64>,
    largest: Largest,
    chosen: Vec<u32>,
    /// The state after the last gathering.
    standing: (u32, f32),
    own: Vec<f32>,
}

impl Merged {
    fn new(kind: &CodecKind, codec: Box<dyn Codec>, every: Option<u64>) -> Self {
        Self {
            codec,
            density: kind.number("density"),
            every,
            largest: Largest::default(),
            chosen: Vec::new(),
            standing: (0, 0.0),
            own: Vec::new(),
        }
    }

    /// The threshold that stands, and for how many exchanges it has; `None` where it must be looked for.
    fn standing(&self, agreed: &Agreed<'_>) -> Option<(u32, f32)> {
        let (every, [held, age]) = (self.every?, agreed.shared.first_chunk()?);
        ((*age as u64) + 1 < every).then(|| (magnitude(*held), age + 1.0))
    }
}

impl Codec for Merged {
    fn properties(&self) -> CodecProperties {
        CodecProperties {
            reduction: Reduction::Gathered,
            ..self.codec.properties()
        }
    }

    fn bytes_bound(&self) -> BytesBound {
        self.codec.bytes_bound()
    }

    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        self.codec.encode(values, context, out);
    }

    fn encode_residual(
        &mut self,
        delta: &[f32],
        residual: &mut [f32],
        context: &mut EncodeContext<'_>,
        out: &mut Vec<u8>,
    ) {
        self.codec.encode_residual(delta, residual, context, out);
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        self.codec.decode_add(bytes, weight, acc)
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        self.codec.aggregate()
    }

    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        Some(self)
    }
}

impl Gathering for Merged {
    fn shared_most(&self, _: usize) -> usize {
        2 * usize::from(self.every.is_some())
    }

    fn gather(&mut self, agreed: &Agreed<'_>, moved: &mut [f32]) -> Result<(), Bad> {
        Bad::of_first(agreed.contributions, |one| {
            self.codec.decode_add(one.bytes, one.share, moved)
        })?;
        let standing = self.standing(agreed);
        let kept = kept(self.density, moved.len());
        let mut source = Source::Values(moved);
        match standing {
            Some((from, _)) => source.select(from.max(1), &mut self.chosen),
            None => {
                let seed = agreed.shared_seed;
                self.largest
                    .choose(&mut source, kept, seed, &mut self.chosen);
            }
        }
        let those = self
            .chosen
            .iter()
            .map(|place| magnitude(moved[*place as usize]));
        self.standing = standing.unwrap_or_else(|| (those.min().unwrap_or(0), 0.0));
        let mut next = 0;
        for place in self.chosen.iter().map(|place| *place as usize) {
            moved[next..place].fill(0.0);
            next = place + 1;
        }
        moved[next..].fill(0.0);
        Ok(())
    }

    fn settle(&mut self, _: &Agreed<'_>, _: &[f32], shared: &mut Vec<f32>) {
        if self.every.is_some() {
            let (threshold, age) = self.standing;
            shared.extend([f32::from_bits(threshold), age]);
        }
    }

    fn take_back(&mut self, agreed: &Agreed<'_>, moved: &[f32], residual: &mut [f32]) {
        let own = agreed.own.and_then(|own| agreed.contributions.get(own));
        let Some(own) = own else { return };
        self.own.clear();
        self.own.resize(moved.len(), 0.0);
        let read = self.codec.decode_add(own.bytes, 1.0, &mut self.own);
        debug_assert!(read.is_ok(), "what was gathered is read again: {read:?}");
        for ((e, own), moved) in residual.iter_mut().zip(&self.own).zip(moved) {
            *e += if *moved == 0.0 { *own } else { 0.0 };
        }
    }
}

/// A threshold that is used for several rounds.
///
/// ```text
/// C(x)_i = x_i where |x_i| >= t, 0 elsewhere;   t: the k-th largest when it was last computed
/// ```
///
/// It is computed once in `every` exchanges, and whenever more than 2 k or fewer than k / 2 values
/// are above it: `||C(x) - x||^2 <= (1 - density / 2) ||x||^2` for all values. It keeps two
/// numbers. Zeros are never sent.
///
/// Source: Li and Hoefler, "Near-optimal sparse allreduce for distributed deep learning" (PPoPP
/// 2022), section 3.1.3 (number not verified).
#[derive(Clone, Debug)]
struct OkTopK {
    density: f64,
    every: u64,
    largest: Largest,
}

impl OkTopK {
    fn new(density: f64, every: u64) -> Self {
        Self {
            density,
            every,
            largest: Largest::default(),
        }
    }
}

impl Pick for OkTopK {
    fn properties(&self) -> CodecProperties {
        if self.density == 1.0 {
            CodecProperties::LOSSLESS
        } else {
            top_k::properties(0.5 * self.density)
        }
    }

    fn parameters(&self, opening: Header) -> Header {
        let every = (self.every as u32).to_le_bytes();
        opening.with(self.density.to_le_bytes()).with(every)
    }

    fn density_max(&self) -> f64 {
        (2.0 * self.density).min(1.0)
    }

    fn most(&self, len: usize) -> usize {
        (2 * kept(self.density, len)).min(len)
    }

    fn beyond(&self) -> usize {
        2
    }

    fn choose(
        &mut self,
        source: &mut Source<'_>,
        context: &mut EncodeContext<'_>,
        chosen: &mut Vec<u32>,
    ) {
        let count = kept(self.density, source.len());
        if let Some([held, age]) = context.memory.first_chunk_mut()
            && (*age as u64) + 1 < self.every
        {
            *age += 1.0;
            source.select(magnitude(*held).max(1), chosen);
            if (count.div_ceil(2)..=2 * count).contains(&chosen.len()) {
                return;
            }
        }
        self.largest.choose(source, count, context.seed, chosen);
        let values = source.values();
        let those = chosen
            .iter()
            .map(|place| magnitude(values[*place as usize]));
        context.memory.clear();
        let least = those.min().map(f32::from_bits);
        context
            .memory
            .extend(least.into_iter().flat_map(|t| [t, 0.0]));
    }
}
