//! The five functions of libpcap that compile and run filters, loaded from the shared library at run time.

#![expect(unsafe_code, reason = "calls into a C library")]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::mem::{align_of, size_of};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;

use super::error::FilterError;
use super::instruction::Instruction;

/// Names of the shared library: that of Debian and its derivatives, then the name that libpcap itself installs, then
/// the link that comes with its headers.
const LIBRARY_NAMES: [&str; 3] = ["libpcap.so.0.8", "libpcap.so.1", "libpcap.so"];

/// `PCAP_NETMASK_UNKNOWN`: only `ip broadcast` needs a netmask, and it is rejected without one.
const NETMASK_UNKNOWN: c_uint = 0xffff_ffff;

/// `struct bpf_program`.
#[repr(C)]
struct BpfProgram {
    length: c_uint,
    instructions: *mut Instruction,
}

/// `pcap_t`, opaque outside libpcap.
type Pcap = c_void;

/// libpcap, loaded until the process ends.
pub(super) struct Libpcap {
    open_dead: unsafe extern "C" fn(link_type: c_int, snap_length: c_int) -> *mut Pcap,
    close: unsafe extern "C" fn(*mut Pcap),
    compile: unsafe extern "C" fn(*mut Pcap, *mut BpfProgram, *const c_char, c_int, c_uint) -> c_int,
    free_code: unsafe extern "C" fn(*mut BpfProgram),
    get_error: unsafe extern "C" fn(*mut Pcap) -> *mut c_char,
    run: unsafe extern "C" fn(*const Instruction, *const u8, wire_length: c_uint, length: c_uint) -> c_uint,
    /// The compiler kept its state in global variables before libpcap 1.8.
    compiling: Mutex<()>,
    /// Keeps the functions above valid.
    _library: Library,
}

// The kernel's `sock_filter` and libpcap's `bpf_insn` are both our `Instruction`.
const _: () = assert!(size_of::<Instruction>() == size_of::<libc::sock_filter>());
const _: () = assert!(align_of::<Instruction>() == align_of::<libc::sock_filter>());

impl std::fmt::Debug for Libpcap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("libpcap")
    }
}

impl Libpcap {
    /// Returns libpcap, which is loaded at the first call.
    pub(super) fn get() -> Result<&'static Libpcap, FilterError> {
        static LIBPCAP: OnceLock<Result<Libpcap, String>> = OnceLock::new();
        let loaded = LIBPCAP.get_or_init(|| Libpcap::load().map_err(|error| error.to_string()));
        loaded.as_ref().map_err(|reason| FilterError::NoLibpcap { reason: reason.clone() })
    }

    fn load() -> Result<Libpcap, libloading::Error> {
        let [first, others @ ..] = LIBRARY_NAMES;
        let library = others.iter().fold(open(first), |opened, name| {
            opened.or_else(|error| open(name).map_err(|_| error)) // the first name's message tells most
        })?;
        // SAFETY: the types are those of the functions' declarations in pcap.h and pcap/bpf.h, which have not changed
        // since libpcap 0.4; the library is kept beside the pointers.
        unsafe {
            Ok(Libpcap {
                open_dead: *library.get("pcap_open_dead")?,
                close: *library.get("pcap_close")?,
                compile: *library.get("pcap_compile")?,
                free_code: *library.get("pcap_freecode")?,
                get_error: *library.get("pcap_geterr")?,
                run: *library.get("bpf_filter")?,
                compiling: Mutex::new(()),
                _library: library,
            })
        }
    }

    /// Compiles `expression`; returns the program, or libpcap's message.
    pub(super) fn compile(
        &self,
        expression: &str,
        dlt: i32,
        snap_length: u32,
    ) -> Result<Vec<Instruction>, String> {
        let expression = CString::new(expression).map_err(|_| "it contains a zero byte".to_owned())?;
        let snap_length = c_int::try_from(snap_length).unwrap_or(c_int::MAX);
        let _one_at_a_time = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: takes numbers only.
        let pcap = unsafe { (self.open_dead)(dlt, snap_length) };
        if pcap.is_null() {
            return Err("out of memory".to_owned());
        }
        let mut program = BpfProgram { length: 0, instructions: std::ptr::null_mut() };
        // SAFETY: `pcap` is open, `program` is ours to write, the expression ends in a zero byte.
        let status = unsafe { (self.compile)(pcap, &mut program, expression.as_ptr(), 1, NETMASK_UNKNOWN) };
        let result = if status == 0 {
            // SAFETY: on success the program points to `length` instructions until it is freed.
            let instructions =
                unsafe { std::slice::from_raw_parts(program.instructions, program.length as usize) }.to_vec();
            // SAFETY: the program was filled by `pcap_compile` and is freed once.
            unsafe { (self.free_code)(&mut program) };
            Ok(instructions)
        } else {
            // SAFETY: `pcap` is open; its message is a C string that lives as long as it does.
            let reason = unsafe { CStr::from_ptr((self.get_error)(pcap)) };
            Err(reason.to_string_lossy().into_owned())
        };
        // SAFETY: opened above, closed once, and neither result points into it.
        unsafe { (self.close)(pcap) };
        result
    }

    /// Runs `program`, compiled by [`compile`](Self::compile), on a frame; returns its result.
    #[inline]
    pub(super) fn run(&self, program: &[Instruction], bytes: &[u8], wire_length: u32) -> u32 {
        let length = bytes.len() as c_uint;
        // SAFETY: a compiled program has no jumps outside itself and always returns; libpcap checks each load from
        // the frame against `length`; the function keeps no state.
        unsafe { (self.run)(program.as_ptr(), bytes.as_ptr(), wire_length, length) }
    }
}

fn open(name: &str) -> Result<Library, libloading::Error> {
    // SAFETY: libpcap has no initialiser or finaliser that touches our memory.
    unsafe { Library::new(name) }
}
