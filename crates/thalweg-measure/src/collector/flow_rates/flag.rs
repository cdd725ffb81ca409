//! Bits of [`crate::rates::burst::Way::flags`].

/// Waits in the order of those who may become idle.
pub(super) const WAITS: u32 = 1;
/// There was an estimate.
pub(super) const HAS_RATE: u32 = 1 << 1;
/// The ports may be others: the forwarding state had just changed.
pub(super) const AMBIGUOUS: u32 = 1 << 2;
/// Where the basis begins, two bits.
pub(super) const BASIS: u32 = 8;
/// The forwarding state that would tell the ports has been forgotten.
pub(super) const FORGOTTEN: u32 = 1 << 5;
/// Where the number of the inference's case begins.
pub(super) const CASE: u32 = 16;
/// There is something to count.
pub(super) const UNUSUAL: u32 = AMBIGUOUS | FORGOTTEN | u32::MAX << CASE;
