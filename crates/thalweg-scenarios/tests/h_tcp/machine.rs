//! An interpreter of eBPF (RFC 9669) for the programs of H-TCP, with a socket in memory instead of the kernel's.
//!
//! Addresses are offsets in one memory. The structures have the offsets of the object file.

use std::collections::BTreeMap;
use std::rc::Rc;

use thalweg_lab::Algorithm;
use thalweg_linux::bpf::Instruction;
use thalweg_linux::bpf::object::Unrelocated;
use thalweg_wire::Nanos;

/// Places in memory.
const ARGUMENTS: u64 = 0;
const SAMPLE: u64 = 64;
const SOCKET: u64 = 128;
const SIZE: usize = 512;

/// Offsets in `struct tcp_sock` of the object file: the private memory of the congestion control comes first.
const SND_UNA: u64 = SOCKET + 104;
const SND_NXT: u64 = SOCKET + 108;
const SND_CWND: u64 = SOCKET + 112;
const SND_SSTHRESH: u64 = SOCKET + 116;
const PRIOR_CWND: u64 = SOCKET + 120;
const MAX_PACKETS_OUT: u64 = SOCKET + 124;

/// BPF_FUNC_ktime_get_ns.
const KTIME: i32 = 5;

/// A connection that uses the programs.
pub(crate) struct Connection {
    programs: Rc<BTreeMap<&'static str, Unrelocated<'static>>>,
    memory: Vec<u8>,
    now: u64,
    /// Acknowledged segments that have not made the window grow yet.
    credit: u32,
}

