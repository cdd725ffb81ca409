//! One shape for what any task says: a headline, facts, and keys in rows. Text, JSON, the live view and the API are
//! written from it, so that none of them knows the kinds of tasks.
//!
//! A kind says once, in its [`Layout`], what its facts and columns are called, what they mean, and which of them text
//! shows; a [`Table`] has the cells in that order.

use thalweg_sketch::Estimate;
use thalweg_wire::Timestamp;

use super::flow_name::FlowName;

/// What answers of one kind of task consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The kind: the task's name, as in `heavy:0.1%`.
    pub kind: &'static str,
    /// What an answer says, in a sentence.
    pub meaning: &'static str,
    /// What is said once.
    pub facts: &'static [Field],
    /// What is said of each key; `None` if no keys are listed.
    pub keys: Option<KeyLayout>,
}

/// What is said of each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLayout {
    /// Name of a row's type, for schemas: `HeavyKey`.
    pub type_name: &'static str,
    /// What a row is, in a sentence.
    pub meaning: &'static str,
    /// The order of rows, in a sentence.
    pub order: &'static str,
    /// What the key is, in a sentence.
    pub key_meaning: &'static str,
    /// Whether the key may be one direction of a flow.
    pub may_be_flows: bool,
    /// The columns.
    pub columns: &'static [Field],
    /// The column of the estimate that keys are listed for.
    pub listed_for: usize,
    /// What text shows beside that estimate; empty if nothing.
    pub aside_name: &'static str,
    /// The columns shown there.
    pub aside: &'static [usize],
}

/// A fact or a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in JSON.
    pub name: &'static str,
    /// What its cells are.
    pub kind: FieldKind,
    /// What it means, in a sentence.
    pub meaning: &'static str,
}

/// What the cells of a field are.
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
    /// A part of a whole, 0 to 1; `None` where there is no whole.
    Share(Option<f64>),
    /// An estimate with its bound.
    Estimate(Estimate),
    /// A period and its total.
    Period(Period),
}

impl Cell {
    /// What kind of field it can be a cell of.
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
    /// Its first moment.
    pub start: Timestamp,
    /// The first moment after it.
    pub end: Timestamp,
    /// All its traffic, exactly: packets or bytes.
    pub total: u64,
    /// Whether the first packet of all came in a later window of it, so that it is shorter than it should be.
    pub is_partial: bool,
}

/// What a task says, in the shape that all kinds share.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What facts and columns are.
    pub layout: &'static Layout,
    /// The answer in brief.
    pub headline: Headline,
    /// What the estimates of keys are of: `packets`, `bytes`, `peers`.
    pub unit: &'static str,
    /// A cell for each fact of the layout.
    pub facts: Vec<Cell>,
    /// The keys.
    pub rows: Vec<Row>,
    /// The first moment of what it is about and the first after it, if that is not the window.
    pub span: Option<(Timestamp, Timestamp)>,
}

/// A key and what is said of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The key.
    pub name: FlowName,
    /// A cell for each column of the layout.
    pub cells: Vec<Cell>,
}

/// An answer in brief.
#[derive(Clone, Debug, PartialEq)]
pub enum Headline {
    /// One estimate.
    Estimate {
        /// The estimate.
        estimate: Estimate,
        /// What it is of, behind the number: `keys`, `bits`.
        unit: &'static str,
        /// Digits behind the decimal point that mean something.
        decimals: usize,
        /// What more there is to say; may be empty.
        more: Vec<Word>,
    },
    /// How many keys are listed, and of how much.
    Keys(Vec<Word>),
}

/// A part of a sentence; numbers are written as the medium writes numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Word {
    /// Text, with the spaces around it.
    Text(&'static str),
    /// A number.
    Count(u64),
    /// A share, 0 to 1, to be written in whole percent.
    Percent(f64),
}

impl Table {
    /// One number that says how a window was: the estimate, or how many keys are listed.
    pub fn figure(&self) -> f64 {
        match &self.headline {
            Headline::Estimate { estimate, .. } => estimate.value,
            Headline::Keys(_) => self.rows.len() as f64,
        }
    }

    /// The facts with what they are.
    pub fn facts(&self) -> impl Iterator<Item = (&'static Field, Cell)> {
        self.layout.facts.iter().zip(self.facts.iter().copied())
    }

    /// The estimate that a row is listed for.
    pub fn listed_for(&self, row: &Row) -> Estimate {
        let column = self.layout.keys.map(|keys| keys.listed_for);
        match column.and_then(|column| row.cells.get(column)) {
            Some(Cell::Estimate(estimate)) => *estimate,
            _ => panic!("keys of {} are listed for an estimate", self.layout.kind),
        }
    }

    /// What text shows beside that estimate.
    pub fn aside(&self, row: &Row) -> impl Iterator<Item = Cell> {
        self.layout.keys.iter().flat_map(|keys| keys.aside).map(|&column| row.cells[column])
    }

    /// What stands above that.
    pub fn aside_name(&self) -> &'static str {
        self.layout.keys.map_or("", |keys| keys.aside_name)
    }

    /// The least probability with which a bound holds, if there is a bound.
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

/// `12 keys`, and whether more may be missing: `room` are remembered, if there is a limit.
pub(super) fn keys_in_words(count: usize, room: Option<usize>) -> Vec<Word> {
    let unit = if count == 1 { " key" } else { " keys" };
    let mut words = vec![Word::Count(count as u64), Word::Text(unit)];
    if count > 1 && room.is_some_and(|room| count >= room) {
        words.push(Word::Text(", more may be missing"));
    }
    words
}
