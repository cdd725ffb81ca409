//! Splits a topology into shards: which router is on which core, and which lane connects which ports.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use thalweg_network::routing::{NextHops, NextHopsError, ecmp};
use thalweg_network::topology::{Link, Node, Topology};
use thalweg_network::{EndpointId, LinkId, LinkState, PortIndex, RouterId};
use thalweg_wire::{BitRate, Nanos};
use thiserror::Error;

use super::shard::{Interface, OTHER_SHARD, RouterState, Shard};
use crate::packet::{FRAMING, SHORTEST};
use crate::ports::impairment::{self, Impairment, Jitter};
use crate::ports::lane::Lane;
use crate::ports::monitor::{Monitor, MonitorPort};
use crate::ports::port::{Extras, Port};
use crate::ports::tally::Verdicts;
use crate::queues::port_set::PortSet;
use crate::router::{Balance, Router, RouterPorts, Routing};
use crate::slot::{Slot, SlotClock};
use crate::ticks::{Delay, Pace, Ticks};

/// Everything that a network is built from, except its scheme.
#[derive(Clone, Debug)]
pub struct Blueprint<'a> {
    /// The topology.
    pub topology: &'a Topology,
    /// The slot clock.
    pub clock: SlotClock,
    /// Bytes of the longest packet, framing included.
    pub longest: u16,
    /// How routers choose among equal-cost paths.
    pub balance: Balance,
    /// Bytes that an endpoint's network interface can queue, framing included.
    pub interface_buffer: u64,
    /// Monitor ports, at most one per router.
    pub monitors: &'a [Monitor],
    /// Whether watched ports count by class, if the scheme has classes. It changes no result.
    pub counts_classes: bool,
    /// The random seed.
    pub seed: u64,
}

/// Why a network cannot be built.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlueprintError {
    /// The topology has no endpoints.
    #[error("the topology has no endpoints")]
    NoEndpoints,
    /// Slots are empty, or longer than the emulator's arithmetic supports.
    #[error("slots of {slot_bytes} bytes at {rate}: expected 84 to 65535 bytes and a rate above zero")]
    Clock {
        /// Bytes per slot.
        slot_bytes: u32,
        /// The rate.
        rate: BitRate,
    },
    /// A link is too slow or too long for the slot length.
    #[error(
        "link {link}: a packet of {longest} bytes at {rate} with a delay of {delay} takes {slots} slots, more than {MAX_HORIZON}"
    )]
    Horizon {
        /// Index of the link.
        link: usize,
        /// The longest packet.
        longest: u16,
        /// The link's rate.
        rate: BitRate,
        /// The link's delay.
        delay: Nanos,
        /// Slots that a packet takes.
        slots: u64,
    },
    /// The delay lines of all links together would take too much memory.
    #[error("the delays of all links add up to {slots} slots: expected at most {MAX_SLOTS_ON_LINKS}")]
    Links {
        /// Slots of all links in both directions.
        slots: u64,
    },
    /// The queues would take too much memory.
    #[error(
        "{ports} ports with room for {room} packets each are {packets} packets: expected at most 2^29; take a smaller buffer"
    )]
    Queues {
        /// Ports of all routers.
        ports: usize,
        /// Packets that each can queue.
        room: u64,
        /// Packets in total.
        packets: u64,
    },
    /// The scheme of another program, in a network whose shards have endpoints of their own.
    #[error("scheme {scheme} is not one of Thalweg's own: its network runs on one thread here")]
    OwnScheme {
        /// The scheme.
        scheme: &'static str,
    },
    /// A monitor names a missing router or port, or a router that has a monitor already.
    #[error("monitor port at router {router}: {why}")]
    Monitor {
        /// The router's number.
        router: u16,
        /// The mistake.
        why: &'static str,
    },
    /// The network is too large for routing.
    #[error(transparent)]
    Routing(#[from] NextHopsError),
    /// The assignment of routers to cores has the wrong length.
    #[error("{given} routers are assigned to cores, but the topology has {expected}")]
    Assignment {
        /// Routers in the assignment.
        given: usize,
        /// Routers in the topology.
        expected: usize,
    },
}

/// The largest number of slots that a packet may spend on one link.
pub const MAX_HORIZON: u64 = 1 << 20;

/// The largest sum of slots over all links: 1.6 GB of empty buckets.
pub const MAX_SLOTS_ON_LINKS: u64 = 1 << 26;

/// The largest number of slots that the transmission of a packet may take.
pub const MAX_TRANSMISSION: u64 = 1 << 14;

