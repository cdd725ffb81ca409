//! A macro that declares a row type and a batch type from one list of columns.

/// Declares a row, a batch of columns, and conversions between them. The first column defines the length. Columns after a
/// semicolon have the default of their type where nothing is reported, and cost nothing where no row has a value.
macro_rules! columns {
    (
        $(#[$row_doc:meta])* $row:ident in $(#[$batch_doc:meta])* $batch:ident;
        $(#[$first_doc:meta])* $first:ident: $first_type:ty = $first_none:expr,
        $($(#[$doc:meta])* $name:ident: $type:ty = $none:expr,)*
        $(; $($(#[$sparse_doc:meta])* $sparse:ident: $sparse_type:ty,)*)?
    ) => {
        $(#[$row_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $row {
            $(#[$first_doc])* pub $first: $first_type,
            $($(#[$doc])* pub $name: $type,)*
            $($($(#[$sparse_doc])* pub $sparse: $sparse_type,)*)?
        }

        impl Default for $row {
            /// Returns a row without any reported value.
            fn default() -> $row {
                $row {
                    $first: $first_none,
                    $($name: $none,)*
                    $($($sparse: <$sparse_type>::default(),)*)?
                }
            }
        }

        $(#[$batch_doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $batch {
            $(#[$first_doc])* pub $first: Vec<$first_type>,
            $($(#[$doc])* pub $name: Vec<$type>,)*
            $($($(#[$sparse_doc])* pub $sparse: $crate::flow_export::Sparse<$sparse_type>,)*)?
        }

        impl $batch {
            /// Creates an empty batch with capacity for `rows`.
            pub fn with_capacity(rows: usize) -> $batch {
                $batch {
                    $first: Vec::with_capacity(rows),
                    $($name: Vec::with_capacity(rows),)*
                    $($($sparse: $crate::flow_export::Sparse::default(),)*)?
                }
            }

            /// The number of rows.
            #[inline]
            pub fn len(&self) -> usize {
                self.$first.len()
            }

            /// Whether there are no rows.
            #[inline]
            pub fn is_empty(&self) -> bool {
                self.$first.is_empty()
            }

            /// Removes all rows, and keeps the capacity.
            pub fn clear(&mut self) {
                self.$first.clear();
                $(self.$name.clear();)*
                $($(self.$sparse.clear();)*)?
            }

            /// Removes all rows after the first `rows`.
            pub fn truncate(&mut self, rows: usize) {
                self.$first.truncate(rows);
                $(self.$name.truncate(rows);)*
                $($(self.$sparse.truncate(rows);)*)?
            }

            /// Resizes every column to `rows` rows; new rows are default.
            pub fn resize(&mut self, rows: usize) {
                self.$first.resize(rows, $first_none);
                $(self.$name.resize(rows, $none);)*
                self.resize_sparse(rows);
            }

            /// Resizes every sparse column to `rows` rows; new rows have no values.
            pub(super) fn resize_sparse(&mut self, rows: usize) {
                let _ = rows;
                $($(self.$sparse.resize(rows);)*)?
            }

            /// Appends a row.
            pub fn push(&mut self, record: &$row) {
                self.$first.push(record.$first);
                $(self.$name.push(record.$name);)*
                $($(self.$sparse.push(record.$sparse);)*)?
            }

            /// Appends all rows of another batch.
            pub fn append(&mut self, other: &$batch) {
                self.$first.extend_from_slice(&other.$first);
                $(self.$name.extend_from_slice(&other.$name);)*
                $($(self.$sparse.append(&other.$sparse);)*)?
            }

            /// Returns a row.
            ///
            /// # Panics
            /// If the row does not exist.
            pub fn record(&self, row: usize) -> $row {
                $row {
                    $first: self.$first[row],
                    $($name: self.$name[row],)*
                    $($($sparse: self.$sparse.get(row),)*)?
                }
            }

            /// # Panics
            /// If columns differ in length.
            pub fn check_invariants(&self) {
                $(assert_eq!(self.$name.len(), self.len(), stringify!($name));)*
                $($(assert_eq!(self.$sparse.len(), self.len(), stringify!($sparse));)*)?
            }
        }
    };
}

pub(super) use columns;
