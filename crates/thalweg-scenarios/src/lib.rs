//! What can be tried on labs of network namespaces: `thalweg lab run`.
//!
//! | module | what it has |
//! |---|---|
//! | [`scenarios`] | what can be tried |
//! | [`shape`] | what a lab is to look like |
//! | [`part`] | what of it can fail, by name |
//! | [`report`], [`plot`] | what came of it: text and JSON, drawings |
//! | [`configuration`] | the daemon's file for a lab |
//! | `closed_loop` | the daemon at work on a lab |
//! | `switches`, `installed` | what the eBPF switches have installed, read back and put right |
//! | [`openflow`] | switches of Open vSwitch, told what to forward |
//! | `trace` | what happened, and when |
//! | `delivery` | from collectors to the controller: all of it in order, or not |
//! | `reach` | who reaches whom |
//! | `traffic`, `streams` | transfers between hosts: by iperf3, and many at once |
//! | `session` | a lab for the time of a scenario |
//! | [`spread`] | how measured times lie |
//!
//! **One clock.** Hosts, switches, collectors and controller are on one machine. Packets have the kernel's time of their
//! arrival at the monitor port, and all else is timed by the same clock.
//!
//! **What measures does not disturb**, as far as it can: the loop sleeps when nothing comes, and with every result
//! comes what the machine had left ([`thalweg_lab::Headroom`]).

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod closed_loop;
pub mod configuration;
mod delivery;
mod error;
mod installed;
pub mod openflow;
pub mod part;
pub mod plot;
mod reach;
pub mod report;
pub mod scenarios;
mod session;
pub mod shape;
pub mod spread;
mod streams;
mod switches;
mod trace;
mod traffic;

pub use error::ScenarioError;
