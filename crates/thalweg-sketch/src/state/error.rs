//! Why bytes are no state, and why two states cannot be put together.

use thiserror::Error;

use super::kind::Kind;
use crate::hyper_log_log::RegistersError;
use crate::merge::MergeError;
use crate::shape::ShapeError;

/// Why bytes are not the state of a sketch. Offsets are in bytes from the beginning of the state.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum StateError {
    /// It does not begin as a state does.
    #[error("not a saved sketch: it begins with {found:02x?}, expected {:02x?}", super::MAGIC)]
    NotAState {
        /// The first bytes: eight, or all there are.
        found: Vec<u8>,
    },
    /// It begins almost as a state does: line ends or top bits were changed on the way.
    #[error("damaged by a transfer as text: it begins with {found:02x?}, expected {:02x?}", super::MAGIC)]
    TextMode {
        /// The first bytes: eight, or all there are.
        found: Vec<u8>,
    },
    /// A format version that this program does not know.
    #[error("format version {found}: this program reads version {}", super::VERSION)]
    UnknownVersion {
        /// The version.
        found: u16,
    },
    /// The bytes are not those that were written.
    #[error(
        "damaged or cut short: the checksum at offset {offset} is {found:#018x}, expected {expected:#018x}"
    )]
    Checksum {
        /// Where it is.
        offset: usize,
        /// What is there.
        found: u64,
        /// What the bytes before it have.
        expected: u64,
    },
    /// A kind of summary that this program does not know.
    #[error("offset {offset}: unknown kind of summary {found}")]
    UnknownKind {
        /// Where it is.
        offset: usize,
        /// Its number.
        found: u8,
    },
    /// A type of counter that there is not.
    #[error("offset {offset}: counters of {found} bytes, expected 4 or 8")]
    Counter {
        /// Where it is.
        offset: usize,
        /// Bytes of a counter.
        found: u8,
    },
    /// A hash that this program does not have.
    #[error(
        "offset {offset}: hash {name:?}, version {version}; expected {:?}, version {}",
        crate::digest::HASH_NAME,
        super::HASH_VERSION
    )]
    UnknownHash {
        /// Where its name is.
        offset: usize,
        /// Its name.
        name: String,
        /// Its version.
        version: u16,
    },
    /// It ends too early, or claims to have more than there is.
    #[error("offset {offset}: {field}: {needed} bytes are needed at least, {left} are left")]
    Truncated {
        /// Where it begins.
        offset: usize,
        /// What is missing.
        field: &'static str,
        /// Bytes that it takes, at least.
        needed: u64,
        /// Bytes left.
        left: usize,
    },
    /// There is more after the end.
    #[error("offset {offset}: {left} bytes left over")]
    Trailing {
        /// Where the state should end.
        offset: usize,
        /// Bytes beyond.
        left: usize,
    },
    /// A whole number that cannot be.
    #[error("offset {offset}: {field} is {found}, expected {least} to {most}")]
    Range {
        /// Where it is.
        offset: usize,
        /// What it is.
        field: &'static str,
        /// Its value.
        found: i128,
        /// The least there is.
        least: i128,
        /// The largest there is.
        most: i128,
    },
    /// A number below zero, or none.
    #[error("offset {offset}: {field} is {found}, expected zero or more")]
    Negative {
        /// Where it is.
        offset: usize,
        /// What it is.
        field: &'static str,
        /// Its value.
        found: f64,
    },
    /// A byte that this kind of summary leaves empty.
    #[error("offset {offset}: {found:#04x} where this kind of summary has nothing; expected {expected:#04x}")]
    Unused {
        /// Where it is.
        offset: usize,
        /// Its value.
        found: u8,
        /// What it has to be.
        expected: u8,
    },
    /// Not UTF-8.
    #[error("offset {offset}: {field} is not UTF-8")]
    Text {
        /// Where it begins.
        offset: usize,
        /// What it is.
        field: &'static str,
    },
    /// A number of variable length that has more than 64 bits, or more bytes than it needs.
    #[error("offset {offset}: {field} is not the shortest form of a number of 64 bits")]
    Varint {
        /// Where it begins.
        offset: usize,
        /// What it is.
        field: &'static str,
    },
    /// No key of this type has these bytes.
    #[error("offset {offset}: no key of the type asked for has these {length} bytes")]
    Key {
        /// Where the candidate begins.
        offset: usize,
        /// Length of the key.
        length: usize,
    },
    /// Candidates are not in order, or one is there twice.
    #[error("offset {offset}: a candidate out of order, or for the second time")]
    Order {
        /// Where the candidate begins; of one that is there twice, where the list begins.
        offset: usize,
    },
    /// There is no sketch of this shape.
    #[error("offset {offset}: {source}")]
    Shape {
        /// Where the shape is.
        offset: usize,
        /// What is wrong with it.
        source: ShapeError,
    },
    /// These are not the registers of a distinct counter.
    #[error("offset {offset}: {source}")]
    Registers {
        /// Where they are, or their precision.
        offset: usize,
        /// What is wrong with them.
        source: RegistersError,
    },
}

impl StateError {
    /// A whole number out of its range.
    pub(super) fn range(
        offset: usize,
        field: &'static str,
        found: impl Into<i128>,
        least: i128,
        most: i128,
    ) -> StateError {
        StateError::Range { offset, field, found: found.into(), least, most }
    }
}

/// What differs between two saved states that were to be merged or subtracted.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum CombineError {
    /// Kinds of summary.
    #[error("kinds differ: {mine} here, {theirs} there")]
    Kind {
        /// Of the one that was to take in the other.
        mine: Kind,
        /// Of the other.
        theirs: Kind,
    },
    /// Types of counters.
    #[error("counters differ: {mine} bits here, {theirs} there")]
    Counter {
        /// Bits of a counter of the one that was to take in the other.
        mine: u32,
        /// Of the other.
        theirs: u32,
    },
    /// What the keys are.
    #[error("keys differ: {mine:?} here, {theirs:?} there")]
    KeyKind {
        /// Of the one that was to take in the other.
        mine: String,
        /// Of the other.
        theirs: String,
    },
    /// One remembers its largest keys, the other does not: those of the whole would be unknown.
    #[error("only the one {} remembers its largest keys", if *.mine { "here" } else { "there" })]
    TopK {
        /// Whether it is the one that was to take in the other.
        mine: bool,
    },
    /// Shapes, levels, precisions or seeds.
    #[error(transparent)]
    Sketch(#[from] MergeError),
    /// A summary that cannot be subtracted: it is not linear in its stream.
    #[error("a {kind} cannot be subtracted: it does not keep how often a key came")]
    NotLinear {
        /// Its kind.
        kind: Kind,
    },
}
