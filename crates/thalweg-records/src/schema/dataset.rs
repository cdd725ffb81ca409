//! Batches of columns that a store can keep.

use std::ops::Range;
use std::sync::Arc;

use thalweg_wire::flow_export::{Address, Format, LabelStack, Mac, Name, Sparse};

use super::{Column, Kind};

/// A text; clones share it. The store keeps its first 1,024 bytes.
pub type Text = Arc<str>;

/// A batch type whose rows a store keeps.
pub trait Dataset: Default + Send + 'static {
    /// Directory of its files within the store's directory.
    const NAME: &'static str;

    /// Version of the column list. Increment it with every change.
    const VERSION: u16;

    /// Earlier versions whose spool segments are read, each with its number of columns. Columns that came later follow
    /// these, and are sparse.
    const EARLIER: &'static [(u16, usize)] = &[];

    /// Returns its columns, in order. The first is the time of reception.
    fn columns() -> &'static [Column];

    /// Returns the values of a column.
    ///
    /// # Panics
    /// If there is no such column.
    fn values(&self, column: usize) -> Values<'_>;

    /// Returns the values of a column for appending. Afterwards all columns must have the same length again.
    ///
    /// # Panics
    /// If there is no such column.
    fn values_mut(&mut self, column: usize) -> ValuesMut<'_>;

    /// Returns the reception time of each row, microseconds since 1970.
    fn received_us(&self) -> &[i64] {
        match self.values(0) {
            Values::Timestamp(values) => values,
            _ => unreachable!("the first column of every dataset is the time of reception"),
        }
    }

    /// Returns the number of rows.
    fn rows(&self) -> usize {
        self.received_us().len()
    }

    /// Appends rows of another batch.
    ///
    /// # Panics
    /// If that batch has no such rows.
    fn append_rows(&mut self, other: &Self, rows: Range<usize>) {
        for column in 0..Self::columns().len() {
            self.values_mut(column).append(&other.values(column), rows.clone());
        }
    }

    /// Truncates the batch to `rows` rows; keeps the memory.
    fn truncate_rows(&mut self, rows: usize) {
        for column in 0..Self::columns().len() {
            self.values_mut(column).truncate(rows);
        }
    }
}

