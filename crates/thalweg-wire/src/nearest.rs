//! Finds the known name closest to a misspelt one, for "did you mean" hints.

/// The maximum length in bytes of a name to compare, which bounds the time.
const MAX_LENGTH: usize = 64;

/// The maximum number of names to compare, which bounds the time.
const MAX_COMPARED: usize = 4_096;

/// Returns the known name closest to `name`, ignoring case and hyphens; `None` if no name is close.
///
/// A name is close if it differs by at most one edit per three characters, by the order of its words, or if `name` is
/// its beginning. Of equally close names it returns the first.
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
        .filter_map(|known| Some((distance(&name, &normalised(known))?, known)))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, known)| known)
}

/// Returns a name in lower case, with words joined by `_`.
fn normalised(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

/// Returns the number of edits that turn `name` into `known`, and whether they do more than complete it; `None` if they
/// are too many for a typo. Other word order and completion count as at most the edits of a typo.
fn distance(name: &str, known: &str) -> Option<(usize, bool)> {
    let length = name.chars().count();
    let most = length.max(3) / 3;
    let edits = strsim::osa_distance(name, known);
    let is_abbreviation = length > 2 && known.starts_with(name);
    match is_abbreviation || words(name) == words(known) {
        true => Some((edits.min(most), !is_abbreviation)),
        false => (edits <= most && edits < length).then_some((edits, true)),
    }
}

/// Returns the words of a name in alphabetical order.
fn words(name: &str) -> Vec<&str> {
    let mut words: Vec<&str> = name.split('_').collect();
    words.sort_unstable();
    words
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn typos_are_recognised() {
        for (name, known, expected) in [
            ("naem", &["name", "seed", "duration"][..], Some("name")),
            ("scr", &["5tuple", "src", "dst"], Some("src")),
            ("prot", &["port", "proto"], Some("proto")),
            ("dst-port", &["src", "dst", "dst+port"], Some("dst+port")),
            ("hevy", &["heavy", "change", "distinct", "entropy"], Some("heavy")),
            ("websearch", &["web_search", "data_mining"], Some("web_search")),
            ("LIVE_VIEW", &["auto", "live-view"], Some("live-view")),
            ("codel", &["droptail", "fq_codel"], None),
            ("rto_min", &["rto", "initial_rto", "min_rto"], Some("min_rto")),
            ("forward", &["defaults", "forwarding"], Some("forwarding")),
            ("h99", &["h0", "h9", "h90"], Some("h9")),
            ("edge9", &["edge0", "edge1"], Some("edge0")),
        ] {
            assert_eq!(nearest(name, known.iter().copied()), expected, "{name}");
        }
    }

    #[test]
    fn distant_names_are_not_suggested() {
        for (name, known) in [
            ("lunch", &["congestion", "cleared", "cheetah"][..]),
            ("link_state", &["link"]),
            ("eth9", &["lo", "wlan0"]),
            ("x", &["k"]),
            ("", &["top", "k"]),
        ] {
            assert_eq!(nearest(name, known.iter().copied()), None, "{name}");
        }
        assert_eq!(nearest(&"x".repeat(65), ["x"]), None);
    }
}
