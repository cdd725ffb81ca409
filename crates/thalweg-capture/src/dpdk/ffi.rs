//! Safe functions for those of `shim.c`.

#![expect(unsafe_code, reason = "calls into a C library")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::keeper;

/// Bytes for the messages of DPDK about one call.
const LOG_LENGTH: usize = 4096;

/// DPDK attaches, redirects its log and detaches for one thread at a time.
static CONTROL: Mutex<()> = Mutex::new(());

fn control() -> MutexGuard<'static, ()> {
    CONTROL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What opening a port needs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct PortRequest {
    /// The number of queues to receive on, where the device leaves the choice.
    pub(super) readers: u16,
    /// The number of packets that each queue can hold.
    pub(super) descriptors: u16,
    /// The longest frame, in bytes, that a driver delivers in one packet buffer; 0 if it does not say.
    pub(super) frame_bytes: u16,
    pub(super) promiscuous: bool,
}

/// The maximum number of packet sockets of a port.
const MAX_SOCKETS: usize = 16;

/// An open port, closed when dropped.
#[derive(Debug)]
pub(super) struct OpenPort(PortState);

/// What the C code keeps of a port.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct PortState {
    /// The packet buffers, only used by the C code.
    pool: *mut c_void,
    /// The index of the network interface behind the port; 0 if it has none.
    interface: u32,
    port: u16,
    queues: u16,
    /// The packet sockets of the driver, which are its own.
    socket_count: u32,
    sockets: [c_int; MAX_SOCKETS],
    /// Whether closing it ends promiscuous mode.
    made_promiscuous: bool,
}

/// A received packet.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    /// The number of copied bytes.
    pub(super) captured: u32,
    /// The length of the packet.
    pub(super) length: u32,
}

/// Packets that a port has dropped since it was opened. A driver without statistics has none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drops {
    /// No descriptor was free.
    pub(super) missed: u64,
    /// No packet buffer was free.
    pub(super) no_buffer: u64,
    /// The ring that the kernel shares with the driver was full; since the last reading.
    pub(super) by_kernel: u64,
}

/// An error of DPDK.
#[derive(Debug)]
pub(super) struct Failure {
    /// The first message of DPDK, or else the system error.
    pub(super) reason: String,
}

unsafe extern "C" {
    fn thalweg_dpdk_start(argc: c_int, argv: *mut *mut c_char, log: *mut c_char, log_length: usize) -> c_int;
    fn thalweg_dpdk_open(
        device: *const c_char,
        request: *const PortRequest,
        open: *mut PortState,
        log: *mut c_char,
        log_length: usize,
    ) -> c_int;
    fn thalweg_dpdk_close(open: *mut PortState);
    fn thalweg_dpdk_receive(
        port: u16,
        queue: u16,
        bytes: *mut u8,
        stride: u32,
        packets: *mut Received,
        max: u16,
    ) -> u16;
    fn thalweg_dpdk_leave();
    fn thalweg_dpdk_drops(open: *const PortState, drops: *mut Drops);
    fn thalweg_dpdk_link(port: u16) -> c_int;
}

// SAFETY: DPDK's ports may be used by any thread; only the pool's address makes the type not `Send` by itself.
unsafe impl Send for PortState {}
// SAFETY: the methods that take `&self` call functions that may run at the same time, `receive` on different queues.
unsafe impl Sync for PortState {}

/// Starts the EAL of this process. To be called once.
pub(super) fn start(arguments: &[CString]) -> Result<(), Failure> {
    // The EAL keeps the arguments, and reorders the pointers.
    let arguments: Vec<*mut c_char> = arguments.iter().map(|text| text.clone().into_raw()).collect();
    let arguments = arguments.leak();
    let mut log = [0_u8; LOG_LENGTH];
    let _control = control();
    // SAFETY: the arguments are C strings which are never freed, and the log has the given length.
    let status = unsafe {
        let count = arguments.len() as c_int;
        thalweg_dpdk_start(count, arguments.as_mut_ptr(), log.as_mut_ptr().cast(), log.len())
    };
    succeeded(status, &log)
}

