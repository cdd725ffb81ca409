//! Answers of tasks as people read them.

use thalweg_measure::tasks::{Cell, Headline, Row, Table, Word};

use crate::figures::{grouped, interval, number};

/// A sentence with its numbers.
pub(crate) fn words(words: &[Word]) -> String {
    let word = |word: &Word| match *word {
        Word::Text(text) => text.to_owned(),
        Word::Count(count) => grouped(count),
        Word::Percent(share) => format!("{:.0} %", share * 100.0),
    };
    words.iter().map(word).collect()
}

/// The answer in brief, with the bound of its estimate.
pub(crate) fn headline(table: &Table) -> String {
    match &table.headline {
        Headline::Estimate { estimate, unit, decimals, .. } => {
            format!("{} {unit}, {}", number(estimate.value, *decimals), interval(estimate, *decimals))
        }
        Headline::Keys(keys) => words(keys),
    }
}

/// What stands beside the estimate that a key is listed for.
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
