//! Consecutive records of equal length: a matrix of bytes, read column by column.

/// The records of a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix<'a> {
    bytes: &'a [u8],
    stride: usize,
}

impl<'a> Matrix<'a> {
    /// Creates a matrix of the complete records of `stride` bytes; the rest is padding.
    ///
    /// # Panics
    /// If the stride is zero.
    pub(super) fn new(bytes: &'a [u8], stride: usize) -> Matrix<'a> {
        Matrix { bytes: &bytes[..bytes.len() / stride * stride], stride }
    }

    /// The number of records.
    pub(super) fn rows(&self) -> usize {
        self.bytes.len() / self.stride
    }

    /// Iterates over the records.
    #[inline]
    pub(super) fn records(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        self.bytes.chunks_exact(self.stride)
    }

    /// Iterates over the `N` bytes at `offset` of every record.
    ///
    /// # Panics
    /// If they exceed a record.
    #[inline]
    pub(super) fn fields<const N: usize>(
        &self,
        offset: usize,
    ) -> impl ExactSizeIterator<Item = [u8; N]> + use<'a, N> {
        let end = offset + N;
        assert!(end <= self.stride, "a field ends within its record");
        self.records().map(move |record| *record[offset..end].first_chunk().expect("N bytes"))
    }

    /// Iterates over the number of `length` bytes at `offset` of every record.
    #[inline]
    pub(super) fn numbers(
        &self,
        offset: usize,
        length: usize,
    ) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        self.records().map(move |record| big_endian(&record[offset..offset + length]))
    }
}

/// Decodes a number; saturates if it does not fit into 8 bytes.
#[inline]
pub(super) fn big_endian(bytes: &[u8]) -> u64 {
    let (excess, low) = bytes.split_at(bytes.len().saturating_sub(8));
    match excess.iter().all(|&byte| byte == 0) {
        true => low.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)),
        false => u64::MAX,
    }
}
