//! Shards: the training samples of one peer. Every peer computes its shard from the same few
//! numbers. All shards are disjoint and cover the data.

use crate::rng;
use murmurate_strategies::Rank;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The most shards of one run.
pub(super) const SHARDS_MAX: u32 = 65_536;

/// How samples are split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ShardKind {
    /// All peers of the run hold the same data and divide it among themselves, without numbers in
    /// their configuration: see `Division`. `index` and `of` are not used.
    #[default]
    Dealt,
    /// The data is this peer's own: it trains all of it. `index` and `of` are not used.
    Own,
    /// Every shard is a random sample of the data.
    Iid,
    /// Every shard has a few classes, and no class is in two shards if there are enough classes: 4
    /// shards of 10 classes have 3, 3, 2 and 2.
    ByLabel,
    /// The shares of each class are drawn from a symmetric Dirichlet distribution.
    Dirichlet {
        /// The concentration: small values give skewed shares, large values give even ones.
        alpha: f64,
    },
}

impl ShardKind {
    /// One of each kind.
    pub(crate) const ALL: [Self; 5] = [
        Self::Dealt,
        Self::Own,
        Self::Iid,
        Self::ByLabel,
        Self::Dirichlet { alpha: 1.0 },
    ];

    /// Its name in configuration files.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Dealt => "dealt",
            Self::Own => "own",
            Self::Iid => "iid",
            Self::ByLabel => "by-label",
            Self::Dirichlet { .. } => "dirichlet",
        }
    }

    /// Kinds whose `index` and `of` choose a fixed part.
    pub const fn is_numbered(&self) -> bool {
        !matches!(self, Self::Dealt | Self::Own)
    }
}

/// One peer's shard.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "crate::config::RawShards")]
pub struct Shards {
    /// How samples are split.
    #[serde(flatten)]
    pub kind: ShardKind,
    /// Index of this peer's shard, from zero.
    pub index: u32,
    /// Number of shards.
    pub of: u32,
    /// Seed of the split, the same for all peers.
    pub seed: u64,
    /// Which trainer of this peer it is for: the ranks of an island divide the peer's shard.
    #[serde(skip)]
    pub rank: Rank,
}

/// Data that the peers divide among themselves.
impl Default for Shards {
    fn default() -> Self {
        Self {
            kind: ShardKind::Dealt,
            ..Self::whole()
        }
    }
}

/// Why a shard does not exist.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The index is not below the count.
    #[error("`shards.index` is {index}, it counts from 0 and must be below `shards.of` = {of}")]
    Index { index: u32, of: u32 },
    /// No shards, or too many.
    #[error("`shards.of` is {0}, it must be from 1 to {SHARDS_MAX}")]
    Of(u32),
    /// The concentration is out of bounds.
    #[error("`shards.alpha` is {0}, it must be a number above 0 and at most 1e6")]
    Alpha(f64),
    /// A split by label, but the data have no classes.
    #[error("`shards.kind` = \"by-label\" needs classes, which this task has not (use \"iid\")")]
    NoLabels,
    /// The shard has too few samples.
    #[error("shard {index} of {of} has {found} samples, {needed} are needed (use fewer shards)")]
    TooFew {
        index: u32,
        of: u32,
        found: usize,
        needed: usize,
    },
    /// The ranks of an island cannot each have a part.
    #[error(
        "this peer has {found} pieces of data to deal over `island.ranks` = {ranks}, and each rank needs \
         {needed} (set fewer ranks, or give more data)"
    )]
    TooFewForRanks {
        found: usize,
        ranks: u32,
        needed: usize,
    },
}

impl Shards {
    /// All samples, as this peer's own.
    pub const fn whole() -> Self {
        Self {
            kind: ShardKind::Own,
            index: 0,
            of: 1,
            seed: 0,
            rank: Rank::ALONE,
        }
    }

