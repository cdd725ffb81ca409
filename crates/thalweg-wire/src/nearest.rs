//! Finds the known name closest to a misspelt one, for "did you mean" hints.

/// The maximum length in bytes of a name to compare, which bounds the time.
const MAX_LENGTH: usize = 64;

/// The maximum number of names to compare, which bounds the time.
const MAX_COMPARED: usize = 4_096;

/// The minimum Jaro-Winkler similarity of a suggestion, 0 to 1.
const MIN_SIMILARITY: f64 = 0.75;

/// Returns the known name closest to `name`, ignoring case and hyphens; `None` if no name is close.
///
/// Of equally close names it returns the last.
///
/// ```
/// use thalweg_wire::nearest::nearest;
///
/// assert_eq!(nearest("Rate-treshold", ["flight_duration", "rate_threshold"]), Some("rate_threshold"));
/// assert_eq!(nearest("zzz", ["top", "flows"]), None);
/// ```
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if name.len() > MAX_LENGTH {
        return None;
    }
    let name = normalised(name);
    known
        .into_iter()
        .take(MAX_COMPARED)
        .map(|known| (known, similarity(&name, &normalised(known))))
        .filter(|&(_, similarity)| similarity >= MIN_SIMILARITY)
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(known, _)| known)
}

/// Returns a name in lower case, with words joined by `_`.
fn normalised(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

/// Returns the similarity, 0 to 1. Jaro-Winkler is weak for names of three letters, so one edit counts as similar too.
fn similarity(name: &str, known: &str) -> f64 {
    let is_one_edit = name.len() > 2 && name.len() == known.len() && strsim::osa_distance(name, known) == 1;
    strsim::jaro_winkler(name, known).max(if is_one_edit { MIN_SIMILARITY } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn typos_are_recognised() {
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
