//! A network of Linux namespaces on one machine, switched by eBPF programs or Open vSwitch bridges: real hosts, real
//! TCP. Needs root.
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
//! - A **host** is a network namespace, visible to `ip netns`, with one interface. Its addresses are those of the
//!   [topology](thalweg_network::Topology). It learns neighbour entries by ARP as usual.
//! - A **switch** is a program at the ingress of its ports (`src/ebpf/switch.bpf.c`). It looks up the destination
//!   address in its [table](Tables), counts the frame, copies it to the monitor port and hands it to the queue of
//!   another port. The last switch replaces a shadow address by the base address (Rasley et al., "Planck", SIGCOMM
//!   2014, section 6.2). Switches answer broadcast ARP requests themselves with the host's base address: nothing is
//!   flooded, so loops in the topology are harmless. Unicast requests go to their host. All ports of all switches are
//!   interfaces of one namespace, the **fabric**.
//!   With [`Plane::Ovs`] a switch is an Open vSwitch bridge in user space with the same ports, controlled by OpenFlow
//!   ([`Lab::openflow`]).
//! - A **link** is a veth pair with a token bucket of the link's rate in front of each end. Hosts send a little below
//!   that rate ([`Plan::host_share`]).
//! - A **monitor port** is also a veth pair. Every forwarded frame is copied to it as it came in; copies that exceed
//!   its rate and queue are dropped: the oversubscribed mirroring of Planck, section 3.1.
//!
//! An [`EmulatedLab`] has the same hosts, and an emulated network instead of switches: rates, delays and queues of a whole network in
//! software, in real time.
//!
//! # Names and cleanup
//! The name of every namespace begins with the lab's [`Prefix`], and everything else is inside a namespace. Ports hold
//! the switch program, and the program holds its maps: nothing is pinned, and a lab needs no process to stay up. The
//! only change outside is the machine's list of allowed congestion controls, if the hosts' is missing. This change and
//! the plan are first recorded in `/run/thalweg/PREFIXlab.json`. [`Lab::down`] kills the processes in the namespaces,
//! removes everything and restores the list, even after a crash. [`Lab::up`] does the same before it creates a lab of
//! the same prefix.
//!
//! # Realism
//! Hosts run the kernel's TCP, and queues are real queues. A frame takes about 1 us per switch; the topology's link
//! delays, loss and jitter are ignored. Rates count whole frames without preamble and check sequence: a link of 100
//! Mbit/s carries slightly more than a real one. Frames on veth pairs have no transport checksums. Everything shares the processors,
//! so report each measurement with its [`Headroom`].
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

mod carrier;
mod ebpf;
mod emulated_lab;
mod emulation;
mod error;
pub mod headroom;
mod lab;
mod layout;
mod ovs;
mod plan;
mod record;
pub mod router;
mod routes;
mod shaper;
mod status;
mod sysctl;
pub mod tcp;

pub use ebpf::{Drops, Installed, SwitchCounters, TableEntry, TableError, Tables};
pub use emulated_lab::{
    ArbiterStatus, EmulatedHost, EmulatedLab, EmulatedPlan, EmulatedStatus, HostAddresses, ProcessStatus,
};
pub use emulation::EndedProcesses;
pub use emulation::log::{ArbiterContact, EndpointNews};
pub use error::LabError;
pub use headroom::{Headroom, Verdict};
pub use lab::{Lab, Removed};
pub use layout::HOST_INTERFACE;
pub use ovs::OpenFlowSwitch;
pub use plan::{
    DEFAULT_HOST_SHARE, DEFAULT_RATE, MAX_BUFFER, MAX_EMULATED_HOSTS, MAX_PORTS, MAX_RATE, MIN_RATE,
    MTU_RANGE, Plan, PlanError, Plane, Prefix,
};
pub use router::RouterLab;
pub use routes::{DEFAULT_ADDRESSES, shortest_path_tables};
pub use status::{HostStatus, PortStatus, Status, SwitchStatus, link_name};
pub use tcp::{Algorithm, HostTcp, LabTcp};
pub use thalweg_linux::tc::QueueCounters;
pub use thalweg_linux::{Namespace, NamespaceError};
