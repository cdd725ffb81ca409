//! The common format of answers: a headline, facts, and keys in rows. Text, JSON, the live view and the API are
//! generated from it, so none of them depends on the kinds of tasks.
//!
//! A kind defines in its [`Layout`] the names and meanings of its facts and columns, and which of them text shows; a
//! [`Table`] has the cells in that order.

use thalweg_sketch::Estimate;
use thalweg_wire::Timestamp;

use super::flow_name::FlowName;

/// The layout of the answers of one kind of task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The kind: the task's name, as in `heavy:0.1%`.
    pub kind: &'static str,
    /// The meaning of an answer, in a sentence.
    pub meaning: &'static str,
    /// The single values.
    pub facts: &'static [Field],
    /// The columns for each key; `None` if no keys are listed.
    pub keys: Option<KeyLayout>,
}

/// The layout of the rows of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLayout {
    /// The name of a row's type, for schemas: `HeavyKey`.
    pub type_name: &'static str,
    /// The meaning of a row, in a sentence.
    pub meaning: &'static str,
    /// The order of rows, in a sentence.
    pub order: &'static str,
    /// The meaning of the key, in a sentence.
    pub key_meaning: &'static str,
    /// Whether the key may be one direction of a flow.
    pub may_be_flows: bool,
    /// The columns.
    pub columns: &'static [Field],
    /// The column of the main estimate, by which keys are selected.
    pub listed_for: usize,
    /// The heading of the columns that text shows beside that estimate; empty without columns.
    pub aside_name: &'static str,
    /// The columns that text shows there.
    pub aside: &'static [usize],
}

/// A fact or a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name in JSON.
    pub name: &'static str,
    /// The type of its cells.
    pub kind: FieldKind,
    /// The meaning, in a sentence.
    pub meaning: &'static str,
}

/// The type of a field's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldKind {
    /// [`Cell::Count`].
    Count,
    /// [`Cell::Share`] with a share.
    Share,
    /// [`Cell::Share`], which may have none.
    OptionalShare,
    /// [`Cell::Estimate`].
    Estimate,
    /// [`Cell::Period`].
    Period,
}

/// A value in a [`Table`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Cell {
    /// An exact number.
    Count(u64),
    /// A share, 0 to 1; `None` if the whole is zero.
    Share(Option<f64>),
    /// An estimate with its bounds.
    Estimate(Estimate),
    /// A period and its total.
    Period(Period),
}

impl Cell {
    /// Whether this is a cell of a field of this kind.
    pub const fn is_of(&self, kind: FieldKind) -> bool {
        matches!(
            (self, kind),
            (Cell::Count(_), FieldKind::Count)
                | (Cell::Share(Some(_)), FieldKind::Share)
                | (Cell::Share(_), FieldKind::OptionalShare)
                | (Cell::Estimate(_), FieldKind::Estimate)
                | (Cell::Period(_), FieldKind::Period)
        )
    }
}

/// A period that is compared with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// The start.
    pub start: Timestamp,
    /// The end, exclusive.
    pub end: Timestamp,
    /// All its traffic, exactly: packets or bytes.
    pub total: u64,
    /// Whether counting began within the period, so that it is shorter than it should be.
    pub is_partial: bool,
}

/// The answer of a task in the common format.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The layout of facts and columns.
    pub layout: &'static Layout,
    /// The summary.
    pub headline: Headline,
    /// The unit of the keys' estimates: `packets`, `bytes`, `peers`.
    pub unit: &'static str,
    /// A cell for each fact of the layout.
    pub facts: Vec<Cell>,
    /// The keys.
    pub rows: Vec<Row>,
    /// The start and the exclusive end of the time covered, if that is not the window.
    pub span: Option<(Timestamp, Timestamp)>,
}

/// A key and its cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The key.
    pub name: FlowName,
    /// A cell for each column of the layout.
    pub cells: Vec<Cell>,
}

/// The summary of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Headline {
    /// One estimate.
    Estimate {
        /// The estimate.
        estimate: Estimate,
        /// The unit, after the number: `keys`, `bits`.
        unit: &'static str,
        /// The number of significant digits after the decimal point.
        decimals: usize,
        /// Additional words; may be empty.
        more: Vec<Word>,
    },
    /// The number of keys listed, and the total.
    Keys(Vec<Word>),
}

/// A part of a sentence; each output medium formats the numbers in its own style.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Word {
    /// Text, with the spaces around it.
    Text(&'static str),
    /// A number.
    Count(u64),
    /// A share, 0 to 1, to be shown in whole percent.
    Percent(f64),
}

impl Table {
    /// Returns one number that represents the window: the estimate, or the number of keys listed.
    pub fn figure(&self) -> f64 {
        match &self.headline {
            Headline::Estimate { estimate, .. } => estimate.value,
            Headline::Keys(_) => self.rows.len() as f64,
        }
    }

    /// Returns the facts with their fields.
    pub fn facts(&self) -> impl Iterator<Item = (&'static Field, Cell)> {
        self.layout.facts.iter().zip(self.facts.iter().copied())
    }

    /// Returns the main estimate of a row.
    pub fn listed_for(&self, row: &Row) -> Estimate {
        let column = self.layout.keys.map(|keys| keys.listed_for);
        match column.and_then(|column| row.cells.get(column)) {
            Some(Cell::Estimate(estimate)) => *estimate,
            _ => panic!("the main column of {} is not an estimate", self.layout.kind),
        }
    }

    /// Returns the cells that text shows beside that estimate.
    pub fn aside(&self, row: &Row) -> impl Iterator<Item = Cell> {
        self.layout.keys.iter().flat_map(|keys| keys.aside).map(|&column| row.cells[column])
    }

    /// Returns the heading of these cells.
    pub fn aside_name(&self) -> &'static str {
        self.layout.keys.map_or("", |keys| keys.aside_name)
    }

    /// Returns the lowest confidence of any bound, if there is a bound.
    pub fn confidence(&self) -> Option<f64> {
        match &self.headline {
            Headline::Estimate { estimate, .. } => estimate.confidence(),
            Headline::Keys(_) => {
                let estimates = self.rows.iter().map(|row| self.listed_for(row));
                estimates.filter_map(|estimate| estimate.confidence()).min_by(f64::total_cmp)
            }
        }
    }
}

/// Returns `12 keys`, and whether more may be missing: at most `room` are tracked, if there is a limit.
pub(super) fn keys_in_words(count: usize, room: Option<usize>) -> Vec<Word> {
    let unit = if count == 1 { " key" } else { " keys" };
    let mut words = vec![Word::Count(count as u64), Word::Text(unit)];
    if count > 1 && room.is_some_and(|room| count >= room) {
        words.push(Word::Text(", more may be missing"));
    }
    words
}
