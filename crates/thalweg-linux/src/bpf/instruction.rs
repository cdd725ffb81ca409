//! One instruction of eBPF (RFC 9669).

/// One instruction of eBPF (`struct bpf_insn`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// What to do.
    pub code: u8,
    /// Destination and source register.
    pub registers: u8,
    /// For jumps, and for memory.
    pub offset: i16,
    /// The operand.
    pub immediate: i32,
}

impl Instruction {
    /// Bytes of an instruction.
    pub const LENGTH: usize = 8;

    /// Reads an instruction as it lies in an object file of this machine's byte order.
    pub(super) fn read(bytes: &[u8; Instruction::LENGTH]) -> Instruction {
        let &[code, registers, offset_0, offset_1, immediate @ ..] = bytes;
        Instruction {
            code,
            registers,
            offset: i16::from_ne_bytes([offset_0, offset_1]),
            immediate: i32::from_ne_bytes(immediate),
        }
    }

    /// Sets the source register, which for addresses says what kind of address it is.
    pub(super) fn set_source(&mut self, source: u8) {
        self.registers = match cfg!(target_endian = "little") {
            true => self.registers & 0x0f | source << 4,
            false => self.registers & 0xf0 | source,
        };
    }
}