/// The largest shift by which [`Blueprint::with_slots_within`] shortens slots.
const MAX_SLOT_SHIFT: u32 = 8;

/// A directed link between routers on different cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The link.
    pub link: LinkId,
    /// The sending port.
    pub sender: (RouterId, PortIndex),
    /// The shard that sends.
    pub from: usize,
    /// The shard that receives.
    pub to: usize,
    /// The least propagation delay. The receiver adds it, not the sender.
    pub delay: Delay,
    /// By how much the delay is longer.
    pub(crate) jitter: Jitter,
    /// The sender's lane for outgoing packets.
    pub(crate) out: u32,
    /// The receiver's lane.
    pub(crate) into: u32,
    /// The largest number of slots from the start to the end of a transmission.
    pub(crate) transmission: u64,
}

impl<'a> Blueprint<'a> {
    /// A blueprint with interface queues of 128 full-size IP packets of `mtu` bytes, and ECMP. A slot is the
    /// transmission time of such a packet on the fastest endpoint's link, or over the fastest link if that is shorter
    /// (`slot_bytes`).
    pub fn new(topology: &'a Topology, mtu: u16, seed: u64) -> Self {
        let rate_of = |endpoint| topology.links()[topology.endpoint_link(endpoint).index()].rate;
        let rate = topology.endpoint_ids().map(rate_of).max().unwrap_or_default();
        let longest = u32::from(mtu) + u32::from(FRAMING);
        Blueprint {
            topology,
            clock: SlotClock { slot_bytes: slot_bytes(topology, longest, rate), rate },
            longest: longest.min(u32::from(u16::MAX)) as u16,
            balance: Balance::Ecmp,
            interface_buffer: 128 * u64::from(longest),
            monitors: &[],
            counts_classes: false,
            seed,
        }
    }

