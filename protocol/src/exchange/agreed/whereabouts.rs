//! Where the members of a group are, as its proposer knows it from their records.
//!
//! Members that cut a fragment by the rates of their lines, or sum up along their sites, need the same rates
//! and sites to the bit. Records arrive at different times, so they do not have that. The proposer says what
//! it knows, all members use its words, and the group's tag is a hash of them. A proposer that lies about
//! rates or sites costs time; no bit of the result depends on who reduces a shard.

use crate::RateClass;
use crate::limits::GROUP_MEMBERS_MAX;
use crate::schedule::AgreedLinks;
use crate::wire::{WireError, check};
use serde::{Deserialize, Serialize};

/// Where one member of a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whereabouts {
    /// The first member of the group that is at the same site, by its place in `PeerId` order. A member
    /// whose site is not known is a site of its own.
    pub site: u8,
    /// How fast its line is, if its record says so.
    pub rate: Option<RateClass>,
}

/// What a proposer says of the network among the members of its group.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Surroundings {
    /// Where each member is; empty where the plan does not go by it.
    pub(super) places: Vec<Whereabouts>,
    /// The rates of their links, where the plan goes by them.
    pub(super) links: Option<AgreedLinks>,
}

/// Checks what a proposer says of this many members: one entry for each, and each site by its first member.
pub(super) fn check(places: &[Whereabouts], members: usize) -> Result<(), WireError> {
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

#[cfg(test)]
mod tests {
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
            assert_eq!(check(&places(good), good.len()), Ok(()), "{good:?}");
        }
        for bad in [&[1, 1][..], &[0, 0, 1], &[0, 9]] {
            assert!(check(&places(bad), bad.len()).is_err(), "{bad:?}");
        }
        assert!(check(&places(&[0, 0]), 3).is_err(), "one is missing");
    }
}
