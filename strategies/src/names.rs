//! Unknown names in files and commands, and the known names that were probably meant: those at the least
//! Damerau-Levenshtein distance, the number of letters that are more, less, changed or exchanged.
//!
//! **Source:** Damerau, A technique for computer detection and correction of spelling errors, CACM 7(3), 1964.

/// Known names that a message lists.
const LISTED_MAX: usize = 100;

/// The known names nearest to an unknown one, the nearest first; names at one distance in alphabetical order.
pub fn nearest<'a, S: AsRef<str>>(found: &str, known: &'a [S], count: usize) -> Vec<&'a str> {
    let far = |name: &'a str| (strsim::damerau_levenshtein(found, name), name);
    let mut near: Vec<_> = known.iter().map(|name| far(name.as_ref())).collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(count);
    near.into_iter().map(|(_, name)| name).collect()
}

/// The known name that an unknown one was probably meant to be: at most half of its letters differ. Further away
/// it would be a guess, and a list of the names helps more.
pub fn meant<'a, S: AsRef<str>>(found: &str, known: &'a [S]) -> Option<&'a str> {
    let name = nearest(found, known, 1).first().copied()?;
    let longest = name.chars().count().max(found.chars().count());
    (strsim::damerau_levenshtein(found, name) <= longest / 2).then_some(name)
}

/// The hint for an unknown name: the name that was probably meant, if there is one, and the known names.
///
/// ```
/// use murmurate_strategies::names::hint;
/// let known = ["image", "text"];
/// assert_eq!(hint("imgae", &known), "did you mean `image`? There are: image, text");
/// assert_eq!(hint("sound", &known), "there are: image, text");
/// ```
pub fn hint<S: AsRef<str>>(found: &str, known: &[S]) -> String {
    let listed: Vec<&str> = known.iter().map(AsRef::as_ref).take(LISTED_MAX).collect();
    let more = known.len() - listed.len();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let list = listed.join(", ");
    match meant(found, known) {
        Some(name) => format!("did you mean `{name}`? There are: {list}{more}"),
        None if known.is_empty() => "nothing may stand here".to_owned(),
        None => format!("there are: {list}{more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_meant_only_where_it_is_close() {
        let known = ["patience_s", "parameters", "layers"];
        assert_eq!(meant("patience", &known), Some("patience_s"));
        assert_eq!(meant("lora_rank", &known), None);
        assert_eq!(meant("layer", &known), Some("layers"));
        assert_eq!(meant::<&str>("x", &[]), None);
    }

    #[test]
    fn a_hint_lists_no_more_than_fits() {
        let many: Vec<String> = (0..120).map(|n| format!("column-{n}")).collect();
        assert!(hint("price", &many).ends_with("column-99 and 20 more"));
    }
}