    /// The same network with slots of at most `limit`, for real time: there a packet leaves at the start of a slot, so its delay is too long
    /// by up to a slot for each link, which is 12 ms with packets of 1,500 bytes at 1 Mbit/s. Slots are at least 1/256 as long as before, and
    /// long enough for the slowest and the longest link.
    #[must_use]
    pub fn with_slots_within(self, limit: Nanos) -> Blueprint<'a> {
        let SlotClock { slot_bytes, rate } = self.clock;
        let slot = Nanos((self.clock.seconds() * 1e9) as u64);
        let least = (0..=MAX_SLOT_SHIFT).find(|shift| slot.0 >> shift <= limit.0).unwrap_or(MAX_SLOT_SHIFT);
        let shorter = |shift| Blueprint {
            clock: SlotClock { slot_bytes, rate: BitRate(rate.0.saturating_mul(1_u64 << shift)) },
            ..self.clone()
        };
        let found = (1..=least).rev().map(shorter).find(|it| it.check_links().is_ok());
        found.unwrap_or(self)
    }

    /// Builds the network as a single shard.
    ///
    /// # Errors
    /// See [`BlueprintError`].
    pub fn build<R: Router>(
        &self,
        make: impl FnMut(Routing, RouterPorts<'_>) -> R,
    ) -> Result<Shard<R>, BlueprintError> {
        let everywhere = vec![0; self.topology.routers().len()];
        let (mut shards, _) = self.build_sharded(&everywhere, make)?;
        Ok(shards.pop().expect("a topology with endpoints has a router"))
    }

    /// Builds the network in shards. `assignment` has the shard of each router.
    ///
    /// # Errors
    /// See [`BlueprintError`].
    pub fn build_sharded<R: Router>(
        &self,
        assignment: &[usize],
        make: impl FnMut(Routing, RouterPorts<'_>) -> R,
    ) -> Result<(Vec<Shard<R>>, Vec<Crossing>), BlueprintError> {
        self.check_assignment(assignment)?;
        self.check_links()?;
        self.check_monitors()?;
        let next_hops = NextHops::new(self.topology, &LinkState::new(self.topology))?;
        Ok(Builder::new(self, assignment).build(&next_hops, make))
    }

    /// Checks that the network can be built, without building it.
    ///
    /// # Errors
    /// See [`BlueprintError`].
    pub fn check(&self) -> Result<(), BlueprintError> {
        self.check_links()?;
        self.check_monitors()?;
        Ok(NextHops::check(self.topology)?)
    }

    fn check_assignment(&self, assignment: &[usize]) -> Result<(), BlueprintError> {
        let (given, expected) = (assignment.len(), self.topology.routers().len());
        match given == expected {
            true => Ok(()),
            false => Err(BlueprintError::Assignment { given, expected }),
        }
    }

    fn check_links(&self) -> Result<(), BlueprintError> {
        let SlotClock { slot_bytes, rate } = self.clock;
        if self.topology.endpoints().is_empty() {
            return Err(BlueprintError::NoEndpoints);
        }
        if !(u32::from(SHORTEST)..=u32::from(u16::MAX)).contains(&slot_bytes) || rate.0 == 0 {
            return Err(BlueprintError::Clock { slot_bytes, rate });
        }
        for (index, link) in self.topology.links().iter().enumerate() {
            let slots = self.horizon(link);
            if slots > MAX_HORIZON || self.transmission(link) > MAX_TRANSMISSION {
                let (longest, rate, delay) = (self.longest, link.rate, longest_delay(link));
                return Err(BlueprintError::Horizon { link: index, longest, rate, delay, slots });
            }
        }
        let slots = self.topology.links().iter().map(|link| 2 * self.horizon(link).next_power_of_two()).sum();
        match slots > MAX_SLOTS_ON_LINKS {
            true => Err(BlueprintError::Links { slots }),
            false => Ok(()),
        }
    }

    fn check_monitors(&self) -> Result<(), BlueprintError> {
        for (index, monitor) in self.monitors.iter().enumerate() {
            let router = monitor.router;
            let error = |why| Err(BlueprintError::Monitor { router: router.0, why });
            if router.index() >= self.topology.routers().len() {
                return error("there is no such router");
            }
            if monitor.ports.iter().any(|port| port.index() >= self.topology.ports(router)) {
                return error("it mirrors a port that the router does not have");
            }
            if self.monitors[..index].iter().any(|other| other.router == router) {
                return error("the router has one already");
            }
            if monitor.rate.0 == 0 {
                return error("its rate is zero");
            }
        }
        Ok(())
    }

    fn pace(&self, rate: BitRate) -> Pace {
        Pace::new(self.clock, rate)
    }

    /// The largest number of slots for a transmission on a link, plus one if it starts within a slot.
    fn transmission(&self, link: &Link) -> u64 {
        let bits = u128::from(self.longest) * u128::from(self.clock.rate.0);
        let slot_bits = u128::from(self.clock.slot_bytes) * u128::from(link.rate.0.max(1));
        bits.div_ceil(slot_bits).min(u128::from(u32::MAX)) as u64 + 1
    }

    /// The largest number of slots between handing a packet to an idle link and its arrival.
    fn horizon(&self, link: &Link) -> u64 {
        self.transmission(link) + self.clock.slots_in(longest_delay(link))
    }

    /// The least delay of a link.
    fn delay(&self, link: &Link) -> Delay {
        impairment::delays(link, self.clock)[0]
    }

    /// The impairment of a link in the direction from end number `from`.
    fn impairment(&self, link: LinkId, from: usize) -> Impairment {
        let of = &self.topology.links()[link.index()];
        Impairment::new(of, link, from, self.clock, self.seed)
    }

    fn port(&self, link: &Link, lane: u32) -> Port {
        Port::new(self.pace(link.rate), self.delay(link), lane)
    }

    /// The transmission time of `bytes` at `rate`.
    fn max_wait(&self, bytes: u64, rate: BitRate) -> Ticks {
        self.pace(rate).long_span(bytes).min(Ticks::start_of(Slot(MAX_HORIZON)))
    }
}

/// The longest time that a packet takes on a link after its transmission.
fn longest_delay(link: &Link) -> Nanos {
    Nanos(link.delay.0 + link.jitter.0)
}

/// The bytes of a slot at `rate`: those of the longest packet, or those that pass while such a packet passes the
/// fastest link (transmission plus delay), if that is less. So a packet is processed in the slot after its arrival on
/// any link, and its lag does not add up over hops. At least 1/16 of the longest packet: on a faster link, back-to-back
/// packets may be late.
fn slot_bytes(topology: &Topology, longest: u32, rate: BitRate) -> u32 {
    let bytes = |link: &Link| {
        let transmission = u128::from(longest) * u128::from(rate.0) / u128::from(link.rate.0.max(1));
        let delay = link.delay.0 - link.jitter.0;
        transmission + u128::from(delay) * u128::from(rate.0) / 8_000_000_000
    };
    let quickest = topology.links().iter().map(bytes).min().unwrap_or_default();
    let least = longest.div_ceil(16).max(u32::from(SHORTEST)).min(longest);
    quickest.min(u128::from(longest)).max(u128::from(least)) as u32
}

/// The shards under construction.
struct Builder<'a> {
    blueprint: &'a Blueprint<'a>,
    assignment: &'a [usize],
    /// The horizons of each shard's lanes so far.
    lanes: Vec<Vec<(u64, usize)>>,
    /// By link: the sender's lane from its first end to the second, and back.
    out: Vec<[u32; 2]>,
    /// By link: the receiver's lanes likewise.
    into: Vec<[u32; 2]>,
    crossings: Vec<Crossing>,
}

