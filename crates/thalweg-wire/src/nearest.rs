//! The known name that a misspelt one was probably meant to be: the suggestion in every "did you mean".

/// Longest name, in bytes, for which a near one is looked for: the comparison takes time in proportion.
const LONGEST_GUESSED: usize = 64;

/// Most names that are compared: a bound on the time that one wrong name takes.
const MAX_COMPARED: usize = 4_096;

/// Least similarity of a name to one that is suggested for it, 0 to 1 (Jaro and Winkler's).
const LEAST_SIMILARITY: f64 = 0.75;

/// The known name that is most like `name`, whatever its case and its hyphens; `None` if no name is much like it.
///
/// Of names that are equally near the last one is suggested.
///
/// ```
/// use thalweg_wire::nearest::nearest;
///
/// assert_eq!(nearest("Rate-treshold", ["flight_duration", "rate_threshold"]), Some("rate_threshold"));
/// assert_eq!(nearest("zzz", ["top", "flows"]), None);
/// ```
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if name.len() > LONGEST_GUESSED {
        return None;
    }
    let name = plain(name);
    known
        .into_iter()
        .take(MAX_COMPARED)
        .map(|known| (known, similarity(&name, &plain(known))))
        .filter(|&(_, similarity)| similarity >= LEAST_SIMILARITY)
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(known, _)| known)
}

/// A name in small letters, words joined by `_`.
fn plain(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

/// 0 to 1. Jaro and Winkler's measure knows little of names of three letters; two of them that change places are one slip.
fn similarity(name: &str, known: &str) -> f64 {
    let is_one_slip = name.len() > 2 && name.len() == known.len() && strsim::osa_distance(name, known) == 1;
    strsim::jaro_winkler(name, known).max(if is_one_slip { LEAST_SIMILARITY } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_of_the_finger_are_recognised_and_other_names_are_not() {
        for (name, known, expected) in [
            ("naem", &["name", "seed", "duration"][..], Some("name")),
            ("scr", &["5tuple", "src", "dst"], Some("src")),
            ("dst-port", &["src", "dst", "dst+port"], Some("dst+port")),
            ("hevy", &["heavy", "change", "distinct", "entropy"], Some("heavy")),
            ("websearch", &["web_search", "data_mining"], Some("web_search")),
            ("LIVE_VIEW", &["auto", "live-view"], Some("live-view")),
            ("lunch", &["congestion", "relief", "cheetah"], None),
            ("", &["top"], None),
        ] {
            assert_eq!(nearest(name, known.iter().copied()), expected, "{name}");
        }
        assert_eq!(nearest(&"x".repeat(65), ["x"]), None);
    }
}
