//! The known name that something was probably meant to be.

/// Names longer than this are no slip of the finger, and not worth the comparison.
const LONGEST_GUESSED: usize = 20;

/// Below this similarity a guess misleads more often than it helps. Names are short: two letters swapped in one of
/// three are a third of it.
const LEAST_SIMILARITY: f64 = 0.6;

pub(super) fn nearest(text: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    if text.len() > LONGEST_GUESSED {
        return None;
    }
    let text = text.to_lowercase();
    known
        .map(|known| (known, strsim::normalized_damerau_levenshtein(&text, known)))
        .filter(|&(_, similarity)| similarity >= LEAST_SIMILARITY)
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(known, _)| known)
}

/// `(did you mean heavy?)`, for an error; nothing if there is no guess.
pub(super) fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}
