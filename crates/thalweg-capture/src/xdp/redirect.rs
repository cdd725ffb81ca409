//! The program that takes frames from an interface, notes when each arrived, and passes it to the socket of its queue.
//!
//! Seventeen instructions, which are loaded directly with bpf(2); they mean
//!
//! ```c
//! if (bpf_xdp_adjust_meta(ctx, -8) == 0)
//!         *(u64 *)ctx->data_meta = bpf_ktime_get_tai_ns();
//! return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
//! ```
//!
//! The time is in the eight bytes before the frame, which the kernel copies with it. Where the driver has no space for
//! metadata, nothing is written there. A frame of a queue without a socket continues as if there were no program.

use std::io;
use std::os::fd::AsRawFd as _;

use thalweg_linux::bpf::{AnyMap, Instruction, Link, MapKind, MapSpec, Program, ProgramKind};

use super::options::XdpMode;
use super::socket::XdpSocket;

/// The name of the program in `ip link` and bpftool.
const PROGRAM_NAME: &str = "thalweg";

/// The name of the map in bpftool.
const MAP_NAME: &str = "sockets";

/// The licence of the program.
const LICENCE: &str = "Apache-2.0";

/// The bytes of metadata before each frame: its time of arrival in TAI, in nanoseconds, in native byte order.
pub(super) const TIMESTAMP_LENGTH: u64 = 8;

/// XDP_FLAGS_SKB_MODE of if_link.h.
const FLAG_GENERIC: u32 = 1 << 1;
/// XDP_FLAGS_DRV_MODE of if_link.h.
const FLAG_NATIVE: u32 = 1 << 2;

/// The sockets of an interface's queues and the program that redirects to them.
#[derive(Debug)]
pub(super) struct Redirect {
    sockets: AnyMap,
    program: Program,
}

/// An attached program. Detached when dropped, and when the process ends for any reason.
#[derive(Debug)]
pub(super) struct Attachment {
    mode: XdpMode,
    /// Keeps the program, which keeps the map.
    link: Link,
}

impl Redirect {
    /// Loads the program for an interface of `queue_count` queues.
    pub(super) fn load(queue_count: u32) -> io::Result<Redirect> {
        let shape = MapSpec {
            kind: MapKind::XdpSockets,
            key_size: 4,
            value_size: 4,
            max_entries: queue_count,
            flags: 0,
        };
        let sockets = AnyMap::create(MAP_NAME, shape)?;
        let instructions = program(sockets.as_raw_fd());
        let program = Program::load(ProgramKind::XdpMultiBuffer, PROGRAM_NAME, LICENCE, &instructions);
        Ok(Redirect { sockets, program: program.map_err(|error| error.source)? })
    }

    /// Redirects frames of `queue` to a socket that is bound to it.
    pub(super) fn put(&self, queue: u32, socket: &XdpSocket) -> io::Result<()> {
        self.sockets.put_descriptor(queue, socket.raw())
    }

    /// Attaches the program in a mode.
    pub(super) fn attach(&self, index: i32, mode: XdpMode) -> io::Result<Attachment> {
        let flag = match mode {
            XdpMode::Native => FLAG_NATIVE,
            XdpMode::Generic => FLAG_GENERIC,
        };
        Ok(Attachment { mode, link: self.program.attach_xdp(index, flag)? })
    }
}

impl Attachment {
    pub(super) fn mode(&self) -> XdpMode {
        self.mode
    }
}

impl Drop for Attachment {
    /// If another thread is just starting a process, that process has a copy of the link until it executes its
    /// program. So closing the link does not free the interface at once.
    fn drop(&mut self) {
        // If the kernel does not allow it without privileges, closing must do.
        let _ = self.link.detach();
    }
}

/// The instructions (RFC 9669), for a map by its descriptor.
fn program(sockets: i32) -> [Instruction; 17] {
    // BPF_LDX | BPF_MEM | BPF_W: a word of memory, and BPF_STX | BPF_MEM | BPF_DW: a double word into memory.
    const LOAD_WORD: u8 = 0x61;
    const STORE_DOUBLE: u8 = 0x7b;
    // BPF_LD | BPF_IMM | BPF_DW with source 1 (BPF_PSEUDO_MAP_FD): a map by its descriptor; takes two instructions.
    const LOAD_MAP: u8 = 0x18;
    const MAP_BY_DESCRIPTOR: u8 = 1;
    // BPF_ALU64 with BPF_MOV or BPF_ADD, and BPF_X or BPF_K.
    const MOVE: u8 = 0xbf;
    const MOVE_IMMEDIATE: u8 = 0xb7;
    const ADD_IMMEDIATE: u8 = 0x07;
    // BPF_JMP with BPF_JNE and BPF_K, BPF_JGT and BPF_X, BPF_CALL, BPF_EXIT.
    const JUMP_NOT_EQUAL_IMMEDIATE: u8 = 0x55;
    const JUMP_GREATER: u8 = 0x2d;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    /// Offsets in `struct xdp_md`.
    const DATA: i16 = 0;
    const DATA_META: i16 = 8;
    const RX_QUEUE_INDEX: i16 = 16;
    /// XDP_PASS: the result for a queue without a socket.
    const PASS: i32 = 2;
    /// BPF_FUNC_ numbers.
    const REDIRECT_MAP: i32 = 51;
    const XDP_ADJUST_META: i32 = 54;
    const KTIME_GET_TAI_NS: i32 = 208;

    let instruction = |code, destination: u8, source: u8, offset, immediate| Instruction {
        code,
        // Two bit fields of one byte, whose order depends on the machine's byte order.
        registers: if cfg!(target_endian = "little") {
            source << 4 | destination
        } else {
            destination << 4 | source
        },
        offset,
        immediate,
    };
    [
        instruction(MOVE, 6, 1, 0, 0),
        instruction(MOVE_IMMEDIATE, 2, 0, 0, -(TIMESTAMP_LENGTH as i32)),
        instruction(CALL, 0, 0, 0, XDP_ADJUST_META),
        instruction(JUMP_NOT_EQUAL_IMMEDIATE, 0, 0, 7, 0),
        instruction(CALL, 0, 0, 0, KTIME_GET_TAI_NS),
        instruction(LOAD_WORD, 2, 6, DATA_META, 0),
        instruction(LOAD_WORD, 3, 6, DATA, 0),
        // The verifier requires the check.
        instruction(MOVE, 1, 2, 0, 0),
        instruction(ADD_IMMEDIATE, 1, 0, 0, TIMESTAMP_LENGTH as i32),
        instruction(JUMP_GREATER, 1, 3, 1, 0),
        instruction(STORE_DOUBLE, 2, 0, 0, 0),
        instruction(LOAD_WORD, 2, 6, RX_QUEUE_INDEX, 0),
        instruction(LOAD_MAP, 1, MAP_BY_DESCRIPTOR, 0, sockets),
        instruction(0, 0, 0, 0, 0),
        instruction(MOVE_IMMEDIATE, 3, 0, 0, PASS),
        instruction(CALL, 0, 0, 0, REDIRECT_MAP),
        instruction(EXIT, 0, 0, 0, 0),
    ]
}