/// Gives back what the calling thread got with its first [`OpenPort::receive`].
pub(super) fn leave() {
    // SAFETY: takes no argument; the EAL runs, because a port was opened.
    unsafe { thalweg_dpdk_leave() }
}

impl OpenPort {
    /// Attaches a device and starts its port. The EAL must have been started.
    pub(super) fn open(device: &CStr, request: PortRequest) -> Result<OpenPort, Failure> {
        let mut open = PortState {
            pool: ptr::null_mut(),
            interface: 0,
            port: 0,
            queues: 0,
            socket_count: 0,
            sockets: [0; MAX_SOCKETS],
            made_promiscuous: false,
        };
        let mut log = [0_u8; LOG_LENGTH];
        let _control = control();
        // SAFETY: the pointers are to a C string and to values of the types of the C code; the log has the given length.
        let status = unsafe {
            thalweg_dpdk_open(device.as_ptr(), &request, &mut open, log.as_mut_ptr().cast(), log.len())
        };
        // After a failure the C code has left nothing to close.
        succeeded(status, &log).map(|()| OpenPort(open))
    }

    /// Returns the number of queues to receive on.
    pub(super) fn queues(&self) -> u16 {
        self.0.queues
    }

    /// Returns the index of the network interface behind the port, if there is one.
    pub(super) fn interface(&self) -> Option<i32> {
        i32::try_from(self.0.interface).ok().filter(|&index| index > 0)
    }

    /// Receives packets of a queue, which no other thread may do at the same time: the caller owns the queue. The packet i is in the
    /// i-th part of `bytes`, of which each has `stride` bytes. Returns the number of packets, at most the length of `packets`.
    #[inline]
    pub(super) fn receive(
        &self,
        queue: u16,
        bytes: &mut [u8],
        stride: usize,
        packets: &mut [Received],
    ) -> usize {
        let max = packets.len().min(bytes.len() / stride).min(usize::from(u16::MAX)) as u16;
        assert!(queue < self.0.queues, "a queue of this port");
        // SAFETY: the C code writes at most `max` packets and as many parts of `stride` bytes, which both slices have.
        let received = unsafe {
            let (bytes, packets) = (bytes.as_mut_ptr(), packets.as_mut_ptr());
            thalweg_dpdk_receive(self.0.port, queue, bytes, stride as u32, packets, max)
        };
        usize::from(received)
    }

    /// Reads the drops.
    pub(super) fn drops(&self) -> Drops {
        let mut drops = Drops::default();
        // SAFETY: the pointers are to values of the types of the C code.
        unsafe { thalweg_dpdk_drops(&self.0, &mut drops) };
        drops
    }

    /// Returns whether the link is up; `None` if the device was removed.
    pub(super) fn is_up(&self) -> Option<bool> {
        // SAFETY: takes a number only.
        match unsafe { thalweg_dpdk_link(self.0.port) } {
            ..=-1 => None,
            up => Some(up != 0),
        }
    }
}

impl Drop for OpenPort {
    fn drop(&mut self) {
        let mut port = self.0;
        keeper::run(move || {
            let port = &mut port;
            let _control = control();
            // SAFETY: the port is open, and nobody uses it any longer.
            unsafe { thalweg_dpdk_close(port) }
        });
    }
}

/// Converts an error number. Of DPDK's messages the first is the cause, and the others what follows from it.
fn succeeded(status: c_int, log: &[u8]) -> Result<(), Failure> {
    if status == 0 {
        return Ok(());
    }
    let log = CStr::from_bytes_until_nul(log).unwrap_or_default().to_string_lossy();
    let message = log.lines().map(str::trim).find(|line| !line.is_empty());
    let system = || io::Error::from_raw_os_error(status).to_string();
    Err(Failure { reason: message.map_or_else(system, str::to_owned) })
}
