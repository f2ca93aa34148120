//! A member of a group: its claims about its contribution, their form on the wire, their weight, its site and its line.
//!
//! Members claim their weights themselves, so a claim counts only up
//! to a multiple of the median claim in the group:
//!
//! `w_i = min(c_i, 2 m)` with the claims c and their median m over the members that trained.
//!
//! So with n members of which k lie, and honest ones that train alike, the liars' share of the mean is
//! at most 2k / (n + k). The claims above the median stay above it, so capping again changes nothing:
//! every member checks a proposal by the weights that it names. Counts of inner steps are capped at 16 m:
//! there a contribution is divided by its count, and one that is capped would count for too much.

use crate::limits::GROUP_MEMBERS_MAX;
use crate::schedule::AgreedLinks;
use crate::wire::{WireError, canonical, check};
use crate::{Attempt, Digest, Loss, Members, PeerId, RateClass, Taken, Weighing};
use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// The peer.
    pub peer: PeerId,
    /// Its contribution in its own words, with the weight that counts.
    pub said: Said,
}

impl Member {
    /// One that says nothing but the weight of its contribution.
    pub const fn new(peer: PeerId, weight: f64) -> Self {
        let said = Said::new(weight);
        Self { peer, said }
    }
}

pub(super) fn group(members: &[Member]) -> Result<(), WireError> {
    check::ok(
        !members.is_empty() && members.len() <= GROUP_MEMBERS_MAX,
        "members",
    )?;
    check::ok(
        members.iter().all(|m| check::weight_ok(m.said.weight)),
        "members.weight",
    )?;
    check::ok(
        members.is_sorted_by(|a, b| a.peer < b.peer),
        "members.order",
    )
}

/// The mark before a loss: no weight is infinite.
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

impl Said {
    /// Nothing but a weight.
    pub const fn new(weight: f64) -> Self {
        Self {
            weight,
            taken: None,
            loss: None,
        }
    }
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
                let taken = if weight.is_sign_negative() {
                    Some(parts.next_element()?.ok_or_else(missing)?)
                } else {
                    None
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

/// A weight is at most this many medians: machines differ, and attempts add training.
const MEDIANS_MAX: f64 = 2.0;

/// A count of inner steps is at most this many times the median: machines may be that much faster than half of
/// the others. The mean count scales the result, so a lie must not move it without bound.
const STEP_MEDIANS_MAX: f64 = 16.0;

/// The most that a contribution may weigh among these; zero where no member trained.
pub(super) fn cap_of(members: &[Member], weighing: Weighing) -> f64 {
    let medians = match weighing {
        Weighing::Samples | Weighing::Equal => MEDIANS_MAX,
        Weighing::Steps => STEP_MEDIANS_MAX,
    };
    let mut claims: Vec<f64> = members.iter().map(|member| member.said.weight).collect();
    // Members that trained nothing would pull the median down to nothing.
    claims.retain(|weight| *weight > 0.0);
    claims.sort_by(f64::total_cmp);
    let middle = claims.len() / 2;
    match claims.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => medians * claims[middle],
        _ => medians * (0.5 * (claims[middle - 1] + claims[middle])),
    }
}

pub(super) fn cap(members: &mut [Member], weighing: Weighing) {
    let most = cap_of(members, weighing);
    for member in members {
        member.said.weight = member.said.weight.min(most);
    }
}

/// Site and line of one member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whereabouts {
    /// The first member of the group that is at the same site, by its place in `PeerId` order. A member
    /// whose site is not known is a site of its own.
    pub site: u8,
    /// Rate class of its line, if its record has one.
    pub rate: Option<RateClass>,
}

/// Checks what a proposer says of this many members: one entry for each, and each site by its first member.
pub(super) fn check_places(places: &[Whereabouts], members: usize) -> Result<(), WireError> {
    check::ok(
        places.len() == members && members <= GROUP_MEMBERS_MAX,
        "places",
    )?;
    let first = |(index, place): (usize, &Whereabouts)| {
        let site = usize::from(place.site);
        site <= index && places.get(site).is_some_and(|p| p.site == place.site)
    };
    check::ok(places.iter().enumerate().all(first), "places.site")?;
    let mut rates = places.iter().filter_map(|place| place.rate);
    rates.try_for_each(RateClass::check)
}

/// The network among the members of a group, in the proposer's words.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Surroundings {
    /// Place of each member; empty where the plan does not go by it.
    pub(super) places: Vec<Whereabouts>,
    /// The rates of their links, where the plan goes by them.
    pub(super) links: Option<AgreedLinks>,
}

/// A ballot: who coordinates it breaks ties between equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ballot {
    /// Zero for the first, which needs no coordinator.
    pub number: u8,
    /// The member that coordinates it.
    pub coordinator: PeerId,
}

impl Ballot {
    /// The attempt at a shard that belongs to this ballot.
    pub(crate) const fn attempt(&self) -> Attempt {
        Attempt(self.number)
    }
}