impl<'a> Builder<'a> {
    fn new(blueprint: &'a Blueprint<'a>, assignment: &'a [usize]) -> Self {
        let shards = assignment.iter().max().map_or(0, |last| last + 1);
        let links = blueprint.topology.links().len();
        let mut builder = Builder {
            blueprint,
            assignment,
            lanes: vec![Vec::new(); shards],
            out: vec![[0; 2]; links],
            into: vec![[0; 2]; links],
            crossings: Vec::new(),
        };
        builder.lay_links();
        builder
    }

    /// Adds a lane to a shard.
    fn lane(&mut self, shard: usize, horizon: u64, width: usize) -> u32 {
        self.lanes[shard].push((horizon, width));
        self.lanes[shard].len() as u32 - 1
    }

    /// Assigns a lane to every directed link between routers, or two to a crossing.
    fn lay_links(&mut self) {
        for (index, link) in self.blueprint.topology.links().iter().enumerate() {
            let [Node::Router(a), Node::Router(b)] = link.ends.map(|end| end.node) else { continue };
            for (direction, (from, to)) in [(a, b), (b, a)].into_iter().enumerate() {
                let sender = (from, link.ends[direction].port);
                let (from, to) = (self.assignment[from.index()], self.assignment[to.index()]);
                let (horizon, transmission) =
                    (self.blueprint.horizon(link), self.blueprint.transmission(link));
                let (out, into) = if from == to {
                    let lane = self.lane(from, horizon, 4);
                    (lane, lane)
                } else {
                    // The sender may be ahead by the length of the link.
                    (self.lane(from, transmission, 4), self.lane(to, 2 * horizon, 4))
                };
                self.out[index][direction] = out;
                self.into[index][direction] = into;
                if from != to {
                    let (link_id, delay) = (LinkId(index as u32), self.blueprint.delay(link));
                    self.crossings.push(Crossing {
                        link: link_id,
                        sender,
                        from,
                        to,
                        delay,
                        jitter: self.blueprint.impairment(link_id, direction).jitter,
                        out,
                        into,
                        transmission,
                    });
                }
            }
        }
    }

