//! One list of columns to a row type and a batch type.

/// Declares a row, a batch of columns, and what moves rows between them. The first column gives the length.
macro_rules! columns {
    (
        $(#[$row_doc:meta])* $row:ident in $(#[$batch_doc:meta])* $batch:ident;
        $(#[$first_doc:meta])* $first:ident: $first_type:ty = $first_none:expr,
        $($(#[$doc:meta])* $name:ident: $type:ty = $none:expr,)*
    ) => {
        $(#[$row_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $row {
            $(#[$first_doc])* pub $first: $first_type,
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Default for $row {
            /// A row that tells nothing.
            fn default() -> $row {
                $row { $first: $first_none, $($name: $none,)* }
            }
        }

        $(#[$batch_doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $batch {
            $(#[$first_doc])* pub $first: Vec<$first_type>,
            $($(#[$doc])* pub $name: Vec<$type>,)*
        }

        impl $batch {
            /// An empty batch with room for `rows`.
            pub fn with_capacity(rows: usize) -> $batch {
                $batch { $first: Vec::with_capacity(rows), $($name: Vec::with_capacity(rows),)* }
            }

            /// Rows.
            #[inline]
            pub fn len(&self) -> usize {
                self.$first.len()
            }

            /// Whether there are no rows.
            #[inline]
            pub fn is_empty(&self) -> bool {
                self.$first.is_empty()
            }

            /// Drops all rows and keeps the memory.
            pub fn clear(&mut self) {
                self.$first.clear();
                $(self.$name.clear();)*
            }

            /// Drops the rows from `rows` on: takes back what was begun.
            pub fn truncate(&mut self, rows: usize) {
                self.$first.truncate(rows);
                $(self.$name.truncate(rows);)*
            }

            /// Gives every column `rows` rows; new ones tell nothing.
            pub fn resize(&mut self, rows: usize) {
                self.$first.resize(rows, $first_none);
                $(self.$name.resize(rows, $none);)*
            }

            /// Adds one row.
            pub fn push(&mut self, record: &$row) {
                self.$first.push(record.$first);
                $(self.$name.push(record.$name);)*
            }

            /// Adds all rows of another batch.
            pub fn append(&mut self, other: &$batch) {
                self.$first.extend_from_slice(&other.$first);
                $(self.$name.extend_from_slice(&other.$name);)*
            }

            /// One row.
            ///
            /// # Panics
            /// If there is no such row.
            pub fn record(&self, row: usize) -> $row {
                $row { $first: self.$first[row], $($name: self.$name[row],)* }
            }

            /// # Panics
            /// If columns differ in length.
            pub fn check_invariants(&self) {
                $(assert_eq!(self.$name.len(), self.len(), stringify!($name));)*
            }
        }
    };
}

pub(super) use columns;
