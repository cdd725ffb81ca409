//! Packet sources that implement the `Source` trait of `thalweg-wire`: capture files, live interfaces, DPDK ports, and filters
//! in front of them.
//!
//! [`open`](open()) opens all of them, with any backend, in another network namespace if configured:
//!
//! ```no_run
//! use thalweg_capture::{InterfaceSpec, Opened, Spec, open};
//! use thalweg_capture::backend::Backend;
//! use thalweg_capture::live::LiveOptions;
//! use thalweg_wire::Source;
//!
//! let port = InterfaceSpec { backend: Some(Backend::Prompt), ..InterfaceSpec::new(LiveOptions::new("eth1")) };
//! for spec in [Spec::file("trace.pcap"), port.into()] {
//!     let Opened { mut sources, choice } = open(&spec)?;
//!     println!("{}", choice.map_or_else(|| "a file".to_owned(), |choice| choice.reason));
//!     let batch = sources[0].next_batch()?;
//! }
//! # Ok::<(), thalweg_capture::CaptureError>(())
//! ```
//!
//! This crate contains `unsafe` code: memory-mapped files, rings shared with the kernel, libpcap and DPDK, each behind a
//! small safe type.

pub mod backend;
mod choice;
pub mod dpdk;
mod error;
pub mod file;
pub mod filter;
pub mod live;
pub mod memory;
mod open;
mod source;
mod spec;
pub mod xdp;

pub use choice::{Choice, choose};
pub use error::CaptureError;
pub use open::{Opened, open};
pub use source::{AnySource, wait_any};
pub use spec::{FileAccess, InterfaceSpec, Readers, Spec};
pub use thalweg_linux::Namespace;

#[cfg(test)]
#[path = "../tests/it/skip.rs"]
mod skip;
