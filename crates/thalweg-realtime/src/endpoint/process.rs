//! The process of an endpoint: one thread that moves packets and datagrams.
//!
//! A turn of the loop: wait; take the answers, release their packets; read up to 64 packets and submit them; send the
//! requests. Packets that arrive together share a datagram, although no request waits for another.
//!
//! **Cost.** No allocation per packet or turn. System calls: one to wait; one to read each packet (a TAP interface has no
//! batches); one for up to 64 datagrams in each direction; one for up to 64 released packets.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd as _, RawFd};

use thalweg_linux::awake::Awake;
use thalweg_linux::message_batch::{MAX_MESSAGES, MessageRanges, ReceivedMessages};
use thalweg_linux::socket::Socket;
use thalweg_linux::wait_set::WaitSet;
use thalweg_linux::{clock, priority};
use thalweg_wire::emulation_protocol::{DecodeError, Flow, SchemeBytes, Session, Verdict};
use thalweg_wire::{Fragment, HashSeed, Nanos, Packet, Protocol, Timestamp};
use thiserror::Error;

use super::headers::{self, IpHeader};
use super::interception::{
    Interception, InterceptionError, InterceptionOptions, LinkState, MARK, MAX_FRAME, WrittenBytes,
};
use super::options::{ProcessOptions, Unlisted, Waiting};
use super::packet_store::{HeldPacket, PacketStore, Place};
use super::report::{ControlCounters, Losses, PacketCounters, Report};
use super::time_histogram::TimeHistogram;
use crate::protocol::{
    Arbiter, Command, Decision, Endpoint, OptionsError, PacketSlot, ReceiveError, ReleaseCounters,
    ReleaseQueue, Released, Submission, Transmit,
};

/// DSCP CS7, the highest one, for datagrams to the arbiter (section 4).
const CONTROL_TRAFFIC_CLASS: u8 = 56 << 2;

/// The size of the buffers of sockets for datagrams, in bytes.
const CONTROL_BUFFER: u32 = 4 << 20;

/// Datagrams that are written before they are sent.
const CONTROL_BATCH: usize = 16;

/// The maximum number of packets that are held: 2.4 GB of address space.
const MAX_PACKETS: u32 = 1 << 18;

/// The interval at which the interface and the arbiter are checked.
const CHECK_INTERVAL: Nanos = Nanos::from_millis(100);

/// The least time between two reports of lost packets.
const LOSS_INTERVAL: Nanos = Nanos::from_secs(1);

/// Wake-ups are at most so late.
const TIMER_SLACK: Nanos = Nanos::from_micros(1);

/// The error of the kernel (EBADFD) if the TAP interface was deleted.
const TAP_IS_GONE: i32 = 77;

/// So that flows have the same number at all endpoints and in all runs.
const FLOW_SEED: HashSeed = HashSeed::new(0);

/// Why an endpoint cannot start or go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// An option is invalid.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The host table does not have this endpoint.
    #[error("the host table has no entry for endpoint {number}: the others could not reach it")]
    NotListed {
        /// The endpoint.
        number: u16,
    },
    /// The interface cannot be intercepted.
    #[error(transparent)]
    Interception(#[from] InterceptionError),
    /// The sockets to the arbiter cannot be opened.
    #[error("cannot open a socket for the arbiter at {address}: {source}")]
    Control {
        /// The arbiter.
        address: SocketAddr,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The priority cannot be raised.
    #[error("cannot get real-time priority: {source}; run as root, or with CAP_SYS_NICE")]
    Priority {
        /// The error of the kernel.
        source: io::Error,
    },
    /// The interface was removed.
    #[error("interface {name} was deleted or moved to another network namespace")]
    InterfaceGone {
        /// The interface.
        name: String,
    },
    /// The TAP interface was removed.
    #[error("the TAP interface of {name} was deleted: nothing can be intercepted any longer")]
    TapGone {
        /// The interface that was intercepted.
        name: String,
    },
    /// Waiting or reading failed.
    #[error("cannot {step}: {source}")]
    Kernel {
        /// What failed, to follow the word "cannot".
        step: &'static str,
        /// The error of the kernel.
        source: io::Error,
    },
}

/// What happens while an endpoint runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The arbiter has not answered since the start, or for `silence`. Packets wait until their deadline.
    ArbiterSilent {
        /// The arbiter.
        address: SocketAddr,
        /// How long.
        silence: Nanos,
    },
    /// The arbiter answers, for the first time or again.
    ArbiterAnswers {
        /// The arbiter.
        address: SocketAddr,
    },
    /// The endpoint uses the other arbiter from now on.
    SwitchedArbiter {
        /// The new arbiter.
        address: SocketAddr,
    },
    /// The arbiter has restarted. All packets that are held are requested again.
    ArbiterRestarted {
        /// The arbiter.
        address: SocketAddr,
    },
    /// A datagram has another version of the protocol. Reported once.
    OtherVersion {
        /// The arbiter.
        address: SocketAddr,
        /// Its version.
        version: u8,
    },
    /// The interface went down. Packets cannot be released.
    InterfaceDown,
    /// The interface came up again.
    InterfaceUp,
    /// Packets were lost in the endpoint. Reported once a second while their number grows.
    PacketsLost {
        /// All since the start.
        losses: Losses,
    },
    /// The MTU has changed.
    MtuChanged {
        /// Bytes.
        mtu: u32,
    },
}

