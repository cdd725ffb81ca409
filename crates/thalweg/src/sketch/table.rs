//! Tables of keys.

use std::io::{self, Write};

use thalweg_sketch::Estimate;

use crate::figures::{grouped, percent};

/// Writes a header, the first `top` rows, and the confidence of their bounds. Columns fit their content, with numbers
/// right-aligned. The last column is the name of the key.
pub(super) fn write<const COLUMNS: usize>(
    out: &mut impl Write,
    header: [&str; COLUMNS],
    rows: impl ExactSizeIterator<Item = (Estimate, [String; COLUMNS])>,
    top: usize,
) -> io::Result<()> {
    let count = rows.len();
    if count == 0 || top == 0 {
        return Ok(());
    }
    let (estimates, mut lines): (Vec<_>, Vec<_>) = rows.take(top).unzip();
    lines.insert(0, header.map(str::to_owned));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    for line in &lines {
        let [figures @ .., name] = line.as_slice() else { continue };
        for (figure, width) in figures.iter().zip(widths) {
            write!(out, "  {figure:>width$}")?;
        }
        writeln!(out, "  {name}")?;
    }
    if count > top {
        writeln!(out, "  and {} more (--limit shows more)", grouped((count - top) as u64))?;
    }
    let confidence = estimates.iter().filter_map(Estimate::confidence).min_by(f64::total_cmp);
    match confidence {
        Some(confidence) => {
            writeln!(out, "  each bound holds with probability {} or more", percent(confidence))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(rows: &[(&str, &str)], top: usize) -> String {
        let row = |(figure, name): &(&str, &str)| {
            (Estimate::within(0.0, 0.0, 1.0, 0.96785), [(*figure).to_owned(), (*name).to_owned()])
        };
        let mut out = Vec::new();
        write(&mut out, ["count", "key"], rows.iter().map(row), top).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_fit_the_widest_number() {
        let rows = [("9,223,372,036,854,775,807", "a"), ("-1", "b")];
        let expected = "                      count  key\n  \
                        9,223,372,036,854,775,807  a\n                         \
                        -1  b\n  each bound holds with probability 96.7 % or more\n";
        assert_eq!(written(&rows, 2), expected);
        assert_eq!(
            written(&rows[1..], 9),
            "  count  key\n     -1  b\n  each bound holds with probability 96.7 % or more\n"
        );
    }

    #[test]
    fn unlisted_rows_are_counted() {
        assert!(written(&[("1", "a"); 1_003], 3).contains("\n  and 1,000 more (--limit shows more)\n"));
        assert_eq!((written(&[("1", "a")], 0), written(&[], 5)), (String::new(), String::new()));
    }
}
