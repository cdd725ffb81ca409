//! A network of Linux namespaces whose switches are eBPF programs, or bridges of Open vSwitch: real hosts, real TCP, one
//! machine. It needs root.
//!
//! ```text
//!    tw-h0            tw-fabric                                      tw-h4
//!  ┌───────┐       ┌───────────────────────────────────────┐       ┌───────┐
//!  │  eth0 ├───────┤ r0p0   r0p2 ─── r3p0   r3p2 ─── ···   ├───────┤ eth0  │
//!  └───────┘       │    leaf0            spine0            │       └───────┘
//!                  │   r0mirror         r3mirror           │
//!                  │      │                │               │
//!                  │   r0monitor        r3monitor          │
//!                  └───────────────────────────────────────┘
//! ```
//!
//! - A **host** is a network namespace that `ip netns` knows, with one interface. Its addresses are those of the
//!   [topology](thalweg_network::Topology). Its neighbour entries are ordinary ones, learnt by ARP.
//! - A **switch** is a program at the ingress of its ports (`src/ebpf/switch.bpf.c`). It looks up the destination address
//!   in its [table](Tables), writes the base address in place of a shadow address at the last switch (Rasley et al.,
//!   "Planck", SIGCOMM 2014, section 6.2), counts, copies the frame to its monitor port, and hands it to the queue of another
//!   port. It answers ARP requests to all by itself, with the base address of the host asked for: nothing is flooded, so
//!   that loops in the topology are no matter. Requests to one host go to that host. All ports of all switches are
//!   interfaces of one namespace, the **fabric**.
//!   With [`Plane::Ovs`] it is a bridge of Open vSwitch in user space, with the same ports, and forwards what it is told
//!   to by OpenFlow ([`Lab::openflow`]).
//! - A **link** is a veth pair with a token bucket of the link's rate in front of each end. Hosts send a little below
//!   that rate ([`Plan::host_share`]).
//! - A **monitor port** is a veth pair, too. All that a switch forwards is copied to it as it came in, and what is more
//!   than its rate and its queue is dropped: the oversubscribed mirroring of Planck, section 3.1.
//!
//! # Names and traces
//! Every namespace has a name with the lab's [`Prefix`], and everything else is inside one of them. The switch program is
//! held by the ports, and its maps by the program: neither is pinned anywhere, and a lab needs no process to stay up. What
//! is changed outside is the machine's list of allowed congestion controls, if the hosts' is not in it. This and the
//! plan are written to `/run/thalweg/PREFIXlab.json` first. [`Lab::down`] removes all that and restores the list, as
//! does [`Lab::up`] before it makes another lab of the same prefix, whatever a crash has left. Processes in the
//! namespaces are killed.
//!
//! # What is real, and what is not
//! Hosts run the kernel's own TCP, and queues are real queues. A frame takes about 1 us a switch, whatever the links'
//! delays are said to be. Rates are those of whole frames without preamble and check sequence: a link of 100 Mbit/s carries
//! a little more than one of that name. Frames on veth pairs have no transport checksums. Everybody shares the
//! processors, so that a measurement is to come with its [`Headroom`].
//!
//! # Example
//! ```no_run
//! use std::process::Command;
//!
//! use thalweg_lab::{DEFAULT_RATE, Headroom, Lab, Plan};
//!
//! let lab = Lab::up(Plan::leaf_spine(DEFAULT_RATE)?)?;
//! let ping = || lab.exec("h0", Command::new("ping").args(["-c", "3", "10.0.0.5"]));
//! let (ping, headroom) = Headroom::measure(|| ping()?.wait().map_err(Box::<dyn std::error::Error>::from))?;
//! println!("{}, {:?}", ping?, headroom.verdict());
//! for switch in lab.status()?.switches {
//!     println!("{}: {} copies dropped", switch.name, switch.monitor_queue.dropped_packets);
//! }
//! Lab::down(&lab.plan().prefix)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod ebpf;
mod error;
pub mod headroom;
mod lab;
mod layout;
mod ovs;
mod plan;
mod record;
mod routes;
mod shaper;
mod status;
mod sysctl;

pub use ebpf::{Drops, Installed, SwitchCounters, TableEntry, TableError, Tables};
pub use error::LabError;
pub use headroom::{Headroom, Verdict};
pub use lab::{Lab, Removed};
pub use ovs::OpenFlowSwitch;
pub use plan::{
    DEFAULT_RATE, MAX_BUFFER, MAX_PORTS, MAX_RATE, MIN_RATE, MTU_RANGE, Plan, PlanError, Plane, Prefix,
};
pub use routes::{DEFAULT_ADDRESSES, shortest_path_tables};
pub use status::{HostStatus, PortStatus, Status, SwitchStatus, link_name};
pub use thalweg_linux::tc::QueueCounters;
pub use thalweg_linux::{Namespace, NamespaceError};
