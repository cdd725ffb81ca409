//! Positions of values in records.

use super::element::Unit;
use crate::flow_export::Address;

/// The position of a value in a record; length 0 means no value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: u16,
    pub(super) length: u8,
    pub(super) unit: Unit,
}

impl Place {
    /// Returns the bytes in a record.
    #[inline]
    pub(super) fn of(self, record: &[u8]) -> &[u8] {
        &record[usize::from(self.offset)..][..usize::from(self.length)]
    }
}

/// Decodes an address of 4 or 16 bytes.
pub(super) fn address(bytes: &[u8]) -> Address {
    match (<[u8; 4]>::try_from(bytes), <[u8; 16]>::try_from(bytes)) {
        (Ok(bytes), _) => Address::v4(u32::from_be_bytes(bytes)),
        (_, Ok(bytes)) => Address(u128::from_be_bytes(bytes)),
        _ => Address::NONE,
    }
}

/// Whether an address is none or all zeros, which exporters write for an unknown address.
pub(super) fn is_unspecified(address: Address) -> bool {
    !address.is_some() || address.0 == 0 || address.as_v4() == Some(0)
}
