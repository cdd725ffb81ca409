//! The program that the kernel runs on each frame before it enters a ring.

use super::options::Way;
use crate::filter::{Filter, Instruction};

/// Rejects every frame: nothing may enter a ring before all of its group are ready.
pub(super) const REJECT_ALL: [Instruction; 1] = [return_instruction(0)];

/// The program for each frame: tagged frames pass, because the kernel keeps their tag beside the frame where the
/// expression would not find it; others are filtered. Frames that pass are cut to the snap length, which the programs
/// return. Frames of another way than `way` are rejected first.
pub(super) fn kernel_program(filter: Option<&Filter>, snap_length: u32, way: Way) -> Vec<Instruction> {
    const LOAD_TAG_PRESENT: Instruction = load(libc::SKF_AD_VLAN_TAG_PRESENT);
    const LOAD_PACKET_TYPE: Instruction = load(libc::SKF_AD_PKTTYPE);
    const OUTGOING: u32 = libc::PACKET_OUTGOING as u32;
    let (accept, reject) = (return_instruction(snap_length), return_instruction(0));
    let mut program = match way {
        Way::Both => Vec::new(),
        Way::Out => vec![LOAD_PACKET_TYPE, skip_if(OUTGOING, (1, 0)), reject],
        Way::In => vec![LOAD_PACKET_TYPE, skip_if(OUTGOING, (0, 1)), reject],
    };
    match filter {
        None => program.push(accept),
        Some(filter) => {
            program.extend([LOAD_TAG_PRESENT, skip_if(0, (1, 0)), accept]);
            program.extend_from_slice(filter.program());
        }
    }
    program
}

/// Loads what the kernel knows of a frame.
const fn load(what: libc::c_int) -> Instruction {
    let code = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    Instruction { code, jump_true: 0, jump_false: 0, k: (libc::SKF_AD_OFF + what) as u32 }
}

/// Skips as many instructions if the loaded value is `value`, and as many otherwise.
const fn skip_if(value: u32, (jump_true, jump_false): (u8, u8)) -> Instruction {
    Instruction {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jump_true,
        jump_false,
        k: value,
    }
}

/// Accepts `length` bytes of the frame; 0 rejects it.
const fn return_instruction(length: u32) -> Instruction {
    Instruction { code: (libc::BPF_RET | libc::BPF_K) as u16, jump_true: 0, jump_false: 0, k: length }
}
