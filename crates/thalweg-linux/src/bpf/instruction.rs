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

    /// Sets the source register. In an address load it is the kind of address.
    pub(super) fn set_source(&mut self, source: u8) {
        self.registers = match cfg!(target_endian = "little") {
            true => self.registers & 0x0f | source << 4,
            false => self.registers & 0xf0 | source,
        };
    }
}
