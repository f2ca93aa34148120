//! Arrays do what the standard library's trees do.

use super::{SortedMap, SortedSet};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

proptest! {
    #[test]
    fn a_map_does_what_a_tree_does(
        first in vec((0..40u8, any::<u16>()), 0..30),
        steps in vec((0..6u8, 0..40u8, any::<u16>()), 0..60),
    ) {
        let mut tree: BTreeMap<u8, u16> = first.iter().copied().collect();
        let mut array: SortedMap<u8, u16> = first.into_iter().collect();
        for (step, key, value) in steps {
            match step {
                0 | 1 => prop_assert_eq!(array.insert(key, value), tree.insert(key, value)),
                2 => prop_assert_eq!(array.remove(&key), tree.remove(&key)),
                3 => {
                    let theirs = *tree.entry(key).or_insert(value);
                    prop_assert_eq!(*array.entry(key).or_insert(value), theirs);
                }
                4 => {
                    let taken: Vec<_> = array.extract_if(key.., |_, v| *v < value).collect();
                    let theirs: Vec<_> = tree.extract_if(key.., |_, v| *v < value).collect();
                    prop_assert_eq!(taken, theirs);
                }
                _ => prop_assert_eq!(array.pop_first(), tree.pop_first()),
            }
            prop_assert!(array.iter().eq(&tree));
            prop_assert_eq!(array.get(&key), tree.get(&key));
            prop_assert!(array.range(..key).eq(tree.range(..key)));
            prop_assert!(array.range(..=key).rev().eq(tree.range(..=key).rev()));
        }
        prop_assert_eq!(format!("{array:?}"), format!("{tree:?}"));
        let bytes = crate::wire::encode_value(&tree);
        prop_assert_eq!(&crate::wire::encode_value(&array), &bytes);
        prop_assert_eq!(crate::wire::decode_value(&bytes), Ok(array));
    }

    #[test]
    fn a_set_does_what_a_tree_does(a in vec(0..40u8, 0..30), b in vec(0..40u8, 0..30)) {
        let trees: [BTreeSet<u8>; 2] = [&a, &b].map(|all| all.iter().copied().collect());
        let arrays: [SortedSet<u8>; 2] = [&a, &b].map(|all| all.iter().copied().collect());
        prop_assert!(arrays[0].iter().eq(&trees[0]));
        prop_assert!(arrays[0].difference(&arrays[1]).eq(trees[0].difference(&trees[1])));
        prop_assert!(arrays[0].intersection(&arrays[1]).eq(trees[0].intersection(&trees[1])));
        prop_assert_eq!(arrays[0].is_subset(&arrays[1]), trees[0].is_subset(&trees[1]));
        prop_assert_eq!(arrays[0].cmp(&arrays[1]), trees[0].cmp(&trees[1]));
        let bytes = crate::wire::encode_value(&trees[0]);
        prop_assert_eq!(&crate::wire::encode_value(&arrays[0]), &bytes);
        prop_assert_eq!(crate::wire::decode_value(&bytes), Ok(arrays[0].clone()));
    }
}

#[test]
fn of_two_values_of_one_key_the_last_is_read() {
    let bytes = crate::wire::encode_value(&vec![(2u8, 1u8), (1, 1), (2, 7)]);
    let read: SortedMap<u8, u8> = crate::wire::decode_value(&bytes).expect("a map");
    assert_eq!(read, SortedMap::from([(1, 1), (2, 7)]));
}
