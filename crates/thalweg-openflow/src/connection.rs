//! One connection: a thread that reads, and senders that write directly.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use crossbeam_channel::Sender;
use thalweg_wire::openflow::multipart::{MultipartReply, Reply};
use thalweg_wire::openflow::{
    Body, DatapathId, DecodeError, ErrorMessage, Message, PacketIn, SwitchFeatures, Xid, first_message,
};
use thalweg_wire::{Nanos, Timestamp};

use crate::context::{Context, SwitchMessage};
use crate::handshake::{FIRST_XID, Handshake, HandshakeError, Progress, SwitchState, incompatible};
use crate::keep_alive::{KeepAlive, PeerState};
use crate::outcome::{DownReason, Failure, Outcome, SendError};
use crate::pending::{Entry, Unanswered};
use crate::socket::{SwitchSocket, lock};

/// Capacity that the send buffer keeps between writes.
const MAX_IDLE_CAPACITY: usize = 1 << 20;

/// A connection, shared by its thread and its senders.
pub(crate) struct Connection {
    pub(crate) peer: SocketAddr,
    pub(crate) context: Arc<Context>,
    socket: SwitchSocket,
    /// Locked during writes.
    outgoing: Mutex<Outgoing>,
    /// `None` once the connection has ended. Locked only briefly.
    unanswered: Mutex<Option<Unanswered<Waiter>>>,
    /// Why this side closed it.
    closed: Mutex<Option<DownReason>>,
}

/// The receiver of an answer.
pub(crate) enum Waiter {
    /// Waits for the outcome of a batch.
    Batch(Sender<Outcome>),
    /// Waits for the answer to a request, with the parts received so far.
    Request(Sender<Result<Vec<Reply>, Failure>>, Vec<Reply>),
}

/// The send buffer.
struct Outgoing {
    next_xid: u32,
    bytes: Vec<u8>,
}

impl Outgoing {
    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(MAX_IDLE_CAPACITY);
    }
}

/// The receive buffer.
#[derive(Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    taken: usize,
}

impl Inbox {
    /// Returns the next message, if complete.
    fn next(&mut self) -> Result<Option<&[u8]>, DecodeError> {
        let message = first_message(&self.bytes[self.taken..])?;
        self.taken += message.map_or(0, <[u8]>::len);
        Ok(message)
    }

    /// Reads more, blocking for at most a tick. Keeps at most one incomplete message.
    fn fill(&mut self, socket: &SwitchSocket) -> io::Result<Option<usize>> {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        socket.read(&mut self.bytes)
    }
}

impl Connection {
    pub(crate) fn new(
        context: Arc<Context>,
        stream: TcpStream,
        peer: SocketAddr,
        tls: Option<rustls::Connection>,
    ) -> io::Result<Arc<Connection>> {
        let socket = SwitchSocket::new(stream, tls, context.config.write_timeout)?;
        let unanswered = Unanswered::new(context.config.max_unanswered);
        Ok(Arc::new(Connection {
            peer,
            context,
            socket,
            outgoing: Mutex::new(Outgoing { next_xid: FIRST_XID.0, bytes: Vec::new() }),
            unanswered: Mutex::new(Some(unanswered)),
            closed: Mutex::default(),
        }))
    }

