//! One instruction of the classic Berkeley packet filter.

/// One instruction of the classic Berkeley packet filter, laid out as the kernel and libpcap lay it out.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What to do.
    pub code: u16,
    /// Instructions to skip if the comparison holds.
    pub jump_true: u8,
    /// Instructions to skip if it does not.
    pub jump_false: u8,
    /// The operand.
    pub k: u32,
}
