//! The interfaces of the Linux kernel that Thalweg uses, each behind one safe wrapper.
//!
//! | module | what it wraps |
//! |---|---|
//! | [`socket`] | a socket of any family, with the options and addresses of packet(7), AF_XDP and netlink(7) |
//! | [`netdevice`] | what a socket can ask about an interface (netdevice(7)) |
//! | [`netlink`] | interfaces, addresses, routes (rtnetlink(7)) |
//! | [`tc`] | queues and programs at interfaces (tc(8)) |
//! | [`bpf`] | eBPF programs and maps (bpf(2)), from object files too |
//! | [`namespace`] | network namespaces (network_namespaces(7)) |
//! | [`privileges`] | capabilities and root, given up for good (capabilities(7)) |
//!
//! Everything here waits for the kernel and returns; there is no thread, no event loop and no state beside descriptors.
//! Errors are the kernel's own, with what was asked for. `unsafe` is in `socket`, `netdevice`, `bpf` and `privileges` alone.

pub mod bpf;
pub mod namespace;
pub mod netdevice;
pub mod netlink;
pub mod privileges;
pub mod socket;
pub mod tc;

pub use namespace::{Namespace, NamespaceError};
pub use netlink::{Netlink, NetlinkError};

#[cfg(test)]
#[path = "../tests/skip/mod.rs"]
mod skip;