/// One version of one shard's aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ShardVersion {
    /// The member that reduced it.
    pub owner: PeerId,
    /// In which ballot.
    pub attempt: Attempt,
    /// The members whose contributions are in it.
    pub contributors: Members,
    /// Hash of its encoded bytes.
    pub digest: Digest,
}

/// A vote: one version for each shard.
pub(super) type Versions = Vec<ShardVersion>;

/// A shard's version that a member holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The shard.
    pub shard: u16,
    /// Its version.
    pub version: ShardVersion,
}

/// The part of a repair for one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShardPlan {
    /// Some member holds it: take this version, from this holder if you lack it.
    Keep {
        /// The version.
        version: ShardVersion,
        /// A member that holds its bytes.
        holder: PeerId,
    },
    /// No member holds it: send your contribution to the new owner, who reduces it in this ballot.
    Redo {
        /// The successor.
        owner: PeerId,
    },
}

/// The value that a vote names where members do not sign and there are many shards.
pub(super) fn vote_of(versions: &[ShardVersion]) -> Digest {
    Digest::of(&canonical(&("murmurate vote", versions)))
}

/// The value that stands for versions in a group with this digest; no versions stand for a void
/// round.
pub fn value_of(group: &Digest, versions: &[ShardVersion]) -> Digest {
    Digest::of(&canonical(&("murmurate value", group, versions)))
}

#[cfg(test)]
mod whereabouts_tests {
    use super::*;

    #[test]
    fn a_site_is_named_by_its_first_member_only() {
        let places = |sites: &[u8]| -> Vec<Whereabouts> {
            let place = |site: &u8| Whereabouts {
                site: *site,
                rate: None,
            };
            sites.iter().map(place).collect()
        };
        for good in [&[0, 0, 2, 0, 2][..], &[0, 1, 2], &[0]] {
            assert_eq!(check_places(&places(good), good.len()), Ok(()), "{good:?}");
        }
        for bad in [&[1, 1][..], &[0, 0, 1], &[0, 9]] {
            assert!(check_places(&places(bad), bad.len()).is_err(), "{bad:?}");
        }
        assert!(check_places(&places(&[0, 0]), 3).is_err(), "one is missing");
    }
}

#[cfg(test)]
mod said_tests {
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

#[cfg(test)]
mod weights_tests {
    use super::*;
    use crate::PeerId;

    fn group(weights: &[f64]) -> Vec<Member> {
        let members = (0u8..).zip(weights);
        let member = |(id, weight): (u8, &f64)| Member::new(PeerId::from_bytes([id; 32]), *weight);
        members.map(member).collect()
    }

    fn capped(weights: &[f64]) -> Vec<f64> {
        let mut members = group(weights);
        cap(&mut members, Weighing::Samples);
        members.iter().map(|member| member.said.weight).collect()
    }

    #[test]
    fn no_claim_counts_more_than_twice_the_median() {
        for (claims, counted) in [
            (
                &[320.0, 320.0, 320.0, 1e18][..],
                &[320.0, 320.0, 320.0, 640.0][..],
            ),
            (&[100.0, 150.0, 290.0], &[100.0, 150.0, 290.0]),
            (&[100.0, 150.0, 310.0], &[100.0, 150.0, 300.0]),
            // Members that did not train have no say in what is usual.
            (
                &[0.0, 0.0, 0.0, 0.0, 50.0, 1e18],
                &[0.0, 0.0, 0.0, 0.0, 50.0, 5e17 * 2.0],
            ),
            (&[0.0, 0.0], &[0.0, 0.0]),
            (&[7.0], &[7.0]),
        ] {
            let found = capped(claims);
            let again = capped(&found);
            assert_eq!(found, again, "capping again changes nothing");
            assert_eq!(found, counted, "{claims:?}");
        }
    }

    #[test]
    fn counts_of_inner_steps_are_whole_and_may_differ_more() {
        let mut members = group(&[2.0, 2.0, 2.0, 32.0, 1e18]);
        cap(&mut members, Weighing::Steps);
        let counted: Vec<f64> = members.iter().map(|member| member.said.weight).collect();
        assert_eq!(counted, [2.0, 2.0, 2.0, 32.0, 32.0]);
        for (weight, allowed) in [(0.0, true), (7.0, true), (0.5, false), (1e18, false)] {
            assert_eq!(Weighing::Steps.allows(weight), allowed, "{weight}");
            assert_eq!(Weighing::Equal.allows(weight), allowed, "{weight}");
            assert!(Weighing::Samples.allows(weight));
        }
    }

    #[test]
    fn k_liars_of_n_have_at_most_2k_of_n_plus_k() {
        for (n, k) in [(4usize, 1usize), (7, 2), (10, 3), (16, 5)] {
            let mut claims = vec![100.0; n - k];
            claims.extend(vec![1e18; k]);
            let counted = capped(&claims);
            let lies: f64 = counted[n - k..].iter().sum();
            let share = lies / counted.iter().sum::<f64>();
            let bound = 2.0 * k as f64 / (n + k) as f64;
            assert!(share <= bound + 1e-12, "{n} {k}: {share} above {bound}");
        }
    }
}