/// A socket connected to an arbiter.
struct Control {
    arbiter: Arbiter,
    address: SocketAddr,
    socket: UdpSocket,
}

/// What was reported last.
#[derive(Clone, Copy)]
struct Known {
    answers: Option<bool>,
    received: u64,
    restarts: u64,
    version: bool,
    is_up: bool,
    mtu: u32,
    lost: u64,
}

/// A running endpoint.
pub struct EndpointProcess {
    options: ProcessOptions,
    interception: Interception,
    written: Option<WrittenBytes>,
    controls: Vec<Control>,
    wait_set: WaitSet,
    endpoint: Endpoint,
    store: PacketStore,
    /// Decisions that are not carried out yet.
    decided: Vec<(PacketSlot, Decision)>,
    /// Packets to be sent that do not have the overhead yet.
    releases: ReleaseQueue<HeldPacket>,
    outgoing: MessageRanges,
    outgoing_places: Vec<Place>,
    received: ReceivedMessages,
    datagrams: Box<[u8]>,
    datagram_ranges: MessageRanges,
    packets: PacketCounters,
    control_counters: ControlCounters,
    hold_times: TimeHistogram,
    overheads: TimeHistogram,
    release_overheads: TimeHistogram,
    started: Timestamp,
    next_check: Timestamp,
    next_loss_check: Timestamp,
    /// The last turn has read as many packets as it could.
    has_more: bool,
    known: Known,
    other_version: Option<(SocketAddr, u8)>,
    _awake: Option<Awake>,
}

impl EndpointProcess {
    /// Opens sockets, allocates all memory, and then intercepts the interface. The calling thread is the one that calls
    /// [`run`](EndpointProcess::run): it gets the priority.
    ///
    /// # Errors
    /// See [`ProcessError`]. Then nothing is changed.
    pub fn start(mut options: ProcessOptions) -> Result<EndpointProcess, ProcessError> {
        options.protocol.has_secondary = options.standby.is_some();
        let protocol = options.protocol;
        if protocol.max_packets > MAX_PACKETS {
            let found = protocol.max_packets.into();
            let expected = "at most 262,144: each has 9 KiB of memory";
            return Err(OptionsError { option: "max_packets", found, expected }.into());
        }
        let endpoint = Endpoint::new(protocol, Session::started_at(clock::realtime()))?;
        if !options.hosts.has_endpoint(protocol.endpoint) {
            return Err(ProcessError::NotListed { number: protocol.endpoint });
        }
        let addresses = [(Arbiter::Primary, Some(options.arbiter)), (Arbiter::Secondary, options.standby)];
        let addresses = addresses.into_iter().filter_map(|(arbiter, address)| Some((arbiter, address?)));
        let controls = addresses.map(|(arbiter, address)| Control::open(arbiter, address));
        let controls = controls.collect::<Result<Vec<_>, _>>()?;
        // In memory before interception.
        let max_waiting = if options.overhead.is_some() { protocol.max_packets } else { 0 };
        let extra = max_waiting + MAX_MESSAGES as u32 + 1;
        let store = PacketStore::new(protocol.max_packets, extra, MAX_FRAME + 1);
        if options.waiting == Waiting::RealTime {
            priority::be_real_time().map_err(|source| ProcessError::Priority { source })?;
        }
        // It works without, with longer delays.
        let awake = (options.waiting == Waiting::RealTime).then(Awake::keep).and_then(Result::ok);
        // Late timers only delay retransmissions.
        let _ = priority::set_timer_slack(TIMER_SLACK);
        let settings =
            InterceptionOptions { notes_written: options.sends_remaining, link_rate: options.link_rate };
        let mut interception = Interception::start(&options.interface, options.namespace.as_ref(), settings)?;
        let descriptors = controls.iter().map(|control| control.socket.as_raw_fd());
        let wait_set = WaitSet::new(descriptors.chain([interception.raw()]));
        let started = clock::monotonic();
        let max_packets = protocol.max_packets as usize;
        Ok(EndpointProcess {
            written: interception.take_written(),
            known: Known {
                answers: None,
                received: 0,
                restarts: 0,
                version: false,
                is_up: true,
                mtu: interception.mtu().unwrap_or(0),
                lost: 0,
            },
            interception,
            controls,
            wait_set,
            endpoint,
            store,
            decided: Vec::with_capacity(max_packets),
            releases: ReleaseQueue::new(options.overhead, max_waiting),
            outgoing: MessageRanges::default(),
            outgoing_places: Vec::with_capacity(MAX_MESSAGES),
            received: ReceivedMessages::new(protocol.link.max_datagram + 1),
            datagrams: vec![0; CONTROL_BATCH * protocol.link.max_datagram].into(),
            datagram_ranges: MessageRanges::default(),
            packets: PacketCounters::default(),
            control_counters: ControlCounters::default(),
            hold_times: TimeHistogram::default(),
            overheads: TimeHistogram::default(),
            release_overheads: TimeHistogram::default(),
            started,
            next_check: started + CHECK_INTERVAL,
            next_loss_check: started + LOSS_INTERVAL,
            has_more: false,
            other_version: None,
            _awake: awake,
            options,
        })
    }

