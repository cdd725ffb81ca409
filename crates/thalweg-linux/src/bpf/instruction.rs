//! eBPF instructions (RFC 9669).

/// An eBPF instruction (`struct bpf_insn`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// The opcode.
    pub code: u8,
    /// The destination and source registers.
    pub registers: u8,
    /// The offset of jumps and memory accesses.
    pub offset: i16,
    /// The immediate operand.
    pub immediate: i32,
}

impl Instruction {
    /// The length of an instruction in bytes.
    pub const LENGTH: usize = 8;

    /// Parses an instruction in native byte order.
    pub(super) fn read(bytes: &[u8; Instruction::LENGTH]) -> Instruction {
        let &[code, registers, offset_0, offset_1, immediate @ ..] = bytes;
        Instruction {
            code,
            registers,
            offset: i16::from_ne_bytes([offset_0, offset_1]),
            immediate: i32::from_ne_bytes(immediate),
        }
    }

    /// Sets the offset of a member of a structure in a memory access, or in an instruction that adds or loads it. Returns
    /// `None` for any other instruction, and if the offset does not fit.
    pub(super) fn set_member_offset(&mut self, offset: u32) -> Option<()> {
        match self.code & 0x07 {
            // BPF_LDX, BPF_ST, BPF_STX.
            1..=3 => self.offset = i16::try_from(offset).ok()?,
            // BPF_ALU, BPF_ALU64.
            4 | 7 => self.immediate = i32::try_from(offset).ok()?,
            _ => return None,
        }
        Some(())
    }

    /// Sets the source register. In an address load it is the kind of address.
    pub(super) fn set_source(&mut self, source: u8) {
        self.registers = match cfg!(target_endian = "little") {
            true => self.registers & 0x0f | source << 4,
            false => self.registers & 0xf0 | source,
        };
    }
}
