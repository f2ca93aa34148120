//! Classes and signs of places in the rows of a count sketch, some hundred places at a time: the
//! hashes and the medians are then loops of vector instructions, and only the sums of the classes
//! are read and written one by one.

use crate::compress::random::Random;
use crate::compress::simd::kernel;

/// The most rows of a sketch.
pub(in crate::compress) const ROWS_MAX: usize = 7;

/// Places that are looked at together.
const TILE: usize = 512;

/// Class and sign of a place; the sign is the highest bit.
#[inline(always)]
pub(in crate::compress) fn class(random: Random, at: u32, width: usize) -> (u32, u32) {
    let bits = random.bits(at);
    let class = (u64::from(bits) * width as u64) >> 32;
    (class as u32, bits << 31)
}

/// The value with the sign flipped where `sign` has the highest bit.
#[inline(always)]
pub(in crate::compress) fn signed(value: f32, sign: u32) -> f32 {
    f32::from_bits(value.to_bits() ^ sign)
}

/// Adds the values, limited to a magnitude, to the sums of one row.
pub(in crate::compress) fn fill_row(values: &[f32], limit: f32, random: Random, sums: &mut [f32]) {
    let (mut classes, mut terms) = ([0; TILE], [0.0; TILE]);
    for (first, values) in (0u32..).step_by(TILE).zip(values.chunks(TILE)) {
        terms_of(
            values,
            limit,
            random,
            first,
            sums.len(),
            &mut classes,
            &mut terms,
        );
        for (class, term) in classes.iter().zip(&terms[..values.len()]) {
            sums[*class as usize] += term;
        }
    }

    fn terms_of<'a>(
        values: &'a [f32],
        limit: f32,
        random: Random,
        first: u32,
        width: usize,
        classes: &'a mut [u32; TILE],
        terms: &'a mut [f32; TILE],
    ) {
        let into = classes.iter_mut().zip(terms);
        for ((at, value), (to, term)) in (first..).zip(values).zip(into) {
            let (class, sign) = class(random, at, width);
            (*to, *term) = (class, signed(value.clamp(-limit, limit), sign));
        }
    }
}

/// Appends the medians of all rows' sums for the places below `len`. `table` has the rows of
/// `randoms`, `width` sums each.
pub(in crate::compress) fn medians(
    table: &[f32],
    randoms: &[Random],
    width: usize,
    len: usize,
    out: &mut Vec<f32>,
) {
    let (mut classes, mut found) = ([[0; TILE]; 2], [[0; TILE]; ROWS_MAX]);
    let found = &mut found[..randoms.len()];
    let mut medians = [0.0; TILE];
    for first in (0..len).step_by(TILE) {
        let count = TILE.min(len - first);
        for ((random, row), found) in randoms.iter().zip(table.chunks(width)).zip(&mut *found) {
            let [classes, signs] = &mut classes;
            classes_of(*random, first as u32, width, classes, signs);
            let places = found.iter_mut().zip(classes.iter().zip(&*signs));
            for (found, (class, sign)) in places.take(count) {
                *found = ordered(signed(row[*class as usize], *sign).to_bits());
            }
        }
        medians_of(found, &mut medians);
        out.extend_from_slice(&medians[..count]);
    }

    fn classes_of<'a>(
        random: Random,
        first: u32,
        width: usize,
        classes: &'a mut [u32; TILE],
        signs: &'a mut [u32; TILE],
    ) {
        let into = classes.iter_mut().zip(signs);
        for (at, (to, sign)) in (0..TILE as u32).zip(into) {
            (*to, *sign) = class(random, first.wrapping_add(at), width);
        }
    }
}

/// An integer of the same order as [`f32::total_cmp`], from and to the bits of an f32.
#[inline(always)]
const fn ordered(bits: u32) -> i32 {
    (bits ^ (((bits as i32) >> 31) as u32 >> 1)) as i32
}

kernel! {
    /// Sorts every place's values by exchanges of neighbours, all places at a time; then takes the
    /// middle one, or the mean of the two in the middle.
    fn medians_of<'a>(found: &'a mut [[i32; TILE]], medians: &'a mut [f32; TILE]) {
        let rows = found.len();
        for turn in 0..rows {
            for pair in found[turn % 2..].chunks_exact_mut(2) {
                let [one, other] = pair else { continue };
                for (a, b) in one.iter_mut().zip(other) {
                    (*a, *b) = ((*a).min(*b), (*a).max(*b));
                }
            }
        }
        let value = |key: i32| f32::from_bits(ordered(key as u32) as u32);
        let (half, even) = (rows / 2, rows.is_multiple_of(2));
        let below = &found[half - usize::from(even)];
        for (median, (a, b)) in medians.iter_mut().zip(below.iter().zip(&found[half])) {
            *median = match even {
                true => 0.5 * value(*a) + 0.5 * value(*b),
                false => value(*b),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_those_of_sorted_values() {
        let (len, width) = (2000, 50);
        for rows in 1..=ROWS_MAX {
            let randoms: Vec<Random> = (0..rows as u64).map(Random::new).collect();
            let table: Vec<f32> = (0..rows * width)
                .map(|at| match at % 7 {
                    0 => -0.0,
                    1 => 0.0,
                    _ => ((at * 7919) % 101) as f32 - 50.0,
                })
                .collect();
            let mut found = Vec::new();
            medians(&table, &randoms, width, len, &mut found);
            for (at, found) in (0..len as u32).zip(&found) {
                let of = |(random, row): (&Random, &[f32])| {
                    let (class, sign) = class(*random, at, width);
                    row[class as usize] * if sign == 0 { 1.0 } else { -1.0 }
                };
                let mut all: Vec<f32> = randoms.iter().zip(table.chunks(width)).map(of).collect();
                all.sort_unstable_by(f32::total_cmp);
                let half = rows / 2;
                let expected = match rows % 2 {
                    0 => 0.5 * all[half - 1] + 0.5 * all[half],
                    _ => all[half],
                };
                assert_eq!(
                    found.to_bits(),
                    expected.to_bits(),
                    "{rows} rows, place {at}"
                );
            }
        }
    }

    #[test]
    fn a_row_has_the_sums_of_its_classes() {
        let values: Vec<f32> = (0..1500).map(|at| (at as f32 - 700.0) * 1e26).collect();
        let (random, mut sums, mut expected) = (Random::new(9), vec![0.0; 40], vec![0.0f32; 40]);
        fill_row(&values, 1e28, random, &mut sums);
        for (at, value) in (0..).zip(&values) {
            let (class, sign) = class(random, at, 40);
            let sign = if sign == 0 { 1.0 } else { -1.0 };
            expected[class as usize] += sign * value.clamp(-1e28, 1e28);
        }
        assert_eq!(sums, expected);
    }
}
