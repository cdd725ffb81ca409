//! Fields of templates.

/// A field of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// 0 for IANA.
    pub(super) enterprise: u32,
    /// `informationElementId`.
    pub(super) id: u16,
    pub(super) length: u16,
}