    /// The part of one trainer of this peer.
    #[must_use]
    pub const fn for_rank(mut self, rank: Rank) -> Self {
        self.rank = rank;
        self
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// Names the invalid key.
    pub fn validate(&self) -> Result<(), ShardError> {
        let Self { index, of, .. } = *self;
        if !(1..=SHARDS_MAX).contains(&of) {
            return Err(ShardError::Of(of));
        }
        if index >= of {
            return Err(ShardError::Index { index, of });
        }
        match self.kind {
            ShardKind::Dirichlet { alpha } if !(alpha > 0.0 && alpha <= 1e6) => {
                Err(ShardError::Alpha(alpha))
            }
            _ => Ok(()),
        }
    }

    /// Indices of this shard's samples, ascending.
    ///
    /// # Errors
    /// If the numbers are invalid or the shard has fewer than `needed` samples.
    pub fn samples(&self, labels: &[u16], needed: usize) -> Result<Vec<u32>, ShardError> {
        self.validate()?;
        let mut mine: Vec<u32> = match self.kind {
            ShardKind::Dealt | ShardKind::Own => (0..labels.len() as u32).collect(),
            ShardKind::Iid => self.iid(labels.len()),
            ShardKind::ByLabel => self.by_label(labels),
            ShardKind::Dirichlet { alpha } => self.dirichlet(alpha, labels),
        };
        mine.sort_unstable();
        self.enough(mine.len(), needed)?;
        self.enough_for_ranks(mine.len(), needed)?;
        if self.kind != ShardKind::Dealt {
            let mut places = 0..;
            mine.retain(|_| places.next().is_some_and(|place| self.rank.has(place)));
        }
        Ok(mine)
    }

    /// The range of bytes of a text that belongs to this shard. It is contiguous to keep the
    /// context.
    ///
    /// # Errors
    /// If the numbers are invalid, the split is by label, or the shard has fewer than `needed`
    /// bytes.
    pub fn range(&self, len: usize, needed: usize) -> Result<Range<usize>, ShardError> {
        self.validate()?;
        let (of, index) = (self.of as usize, self.index as usize);
        let cut = |shares_before: u64, shares: u64| {
            (len as u128 * u128::from(shares_before) / u128::from(shares)) as usize
        };
        let range = match self.kind {
            ShardKind::Dealt | ShardKind::Own => 0..len,
            ShardKind::Iid => cut(index as u64, of as u64)..cut(index as u64 + 1, of as u64),
            ShardKind::ByLabel => return Err(ShardError::NoLabels),
            ShardKind::Dirichlet { alpha } => {
                let shares = 64 * u64::from(self.of);
                let mut urn = Urn::new(alpha, of);
                let mut rng = rng::stream(self.seed, rng::SHARDS, 0);
                (0..shares).for_each(|_| {
                    urn.draw(&mut rng);
                });
                let before: u64 = urn.counts[..index].iter().sum();
                cut(before, shares)..cut(before + urn.counts[index], shares)
            }
        };
        self.enough(range.len(), needed)?;
        self.enough_for_ranks(range.len(), needed)?;
        if self.kind == ShardKind::Dealt || self.rank.is_alone() {
            return Ok(range);
        }
        let of_rank = |rank: u32| {
            let before = range.len() as u128 * u128::from(rank) / u128::from(self.rank.of);
            range.start + before as usize
        };
        Ok(of_rank(self.rank.index)..of_rank(self.rank.index + 1))
    }

    fn enough_for_ranks(&self, found: usize, needed: usize) -> Result<(), ShardError> {
        let (ranks, needed) = (self.rank.of, needed.max(1));
        if self.rank.is_alone() || found / ranks as usize >= needed {
            Ok(())
        } else {
            Err(ShardError::TooFewForRanks {
                found,
                ranks,
                needed,
            })
        }
    }

    /// The seed of this trainer's order of its samples.
    pub(crate) fn order_seed(&self, seed: u64) -> u64 {
        rng::rank_seed(rng::shard_seed(seed, self.index), self.rank.index)
    }

    fn enough(&self, found: usize, needed: usize) -> Result<(), ShardError> {
        let Self { index, of, .. } = *self;
        let needed = needed.max(1);
        match found {
            _ if found >= needed => Ok(()),
            _ => Err(ShardError::TooFew {
                index,
                of,
                found,
                needed,
            }),
        }
    }

    fn iid(&self, len: usize) -> Vec<u32> {
        let order = rng::permutation(len, &mut rng::stream(self.seed, rng::SHARDS, 0));
        let mine = order.into_iter().skip(self.index as usize);
        mine.step_by(self.of as usize).collect()
    }

    fn by_label(&self, labels: &[u16]) -> Vec<u32> {
        let classes = by_class(labels);
        let order = rng::permutation(classes.len(), &mut rng::stream(self.seed, rng::SHARDS, 0));
        let (of, index) = (self.of as usize, self.index as usize);
        let mut mine = Vec::new();
        for (place, class) in order.into_iter().enumerate() {
            let samples = classes[class as usize].iter().copied();
            if of <= classes.len() {
                if place % of == index {
                    mine.extend(samples);
                }
            } else if index % classes.len() == place {
                let sharers = (of - place).div_ceil(classes.len());
                mine.extend(samples.skip(index / classes.len()).step_by(sharers));
            }
        }
        mine
    }

    fn dirichlet(&self, alpha: f64, labels: &[u16]) -> Vec<u32> {
        let mut mine = Vec::new();
        for (class, samples) in by_class(labels).into_iter().enumerate() {
            let mut rng = rng::stream(self.seed, rng::SHARDS, class as u64);
            let mut urn = Urn::new(alpha, self.of as usize);
            let order = rng::permutation(samples.len(), &mut rng);
            for place in order {
                if urn.draw(&mut rng) == self.index as usize {
                    mine.push(samples[place as usize]);
                }
            }
        }
        mine
    }
}

/// Indices of the samples of each class, in ascending order of classes.
fn by_class(labels: &[u16]) -> Vec<Vec<u32>> {
    let classes = labels.iter().max().map_or(0, |&top| usize::from(top) + 1);
    let mut classes = vec![Vec::new(); classes];
    for (index, &label) in labels.iter().enumerate() {
        classes[usize::from(label)].push(index as u32);
    }
    classes.retain(|samples| !samples.is_empty());
    classes
}

/// Polya's urn: the next sample goes to owner `i` with probability
/// `(alpha + n_i) / (N alpha + n)`, which deals as proportions drawn from `Dirichlet(alpha)` and
/// samples drawn from these do, without logarithms and powers that differ between machines.
///
/// **Source:** Blackwell and MacQueen, Ferguson distributions via Polya urn schemes, 1973.
struct Urn {
    alpha: f64,
    counts: Vec<u64>,
    drawn: Vec<u32>,
}

impl Urn {
    fn new(alpha: f64, owners: usize) -> Self {
        Self {
            alpha,
            counts: vec![0; owners],
            drawn: Vec::new(),
        }
    }

