//! An interpreter of eBPF (RFC 9669) for congestion controls, with a socket in memory instead of the kernel's.
//!
//! Addresses are offsets in one memory. The structures have the offsets of the object file.

use std::collections::BTreeMap;
use std::rc::Rc;

use thalweg_lab::Algorithm;
use thalweg_linux::bpf::Instruction;
use thalweg_linux::bpf::object::Unrelocated;

/// Places in memory: the arguments of an operation, a structure that one of them points to, the socket.
const ARGUMENTS: u64 = 0;
pub(crate) const SAMPLE: u64 = 64;
pub(crate) const SOCKET: u64 = 128;
const SIZE: usize = 512;

/// The programs of a congestion control and a connection's memory.
#[derive(Clone)]
pub(crate) struct Machine<K> {
    programs: Rc<BTreeMap<&'static str, Unrelocated<'static>>>,
    pub(crate) memory: Memory,
    pub(crate) kernel: K,
}

/// Bytes that programs read and write.
#[derive(Clone)]
pub(crate) struct Memory {
    bytes: Vec<u8>,
}

/// What a program calls.
pub(crate) enum Called<'a> {
    /// A function of the kernel.
    Function(&'a str),
    /// A helper, by its number.
    Helper(i32),
}

/// The kernel that programs call.
pub(crate) trait Kernel {
    /// Does what the kernel's documentation says of this function. Returns its result.
    fn call(&mut self, memory: &mut Memory, called: Called<'_>, arguments: [u64; 3]) -> u64;
}

impl<K: Kernel> Machine<K> {
    /// Loads the programs of a congestion control.
    pub(crate) fn load(algorithm: Algorithm, kernel: K) -> Machine<K> {
        let object = algorithm.object().unwrap();
        let read = |&(member, name): &(&'static str, &str)| (member, object.unrelocated(name).unwrap());
        let programs = Rc::new(algorithm.operations().iter().map(read).collect());
        Machine { programs, memory: Memory { bytes: vec![0; SIZE] }, kernel }
    }

    /// Runs the program of an operation with these arguments.
    pub(crate) fn call(&mut self, operation: &str, arguments: &[u64]) -> u64 {
        let programs = Rc::clone(&self.programs);
        for (place, &argument) in (0..).zip(arguments) {
            self.memory.write(ARGUMENTS + 8 * place, 8, argument);
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
                1 => registers[to] = self.memory.read(address(registers[from]), width),
                2 => self.memory.write(address(registers[to]), width, i64::from(immediate) as u64),
                3 => self.memory.write(address(registers[to]), width, registers[from]),
                4 | 7 => {
                    let operand = operand(code, registers[from], immediate);
                    registers[to] = arithmetic(code, registers[to], operand);
                }
                _ if code == 0x95 => return registers[0],
                _ if code == 0x85 => {
                    let arguments = [registers[1], registers[2], registers[3]];
                    let called = match program.symbols.get(&(at - 1)) {
                        Some(name) => Called::Function(name),
                        None => Called::Helper(immediate),
                    };
                    registers[0] = self.kernel.call(&mut self.memory, called, arguments);
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
}

impl Memory {
    pub(crate) fn read(&self, at: u64, width: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes[..width].copy_from_slice(&self.bytes[at as usize..][..width]);
        u64::from_le_bytes(bytes)
    }

    pub(crate) fn write(&mut self, at: u64, width: usize, value: u64) {
        self.bytes[at as usize..][..width].copy_from_slice(&value.to_le_bytes()[..width]);
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
