//! The table of links of `thalweg top --once`.

use std::fmt::Write;

use thalweg_api::Links;
use thalweg_wire::BitRate;

use super::model::{SortBy, is_lower_bound};
use crate::figures::grouped;

/// Names of the columns, and whether they are right-aligned.
const COLUMNS: [(&str, bool); 8] = [
    ("link", false),
    ("peer", false),
    ("utilisation", true),
    ("rate", true),
    ("of", true),
    ("flows", true),
    ("changed", false),
    ("collector", false),
];

/// Formats the links by utilisation, followed by the collectors that did not respond.
pub(super) fn table(links: &Links) -> String {
    let mut sorted: Vec<_> = links.links.iter().collect();
    sorted.sort_by(|a, b| SortBy::Utilisation.compare(a, b));
    let mut rows = vec![COLUMNS.map(|(name, _)| name.to_owned())];
    rows.extend(sorted.into_iter().map(|link| {
        let at_least = if is_lower_bound(&link.rate) { "≥ " } else { "" };
        [
            link.link.clone(),
            link.peer.clone().unwrap_or_else(|| "?".to_owned()),
            format!("{:.1} %", link.utilisation * 100.0),
            format!("{at_least}{}", BitRate(link.smoothed_bps.round() as u64)),
            BitRate(link.capacity_bps).to_string(),
            grouped(link.flows.into()),
            link.changed.map_or_else(|| "never".to_owned(), |changed| crate::figures::date_time(changed.0)),
            link.collector.clone(),
        ]
    }));
    let mut text = String::new();
    let widths = widths(&rows);
    for row in &rows {
        let mut line = String::new();
        for ((cell, width), (_, is_number)) in row.iter().zip(widths).zip(COLUMNS) {
            let _ = match is_number {
                true => write!(line, "{cell:>width$}  "),
                false => write!(line, "{cell:<width$}  "),
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for unresponsive in links.responses.iter().filter(|response| response.error.is_some()) {
        let error = unresponsive.error.as_deref().unwrap_or_default();
        let _ = writeln!(text, "{} did not respond: {error}", unresponsive.collector);
    }
    text
}

fn widths(rows: &[[String; 8]]) -> [usize; 8] {
    std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
}