    /// The urn in two parts: with probability `N alpha / (N alpha + n)` any owner, else the owner
    /// of an earlier sample.
    fn draw(&mut self, rng: &mut ChaCha8Rng) -> usize {
        let prior = self.alpha * self.counts.len() as f64;
        let new = rng::unit_f64(rng) * (prior + self.drawn.len() as f64) < prior;
        let owner = if new {
            rng::below(self.counts.len() as u64, rng) as u32
        } else {
            self.drawn[rng::below(self.drawn.len() as u64, rng) as usize]
        };
        self.counts[owner as usize] += 1;
        self.drawn.push(owner);
        owner as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds() -> impl Strategy<Value = ShardKind> {
        prop_oneof![
            Just(ShardKind::Iid),
            Just(ShardKind::ByLabel),
            (0.05..10.0).prop_map(|alpha| ShardKind::Dirichlet { alpha }),
        ]
    }

    fn dealt(kind: ShardKind, of: u32, seed: u64, labels: &[u16]) -> Vec<Vec<u32>> {
        let shard = |index| {
            Shards {
                kind,
                index,
                of,
                seed,
                ..Shards::whole()
            }
            .samples(labels, 0)
        };
        (0..of)
            .map(|index| shard(index).unwrap_or_default())
            .collect()
    }

    proptest! {
        #[test]
        fn shards_are_disjoint_covering_and_deterministic(
            kind in kinds(), of in 1..40_u32, seed: u64,
            labels in proptest::collection::vec(0..10_u16, 1..400),
        ) {
            let shards = dealt(kind, of, seed, &labels);
            let mut all: Vec<u32> = shards.concat();
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..labels.len() as u32));
            prop_assert_eq!(&shards, &dealt(kind, of, seed, &labels));
        }

