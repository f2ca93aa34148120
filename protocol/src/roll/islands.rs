//! Which peer takes which place: rows are filled within sites.
//!
//! A row exchanges whole contributions, a column only sums of rows. So a row of one site keeps all but
//! two models per round off the links between sites. Peers of a site that fill no row share rows with
//! those of others.

use crate::Site;
use crate::sorted::{SortedMap, SortedSet};

/// Peers of one site that want places, in their order. A peer without a site is alone.
struct Group<'a> {
    site: Option<&'a Site>,
    /// By their position among all that want places, the next one last.
    waiting: Vec<usize>,
}

/// A row with places that are free.
struct Open<'a> {
    /// The next one last.
    free: Vec<usize>,
    /// Who has places in it: how many of each site.
    of_site: SortedMap<&'a Site, usize>,
    empty: bool,
}

/// All that is still to be placed.
struct Seats<'a> {
    groups: Vec<Group<'a>>,
    /// Groups with peers that wait, by their number.
    by_size: SortedMap<usize, SortedSet<usize>>,
    places: Vec<usize>,
}

/// The place of each peer that wants one. As many places are free as peers want one; `sites` are those
/// of the peers, in their order. `taken` names the sites of the peers that have places in a row, with
/// none for a peer without a site. Places are filled in rising order where no two peers share a site.
pub(super) fn seats<'a>(
    sites: &[Option<&'a Site>],
    free: &[usize],
    columns: usize,
    taken: impl Fn(usize) -> Vec<Option<&'a Site>>,
) -> Vec<usize> {
    debug_assert_eq!(sites.len(), free.len(), "a place for each peer");
    let mut rows = open_rows(free, columns, taken);
    let mut seats = Seats::new(sites);
    seats.join_sites(&mut rows);
    for row in &mut rows {
        seats.fill(row);
    }
    seats.places
}

fn open_rows<'a>(
    free: &[usize],
    columns: usize,
    taken: impl Fn(usize) -> Vec<Option<&'a Site>>,
) -> Vec<Open<'a>> {
    let mut by_row: SortedMap<usize, Vec<usize>> = SortedMap::new();
    for place in free.iter().rev() {
        by_row.entry(place / columns).or_default().push(*place);
    }
    let open = |(row, free)| {
        let taken = taken(row);
        let mut of_site = SortedMap::new();
        for site in taken.iter().flatten() {
            *of_site.entry(*site).or_default() += 1;
        }
        let empty = taken.is_empty();
        Open {
            free,
            of_site,
            empty,
        }
    };
    by_row.into_iter().map(open).collect()
}

