//! Where the members of a group are, as its proposer knows it from their records.
//!
//! Members that cut a fragment by the rates of their lines, or sum up along their sites, need the same rates
//! and sites to the bit. Records arrive at different times, so they do not have that. The proposer says what
//! it knows, all members use its words, and the group's tag is a hash of them. A proposer that lies about
//! rates or sites costs time; no bit of the result depends on who reduces a shard.

use super::member::Member;
use crate::core::context::Context;
use crate::limits::GROUP_MEMBERS_MAX;
use crate::wire::{WireError, check};
use crate::{Locality, PeerId, RateClass};
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

/// What this peer knows of the members of a group that it proposes.
pub(super) fn of(cx: &Context, members: &[Member]) -> Vec<Whereabouts> {
    let view = &cx.view;
    let locality = |peer: PeerId| -> Option<&Locality> {
        let record = match peer == cx.me() {
            true => view.mine(),
            false => view.get(peer).and_then(|remote| remote.record()),
        };
        record.map(|record| &record.locality)
    };
    let known: Vec<Option<&Locality>> = members.iter().map(|m| locality(m.peer)).collect();
    let site = |index: usize| known[index].and_then(|locality| locality.site.as_ref());
    let first = |index: usize| {
        let there = |other: &usize| site(index).is_some() && site(*other) == site(index);
        (0..index).find(there).unwrap_or(index)
    };
    (0..members.len())
        .map(|index| Whereabouts {
            site: first(index) as u8,
            rate: known[index].and_then(|locality| locality.rate),
        })
        .collect()
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
