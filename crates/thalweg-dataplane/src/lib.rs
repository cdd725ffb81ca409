//! Sketches inside the kernel: eBPF programs at XDP or at the ingress of tc count frames before the network stack, and a
//! reader in user space takes windows from them without stopping them.
//!
//! ```text
//!   frames ──► XDP or tc ──► pass, unchanged
//!                 │
//!   per CPU:  state, counters, log of keys      (memory shared with the reader)
//!                 │
//!              Reader ──► Window: counters, statistics, keys ──► thalweg_sketch
//! ```
//!
//! The programs sample as [`thalweg_sketch::Nitro`] does and hash, parse and count alike, so that their state is that of
//! user space, bit for bit on one CPU with the same seed. A packet that no sketch samples is not parsed.
//!
//! | module | contents |
//! |---|---|
//! | [`spec`] | which sketches to count, by which keys |
//! | [`layout`] | the structures that the programs and the reader share |
//! | [`kernel_sketches`] | loads the programs and their memory |
//! | [`hook`] | where a program can run |
//! | [`attachment`] | attaches a program to an interface |
//! | [`pinned`] | programs and memory that outlive their process |
//! | [`counting`] | an attached program with its reader |
//! | [`snapshot`] | the counters at one moment |
//! | [`window`] | the sketches of a window, from two snapshots |
//! | [`reason`] | why a sampled packet cannot be counted |
//! | [`key_log`] | the keys of sampled packets |
//! | [`reader`] | windows with their candidates |
//! | [`error`] | errors |
//!
//! **Guarantee.** Forwarding is never harmed: a program always passes the frame on and never writes to it, nothing waits,
//! and all loops are bounded. A sampled packet without a key is counted by [`Reason`]; the number of
//! all such packets follows with a bound ([`thalweg_sketch::Uncounted`]).

pub mod attachment;
pub mod counting;
pub mod error;
pub mod hook;
pub mod kernel_sketches;
pub mod key_log;
pub mod layout;
pub mod pinned;
pub mod reader;
pub mod reason;
pub mod snapshot;
pub mod spec;
pub mod window;

pub use attachment::Attachment;
pub use counting::{Counting, CountingOptions};
pub use error::DataplaneError;
pub use hook::{Hook, HookChoice};
pub use kernel_sketches::KernelSketches;
pub use pinned::PinName;
pub use reader::{Reader, ReaderOptions};
pub use reason::Reason;
pub use snapshot::Snapshot;
pub use spec::{KernelKey, SketchKind, SketchSpec, Specification};
pub use window::{Window, WindowSketch};
