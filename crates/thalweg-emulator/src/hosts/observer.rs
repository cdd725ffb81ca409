//! Observation of chosen flows: what packets and acknowledgements tell beside the state of both ends.
//!
//! Without an observer, hosts do nothing for it: the loop over arrivals is compiled twice. With one, each arrival costs a
//! few additions, without allocation. Memory: 100 bytes per place of a flow.
//!
//! **Queueing delay.** A packet's time from its hand-over to the network interface until its receiver processes it, minus the time
//! that the same packet takes over an idle path ([`PathDelay`]). It is the sum over the interface and all routers of the path, and
//! includes jitter. Emulated times are multiples of 1/128 slot at each hop; what is below zero by that rounding is zero.

use thalweg_wire::{Nanos, Timestamp};

use super::Hosts;
use super::connection::Connection;
use super::statistics::FlowStatus;
use crate::ports::tally::Traffic;

/// The time that a packet takes over an idle path, including the stack of the receiver: a constant, and a part for each byte.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathDelay {
    /// Propagation delays, and the receiver's stack, in nanoseconds.
    pub fixed_ns: f64,
    /// Transmission time of a byte on all links together, in nanoseconds.
    pub ns_per_byte: f64,
}

impl PathDelay {
    /// The queueing delay of a packet of `length` bytes that took `span`.
    #[inline]
    fn queueing(&self, span: Nanos, length: u16) -> Nanos {
        let idle = self.fixed_ns + self.ns_per_byte * f64::from(length);
        // A negative number becomes zero.
        Nanos((span.0 as f64 - idle).round() as u64)
    }
}

/// What was observed of a flow since it was last read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Data packets that its receiver processed, including needless retransmissions.
    pub arrived: Traffic,
    /// Sum of the queueing delays of these packets.
    pub queueing: Nanos,
    /// The longest of them.
    pub max_queueing: Nanos,
    /// The latest round-trip time that its sender measured since its start; `None` with pFabric, which measures none.
    pub rtt: Option<Nanos>,
}

/// An observed flow: its state, and what was observed.
pub type Reading = (FlowStatus, Observation);

/// What is observed at a place of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Observed {
    /// `None` if the flow is not chosen.
    path: Option<PathDelay>,
    is_touched: bool,
    seen: Observation,
}

/// The observer of all hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct Observer {
    /// By place.
    flows: Vec<Observed>,
    started: Vec<u32>,
    /// Flows whose sender had an acknowledgement or a timeout since the last call, if they are asked for.
    touched: Option<Vec<u32>>,
    ended: Vec<Reading>,
}

impl Observer {
    /// A flow starts at a place.
    pub(super) fn start(&mut self, place: u32, flow: u32) {
        let place = place as usize;
        if self.flows.len() <= place {
            self.flows.resize(place + 1, Observed::default());
        }
        self.flows[place] = Observed::default();
        self.started.push(flow);
    }

    /// A data packet of `length` bytes, sent at `sent`, was processed at `now`.
    #[inline]
    pub(super) fn arrived(&mut self, place: u32, length: u16, sent: Timestamp, now: Timestamp) {
        let Some(Observed { path: Some(path), seen, .. }) = self.flows.get_mut(place as usize) else {
            return;
        };
        let queueing = path.queueing(now.since(sent), length);
        seen.arrived += Traffic { packets: 1, bytes: u64::from(length) };
        seen.queueing = seen.queueing.saturating_add(queueing);
        seen.max_queueing = seen.max_queueing.max(queueing);
    }

    /// The sender of a flow had an acknowledgement, which measured `rtt`, or a timeout.
    #[inline]
    pub(super) fn sender_event(&mut self, place: u32, flow: u32, rtt: Option<Nanos>) {
        let observed = self.flows.get_mut(place as usize);
        let Some(observed) = observed.filter(|observed| observed.path.is_some()) else { return };
        if rtt.is_some() {
            observed.seen.rtt = rtt;
        }
        if let Some(touched) = &mut self.touched
            && !observed.is_touched
        {
            observed.is_touched = true;
            touched.push(flow);
        }
    }

    /// A flow ends.
    pub(super) fn end(&mut self, place: u32, connection: &Connection) {
        if let Some(&Observed { path: Some(_), seen, .. }) = self.flows.get(place as usize) {
            self.ended.push((FlowStatus::of(connection), seen));
        }
    }

    /// A flow was touched, and is not read.
    fn ignore(&mut self, place: u32) {
        if let Some(observed) = self.flows.get_mut(place as usize) {
            observed.is_touched = false;
        }
    }

    fn read(&mut self, place: u32) -> Observation {
        let Some(observed) = self.flows.get_mut(place as usize) else { return Observation::default() };
        observed.is_touched = false;
        let rtt = observed.seen.rtt;
        std::mem::replace(&mut observed.seen, Observation { rtt, ..Observation::default() })
    }
}

impl Hosts {
    /// Observes flows from now on. `touched` is whether [`take_touched`](Hosts::take_touched) is called, after each slot.
    pub fn observe(&mut self, touched: bool) {
        self.observer = Some(Observer { touched: touched.then(Vec::new), ..Observer::default() });
    }

    /// Moves the flows that started since the last call to `into`. Those that are to be observed are [chosen](Hosts::choose)
    /// before the next slot.
    pub fn take_started(&mut self, into: &mut Vec<u32>) {
        if let Some(observer) = &mut self.observer {
            into.append(&mut observer.started);
        }
    }

    /// Chooses an active flow for observation, or sets another path of it.
    pub fn choose(&mut self, flow: u32, path: PathDelay) {
        if let (Some(observer), Some(place)) = (&mut self.observer, self.connections.place(flow)) {
            let place = place as usize;
            observer.flows.resize((place + 1).max(observer.flows.len()), Observed::default());
            observer.flows[place].path = Some(path);
        }
    }

    /// Moves the chosen flows whose sender had an acknowledgement or a timeout since the last call to `into`.
    pub fn take_touched(&mut self, into: &mut Vec<u32>) {
        if let Some(touched) = self.observer.as_mut().and_then(|observer| observer.touched.as_mut()) {
            into.append(touched);
        }
    }

    /// Moves the last readings of the chosen flows that ended since the last call to `into`.
    pub fn take_ended(&mut self, into: &mut Vec<Reading>) {
        if let Some(observer) = &mut self.observer {
            into.append(&mut observer.ended);
        }
    }

    /// Reads an active flow; `None` if it has ended, or nothing is observed.
    pub fn read(&mut self, flow: u32) -> Option<Reading> {
        self.read_if(flow, |_| true)
    }

    /// Reads an active flow if its state satisfies `wanted`. It is no longer touched, in any case.
    pub fn read_if(&mut self, flow: u32, wanted: impl FnOnce(&FlowStatus) -> bool) -> Option<Reading> {
        let place = self.connections.place(flow)?;
        let observer = self.observer.as_mut()?;
        let status = FlowStatus::of(self.connections.look(place));
        match wanted(&status) {
            true => Some((status, observer.read(place))),
            false => {
                observer.ignore(place);
                None
            }
        }
    }
}
