//! What can be tried in a lab, each with the claim that it is to show.
//!
//! | scenario | what it shows |
//! |---|---|
//! | [`collide`] | two TCP flows that come onto one link are apart within milliseconds (Planck, figure 15) |
//! | [`faults`] | whatever befalls network or controller, forwarding is whole again after, and the loop goes on |
//! | [`reroute_latency`] | how soon packets take another path, by ARP and by OpenFlow (figure 16) |
//! | [`udp`] | a UDP flow stays where it was sent, for as long as it is wanted there |
//! | [`workload`] | how fast hosts are that all send at once, under one scheme of steering and another (figure 14) |

pub mod collide;
pub mod faults;
pub mod reroute_latency;
pub mod udp;
pub mod workload;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use thalweg_lab::Prefix;
use thalweg_wire::BitRate;

/// What all scenarios are run with.
pub struct Setting<'a> {
    /// Of the links.
    pub rate: BitRate,
    /// Of the lab's names.
    pub prefix: Prefix,
    /// When set, the scenario ends, and its lab is removed.
    pub stop: Arc<AtomicBool>,
    /// Hears how far it is.
    pub hear: &'a mut dyn FnMut(&str),
}