        #[test]
        fn text_ranges_meet_end_to_end(of in 1..40_u32, len in 0..100_000_usize, alpha in 0.05..9.0, seed: u64) {
            for kind in [ShardKind::Iid, ShardKind::Dirichlet { alpha }] {
                let mut end = 0;
                for index in 0..of {
                    match (Shards { kind, index, of, seed, rank: Rank::ALONE }).range(len, 0) {
                        Ok(range) => {
                            prop_assert_eq!(range.start, end);
                            end = range.end;
                        }
                        Err(error) => {
                            let empty = matches!(error, ShardError::TooFew { found: 0, .. });
                            prop_assert!(empty, "{error}");
                        }
                    }
                }
                prop_assert_eq!(end, len);
            }
        }
    }

    fn classes_of(shard: &[u32], labels: &[u16]) -> usize {
        let mut classes: Vec<u16> = shard.iter().map(|&index| labels[index as usize]).collect();
        classes.sort_unstable();
        classes.dedup();
        classes.len()
    }

    #[test]
    fn four_shards_of_ten_classes_have_three_three_two_two() {
        let labels: Vec<u16> = (0..500).map(|index| (index * 7 % 10) as u16).collect();
        let shards = dealt(ShardKind::ByLabel, 4, 9, &labels);
        let counts: Vec<usize> = shards.iter().map(|s| classes_of(s, &labels)).collect();
        assert_eq!(counts, [3, 3, 2, 2]);
    }

    #[test]
    fn more_shards_than_classes_share_classes_evenly() {
        let labels: Vec<u16> = (0..1000).map(|index| (index % 10) as u16).collect();
        for shard in dealt(ShardKind::ByLabel, 25, 3, &labels) {
            assert_eq!(classes_of(&shard, &labels), 1);
            assert!((33..=50).contains(&shard.len()), "{}", shard.len());
        }
    }

    #[test]
    fn a_small_alpha_is_skewed_and_a_large_one_even() {
        let labels = vec![0; 4000];
        let largest = |alpha| {
            let shards = dealt(ShardKind::Dirichlet { alpha }, 8, 5, &labels);
            shards.iter().map(Vec::len).max().unwrap()
        };
        assert!(largest(0.05) > 1500, "{}", largest(0.05));
        assert!(largest(1000.0) < 620, "{}", largest(1000.0));
    }

    #[test]
    fn wrong_numbers_are_named() {
        let error = Shards {
            index: 4,
            of: 4,
            ..Shards::whole()
        }
        .validate()
        .unwrap_err();
        assert!(error.to_string().contains("`shards.index` is 4"), "{error}");
        let kind = ShardKind::Dirichlet { alpha: f64::NAN };
        assert!(
            Shards {
                kind,
                ..Shards::whole()
            }
            .validate()
            .is_err()
        );
        let by_label = Shards {
            kind: ShardKind::ByLabel,
            ..Shards::whole()
        };
        assert_eq!(by_label.range(100, 1), Err(ShardError::NoLabels));
    }
}
