//! Safe wrappers for the Linux kernel interfaces that Thalweg uses.
//!
//! | module | contents |
//! |---|---|
//! | [`socket`] | sockets of any family, with the options and addresses of packet(7), AF_XDP and netlink(7) |
//! | [`netdevice`] | interface properties by ioctl (netdevice(7)) |
//! | [`netlink`] | interfaces, addresses, routes (rtnetlink(7)) |
//! | [`sock_diag`] | TCP connections with their state (sock_diag(7)) |
//! | [`tc`] | queueing disciplines and filters of interfaces (tc(8)) |
//! | [`bpf`] | eBPF programs and maps (bpf(2)), and an object file loader |
//! | [`clock`] | the kernel's clocks (clock_gettime(2)) |
//! | [`name_lock`] | locks by name within a network namespace (unix(7)) |
//! | [`namespace`] | network namespaces (network_namespaces(7)) |
//! | [`tcp`] | TCP connections with a source address and a signature (tcp(7)) |
//! | [`message_batch`] | many messages of a socket with one system call (sendmmsg(2), recvmmsg(2)) |
//! | [`tun`] | TUN and TAP interfaces |
//! | [`wait_set`] | waits for several descriptors (ppoll(2)) |
//! | [`awake`] | idle processors that do not sleep (PM QoS) |
//! | [`priority`] | scheduling of threads (sched(7)) |
//! | [`process`] | groups of processes (setpgid(2)), and processes that are not children |
//! | [`privileges`] | dropping capabilities and root (capabilities(7)) |
//! | [`durable_file`] | files that are replaced as a whole (fsync(2), rename(2)) |
//! | [`folders`] | directories for the user that root changes to |
//!
//! All calls block until the kernel replies. No threads, no event loop, no state except descriptors. Errors are those
//! of the kernel plus the failed operation. Only `socket`, `message_batch`, `wait_set`, `netdevice`, `bpf`, `tun`, `priority` and
//! `privileges` contain `unsafe`.

pub mod awake;
pub mod bpf;
pub mod clock;
pub mod durable_file;
pub mod folders;
mod kernel_version;
pub mod message_batch;
pub mod name_lock;
pub mod namespace;
pub mod netdevice;
pub mod netlink;
pub mod priority;
pub mod privileges;
pub mod process;
pub mod sock_diag;
pub mod socket;
pub mod tc;
pub mod tcp;
pub mod tun;
pub mod wait_set;

pub use kernel_version::KernelVersion;
pub use namespace::{Namespace, NamespaceError};
pub use netlink::{Netlink, NetlinkError};

#[cfg(test)]
#[path = "../tests/skip/mod.rs"]
mod skip;
