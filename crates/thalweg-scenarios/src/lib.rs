//! Scenarios that `thalweg lab run` measures on a lab of network namespaces.
//! | module | contents |
//! |---|---|
//! | [`scenarios`] | the scenarios |
//! | [`shape`] | the topology of a lab, from the command line |
//! | [`component`] | switches and links that can fail, by name |
//! | [`report`], [`plot`] | results as text, JSON and drawings |
//! | [`configuration`] | the daemon's configuration for a lab |
//! | `closed_loop` | the daemon running on a lab |
//! | `switches`, `installed` | reading back and repairing the rules of eBPF switches |
//! | [`openflow`] | installing routes in Open vSwitch |
//! | `trace` | the times of packets, requests and path changes |
//! | `delivery` | faulty delivery from collectors to the controller |
//! | `connectivity` | reachability between hosts, tested by TCP |
//! | `traffic`, `streams` | transfers between hosts, by iperf3 and by sockets |
//! | `session`, [`emulated`] | the lab of one scenario, with switches or over an emulated network |
//! | [`quantiles`] | quantiles and distributions of times |
//!
//! **One clock.** Hosts, switches, collectors and controller are on one machine. Packets have the kernel's time of their
//! arrival at the monitor port; the same clock times everything else.
//! **Little interference.** The loop sleeps while no packet arrives, and every result includes the idle CPU time
//! ([`thalweg_lab::Headroom`]).

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod closed_loop;
pub mod component;
pub mod configuration;
mod connectivity;
mod delivery;
pub mod emulated;
mod error;
mod installed;
pub mod openflow;
pub mod plot;
pub mod quantiles;
pub mod report;
pub mod scenarios;
mod session;
pub mod shape;
mod streams;
mod switches;
mod trace;
mod traffic;

pub use error::ScenarioError;