    /// Performs the handshake.
    pub(crate) fn handshake(
        &self,
        inbox: &mut Inbox,
    ) -> Result<(SwitchFeatures, SwitchState), HandshakeError> {
        let broken = |error: io::Error| HandshakeError::Broken(error.to_string());
        let config = &self.context.config;
        let deadline = self.context.clock.now() + config.handshake_timeout;
        let (hello, mut handshake) = Handshake::begin(config);
        self.write_messages(&[hello]).map_err(broken)?;
        loop {
            while let Some(bytes) = inbox.next().map_err(HandshakeError::Unreadable)? {
                self.context.counters.received.add(1);
                let version = bytes[0];
                let message = match Message::decode(bytes).map_err(HandshakeError::Unreadable)? {
                    Message { xid, body: Body::EchoRequest(data) } => {
                        self.write_messages(&[Message { xid, body: Body::EchoReply(data) }])
                            .map_err(broken)?;
                        continue;
                    }
                    Message { body: Body::PacketIn(_), .. } => {
                        self.context.counters.packet_ins_dropped.add(1);
                        continue;
                    }
                    message => message,
                };
                match handshake.take(version, message, config) {
                    Ok(Progress::Wait) => {}
                    Ok(Progress::Send(messages)) => self.write_messages(&messages).map_err(broken)?,
                    Ok(Progress::Up(features, known)) => return Ok((features, known)),
                    Err(error) => {
                        if matches!(error, HandshakeError::Version { .. }) {
                            // Reports the error before closing, without waiting for delivery.
                            let _ = self.write_messages(&[incompatible()]);
                        }
                        return Err(error);
                    }
                }
            }
            if self.context.is_stopping() {
                return Err(HandshakeError::Stopped);
            }
            if self.context.clock.now() >= deadline {
                return Err(HandshakeError::TimedOut);
            }
            if inbox.fill(&self.socket).map_err(broken)? == Some(0) {
                return Err(HandshakeError::Closed);
            }
        }
    }

    /// Handles the switch's messages until the connection ends. Returns the reason.
    pub(crate) fn serve(&self, datapath: DatapathId, inbox: &mut Inbox) -> DownReason {
        let reason = self.serve_until(datapath, inbox);
        // A reason recorded by this side is more precise.
        lock(&self.closed).take().unwrap_or(reason)
    }

    fn serve_until(&self, datapath: DatapathId, inbox: &mut Inbox) -> DownReason {
        let (clock, config) = (self.context.clock, &self.context.config);
        let mut alive = KeepAlive::new(config.echo_interval, config.echo_timeout, clock.now());
        while !self.context.is_stopping() {
            loop {
                match inbox.next() {
                    Ok(Some(bytes)) => self.handle_bytes(datapath, bytes),
                    Ok(None) => break,
                    Err(error) => return DownReason::Unreadable(error),
                }
            }
            match inbox.fill(&self.socket) {
                Ok(Some(0)) => return DownReason::Closed,
                Ok(Some(_)) => alive.received(clock.now()),
                Ok(None) => {}
                Err(error) => return DownReason::Broken(error.to_string()),
            }
            let now = clock.now();
            match alive.check(now) {
                PeerState::Alive => {}
                // If it cannot be sent, reading says why.
                PeerState::Probe => drop(self.send(&[Body::EchoRequest(Vec::new())], None)),
                PeerState::Dead => return DownReason::Silent,
            }
            self.expire(now);
        }
        DownReason::Stopped
    }

    /// Decodes and handles one message.
    fn handle_bytes(&self, datapath: DatapathId, bytes: &[u8]) {
        self.context.counters.received.add(1);
        match Message::decode(bytes) {
            Ok(message) => self.handle(datapath, message),
            Err(error) => {
                self.context.counters.unreadable.add(1);
                self.deliver(datapath, SwitchMessage::Unreadable(error));
            }
        }
    }

    /// Handles a message.
    pub(crate) fn handle(&self, datapath: DatapathId, message: Message) {
        let Message { xid, body } = message;
        match body {
            // If it cannot be sent, reading says why.
            Body::EchoRequest(data) => {
                drop(self.write_messages(&[Message { xid, body: Body::EchoReply(data) }]))
            }
            Body::PacketIn(packet) => self.offer_packet(datapath, packet),
            Body::PortStatus(status) => self.deliver(datapath, SwitchMessage::PortStatus(status)),
            Body::FlowRemoved(flow) => self.deliver(datapath, SwitchMessage::FlowRemoved(flow)),
            Body::RoleReply(role) => self.deliver(datapath, SwitchMessage::Role(role)),
            Body::BarrierReply => self.complete(xid),
            Body::MultipartReply(part) => self.gather(xid, part),
            Body::Error(error) => self.refuse(datapath, xid, error),
            // Answers to messages of a batch, whose barrier reports the outcome.
            _ => {}
        }
    }

