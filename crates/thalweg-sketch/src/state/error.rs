//! Why bytes are not a saved state, and why two states cannot be merged.

use thiserror::Error;

use super::kind::Kind;
use crate::hyper_log_log::RegistersError;
use crate::merge::MergeError;
use crate::shape::ShapeError;

/// Why bytes are not the saved state of a sketch. Offsets are in bytes from the beginning of the state.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum StateError {
    /// There are no bytes.
    #[error("not a saved sketch: empty")]
    Empty,
    /// The magic number is missing.
    #[error(
        "not a saved sketch: offset 0: found \"{}\", expected the magic number \"{}\"",
        found.escape_ascii(),
        super::MAGIC.escape_ascii()
    )]
    NotAState {
        /// The first bytes, at most eight.
        found: Vec<u8>,
    },
    /// The magic number has changed line ends or top bits.
    #[error(
        "damaged by a text-mode transfer: offset 0: found \"{}\", expected the magic number \"{}\". \
         Transfer the file in binary mode",
        found.escape_ascii(),
        super::MAGIC.escape_ascii()
    )]
    TextMode {
        /// The first bytes, at most eight.
        found: Vec<u8>,
    },
    /// The format version is not supported.
    #[error("unsupported format version {found}: this program reads version {}", super::VERSION)]
    UnknownVersion {
        /// The version.
        found: u16,
    },
    /// The checksum does not match.
    #[error(
        "damaged or truncated: the checksum at offset {offset} is {found:#018x}, expected {expected:#018x}"
    )]
    Checksum {
        /// The offset of the checksum.
        offset: usize,
        /// The stored checksum.
        found: u64,
        /// The checksum of the bytes before it.
        expected: u64,
    },
    /// The kind of sketch is not supported.
    #[error("offset {offset}: unknown kind of sketch {found}")]
    UnknownKind {
        /// The offset of the kind.
        offset: usize,
        /// The number of the kind.
        found: u8,
    },
    /// The counter type does not exist.
    #[error("offset {offset}: counters of {found} bytes, expected 4 or 8")]
    Counter {
        /// The offset of the counter size.
        offset: usize,
        /// The bytes of a counter.
        found: u8,
    },
    /// The hash is not supported.
    #[error(
        "offset {offset}: unsupported hash {name:?} version {version}: expected {:?} version {}",
        crate::digest::HASH_NAME,
        super::HASH_VERSION
    )]
    UnknownHash {
        /// The offset of the name.
        offset: usize,
        /// The name.
        name: String,
        /// The version.
        version: u16,
    },
    /// The state is truncated, or a length exceeds its end.
    #[error("offset {offset}: truncated {field}: at least {needed} bytes expected, {left} left")]
    Truncated {
        /// The offset of the field.
        offset: usize,
        /// The field.
        field: &'static str,
        /// The minimum number of bytes expected.
        needed: u64,
        /// The number of bytes left.
        left: usize,
    },
    /// More bytes follow the end.
    #[error("offset {offset}: {left} unexpected bytes at the end")]
    Trailing {
        /// The end of the state.
        offset: usize,
        /// The number of bytes after it.
        left: usize,
    },
    /// An integer is out of range.
    #[error("offset {offset}: {field} is {found}, expected {min} to {max}")]
    Range {
        /// The offset of the field.
        offset: usize,
        /// The field.
        field: &'static str,
        /// The value.
        found: i128,
        /// The minimum.
        min: i128,
        /// The maximum.
        max: i128,
    },
    /// A floating-point number is negative or NaN.
    #[error("offset {offset}: {field} is {found}, expected a number >= 0")]
    Negative {
        /// The offset of the field.
        offset: usize,
        /// The field.
        field: &'static str,
        /// The value.
        found: f64,
    },
    /// A header byte that this kind of sketch does not use is not at its fixed value.
    #[error("offset {offset}: unused byte is {found:#04x}, expected {expected:#04x} for this kind of sketch")]
    Unused {
        /// The offset of the byte.
        offset: usize,
        /// The value.
        found: u8,
        /// The expected value.
        expected: u8,
    },
    /// Text is not UTF-8.
    #[error("offset {offset}: {field} is not UTF-8")]
    Text {
        /// The offset of the field.
        offset: usize,
        /// The field.
        field: &'static str,
    },
    /// A varint has more than 64 bits, or is not in its shortest form.
    #[error("offset {offset}: {field} is not a shortest-form varint of at most 64 bits")]
    Varint {
        /// The offset of the field.
        offset: usize,
        /// The field.
        field: &'static str,
    },
    /// A key has a wrong length for its type.
    #[error("offset {offset}: invalid length of a key: {length} bytes")]
    Key {
        /// The offset of the candidate.
        offset: usize,
        /// The length of the key.
        length: usize,
    },
    /// Candidates are out of order, or one is repeated.
    #[error("offset {offset}: candidate out of order or repeated")]
    Order {
        /// The offset of the candidate; of a repeated one, the offset of the list.
        offset: usize,
    },
    /// The shape is invalid.
    #[error("offset {offset}: {source}")]
    Shape {
        /// The offset of the shape.
        offset: usize,
        /// The cause.
        source: ShapeError,
    },
    /// The registers are invalid.
    #[error("offset {offset}: {source}")]
    Registers {
        /// The offset of the registers or of their precision.
        offset: usize,
        /// The cause.
        source: RegistersError,
    },
}

impl StateError {
    /// Creates the error for an integer out of range.
    pub(super) fn range(
        offset: usize,
        field: &'static str,
        found: impl Into<i128>,
        min: i128,
        max: i128,
    ) -> StateError {
        StateError::Range { offset, field, found: found.into(), min, max }
    }
}

/// The property in which two saved states differ that were to be merged or subtracted.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum CombineError {
    /// The kinds of sketch.
    #[error("kinds differ: {ours} and {theirs}")]
    Kind {
        /// The value of the receiving state.
        ours: Kind,
        /// The value of the other state.
        theirs: Kind,
    },
    /// The counter types.
    #[error("counter sizes differ: {ours} and {theirs} bits")]
    Counter {
        /// The counter bits of the receiving state.
        ours: u32,
        /// The counter bits of the other state.
        theirs: u32,
    },
    /// The kinds of keys.
    #[error("keys differ: {ours:?} and {theirs:?}")]
    KeyKind {
        /// The value of the receiving state.
        ours: String,
        /// The value of the other state.
        theirs: String,
    },
    /// Only one of them has a top-k, so the largest keys of the whole would be unknown.
    #[error("only the {} state tracks its largest keys", if *.ours { "first" } else { "second" })]
    TopK {
        /// Whether the receiving state has the top-k.
        ours: bool,
    },
    /// Shapes, levels, precisions or seeds.
    #[error(transparent)]
    Sketch(#[from] MergeError),
    /// The sketch is not linear in its stream, so it cannot be subtracted.
    #[error("a {kind} cannot be subtracted: it does not count how often a key occurs")]
    NotLinear {
        /// The kind.
        kind: Kind,
    },
}