    /// Moves packets until `until`, by the monotonic clock, or until `is_stopped`, which is asked after each wait.
    ///
    /// # Errors
    /// If the interface is gone, or waiting or reading fails.
    pub fn run(
        &mut self,
        until: Timestamp,
        is_stopped: impl Fn() -> bool,
        mut on_event: impl FnMut(Event),
    ) -> Result<(), ProcessError> {
        let mut now = clock::monotonic();
        while now < until && !is_stopped() {
            self.wait(until)?;
            now = self.turn(&mut on_event)?;
        }
        Ok(())
    }

    /// Ends the interception, and decides on the packets that are held: within their deadline. `is_stopped` ends that early.
    ///
    /// # Errors
    /// As [`run`](EndpointProcess::run).
    pub fn finish(
        mut self,
        is_stopped: impl Fn() -> bool,
        mut on_event: impl FnMut(Event),
    ) -> Result<Report, ProcessError> {
        self.interception.stop();
        // What was redirected before.
        self.has_more = true;
        let mut now = clock::monotonic();
        let overhead = self.options.overhead.unwrap_or(Nanos::ZERO);
        let end = now + self.options.protocol.deadline + overhead;
        while (self.has_more || self.endpoint.held_packets() > 0 || !self.releases.is_empty())
            && now < end
            && !is_stopped()
        {
            self.wait(end)?;
            now = self.turn(&mut on_event)?;
        }
        // What has changed since the last check. An interface that is gone needs no interception any longer.
        self.next_loss_check = now;
        let _ = self.check(now, &mut on_event);
        Ok(self.report())
    }

    /// Waits for packets and datagrams, unless some are there.
    fn wait(&mut self, until: Timestamp) -> Result<(), ProcessError> {
        let is_busy = self.has_more || self.options.waiting == Waiting::BusyPoll;
        if is_busy {
            return Ok(());
        }
        let release = self.releases.next_release().unwrap_or(until);
        let next = self.endpoint.next_event().min(self.next_check).min(until).min(release);
        // Not the time at which the turn began: releases would be late by its length.
        let now = clock::monotonic();
        let waited = self.wait_set.wait(Nanos(next.0.saturating_sub(now.0)));
        waited.map_err(|source| ProcessError::Kernel { step: "wait for packets", source })
    }