    fn deliver(&self, datapath: DatapathId, said: SwitchMessage) {
        self.context.listener.receive(datapath, said);
    }

    fn offer_packet(&self, datapath: DatapathId, packet: PacketIn) {
        if !self.context.listener.offer_packet(datapath, packet) {
            self.context.counters.packet_ins_dropped.add(1);
        }
    }

    fn with_unanswered<T>(&self, f: impl FnOnce(&mut Unanswered<Waiter>) -> T) -> Option<T> {
        lock(&self.unanswered).as_mut().map(f)
    }

    fn complete(&self, xid: Xid) {
        let now = self.context.clock.now();
        match self.with_unanswered(|unanswered| unanswered.take(xid)).flatten() {
            Some(entry) => {
                let took = entry.took(now);
                if let Some(waiter) = entry.waiter {
                    self.context.counters.done.add(1);
                    self.notify(waiter, xid, took, Ok(()));
                }
            }
            None => self.context.counters.unexpected_answers.add(1),
        }
    }

    fn gather(&self, xid: Xid, part: MultipartReply) {
        let limit = self.context.config.max_answer_parts;
        let answered = self.with_unanswered(|unanswered| {
            let Some(Waiter::Request(_, parts)) = unanswered.answered(xid)?.waiter.as_mut() else {
                return None;
            };
            let is_too_long = parts.len() >= limit;
            if !is_too_long {
                parts.push(part.reply);
            }
            let is_over = is_too_long || !part.more;
            Some(is_over.then(|| (unanswered.take(xid).expect("the entry was just found"), is_too_long)))
        });
        match answered.flatten() {
            None => self.context.counters.unexpected_answers.add(1),
            Some(None) => {}
            Some(Some((Entry { waiter: Some(Waiter::Request(answer, parts)), .. }, is_too_long))) => {
                // The caller may have timed out.
                let _ = answer.try_send(if is_too_long { Err(Failure::TooLong) } else { Ok(parts) });
            }
            Some(Some(_)) => unreachable!("only requests are gathered"),
        }
    }

    fn refuse(&self, datapath: DatapathId, xid: Xid, error: ErrorMessage) {
        let now = self.context.clock.now();
        let found = self.with_unanswered(|unanswered| {
            let (entry, position) = unanswered.with_message(xid)?;
            let waiter = entry.waiter.take()?;
            let (last, took) = (entry.last, entry.took(now));
            if matches!(waiter, Waiter::Request(..)) {
                unanswered.take(last);
            }
            Some((waiter, last, took, position))
        });
        match found.flatten() {
            Some((waiter, last, took, position)) => {
                self.context.counters.refusals.add(1);
                self.notify(waiter, last, took, Err(Failure::Refused { position, xid, error }));
            }
            None => self.deliver(datapath, SwitchMessage::Error { xid, error }),
        }
    }

    fn expire(&self, now: Timestamp) {
        let late = self.with_unanswered(|unanswered| unanswered.take_expired(now));
        self.fail(late.unwrap_or_default(), now, &Failure::TimedOut);
    }

    fn fail(&self, entries: Vec<Entry<Waiter>>, now: Timestamp, failure: &Failure) {
        for entry in entries {
            let took = entry.took(now);
            if let Some(waiter) = entry.waiter {
                if *failure == Failure::TimedOut {
                    self.context.counters.timed_out.add(1);
                }
                self.notify(waiter, entry.last, took, Err(failure.clone()));
            }
        }
    }

