//! The weights of a group's contributions. Members claim theirs themselves, so a claim counts only up
//! to a multiple of what is usual in the group:
//!
//! `w_i = min(c_i, 2 m)` with the claims c and their median m over the members that trained.
//!
//! So with n members of which k lie, and honest ones that train alike, the liars' share of the mean is
//! at most 2k / (n + k). The claims above the median stay above it, so capping again changes nothing:
//! every member checks a proposal by the weights that it names. Counts of inner steps are capped at 16 m:
//! there a contribution is divided by its count, and one that is capped would count for too much.

use super::message::Member;
use crate::Weighing;

/// How many times the median a weight may be. Twice: machines differ in speed, and a round that is
/// tried again trains longer.
const MEDIANS_MAX: f64 = 2.0;

/// How many times the median a count of inner steps may be: machines may be that much faster than half of
/// the others. The mean count scales the result, so a lie must not move it without bound.
const STEP_MEDIANS_MAX: f64 = 16.0;

/// The most that a contribution may weigh among these; zero where no member trained.
pub(super) fn cap_of(members: &[Member], weighing: Weighing) -> f64 {
    let medians = match weighing {
        Weighing::Samples => MEDIANS_MAX,
        Weighing::Steps => STEP_MEDIANS_MAX,
    };
    let mut claims: Vec<f64> = members.iter().map(|member| member.weight).collect();
    claims.retain(|weight| *weight > 0.0);
    claims.sort_by(f64::total_cmp);
    let middle = claims.len() / 2;
    match claims.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => medians * claims[middle],
        _ => medians * (0.5 * (claims[middle - 1] + claims[middle])),
    }
}

/// Caps the weights of a group.
pub(super) fn cap(members: &mut [Member], weighing: Weighing) {
    let most = cap_of(members, weighing);
    for member in members {
        member.weight = member.weight.min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PeerId;

    fn group(weights: &[f64]) -> Vec<Member> {
        let members = (0u8..).zip(weights);
        let member = |(id, weight): (u8, &f64)| Member {
            peer: PeerId::from_bytes([id; 32]),
            weight: *weight,
            taken: None,
            loss: None,
        };
        members.map(member).collect()
    }

    fn capped(weights: &[f64]) -> Vec<f64> {
        let mut members = group(weights);
        cap(&mut members, Weighing::Samples);
        members.iter().map(|member| member.weight).collect()
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
        let counted: Vec<f64> = members.iter().map(|member| member.weight).collect();
        assert_eq!(counted, [2.0, 2.0, 2.0, 32.0, 32.0]);
        for (weight, allowed) in [(0.0, true), (7.0, true), (0.5, false), (1e18, false)] {
            assert_eq!(Weighing::Steps.allows(weight), allowed, "{weight}");
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
