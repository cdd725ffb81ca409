//! A column that most batches have no values for.

/// Values of a column by row, or only their number while every row has the default, which means "not reported". A column
/// that no exporter sends then costs nothing per row.
#[derive(Clone, Debug, Default)]
pub struct Sparse<T> {
    /// Empty while all rows are default, otherwise as long as `rows`.
    values: Vec<T>,
    rows: usize,
}

impl<T: Copy + Default + PartialEq> Sparse<T> {
    /// The number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the value of a row.
    ///
    /// # Panics
    /// If the row does not exist.
    #[inline]
    pub fn get(&self, row: usize) -> T {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        self.values.get(row).copied().unwrap_or_default()
    }

    /// Returns all values; `None` if every row is default.
    #[inline]
    pub fn values(&self) -> Option<&[T]> {
        (!self.values.is_empty()).then_some(&self.values)
    }

    /// Returns all values, for changes.
    pub fn values_mut(&mut self) -> &mut [T] {
        self.values.resize(self.rows, T::default());
        &mut self.values
    }

    /// Sets the value of a row.
    ///
    /// # Panics
    /// If the row does not exist.
    pub fn set(&mut self, row: usize, value: T) {
        if !self.values.is_empty() || value != T::default() {
            self.values_mut()[row] = value;
        }
    }

    /// Removes all rows, and keeps the capacity.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Removes all rows after the first `rows`.
    pub fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows);
        self.rows = self.rows.min(rows);
    }

    /// Resizes to `rows` rows; new rows are default.
    #[inline]
    pub fn resize(&mut self, rows: usize) {
        if !self.values.is_empty() {
            self.values.resize(rows, T::default());
        }
        self.rows = rows;
    }

    /// Appends a row.
    #[inline]
    pub fn push(&mut self, value: T) {
        if !self.values.is_empty() || value != T::default() {
            self.values.resize(self.rows, T::default());
            self.values.push(value);
        }
        self.rows += 1;
    }

    /// Appends rows.
    pub fn extend_from_slice(&mut self, values: &[T]) {
        self.values.resize(self.rows, T::default());
        self.values.extend_from_slice(values);
        self.rows += values.len();
    }

    /// Appends all rows of another column.
    pub fn append(&mut self, other: &Sparse<T>) {
        match other.values() {
            Some(values) => self.extend_from_slice(values),
            None => self.resize(self.rows + other.rows),
        }
    }
}

impl<T: Copy + Default + PartialEq> Extend<T> for Sparse<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

/// Equality of the values of all rows.
impl<T: Copy + Default + PartialEq> PartialEq for Sparse<T> {
    fn eq(&self, other: &Sparse<T>) -> bool {
        let is_default = |values: &[T]| values.iter().all(|value| *value == T::default());
        self.rows == other.rows
            && match (self.values(), other.values()) {
                (Some(ours), Some(theirs)) => ours == theirs,
                (Some(values), None) | (None, Some(values)) => is_default(values),
                (None, None) => true,
            }
    }
}

impl<T: Copy + Default + Eq> Eq for Sparse<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A change of a column.
    #[derive(Clone, Debug)]
    enum Change {
        Push(u8),
        Resize(usize),
        Truncate(usize),
        Set(usize, u8),
        Append(Vec<u8>),
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            (0..3_u8).prop_map(Change::Push),
            (0..9_usize).prop_map(Change::Resize),
            (0..9_usize).prop_map(Change::Truncate),
            (0..9_usize, 0..2_u8).prop_map(|(row, value)| Change::Set(row, value)),
            prop::collection::vec(0..2_u8, 0..4).prop_map(Change::Append),
        ]
    }

    proptest! {
        #[test]
        fn a_sparse_column_behaves_as_a_vector(changes in prop::collection::vec(change(), 0..30)) {
            let (mut sparse, mut dense) = (Sparse::default(), Vec::new());
            for change in changes {
                match change {
                    Change::Push(value) => {
                        sparse.push(value);
                        dense.push(value);
                    }
                    Change::Resize(rows) => {
                        sparse.resize(rows);
                        dense.resize(rows, 0);
                    }
                    Change::Truncate(rows) => {
                        sparse.truncate(rows);
                        dense.truncate(rows);
                    }
                    Change::Set(row, value) if row < dense.len() => {
                        sparse.set(row, value);
                        dense[row] = value;
                    }
                    Change::Set(..) => {}
                    Change::Append(values) => {
                        let mut other = Sparse::default();
                        other.extend(values.iter().copied());
                        sparse.append(&other);
                        dense.extend(values);
                    }
                }
                prop_assert_eq!(sparse.len(), dense.len());
                prop_assert!((0..dense.len()).all(|row| sparse.get(row) == dense[row]));
                prop_assert!(sparse.values().is_none_or(|values| values == dense));
            }
        }
    }

    #[test]
    fn rows_without_values_take_no_memory() {
        let mut column = Sparse::<u64>::default();
        column.resize(1000);
        (0..1000).for_each(|_| column.push(0));
        assert_eq!((column.len(), column.values()), (2000, None));
        column.set(7, 1);
        assert_eq!(column.values().map(<[u64]>::len), Some(2000));
    }
}