    /// Notifies a waiter. Successful requests are answered elsewhere.
    fn notify(&self, waiter: Waiter, xid: Xid, took: Nanos, result: Result<(), Failure>) {
        match waiter {
            Waiter::Batch(outcomes) => {
                if outcomes.try_send(Outcome { xid, result, took }).is_err() {
                    self.context.counters.outcomes_dropped.add(1);
                }
            }
            Waiter::Request(answer, parts) => {
                // The caller may have timed out.
                let _ = answer.try_send(result.map(|()| parts));
            }
        }
    }

    /// Sends messages with consecutive xids in one write. Returns the xid of the last one, whose answer is reported
    /// to the waiter.
    pub(crate) fn send(&self, bodies: &[Body], waiting: Option<(Waiter, Nanos)>) -> Result<Xid, SendError> {
        self.send_all(bodies.iter(), waiting)
    }

    fn send_all<'a>(
        &self,
        bodies: impl Iterator<Item = &'a Body>,
        waiting: Option<(Waiter, Nanos)>,
    ) -> Result<Xid, SendError> {
        let sent = self.context.clock.now();
        let mut outgoing = lock(&self.outgoing);
        let first = outgoing.next_xid;
        let mut count = 0;
        for body in bodies {
            if let Err(error) = body.encode(Xid(first.wrapping_add(count)), &mut outgoing.bytes) {
                outgoing.clear();
                return Err(SendError::Encode(error));
            }
            count += 1;
        }
        outgoing.next_xid = first.wrapping_add(count);
        let (last, before) = (Xid(outgoing.next_xid.wrapping_sub(1)), count.saturating_sub(1));
        let registered = self.with_unanswered(|unanswered| match waiting {
            Some((waiter, within)) => {
                let deadline = sent + within;
                unanswered.add(Entry { last, before, sent, deadline, waiter: Some(waiter) })
            }
            None => Ok(()),
        });
        let written = match registered {
            None => Err(SendError::Down),
            Some(Err(_)) => Err(SendError::TooManyUnanswered),
            Some(Ok(())) => self.write(&outgoing.bytes, count.into()).map_err(|_| SendError::Down),
        };
        outgoing.clear();
        written.map(|()| last)
    }

    /// Sends messages and a barrier, which is the last one.
    pub(crate) fn send_with_barrier(
        &self,
        bodies: &[Body],
        waiting: (Waiter, Nanos),
    ) -> Result<Xid, SendError> {
        self.send_all(bodies.iter().chain([&Body::BarrierRequest]), Some(waiting))
    }

    /// Sends complete messages in one write.
    fn write_messages(&self, messages: &[Message]) -> io::Result<()> {
        let mut outgoing = lock(&self.outgoing);
        for message in messages {
            if let Err(error) = message.encode(&mut outgoing.bytes) {
                outgoing.clear();
                return Err(io::Error::other(error));
            }
        }
        let written = self.write(&outgoing.bytes, messages.len() as u64);
        outgoing.clear();
        written
    }

    /// Closes the connection on an error: a partial message may have been sent.
    fn write(&self, bytes: &[u8], messages: u64) -> io::Result<()> {
        let written = self.socket.write(bytes);
        match &written {
            Ok(()) => self.context.counters.sent.add(messages),
            Err(error) => self.close(DownReason::Broken(error.to_string())),
        }
        written
    }

    /// Closes the connection from this side. Its thread reports the end.
    pub(crate) fn close(&self, reason: DownReason) {
        lock(&self.closed).get_or_insert(reason);
        self.socket.shut_down();
    }

    /// Fails all waiters, and refuses new ones.
    pub(crate) fn end(&self) {
        self.socket.shut_down();
        let unanswered = lock(&self.unanswered).take();
        let entries = unanswered.map(|mut unanswered| unanswered.take_all());
        self.fail(entries.unwrap_or_default(), self.context.clock.now(), &Failure::Down);
    }
}
