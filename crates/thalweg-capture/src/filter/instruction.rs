//! One instruction of the classic Berkeley packet filter.

/// One instruction of the classic Berkeley packet filter, with the layout of the kernel and libpcap.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The operation.
    pub code: u16,
    /// Instructions to skip if the comparison is true.
    pub jump_true: u8,
    /// Instructions to skip if it is false.
    pub jump_false: u8,
    /// The operand.
    pub k: u32,
}