    /// One turn of the loop. Returns its time.
    fn turn(&mut self, on_event: &mut impl FnMut(Event)) -> Result<Timestamp, ProcessError> {
        let tap = self.controls.len();
        let reads_all = self.has_more || self.options.waiting == Waiting::BusyPoll;
        for place in 0..tap {
            if reads_all || self.wait_set.is_ready(place) {
                self.take_datagrams(place);
            }
        }
        let now = clock::monotonic();
        let decided = &mut self.decided;
        let command = self.endpoint.tick(now, |slot, decision| decided.push((slot, decision)));
        self.carry_out_decisions(now);
        self.release_due(now);
        if let Some(Command::SwitchTo(arbiter)) = command {
            on_event(Event::SwitchedArbiter { address: self.address_of(arbiter) });
            self.known.answers = None;
        }
        if reads_all || self.wait_set.is_ready(tap) {
            self.take_packets(now)?;
        }
        self.send_datagrams(now);
        if now >= self.next_check {
            self.next_check = now + CHECK_INTERVAL;
            self.check(now, on_event)?;
        }
        Ok(now)
    }

    /// Takes the datagrams that have arrived from an arbiter.
    fn take_datagrams(&mut self, place: usize) {
        let Control { arbiter, address, socket } = &self.controls[place];
        match self.received.receive(socket.as_raw_fd()) {
            Ok(_) => {}
            // An answer to an earlier datagram, such as ECONNREFUSED. The socket remains usable.
            Err(_) => {
                self.control_counters.unreachable += 1;
                return;
            }
        }
        // After they have arrived: an earlier time would make their packets' overhead too small.
        let now = clock::monotonic();
        for bytes in self.received.iter() {
            let decided = &mut self.decided;
            let taken =
                self.endpoint.receive(now, *arbiter, bytes, |slot, decision| decided.push((slot, decision)));
            if let Err(ReceiveError::Malformed(DecodeError::Version { found })) = taken {
                self.control_counters.other_version += 1;
                self.other_version = Some((*address, found));
            }
        }
    }

    /// Drops or releases the packets on which the endpoint has decided.
    fn carry_out_decisions(&mut self, now: Timestamp) {
        for place in 0..self.decided.len() {
            let (slot, decision) = self.decided[place];
            let held = self.store.release(slot);
            let Decision::Answered { verdict, emulated } = decision else {
                self.store.free(held.place);
                continue;
            };
            // Without overhead, the answer would have come at this time.
            let ideal = held.since + emulated.nanos();
            self.hold_times.add(now - held.since);
            self.overheads.add(now - ideal);
            if verdict == Verdict::Drop {
                self.store.free(held.place);
                continue;
            }
            self.rewrite(&held, verdict);
            if let Some(released) = self.releases.push(now, ideal, held.flow, held) {
                self.release(released);
            }
        }
        self.decided.clear();
        self.send_outgoing();
    }

    /// Applies what the arbiter has answered to the headers of a packet.
    fn rewrite(&mut self, held: &HeldPacket, verdict: Verdict) {
        let frame = &mut self.store.bytes_mut(held.place)[..held.length as usize];
        let counters = &mut self.packets;
        let header = || IpHeader::find(frame).expect("submitted with an IP header");
        match verdict {
            Verdict::Drop | Verdict::Send => {}
            Verdict::SendMarked => match header().mark(frame) {
                true => counters.marked += 1,
                false => counters.marks_ignored += 1,
            },
            Verdict::SendWith(bytes) => match bytes.as_slice() {
                // What `prepare_to_send` of all schemes of the emulator can change.
                [traffic_class] => {
                    header().set_traffic_class(frame, *traffic_class);
                    counters.rewritten += 1;
                }
                _ => counters.scheme_bytes_ignored += 1,
            },
        }
    }

    /// Sends the packets that have the overhead now.
    fn release_due(&mut self, now: Timestamp) {
        while let Some(released) = self.releases.pop(now) {
            self.release(released);
        }
        self.send_outgoing();
    }

    /// Sends a packet after its answer.
    fn release(&mut self, Released { packet, overhead }: Released<HeldPacket>) {
        self.release_overheads.add(overhead);
        self.send(packet);
    }

    /// Adds a packet to those that are sent next.
    fn send(&mut self, HeldPacket { place, length, .. }: HeldPacket) {
        if self.outgoing.is_full() {
            self.send_outgoing();
        }
        self.outgoing.push(self.store.offset(place), length as usize);
        self.outgoing_places.push(place);
        self.packets.released += 1;
        self.packets.released_bytes += u64::from(length);
    }

    /// Sends what waits, and frees its places.
    fn send_outgoing(&mut self) {
        if self.outgoing.is_empty() {
            return;
        }
        let refused = &mut self.packets.release_refused;
        let before = *refused;
        self.outgoing.send(self.interception.sender.raw(), self.store.bytes(), |_| *refused += 1);
        self.packets.released -= self.packets.release_refused - before;
        self.outgoing_places.drain(..).for_each(|place| self.store.free(place));
    }

