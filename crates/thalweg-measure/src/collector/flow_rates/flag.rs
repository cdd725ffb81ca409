//! Bits of [`crate::rates::burst::InferredPorts::flags`].

/// Queued for an idle check.
pub(super) const WAITS: u32 = 1;
/// A rate was estimated.
pub(super) const HAS_RATE: u32 = 1 << 1;
/// The ports are ambiguous: the forwarding state had just changed.
pub(super) const AMBIGUOUS: u32 = 1 << 2;
/// The shift of the basis, three bits.
pub(super) const BASIS: u32 = 8;
/// The forwarding state for the ports is no longer kept.
pub(super) const FORGOTTEN: u32 = 1 << 5;
/// Another flow appears to share the counter of identifications.
pub(super) const SHARED: u32 = 1 << 6;
/// The shift of the inference case.
pub(super) const CASE: u32 = 16;
/// Something needs to be counted.
pub(super) const UNUSUAL: u32 = AMBIGUOUS | FORGOTTEN | u32::MAX << CASE;
