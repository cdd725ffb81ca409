//! The program that the kernel runs on each frame before it enters a ring.

use crate::filter::{Filter, Instruction};

/// Rejects every frame: nothing may enter a ring before all of its group are ready.
pub(super) const REJECT_ALL: [Instruction; 1] = [return_instruction(0)];

/// The program for each frame: tagged frames pass, because the kernel keeps their tag beside the frame where the
/// expression would not find it; others are filtered. Frames that pass are cut to the snap length, which the programs
/// return.
pub(super) fn kernel_program(filter: Option<&Filter>, snap_length: u32) -> Vec<Instruction> {
    const LOAD_TAG_PRESENT: Instruction = Instruction {
        code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
        jump_true: 0,
        jump_false: 0,
        k: (libc::SKF_AD_OFF + libc::SKF_AD_VLAN_TAG_PRESENT) as u32,
    };
    const SKIP_ONE_IF_ZERO: Instruction = Instruction {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jump_true: 1,
        jump_false: 0,
        k: 0,
    };
    let accept = return_instruction(snap_length);
    let Some(filter) = filter else { return vec![accept] };
    let mut program = vec![LOAD_TAG_PRESENT, SKIP_ONE_IF_ZERO, accept];
    program.extend_from_slice(filter.program());
    program
}

/// Accepts `length` bytes of the frame; 0 rejects it.
const fn return_instruction(length: u32) -> Instruction {
    Instruction { code: (libc::BPF_RET | libc::BPF_K) as u16, jump_true: 0, jump_false: 0, k: length }
}