    /// Reads and submits packets.
    fn take_packets(&mut self, now: Timestamp) -> Result<(), ProcessError> {
        self.has_more = true;
        for _ in 0..MAX_MESSAGES {
            let place = self.store.take_place().expect("there are more places than packets can be held");
            let read = self.interception.tap.receive(self.store.bytes_mut(place));
            let read = read.map_err(|source| match source.raw_os_error() {
                Some(TAP_IS_GONE) => ProcessError::TapGone { name: self.options.interface.clone() },
                _ => ProcessError::Kernel { step: "read a packet", source },
            })?;
            let Some(length) = read else {
                self.store.free(place);
                self.has_more = false;
                break;
            };
            self.packets.intercepted += 1;
            self.packets.intercepted_bytes += length as u64;
            let length = length as u32;
            // Not the time at which the turn began: the packet may have come later, and would be released too early.
            let since = clock::monotonic();
            self.take_packet(now, HeldPacket { place, length, since, flow: Flow::default() });
        }
        self.send_outgoing();
        Ok(())
    }

    /// Submits a packet, passes it, or drops it.
    fn take_packet(&mut self, now: Timestamp, held: HeldPacket) {
        if held.length as usize > MAX_FRAME {
            self.packets.too_long += 1;
            return self.store.free(held.place);
        }
        let frame = &self.store.bytes_mut(held.place)[..held.length as usize];
        let Some((header, packet)) = IpHeader::find(frame).zip(headers::parse(frame)) else {
            self.packets.unparsed_passed += 1;
            return self.send(held);
        };
        let Some(destination) = self.options.hosts.endpoint_of(packet.key.dst()) else {
            match self.options.unlisted {
                Unlisted::Pass => {
                    self.packets.unlisted_passed += 1;
                    self.send(held);
                }
                Unlisted::Drop => {
                    self.packets.unlisted_dropped += 1;
                    self.store.free(held.place);
                }
            }
            return;
        };
        let source = self.options.protocol.endpoint;
        if destination == source {
            self.packets.local_passed += 1;
            return self.send(held);
        }
        self.packets.listed += 1;
        let mut custom = SchemeBytes::NONE;
        if let Some(written) = &self.written
            && packet.key.protocol == Protocol::TCP
        {
            match written.remaining(frame, header, &packet) {
                None => self.packets.remaining_unknown += 1,
                Some(remaining) => custom = remaining_bytes(remaining),
            }
        }
        let submission = Submission {
            flow: Flow { source, destination, number: flow_number(&packet) },
            length: packet.ip_length.min(u32::from(u16::MAX)) as u16,
            traffic_class: header.traffic_class(frame),
            custom,
        };
        match self.endpoint.submit(now, &submission) {
            Ok(slot) => self.store.hold(slot, HeldPacket { flow: submission.flow, ..held }),
            // Counted by the protocol.
            Err(_) => self.store.free(held.place),
        }
    }

    /// Sends the datagrams that are due.
    fn send_datagrams(&mut self, now: Timestamp) {
        loop {
            let mut to = None;
            for buffer in self.datagrams.chunks_exact_mut(self.options.protocol.link.max_datagram) {
                let Some(Transmit { to: arbiter, length }) = self.endpoint.transmit(now, buffer) else {
                    break;
                };
                to = Some(arbiter);
                let offset = self.datagram_ranges.len() * buffer.len();
                self.datagram_ranges.push(offset, length);
            }
            let Some(arbiter) = to else { return };
            let socket = self.socket_of(arbiter);
            let refused = &mut self.control_counters.send_refused;
            self.datagram_ranges.send(socket, &self.datagrams, |_| *refused += 1);
        }
    }

