//! Results as Markdown for people, and CSV and JSON for programs.

use std::fmt::{Display, Write as _};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::machine::{Machine, today};

/// A table: a header and rows with the same number of cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Adds a row of displayable cells.
#[macro_export]
macro_rules! row {
    ($table:expr, $($cell:expr),+ $(,)?) => { $table.push(vec![$($cell.to_string()),+]) };
}

impl Table {
    /// Creates an empty table.
    pub fn new<const N: usize>(header: [&str; N]) -> Table {
        Table::with_header(header.map(str::to_owned).to_vec())
    }

    /// Creates an empty table with a header made at run time.
    pub fn with_header(header: Vec<String>) -> Table {
        Table { header, rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the number of cells differs from the header's.
    pub fn push(&mut self, row: Vec<String>) {
        assert_eq!(row.len(), self.header.len(), "a cell for each column");
        self.rows.push(row);
    }

    /// Formats the table as Markdown; all columns but the first are right-aligned.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule = std::iter::once("---").chain(self.header.iter().skip(1).map(|_| "---:"));
        let rule: Vec<String> = rule.map(str::to_owned).collect();
        [line(&self.header), line(&rule)].into_iter().chain(self.rows.iter().map(|row| line(row))).collect()
    }

    /// Formats the table as CSV (RFC 4180).
    pub fn csv(&self) -> String {
        let quoted = |cell: &String| match cell.contains([',', '"', '\n']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.clone(),
        };
        let line = |cells: &Vec<String>| cells.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
        std::iter::once(&self.header).chain(&self.rows).map(line).collect()
    }

    /// Formats the table as JSON: an array with an object per row, in which numbers are numbers.
    ///
    /// # Errors
    /// If a cell cannot be encoded.
    pub fn json(&self) -> serde_json::Result<String> {
        let value = |cell: &String| match cell.parse::<serde_json::Number>() {
            Ok(number) => serde_json::Value::Number(number),
            Err(_) => serde_json::Value::String(cell.clone()),
        };
        let object = |row: &Vec<String>| {
            let cells = self.header.iter().cloned().zip(row.iter().map(value));
            cells.collect::<serde_json::Map<String, serde_json::Value>>()
        };
        let rows: Vec<_> = self.rows.iter().map(object).collect();
        serde_json::to_string_pretty(&rows).map(|text| text + "\n")
    }
}

/// A page of results in Markdown.
#[derive(Clone, Debug)]
pub struct Page {
    text: String,
}

impl Page {
    /// Creates a page with a title, the date, the machine and the `command`.
    pub fn new(title: &str, command: &str) -> Page {
        let (today, machine) = (today(), Machine::this());
        Page { text: format!("# {title}\n\n{today}, {machine}.\n\n    {command}\n") }
    }

    /// Adds a section heading.
    pub fn section(&mut self, heading: &str) -> &mut Page {
        self.write(format_args!("\n## {heading}\n"))
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: impl Display) -> &mut Page {
        self.write(format_args!("\n{text}\n"))
    }

    /// Adds a table.
    pub fn table(&mut self, table: &Table) -> &mut Page {
        self.write(format_args!("\n{}", table.markdown()))
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) -> &mut Page {
        self.text.write_fmt(text).expect("writing to a string succeeds");
        self
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Writes `FOLDER/DATE-SUBJECT.md` and prints its name.
///
/// # Errors
/// If it cannot be written.
pub fn save_page(folder: &Path, subject: &str, page: &Page) -> anyhow::Result<()> {
    save(&dated(folder, subject, "md"), page.text())
}

/// Writes `FOLDER/DATE-SUBJECT.csv` and prints its name.
///
/// # Errors
/// If it cannot be written.
pub fn save_rows(folder: &Path, subject: &str, rows: &Table) -> anyhow::Result<()> {
    save(&dated(folder, subject, "csv"), &rows.csv())
}

fn dated(folder: &Path, subject: &str, extension: &str) -> PathBuf {
    folder.join(format!("{}-{subject}.{extension}", today()))
}

/// Writes a file, creating its folders, and prints its name.
///
/// # Errors
/// If it cannot be written.
pub fn save(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

/// Formats a number with commas between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let (head, tail) = digits.split_at(first);
    let groups =
        tail.as_bytes().chunks(3).map(|group| group.iter().map(|digit| char::from(*digit)).collect());
    let parts: Vec<String> =
        Some(head.to_owned()).filter(|head| !head.is_empty()).into_iter().chain(groups).collect();
    parts.join(",")
}

/// Formats `part` of `whole` in percent, with one decimal.
pub fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_csv_and_json_have_the_same_cells() {
        let mut table = Table::new(["meter", "flows"]);
        row!(table, "a, b", 7);
        assert_eq!(table.markdown(), "| meter | flows |\n| --- | ---: |\n| a, b | 7 |\n");
        assert_eq!(table.csv(), "meter,flows\n\"a, b\",7\n");
        let json: serde_json::Value = serde_json::from_str(&table.json().unwrap()).unwrap();
        assert_eq!(json, serde_json::json!([{ "meter": "a, b", "flows": 7 }]));
    }

    #[test]
    fn thousands_are_separated_by_commas() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (38_166_365, "38,166,365")] {
            assert_eq!(grouped(number), text);
        }
    }
}
