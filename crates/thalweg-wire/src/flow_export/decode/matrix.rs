//! Records of one length, one after the other: a matrix of bytes, read column by column.

/// Records of a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix<'a> {
    bytes: &'a [u8],
    stride: usize,
}

impl<'a> Matrix<'a> {
    /// As many whole records of `stride` bytes as there are; what is left over is padding.
    ///
    /// # Panics
    /// If the stride is zero.
    pub(super) fn new(bytes: &'a [u8], stride: usize) -> Matrix<'a> {
        Matrix { bytes: &bytes[..bytes.len() / stride * stride], stride }
    }

    /// Records.
    pub(super) fn rows(&self) -> usize {
        self.bytes.len() / self.stride
    }

    /// The records, one by one.
    #[inline]
    pub(super) fn records(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        self.bytes.chunks_exact(self.stride)
    }

    /// `N` bytes from `offset` on of every record.
    ///
    /// # Panics
    /// If they go beyond a record.
    #[inline]
    pub(super) fn fields<const N: usize>(
        &self,
        offset: usize,
    ) -> impl ExactSizeIterator<Item = [u8; N]> + use<'a, N> {
        let end = offset + N;
        assert!(end <= self.stride, "a field ends within its record");
        self.records().map(move |record| *record[offset..end].first_chunk().expect("N bytes"))
    }

    /// A number of `length` bytes, at most 8, at `offset` of every record.
    #[inline]
    pub(super) fn numbers(
        &self,
        offset: usize,
        length: usize,
    ) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        self.records().map(move |record| big_endian(&record[offset..offset + length]))
    }
}

/// The number in at most 8 bytes.
#[inline]
pub(super) fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}