impl<'a> Seats<'a> {
    fn new(sites: &[Option<&'a Site>]) -> Self {
        let mut groups: Vec<Group<'a>> = Vec::new();
        let mut of_site: SortedMap<&Site, usize> = SortedMap::new();
        for (peer, site) in sites.iter().enumerate() {
            let new = groups.len();
            let group = site.map_or(new, |site| *of_site.entry(site).or_insert(new));
            match groups.get_mut(group) {
                Some(group) => group.waiting.push(peer),
                None => groups.push(Group {
                    site: *site,
                    waiting: vec![peer],
                }),
            }
        }
        let mut by_size: SortedMap<usize, SortedSet<usize>> = SortedMap::new();
        for (number, group) in groups.iter_mut().enumerate() {
            group.waiting.reverse();
            let size = group.waiting.len();
            by_size.entry(size).or_default().insert(number);
        }
        Self {
            groups,
            by_size,
            places: vec![0; sites.len()],
        }
    }

    /// Gives peers of a group the free places of a row, while both last.
    fn place(&mut self, group: usize, row: &mut Open<'_>) {
        let waiting = &mut self.groups[group].waiting;
        let before = waiting.len();
        while !waiting.is_empty()
            && let Some(place) = row.free.pop()
        {
            self.places[waiting.pop().expect("a peer that waits")] = place;
            row.empty = false;
        }
        let after = waiting.len();
        if let Some(same) = self.by_size.get_mut(&before) {
            same.remove(&group);
            if same.is_empty() {
                self.by_size.remove(&before);
            }
        }
        if after > 0 {
            self.by_size.entry(after).or_default().insert(group);
        }
    }

    /// Peers whose site is in a row already go there, and first where most of it is.
    fn join_sites(&mut self, rows: &mut [Open<'a>]) {
        let of_site = self.groups.iter().zip(0usize..);
        let of_site = of_site.filter_map(|(group, number)| Some((group.site?, number)));
        let of_site: SortedMap<&Site, usize> = of_site.collect();
        let mut joins = Vec::new();
        for (row, open) in rows.iter().enumerate() {
            for (site, count) in &open.of_site {
                let group = of_site.get(site);
                joins.extend(group.map(|group| (core::cmp::Reverse(*count), *group, row)));
            }
        }
        // By number of peers of the site first, and ties by position: all peers must find the same places.
        joins.sort_unstable();
        for (_, group, row) in joins {
            self.place(group, &mut rows[row]);
        }
    }

    fn fill(&mut self, row: &mut Open<'_>) {
        while let Some(group) = self.next(row.free.len(), row.empty) {
            self.place(group, row);
        }
    }

    /// Which group comes next into a row with this many free places: for an empty row one that fills it,
    /// and of these the one that leaves the fewest over in the end; otherwise the largest that fits as
    /// a whole; otherwise a part of the smallest.
    fn next(&self, room: usize, empty: bool) -> Option<usize> {
        if room == 0 {
            return None;
        }
        // A row that one site fills keeps whole contributions off the links between sites.
        if empty {
            let enough = self.by_size.range(room..);
            let enough =
                enough.flat_map(|(size, same)| same.iter().map(move |g| (size % room, *g)));
            if let Some((_, group)) = enough.min() {
                return Some(group);
            }
        }
        let fits = self.by_size.range(..=room).next_back();
        let smallest = fits.or_else(|| self.by_size.iter().next());
        smallest.and_then(|(_, same)| same.first().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<Option<Site>> {
        let label = |c: char| (c != '.').then(|| Site::new(&c.to_string()).unwrap());
        text.chars().map(label).collect()
    }

    /// Places peers in an empty grid; the result row by row.
    fn founded(text: &str, columns: usize) -> String {
        let labels = labels(text);
        let sites: Vec<Option<&Site>> = labels.iter().map(Option::as_ref).collect();
        let free: Vec<usize> = (0..sites.len()).collect();
        let places = seats(&sites, &free, columns, |_| Vec::new());
        let mut at = vec![' '; sites.len()];
        for (peer, place) in places.into_iter().enumerate() {
            at[place] = text.chars().nth(peer).unwrap();
        }
        let rows = at.chunks(columns).map(|row| row.iter().collect::<String>());
        rows.collect::<Vec<String>>().join(" ")
    }

    #[test]
    fn rows_are_filled_within_sites() {
        for (peers, columns, rows) in [
            ("abababab", 4, "aaaa bbbb"),
            ("abcabcabc", 3, "aaa bbb ccc"),
            // What is left of both shares a row.
            ("aaaaabbbbb", 4, "aaaa bbbb ab"),
            // The short row is below one of its own site, which sums for it.
            ("aaaaabbbb", 4, "bbbb aaaa a"),
            ("aaabbc", 3, "aaa bbc"),
            // What is left fills rows whole where it can.
            ("aabbbcddd", 4, "bbbc ddda a"),
            ("aabbccdd", 4, "aabb ccdd"),
            // No site is split where all fit.
            ("abbcccdd", 4, "ccca bbdd"),
            ("aaabbbccc", 2, "aa bb cc ab c"),
        ] {
            assert_eq!(founded(peers, columns), rows, "{peers}");
        }
    }

    #[test]
    fn peers_with_nothing_in_common_have_places_in_their_order() {
        for columns in 1..9 {
            for (sites, free) in [(30, 0..30), (7, 3..10)] {
                let alone = vec![None; sites];
                let free: Vec<usize> = free.collect();
                let others = |_| vec![None];
                assert_eq!(seats(&alone, &free, columns, others), free);
                let labels: Vec<Site> = (0..sites as u8).map(|i| Site::measured(&[i])).collect();
                let own: Vec<Option<&Site>> = labels.iter().map(Some).collect();
                assert_eq!(seats(&own, &free, columns, |_| Vec::new()), free);
            }
        }
        assert_eq!(founded("aaaaaaa", 3), "aaa aaa a");
    }

    #[test]
    fn a_peer_joins_the_row_with_most_of_its_site() {
        let labels = labels("xab");
        let [x, a, b] = [0, 1, 2].map(|i| labels[i].as_ref());
        let taken = |row: usize| match row {
            0 => vec![a, b],
            1 => vec![b, b],
            _ => vec![],
        };
        // Rows of three, each with one free place, and a new row.
        assert_eq!(seats(&[x, a, b], &[1, 4, 6], 3, taken), [6, 1, 4]);
        assert_eq!(seats(&[x, b, b], &[1, 4, 6], 3, taken), [6, 4, 1]);
        assert_eq!(seats(&[x, x, x], &[1, 6, 7], 3, taken), [1, 6, 7]);
    }
}
