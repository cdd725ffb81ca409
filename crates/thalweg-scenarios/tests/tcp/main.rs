//! Congestion controls of the lab, which are eBPF programs, against those of the emulator.
//!
//! The compiled programs run in an interpreter, so the tests need no privilege and no time, and repeat exactly.

#![cfg(all(target_os = "linux", target_endian = "little"))]

mod dctcp;
mod h_tcp;
mod h_tcp_connection;
mod machine;
