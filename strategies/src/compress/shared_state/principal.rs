//! Principal components of slices of equal length, in f64. Every sum runs in the order of its
//! terms, so that all members find the same bits.

use crate::compress::random::draw;

/// The most multiplications with the second moments. What the components miss falls with the power
/// of the ratio of the eigenvalues on both sides of the cut.
const ITERATIONS_MAX: usize = 256;

/// The bound of `1 - |x . x'|`, for a column x and the same column x' after a multiplication, below which
/// it has arrived: an angle that f32 do not tell from zero.
const ARRIVED: f64 = 1e-14;

/// The share of its length below which a column is rounding of those before it.
const VANISHED: f64 = 1e-12;

/// The seed of the columns that the iteration begins with.
const SEED: u64 = 0x7072_696e_6369_7061;

/// Adds `sum_s v_s v_s^T` over the slices of `size` values to the moments, row-major.
pub(super) fn add_second_moments(values: &[f32], size: usize, moments: &mut [f64]) {
    for slice in values.chunks_exact(size) {
        for (row, value) in moments.chunks_exact_mut(size).zip(slice) {
            let value = f64::from(*value);
            for (sum, other) in row.iter_mut().zip(slice) {
                *sum += value * f64::from(*other);
            }
        }
    }
}

/// Appends `kept` orthonormal columns of `size` values: the eigenvectors of the largest eigenvalues
/// of these second moments, by orthogonal iteration from random columns. Where there are fewer
/// directions than columns, the others are random ones that are orthogonal to them.
pub(super) fn push_components(
    moments: &[f64],
    size: usize,
    kept: usize,
    components: &mut Vec<f32>,
) {
    let mut random = vec![0.0f32; size * kept];
    draw(SEED, 0, &mut random);
    let random: Vec<f64> = random.iter().map(|value| f64::from(*value)).collect();
    let (mut columns, mut next) = (random.clone(), vec![0.0f64; size * kept]);
    orthonormalize(&mut columns, &random, size);
    for _ in 0..ITERATIONS_MAX {
        next.fill(0.0);
        for (next, column) in next.chunks_mut(size).zip(columns.chunks(size)) {
            for (row, factor) in moments.chunks(size).zip(column) {
                for (sum, moment) in next.iter_mut().zip(row) {
                    *sum += factor * moment;
                }
            }
        }
        orthonormalize(&mut next, &random, size);
        let mut pairs = columns.chunks(size).zip(next.chunks(size));
        let arrived = pairs.all(|(before, after)| 1.0 - dot(before, after).abs() < ARRIVED);
        core::mem::swap(&mut columns, &mut next);
        if arrived {
            break;
        }
    }
    components.extend(columns.iter().map(|value| *value as f32));
}

/// Makes columns orthonormal. A column that those before it span is replaced by the random one at its place.
fn orthonormalize(columns: &mut [f64], random: &[f64], size: usize) {
    for at in 0..columns.len() / size {
        let (before, own) = columns.split_at_mut(at * size);
        let own = &mut own[..size];
        if !leave_orthogonal(own, before) {
            own.copy_from_slice(&random[at * size..][..size]);
            if !leave_orthogonal(own, before) {
                own.fill(0.0);
            }
        }
    }
}

/// Leaves the direction of a column that is orthogonal to those before it, of length one; false
/// where there is none. Gram-Schmidt, twice.
fn leave_orthogonal(own: &mut [f64], before: &[f64]) -> bool {
    for _ in 0..2 {
        let length = dot(own, own).sqrt();
        if !length.is_normal() {
            return false;
        }
        own.iter_mut().for_each(|value| *value /= length);
        for other in before.chunks(own.len()) {
            let along = dot(own, other);
            for (value, other) in own.iter_mut().zip(other) {
                *value -= along * other;
            }
        }
        if dot(own, own).sqrt() < VANISHED {
            return false;
        }
    }
    let length = dot(own, own).sqrt();
    own.iter_mut().for_each(|value| *value /= length);
    true
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `|a b|` of two columns.
    fn along(a: &[f32], b: &[f64]) -> f64 {
        let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * b);
        products.sum::<f64>().abs()
    }

    #[test]
    fn components_are_the_directions_of_the_largest_moments() {
        // Moments with eigenvalues 9, 4, 1, 0.25 along the columns of a Hadamard matrix.
        let signs = [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]];
        let directions = signs.map(|row| row.map(|sign| 0.5 * f64::from(sign)));
        let lengths = [3.0, 2.0, 1.0, 0.5];
        let slices = directions.iter().zip(lengths);
        let values: Vec<f32> = slices
            .flat_map(|(direction, length)| direction.map(|value| (length * value) as f32))
            .collect();
        let mut moments = vec![0.0; 16];
        add_second_moments(&values, 4, &mut moments);
        let mut components = Vec::new();
        push_components(&moments, 4, 3, &mut components);
        for (component, direction) in components.chunks(4).zip(directions) {
            assert!((along(component, &direction) - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn few_directions_and_none_are_filled_up_with_orthogonal_ones() {
        for values in [
            vec![0.0f32; 8],
            vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        ] {
            let mut moments = vec![0.0; 64];
            add_second_moments(&values, 8, &mut moments);
            let mut components = Vec::new();
            push_components(&moments, 8, 5, &mut components);
            for (at, one) in components.chunks(8).enumerate() {
                for (other, two) in components.chunks(8).enumerate() {
                    let wide: Vec<f64> = two.iter().map(|value| f64::from(*value)).collect();
                    let expected = if at == other { 1.0 } else { 0.0 };
                    assert!((along(one, &wide) - expected).abs() < 1e-6, "{at} {other}");
                }
            }
        }
    }
}