    fn build<R: Router>(
        mut self,
        next_hops: &NextHops,
        mut make: impl FnMut(Routing, RouterPorts<'_>) -> R,
    ) -> (Vec<Shard<R>>, Vec<Crossing>) {
        let topology = self.blueprint.topology;
        let mut shards: Vec<Shard<R>> = (0..self.lanes.len())
            .map(|_| Shard {
                routers: Vec::new(),
                lanes: Vec::new(),
                interface_index: vec![OTHER_SHARD; topology.endpoints().len()].into_boxed_slice(),
                interfaces: Vec::new(),
                interface_verdicts: Vec::new(),
                interface_impairments: Vec::new(),
                watched: Vec::new(),
                now: Slot(0),
                dropped: Vec::new(),
                mirrored: Vec::new(),
            })
            .collect();
        for router in topology.router_ids() {
            let shard = self.assignment[router.index()];
            let state = self.router_state(router, next_hops, &mut make, &mut shards[shard]);
            shards[shard].routers.push(state);
        }
        for (shard, lanes) in shards.iter_mut().zip(&self.lanes) {
            shard.lanes = lanes.iter().map(|&(horizon, width)| Lane::new(horizon, width)).collect();
        }
        (shards, self.crossings)
    }

    fn router_state<R: Router>(
        &mut self,
        router: RouterId,
        next_hops: &NextHops,
        make: &mut impl FnMut(Routing, RouterPorts<'_>) -> R,
        shard: &mut Shard<R>,
    ) -> RouterState<R> {
        let Blueprint { topology, clock, balance, seed, longest, .. } = *self.blueprint;
        let number = self.assignment[router.index()];
        let (uplink, deliveries) = self.rack_lanes(router, number);
        let mut inbound: Vec<u32> = uplink.into_iter().collect();
        let mut ports = Vec::new();
        let mut extras = Extras::new(topology.ports(router));
        for (port, peer) in topology.peers(router).iter().enumerate() {
            let id = topology.link_at(router, PortIndex(port as u16));
            let link = &topology.links()[id.index()];
            let forth =
                usize::from(link.ends[0].node != Node::Router(router) || link.ends[0].port.index() != port);
            let impairment = &mut extras.impairments[port];
            *impairment = self.blueprint.impairment(id, forth);
            let lane = match peer.node {
                Node::Endpoint(endpoint) => {
                    let (uplink, deliveries) = uplink.zip(deliveries).expect("a rack has lanes");
                    shard.interface_index[endpoint.index()] = shard.interfaces.len() as u32;
                    let impairment = self.blueprint.impairment(id, 0);
                    shard.interfaces.push(self.interface(link, uplink, &impairment));
                    shard.interface_impairments.push(impairment);
                    shard.interface_verdicts.push(Verdicts::default());
                    deliveries
                }
                Node::Router(_) => {
                    inbound.push(self.into[id.index()][1 - forth]);
                    self.out[id.index()][forth]
                }
            };
            let mut port = self.blueprint.port(link, lane);
            if let Node::Router(peer) = peer.node
                && self.assignment[peer.index()] != number
            {
                // They are added where the packet arrives.
                port.delay = Delay::default();
                impairment.jitter = Jitter::default();
            }
            port.is_special = !impairment.is_none();
            ports.push(port);
        }
        let monitor = self.blueprint.monitors.iter().find(|monitor| monitor.router == router);
        for port in monitor.iter().flat_map(|monitor| &monitor.ports) {
            ports[port.index()].is_special = true;
            ports[port.index()].is_mirrored = true;
        }
        let has_extras = ports.iter().any(|port| port.is_special);
        let rates: Vec<BitRate> = (0..ports.len())
            .map(|port| topology.links()[topology.link_at(router, PortIndex(port as u16)).index()].rate)
            .collect();
        let salt = ecmp::salt(seed, router);
        let routing = Routing::new(router, topology.endpoints().len(), next_hops, balance, salt);
        RouterState {
            id: router,
            scheme: make(routing, RouterPorts { clock, rates: &rates, longest }),
            verdicts: vec![Verdicts::default(); ports.len()].into_boxed_slice(),
            down: PortSet::new(ports.len()),
            any_down: false,
            ports: ports.into_boxed_slice(),
            inbound: inbound.into_boxed_slice(),
            busy: Vec::new(),
            contended: Slot(0),
            deliveries,
            random: stream(seed, router),
            has_extras,
            extras,
            monitor: monitor.map(|monitor| {
                let max_wait = self.blueprint.max_wait(monitor.buffer.0, monitor.rate);
                MonitorPort::new(self.blueprint.pace(monitor.rate), max_wait, stream(!seed, router))
            }),
        }
    }

    /// The lanes from a rack's endpoints to their router, and back.
    fn rack_lanes(&mut self, router: RouterId, shard: usize) -> (Option<u32>, Option<u32>) {
        let topology = self.blueprint.topology;
        let links = |endpoint: EndpointId| &topology.links()[topology.endpoint_link(endpoint).index()];
        let horizons = topology.rack(router).map(|endpoint| {
            let link = links(endpoint);
            let wait = self.blueprint.max_wait(self.blueprint.interface_buffer, link.rate);
            let horizon = self.blueprint.horizon(link);
            (horizon + wait.slot_after().0 + 1, horizon)
        });
        let Some((up, down)) = horizons.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1))) else {
            return (None, None);
        };
        let width = topology.rack_size(router);
        (Some(self.lane(shard, up + 1, width)), Some(self.lane(shard, down + 1, width)))
    }

    fn interface(&self, link: &Link, uplink: u32, impairment: &Impairment) -> Interface {
        let mut port = self.blueprint.port(link, uplink);
        port.is_special = !impairment.is_none();
        Interface {
            port,
            max_wait: self.blueprint.max_wait(self.blueprint.interface_buffer, link.rate),
            up: true,
        }
    }
}

/// The random numbers of a router. They do not depend on the core that runs it.
fn stream(seed: u64, router: RouterId) -> Xoshiro256PlusPlus {
    // SplitMix64 spreads both over 256 bits.
    Xoshiro256PlusPlus::seed_from_u64(seed ^ (u64::from(router.0) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