/// Declares shared and mutable views of a column.
macro_rules! views {
    (
        dense { $($(#[$doc:meta])* $variant:ident: $type:ty,)* }
        sparse { $($(#[$sparse_doc:meta])* $sparse:ident: $sparse_type:ty,)* }
        only_sparse { $($only:ident: $only_type:ty,)* }
    ) => {
        /// The values of a column.
        #[derive(Clone, Copy, Debug)]
        pub enum Values<'a> {
            $($(#[$doc])* $variant(&'a [$type]),)*
            $(#[doc = concat!("Values of [`Kind::", stringify!($only), "`].")] $only(&'a [$only_type]),)*
            /// This many rows, all without a value.
            Unset(Kind, usize),
        }

        /// The values of a column, for appending.
        #[derive(Debug)]
        pub enum ValuesMut<'a> {
            $($(#[$doc])* $variant(&'a mut Vec<$type>),)*
            /// Of a sparse column.
            Sparse(SparseMut<'a>),
        }

        /// The values of a sparse column, for appending.
        #[derive(Debug)]
        pub enum SparseMut<'a> {
            $($(#[$sparse_doc])* $sparse(&'a mut Sparse<$sparse_type>),)*
        }

        $(
            impl<'a> From<&'a Vec<$type>> for Values<'a> {
                fn from(values: &'a Vec<$type>) -> Self {
                    Values::$variant(values)
                }
            }

            impl<'a> From<&'a mut Vec<$type>> for ValuesMut<'a> {
                fn from(values: &'a mut Vec<$type>) -> Self {
                    ValuesMut::$variant(values)
                }
            }
        )*

        $(
            impl<'a> From<&'a Sparse<$sparse_type>> for Values<'a> {
                fn from(column: &'a Sparse<$sparse_type>) -> Self {
                    match column.values() {
                        Some(values) => Values::$sparse(values),
                        None => Values::Unset(Kind::$sparse, column.len()),
                    }
                }
            }

            impl<'a> From<&'a mut Sparse<$sparse_type>> for ValuesMut<'a> {
                fn from(column: &'a mut Sparse<$sparse_type>) -> Self {
                    ValuesMut::Sparse(SparseMut::$sparse(column))
                }
            }
        )*

        impl Values<'_> {
            /// Returns the kind of the values.
            pub const fn kind(&self) -> Kind {
                match self {
                    $(Values::$variant(_) => Kind::$variant,)*
                    $(Values::$only(_) => Kind::$only,)*
                    Values::Unset(kind, _) => *kind,
                }
            }

            /// Returns the number of values.
            pub const fn len(&self) -> usize {
                match self {
                    $(Values::$variant(values) => values.len(),)*
                    $(Values::$only(values) => values.len(),)*
                    Values::Unset(_, rows) => *rows,
                }
            }

            /// Returns whether there are no values.
            pub const fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }

        impl ValuesMut<'_> {
            fn append(&mut self, other: &Values<'_>, rows: Range<usize>) {
                match (self, other) {
                    $((ValuesMut::$variant(values), Values::$variant(other)) => {
                        values.extend_from_slice(&other[rows]);
                    })*
                    (ValuesMut::Sparse(column), other) => column.append(other, rows),
                    _ => unreachable!("a column has one kind"),
                }
            }

            /// Adds rows without a value up to this number of rows; `None` if the column is not sparse.
            pub(crate) fn resize_sparse(&mut self, rows: usize) -> Option<()> {
                match self {
                    ValuesMut::Sparse(column) => column.resize(rows),
                    _ => return None,
                }
                Some(())
            }

            fn truncate(&mut self, rows: usize) {
                match self {
                    $(ValuesMut::$variant(values) => values.truncate(rows),)*
                    ValuesMut::Sparse(column) => column.truncate(rows),
                }
            }
        }

        impl SparseMut<'_> {
            fn resize(&mut self, rows: usize) {
                match self {
                    $(SparseMut::$sparse(column) => column.resize(rows),)*
                }
            }

            fn append(&mut self, other: &Values<'_>, rows: Range<usize>) {
                match (self, other) {
                    $((SparseMut::$sparse(column), Values::$sparse(other)) => {
                        column.extend_from_slice(&other[rows]);
                    })*
                    $((SparseMut::$sparse(column), Values::Unset(..)) => column.resize(column.len() + rows.len()),)*
                    _ => unreachable!("a column has one kind"),
                }
            }

            fn truncate(&mut self, rows: usize) {
                match self {
                    $(SparseMut::$sparse(column) => column.truncate(rows),)*
                }
            }
        }
    };
}

views! {
    dense {
        /// Microseconds since 1970.
        Timestamp: i64,
        /// Addresses.
        Address: Address,
        /// Formats.
        Format: Format,
        /// Texts.
        Text: Text,
        /// Eight bits.
        U8: u8,
        /// Sixteen bits.
        U16: u16,
        /// Thirty-two bits.
        U32: u32,
        /// Sixty-four bits.
        U64: u64,
    }
    sparse {
        /// Addresses.
        Address: Address,
        /// Eight bits.
        U8: u8,
        /// Sixteen bits.
        U16: u16,
        /// Thirty-two bits.
        U32: u32,
        /// Sixty-four bits.
        U64: u64,
        /// Shared names.
        Name: Name,
        /// MAC addresses.
        Mac: Mac,
        /// Stacks of MPLS labels.
        Labels: LabelStack,
    }
    only_sparse {
        Name: Name,
        Mac: Mac,
        Labels: LabelStack,
    }
}

/// Implements [`Dataset`] for a batch: one line per column, in the batch's order.
macro_rules! dataset {
    (
        $batch:ty, $directory:literal, version $version:literal $(, earlier $earlier:expr)?;
        $($field:ident $name:literal $kind:ident [$($element:ident $number:literal),*]
          $unit:literal $meaning:literal ($none:literal);)*
    ) => {
        #[allow(non_camel_case_types)]
        enum Field {
            $($field,)*
        }

        const FIELDS: &[Field] = &[$(Field::$field),*];

        const COLUMNS: &[$crate::schema::Column] = &[$($crate::schema::Column {
            name: $name,
            kind: $crate::schema::Kind::$kind,
            elements: &[$((stringify!($element), $number)),*],
            unit: $unit,
            meaning: $meaning,
            if_missing: $none,
        },)*];

        impl $crate::schema::Dataset for $batch {
            const NAME: &'static str = $directory;
            const VERSION: u16 = $version;
            $(const EARLIER: &'static [(u16, usize)] = $earlier;)?

            fn columns() -> &'static [$crate::schema::Column] {
                COLUMNS
            }

            fn values(&self, column: usize) -> $crate::schema::Values<'_> {
                match FIELDS[column] {
                    $(Field::$field => (&self.$field).into(),)*
                }
            }

            fn values_mut(&mut self, column: usize) -> $crate::schema::ValuesMut<'_> {
                match FIELDS[column] {
                    $(Field::$field => (&mut self.$field).into(),)*
                }
            }
        }
    };
}

pub(super) use dataset;

/// Returns the type of a column's values.
macro_rules! type_of {
    (Timestamp) => {
        i64
    };
    (Address) => {
        thalweg_wire::flow_export::Address
    };
    (Text) => {
        $crate::schema::dataset::Text
    };
    (U8) => {
        u8
    };
    (U16) => {
        u16
    };
    (U32) => {
        u32
    };
    (U64) => {
        u64
    };
}

pub(super) use type_of;

/// Declares a row, a batch, and its [`Dataset`]: one line per column. The first is the time of reception.
macro_rules! stored {
    (
        $(#[$row_doc:meta])* $row:ident in $batch:ident, $directory:literal, version $version:literal;
        $($field:ident $name:literal $kind:ident $unit:literal $meaning:literal ($none:literal);)*
    ) => {
        $(#[$row_doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $row {
            $(#[doc = $meaning] pub $field: $crate::schema::dataset::type_of!($kind),)*
        }

        #[doc = concat!("Rows of `", $directory, "` in columns of equal length.")]
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $batch {
            $(#[doc = $meaning] pub $field: Vec<$crate::schema::dataset::type_of!($kind)>,)*
        }

        impl $batch {
            /// Appends a row.
            pub fn push(&mut self, row: $row) {
                $(self.$field.push(row.$field);)*
            }
        }

        $crate::schema::dataset::dataset! {
            $batch, $directory, version $version;
            $($field $name $kind [] $unit $meaning ($none);)*
        }
    };
}

pub(super) use stored;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::connections::ConnectionBatch;
    use crate::schema::host_metrics::HostMetricBatch;
    use crate::schema::hosts::HostBatch;
    use crate::schema::transfers::TransferBatch;
    use thalweg_wire::flow_export::{CounterBatch, RecordBatch};

    fn check_kinds<D: Dataset>() {
        let batch = D::default();
        for (number, column) in D::columns().iter().enumerate() {
            assert_eq!(batch.values(number).kind(), column.kind, "{}", column.name);
        }
        assert!(batch.received_us().is_empty());
    }

    fn check_earlier_versions<D: Dataset>() {
        let mut batch = D::default();
        for &(version, columns) in D::EARLIER {
            assert!(version < D::VERSION && columns < D::columns().len());
            for column in columns..D::columns().len() {
                let name = D::columns()[column].name;
                assert!(matches!(batch.values_mut(column), ValuesMut::Sparse(_)), "{name} is not sparse");
            }
        }
    }

    #[test]
    fn columns_that_came_later_are_sparse() {
        check_earlier_versions::<RecordBatch>();
        check_earlier_versions::<CounterBatch>();
    }

    #[test]
    fn every_column_has_the_value_type_of_its_schema() {
        check_kinds::<RecordBatch>();
        check_kinds::<CounterBatch>();
        check_kinds::<TransferBatch>();
        check_kinds::<HostBatch>();
        check_kinds::<HostMetricBatch>();
        check_kinds::<ConnectionBatch>();
    }
}
