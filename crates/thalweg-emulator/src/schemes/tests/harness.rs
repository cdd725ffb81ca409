//! A router without a network: packets in, packets out, slot by slot.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use thalweg_network::{EndpointId, PortIndex, RouterId};
use thalweg_wire::BitRate;

use crate::outcome::{Dropped, Reason, Request};
use crate::packet::Packet;
use crate::ports::lane::Lane;
use crate::ports::port::{Extras, Port, Ports};
use crate::ports::tally::{PortTally, Verdicts};
use crate::queues::port_set::PortSet;
use crate::router::context::Context;
use crate::router::{Route, Router, RouterPorts};
use crate::slot::{Slot, SlotClock};
use crate::ticks::{Delay, Pace, Ticks};

/// 1,500 bytes at 10 Gbit/s: 1.2 us.
pub(crate) const CLOCK: SlotClock = SlotClock { slot_bytes: 1_500, rate: BitRate(10_000_000_000) };

/// The longest packets take 44 slots.
const HORIZON: u64 = 63;

/// The port with the destination's number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByDestination;

impl Route for ByDestination {
    fn route<C: Copy>(&mut self, packet: &Packet<C>, _context: &mut Context<'_>) -> Option<PortIndex> {
        Some(PortIndex(packet.destination().0))
    }
}

/// A request to send a packet of `flow` to `port`.
pub(crate) fn request(port: u16, flow: u32, id: u32, length: u16) -> Request {
    Request { packet: Packet::new(EndpointId(9), EndpointId(port), flow, id, length), remaining: 0 }
}

/// A router under test.
pub(crate) struct Bench<R: Router> {
    pub(crate) router: R,
    pub(crate) now: Slot,
    pub(crate) dropped: Vec<Dropped>,
    ports: Vec<Port>,
    lanes: Vec<Lane<R::Custom>>,
    extras: Extras<R::Custom>,
    verdicts: Vec<Verdicts>,
    down: PortSet,
    random: Xoshiro256PlusPlus,
}

impl<R: Router> Bench<R> {
    /// A router with `ports` ports of the clock's rate.
    pub(crate) fn new(ports: usize, build: impl FnOnce(ByDestination, RouterPorts<'_>) -> R) -> Self {
        let pace = Pace::new(CLOCK, CLOCK.rate);
        let rates = vec![CLOCK.rate; ports];
        Bench {
            router: build(ByDestination, RouterPorts { clock: CLOCK, rates: &rates, longest: 1_500 }),
            now: Slot(0),
            dropped: Vec::new(),
            ports: (0..ports as u32).map(|lane| Port::new(pace, Delay::default(), lane)).collect(),
            lanes: (0..ports).map(|_| Lane::new(HORIZON, 4)).collect(),
            extras: Extras::new(ports),
            verdicts: vec![Verdicts::default(); ports],
            down: PortSet::new(ports),
            random: Xoshiro256PlusPlus::seed_from_u64(7),
        }
    }

    /// Calls the router within a context.
    pub(crate) fn with_context<T>(&mut self, call: impl FnOnce(&mut R, &mut Context<'_>) -> T) -> T {
        let mut context = Context {
            now: self.now,
            router: RouterId(0),
            random: &mut self.random,
            verdicts: &mut self.verdicts,
            down: &self.down,
            any_down: false,
            dropped: &mut self.dropped,
        };
        call(&mut self.router, &mut context)
    }

    /// Delivers packets to the router.
    pub(crate) fn arrive(&mut self, requests: impl IntoIterator<Item = Request>) {
        let prepare = |request: Request| request.packet.with_custom(R::prepare_request(&request));
        let packets: Vec<Packet<R::Custom>> = requests.into_iter().map(prepare).collect();
        self.with_context(|router, context| router.input(&packets, context));
    }

    /// Runs one slot. Returns what each port has sent, in order.
    pub(crate) fn step(&mut self) -> Vec<Vec<Packet>> {
        let mut context = Context {
            now: self.now,
            router: RouterId(0),
            random: &mut self.random,
            verdicts: &mut self.verdicts,
            down: &self.down,
            any_down: false,
            dropped: &mut self.dropped,
        };
        let mut ports = Ports {
            ports: &mut self.ports,
            lanes: &mut self.lanes,
            extras: &mut self.extras,
            start: Ticks::start_of(self.now),
        };
        self.router.output(&mut ports, &mut context);
        let now = self.now;
        self.now = now + 1;
        let sent = |lane: &mut Lane<R::Custom>| {
            let arriving = (0..=HORIZON).flat_map(|slots| std::mem::take(lane.arriving_mut(now + slots)));
            arriving.map(|packet| R::prepare_to_send(&packet)).collect()
        };
        self.lanes.iter_mut().map(sent).collect()
    }

    /// Runs one slot of a router with one port.
    pub(crate) fn step_one(&mut self) -> Vec<Packet> {
        self.step().swap_remove(0)
    }

    /// Skips `slots` slots without arrivals and departures.
    pub(crate) fn skip(&mut self, slots: u64) {
        self.now = self.now + slots;
    }

    /// Sends until the queues are empty.
    pub(crate) fn drain(&mut self) -> Vec<Vec<Packet>> {
        let mut sent = vec![Vec::new(); self.ports.len()];
        while self.waiting() > 0 {
            for (all, new) in sent.iter_mut().zip(self.step()) {
                all.extend(new);
            }
        }
        sent
    }

    /// Packets queued in the router.
    pub(crate) fn waiting(&self) -> u64 {
        let backlog = |port: usize| u64::from(self.router.backlog(PortIndex(port as u16)).packets);
        (0..self.ports.len()).map(backlog).sum()
    }

    /// Counters of a port.
    pub(crate) fn tally(&self, port: usize) -> PortTally {
        PortTally { sent: self.ports[port].sent(), verdicts: self.verdicts[port] }
    }

    /// Marked packets of port 0.
    pub(crate) fn marked(&self) -> u64 {
        self.verdicts[0].marked
    }

    /// Packets of port 0 dropped for this reason.
    pub(crate) fn dropped_for(&self, reason: Reason) -> u64 {
        self.verdicts[0].dropped[reason as usize]
    }
}
