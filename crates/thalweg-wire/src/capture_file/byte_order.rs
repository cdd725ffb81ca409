//! The byte order of a capture file, which both formats leave to the writer.

/// The byte order of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first, as in almost every capture file.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

/// # Panics
/// The readers panic if too few bytes follow `at`: callers check lengths first.
impl ByteOrder {
    pub(super) fn read_u16(self, bytes: &[u8], at: usize) -> u16 {
        let array = [bytes[at], bytes[at + 1]];
        match self {
            ByteOrder::Little => u16::from_le_bytes(array),
            ByteOrder::Big => u16::from_be_bytes(array),
        }
    }

    #[inline]
    pub(super) fn read_u32(self, bytes: &[u8], at: usize) -> u32 {
        let array = bytes[at..at + 4].try_into().expect("4 bytes");
        match self {
            ByteOrder::Little => u32::from_le_bytes(array),
            ByteOrder::Big => u32::from_be_bytes(array),
        }
    }

    pub(super) fn u16(self, value: u16) -> [u8; 2] {
        match self {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        }
    }

    #[inline]
    pub(super) fn u32(self, value: u32) -> [u8; 4] {
        match self {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        }
    }
}
