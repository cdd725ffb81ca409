//! Results of measurement tasks as text. As JSON: `thalweg_watch::json`.

use thalweg_measure::tasks::{Cell, Headline, Row, Table, Word};

use crate::figures::{grouped, interval, number};

/// Formats a sentence with numbers.
pub(crate) fn words(words: &[Word]) -> String {
    let word = |word: &Word| match *word {
        Word::Text(text) => text.to_owned(),
        Word::Count(count) => grouped(count),
        Word::Percent(share) => format!("{:.0} %", share * 100.0),
    };
    words.iter().map(word).collect()
}

/// Formats the main result with its bounds.
pub(crate) fn headline(table: &Table) -> String {
    match &table.headline {
        Headline::Estimate { estimate, unit, decimals, .. } => {
            format!("{} {unit}, {}", number(estimate.value, *decimals), interval(estimate, *decimals))
        }
        Headline::Keys(keys) => words(keys),
    }
}

/// Formats the column beside the estimate of a key.
pub(crate) fn aside(table: &Table, row: &Row) -> String {
    table.aside(row).map(cell).collect::<Vec<_>>().join(" > ")
}

fn cell(cell: Cell) -> String {
    match cell {
        Cell::Count(count) => grouped(count),
        Cell::Share(share) => share.map_or_else(String::new, |share| format!("{:.2} %", share * 100.0)),
        Cell::Estimate(estimate) => number(estimate.value, 0),
        Cell::Period(period) => grouped(period.total),
        _ => String::new(),
    }
}