impl Connection {
    /// Starts a connection at a time.
    pub(crate) fn start(now: u64) -> Connection {
        let object = Algorithm::HTcp.object().unwrap();
        let read = |&(member, name): &(&'static str, &str)| (member, object.unrelocated(name).unwrap());
        let programs = Rc::new(Algorithm::HTcp.operations().iter().map(read).collect());
        let mut it = Connection { programs, memory: vec![0; SIZE], now, credit: 0 };
        it.write(SND_CWND, 4, 10);
        it.write(SND_SSTHRESH, 4, u64::from(u32::MAX >> 1));
        it.call("init", &[SOCKET]);
        it
    }

    pub(crate) fn window(&self) -> u32 {
        self.read(SND_CWND, 4) as u32
    }

    pub(crate) fn set_window(&mut self, window: u32, threshold: u32) {
        self.write(SND_CWND, 4, u64::from(window));
        self.write(SND_SSTHRESH, 4, u64::from(threshold));
    }

    pub(crate) fn set_prior_window(&mut self, window: u32) {
        self.write(PRIOR_CWND, 4, u64::from(window));
    }

    /// Sets the first segments not acknowledged and not sent, and the most in flight in the last round.
    pub(crate) fn set_sent(&mut self, una: u32, next: u32, flight: u32) {
        self.write(SND_UNA, 4, u64::from(una));
        self.write(SND_NXT, 4, u64::from(next));
        self.write(MAX_PACKETS_OUT, 4, u64::from(flight));
    }

    /// An acknowledgement arrives.
    pub(crate) fn acknowledge(&mut self, now: u64, segments: u32, rtt: Nanos) {
        self.now = now;
        self.write(SAMPLE, 4, u64::from(segments));
        self.write(SAMPLE + 4, 4, (rtt.0 / 1_000).max(1));
        self.call("pkts_acked", &[SOCKET, SAMPLE]);
        self.call("cong_avoid", &[SOCKET, 0, u64::from(segments)]);
    }

    /// A segment is lost. Returns the new threshold.
    pub(crate) fn lose(&mut self, now: u64) -> u32 {
        self.now = now;
        self.credit = 0;
        self.call("ssthresh", &[SOCKET]) as u32
    }

    /// The loss was a false alarm. Returns the new window.
    pub(crate) fn undo(&mut self) -> u32 {
        self.call("undo_cwnd", &[SOCKET]) as u32
    }

    /// Returns the increase in segments per round trip, measured with a large window at a time. The last congestion event
    /// was at `since`, which must be the program's.
    pub(crate) fn alpha_at(&self, since: u64, now: u64) -> f64 {
        assert!(since <= now);
        let window = 1_000_000;
        let mut probe =
            Connection { programs: Rc::clone(&self.programs), memory: self.memory.clone(), now, credit: 0 };
        probe.set_window(window, 2);
        probe.write(MAX_PACKETS_OUT, 4, u64::from(window));
        probe.call("cong_avoid", &[SOCKET, 0, u64::from(window)]);
        f64::from(probe.window() - window)
    }

    /// Runs the program of an operation with these arguments.
    fn call(&mut self, operation: &str, arguments: &[u64]) -> u64 {
        let programs = Rc::clone(&self.programs);
        for (place, &argument) in (0..).zip(arguments) {
            self.write(ARGUMENTS + 8 * place, 8, argument);
        }
        self.run(&programs[operation])
    }

    fn run(&mut self, program: &Unrelocated<'_>) -> u64 {
        let (mut registers, mut at) = ([0_u64; 11], 0_usize);
        registers[1] = ARGUMENTS;
        for _ in 0..10_000 {
            let Instruction { code, registers: operands, offset, immediate } = program.instructions[at];
            let (to, from) = (usize::from(operands & 15), usize::from(operands >> 4));
            let width = [4, 2, 1, 8][usize::from(code >> 3 & 3)];
            let address = |base: u64| base.wrapping_add_signed(i64::from(offset));
            at += 1;
            match code & 7 {
                // Loads: 64-bit constants, and memory.
                0 => {
                    assert_eq!(code, 0x18);
                    let high = program.instructions[at].immediate;
                    registers[to] = u64::from(immediate as u32) | u64::from(high as u32) << 32;
                    at += 1;
                }
                1 => registers[to] = self.read(address(registers[from]), width),
                2 => self.write(address(registers[to]), width, i64::from(immediate) as u64),
                3 => self.write(address(registers[to]), width, registers[from]),
                4 | 7 => {
                    let operand = operand(code, registers[from], immediate);
                    registers[to] = arithmetic(code, registers[to], operand);
                }
                _ if code == 0x95 => return registers[0],
                _ if code == 0x85 => {
                    let arguments = [registers[1], registers[2], registers[3]];
                    registers[0] = match program.symbols.get(&(at - 1)) {
                        Some(name) => self.kernel_function(name, arguments),
                        None if immediate == KTIME => self.now,
                        None => panic!("helper {immediate}"),
                    };
                }
                _ => {
                    let operand = operand(code, registers[from], immediate);
                    if jumps(code, registers[to], operand) {
                        at = at.checked_add_signed(isize::from(offset)).unwrap();
                    }
                }
            }
        }
        panic!("the program does not end");
    }

    /// The functions of the kernel, as its documentation describes them.
    fn kernel_function(&mut self, name: &str, arguments: [u64; 3]) -> u64 {
        let window = self.window();
        match name {
            "tcp_slow_start" => {
                let acked = arguments[1] as u32;
                let grown = (window + acked).min(self.read(SND_SSTHRESH, 4) as u32);
                self.write(SND_CWND, 4, u64::from(grown));
                u64::from(acked - (grown - window))
            }
            "tcp_cong_avoid_ai" => {
                let (per_segment, acked) = (arguments[1] as u32, arguments[2] as u32);
                self.credit += acked;
                let growth = self.credit / per_segment;
                self.credit -= growth * per_segment;
                self.write(SND_CWND, 4, u64::from(window + growth));
                0
            }
            other => panic!("kernel function {other}"),
        }
    }

    fn read(&self, at: u64, width: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes[..width].copy_from_slice(&self.memory[at as usize..][..width]);
        u64::from_le_bytes(bytes)
    }

    fn write(&mut self, at: u64, width: usize, value: u64) {
        self.memory[at as usize..][..width].copy_from_slice(&value.to_le_bytes()[..width]);
    }
}

/// Returns the second operand: a register, or a constant.
fn operand(code: u8, register: u64, immediate: i32) -> u64 {
    if code & 8 != 0 { register } else { i64::from(immediate) as u64 }
}

/// Computes with 64 bits (class 7) or with 32 (class 4).
fn arithmetic(code: u8, a: u64, b: u64) -> u64 {
    let is_short = code & 7 == 4;
    let (a, b) = if is_short { (u64::from(a as u32), u64::from(b as u32)) } else { (a, b) };
    let shift = b as u32 & if is_short { 31 } else { 63 };
    let result = match code >> 4 {
        0 => a.wrapping_add(b),
        1 => a.wrapping_sub(b),
        2 => a.wrapping_mul(b),
        3 => a.checked_div(b).unwrap_or(0),
        4 => a | b,
        5 => a & b,
        6 => a << shift,
        7 => a >> shift,
        8 => a.wrapping_neg(),
        10 => a ^ b,
        11 => b,
        12 if is_short => ((a as i32) >> shift) as u64,
        12 => ((a as i64) >> shift) as u64,
        other => panic!("operation {other}"),
    };
    if is_short { u64::from(result as u32) } else { result }
}

/// Whether a jump is taken. Class 6 compares 32 bits.
fn jumps(code: u8, a: u64, b: u64) -> bool {
    let (a, b, c, d) = match code & 7 {
        6 => (u64::from(a as u32), u64::from(b as u32), i64::from(a as i32), i64::from(b as i32)),
        _ => (a, b, a as i64, b as i64),
    };
    match code >> 4 {
        0 => true,
        1 => a == b,
        2 => a > b,
        3 => a >= b,
        4 => a & b != 0,
        5 => a != b,
        6 => c > d,
        7 => c >= d,
        10 => a < b,
        11 => a <= b,
        12 => c < d,
        13 => c <= d,
        other => panic!("jump {other}"),
    }
}