    /// Reports changes of the interface and of the arbiter.
    fn check(&mut self, now: Timestamp, on_event: &mut impl FnMut(Event)) -> Result<(), ProcessError> {
        let is_up = match self.interception.state() {
            LinkState::Gone => {
                return Err(ProcessError::InterfaceGone { name: self.options.interface.clone() });
            }
            state => state == LinkState::Up,
        };
        if is_up != self.known.is_up {
            on_event(if is_up { Event::InterfaceUp } else { Event::InterfaceDown });
        }
        let mtu = self.interception.mtu().unwrap_or(self.known.mtu);
        if mtu != self.known.mtu {
            self.interception.set_mtu(mtu);
            on_event(Event::MtuChanged { mtu });
        }
        let lost = self.check_losses(now, on_event);
        let address = self.address_of(self.endpoint.arbiter());
        let counters = *self.endpoint.counters();
        if counters.arbiter_restarts != self.known.restarts {
            on_event(Event::ArbiterRestarted { address });
        }
        if let Some((address, version)) = self.other_version.filter(|_| !self.known.version) {
            on_event(Event::OtherVersion { address, version });
            self.known.version = true;
        }
        let silence = self.endpoint.silence(now);
        let answers = match () {
            () if counters.datagrams.received != self.known.received => Some(true),
            () if silence > CHECK_INTERVAL => Some(false),
            () => self.known.answers,
        };
        if answers != self.known.answers {
            match answers {
                Some(false) => on_event(Event::ArbiterSilent { address, silence }),
                _ => on_event(Event::ArbiterAnswers { address }),
            }
        }
        self.known = Known {
            answers,
            received: counters.datagrams.received,
            restarts: counters.arbiter_restarts,
            is_up,
            mtu,
            lost,
            ..self.known
        };
        Ok(())
    }

    /// Reports packets that were lost since the last report. Returns how many that are since the start.
    fn check_losses(&mut self, now: Timestamp, on_event: &mut impl FnMut(Event)) -> u64 {
        if now < self.next_loss_check {
            return self.known.lost;
        }
        self.next_loss_check = now + LOSS_INTERVAL;
        let losses = Losses::of(&self.packets(), self.endpoint.counters());
        if losses.total() > self.known.lost {
            on_event(Event::PacketsLost { losses });
        }
        losses.total()
    }

    fn control(&self, arbiter: Arbiter) -> &Control {
        let found = self.controls.iter().find(|control| control.arbiter == arbiter);
        found.expect("the protocol knows whether there is a secondary")
    }

    fn address_of(&self, arbiter: Arbiter) -> SocketAddr {
        self.control(arbiter).address
    }

    fn socket_of(&self, arbiter: Arbiter) -> RawFd {
        self.control(arbiter).socket.as_raw_fd()
    }

    /// What has been counted, also by the kernel.
    fn packets(&self) -> PacketCounters {
        let kernel = self.interception.counters();
        let ReleaseCounters { above_overhead, released_early } = self.releases.counters();
        PacketCounters {
            not_ip: kernel.not_ip,
            neighbour_discovery: kernel.neighbour_discovery,
            overflow: kernel.overflow,
            queue_full: kernel.queue_full,
            above_overhead,
            released_early,
            ..self.packets
        }
    }

    /// The current state.
    pub fn report(&self) -> Report {
        let now = clock::monotonic();
        Report {
            elapsed: now - self.started,
            arbiter: self.endpoint.arbiter(),
            silence: self.endpoint.silence(now),
            round_trip: self.endpoint.round_trip(),
            held: self.endpoint.held_packets(),
            packets: self.packets(),
            protocol: *self.endpoint.counters(),
            control: self.control_counters,
            hold_times: self.hold_times.clone(),
            overheads: self.overheads.clone(),
            release_overheads: self.release_overheads.clone(),
        }
    }
}

impl Control {
    fn open(arbiter: Arbiter, address: SocketAddr) -> Result<Control, ProcessError> {
        let open = || {
            let socket = Socket::marked_datagrams(&address, MARK, CONTROL_TRAFFIC_CLASS, CONTROL_BUFFER)?;
            socket.connect(address)?;
            Ok(socket)
        };
        let socket = open().map_err(|source| ProcessError::Control { address, source })?;
        Ok(Control { arbiter, address, socket })
    }
}

/// The scheme bytes of pFabric: the remaining bytes of the flow, big-endian.
fn remaining_bytes(remaining: u32) -> SchemeBytes {
    SchemeBytes::new(&remaining.to_be_bytes()).expect("four bytes")
}

/// The number of a packet's flow: the same in both directions of a connection. Fragments have no ports, except the first; all of
/// them have that of their addresses, so they stay in order.
#[inline]
fn flow_number(packet: &Packet) -> u32 {
    let key = match packet.fragment {
        Fragment::Whole => packet.key,
        Fragment::First { .. } | Fragment::Later { .. } => packet.key.with_ports(0, 0),
    };
    key.symmetric_hash(&FLOW_SEED) as u32
}
