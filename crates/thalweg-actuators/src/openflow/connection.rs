//! One connection: a thread that reads, and whoever sends.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use crossbeam_channel::Sender;
use thalweg_wire::openflow::multipart::{MultipartReply, Reply};
use thalweg_wire::openflow::{
    Body, DatapathId, DecodeError, ErrorMessage, Message, PacketIn, SwitchFeatures, Xid, first_message,
};
use thalweg_wire::{Nanos, Timestamp};

use super::context::{Context, Said};
use super::handshake::{FIRST_XID, Handshake, HandshakeError, Known, Progress, incompatible};
use super::keep_alive::{KeepAlive, Verdict};
use super::link::{Link, lock};
use super::outcome::{DownReason, Failure, Outcome, SendError};
use super::unanswered::{Entry, Unanswered};

/// Capacity that the vector of what is sent keeps.
const KEPT_CAPACITY: usize = 1 << 20;

/// A connection, for as long as anybody knows of it.
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    pub(super) context: Arc<Context>,
    link: Link,
    /// Its lock is held while it is written.
    outgoing: Mutex<Outgoing>,
    /// Nothing once the connection has ended. Locked for moments only.
    unanswered: Mutex<Option<Unanswered<Waiter>>>,
    /// Why it was closed here.
    closed: Mutex<Option<DownReason>>,
}

/// Who waits for an answer.
pub(super) enum Waiter {
    /// For a batch's.
    Batch(Sender<Outcome>),
    /// For a question's, of which these parts have come.
    Question(Sender<Result<Vec<Reply>, Failure>>, Vec<Reply>),
}

/// What is being sent.
struct Outgoing {
    next_xid: u32,
    bytes: Vec<u8>,
}

impl Outgoing {
    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_CAPACITY);
    }
}

/// What has been read and not yet been taken.
#[derive(Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    taken: usize,
}

impl Inbox {
    /// The next message, if all of it is there.
    fn next(&mut self) -> Result<Option<&[u8]>, DecodeError> {
        let message = first_message(&self.bytes[self.taken..])?;
        self.taken += message.map_or(0, <[u8]>::len);
        Ok(message)
    }

    /// Waits for more, for a tick at most. What is left is at most one message that is not whole.
    fn fill(&mut self, link: &Link) -> io::Result<Option<usize>> {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        link.read(&mut self.bytes)
    }
}

impl Connection {
    pub(super) fn new(
        context: Arc<Context>,
        stream: TcpStream,
        peer: SocketAddr,
        tls: Option<rustls::Connection>,
    ) -> io::Result<Arc<Connection>> {
        let link = Link::new(stream, tls, context.config.write_timeout)?;
        let unanswered = Unanswered::new(context.config.max_unanswered);
        Ok(Arc::new(Connection {
            peer,
            context,
            link,
            outgoing: Mutex::new(Outgoing { next_xid: FIRST_XID.0, bytes: Vec::new() }),
            unanswered: Mutex::new(Some(unanswered)),
            closed: Mutex::default(),
        }))
    }

    /// Goes through the handshake.
    pub(super) fn come_up(&self, inbox: &mut Inbox) -> Result<(SwitchFeatures, Known), HandshakeError> {
        let broken = |error: io::Error| HandshakeError::Broken(error.to_string());
        let config = &self.context.config;
        let deadline = self.context.clock.now() + config.handshake_timeout;
        let (hello, mut handshake) = Handshake::begin(config);
        self.say(&[hello]).map_err(broken)?;
        loop {
            while let Some(bytes) = inbox.next().map_err(HandshakeError::Unreadable)? {
                self.context.counting.received.add(1);
                let version = bytes[0];
                let message = match Message::decode(bytes).map_err(HandshakeError::Unreadable)? {
                    Message { xid, body: Body::EchoRequest(data) } => {
                        self.say(&[Message { xid, body: Body::EchoReply(data) }]).map_err(broken)?;
                        continue;
                    }
                    Message { body: Body::PacketIn(_), .. } => {
                        self.context.counting.packet_ins_dropped.add(1);
                        continue;
                    }
                    message => message,
                };
                match handshake.take(version, message, config) {
                    Ok(Progress::Wait) => {}
                    Ok(Progress::Say(messages)) => self.say(&messages).map_err(broken)?,
                    Ok(Progress::Up(features, known)) => return Ok((features, known)),
                    Err(error) => {
                        if matches!(error, HandshakeError::Version { .. }) {
                            // It is told on the way out; whether it hears that makes no difference.
                            let _ = self.say(&[incompatible()]);
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
            if inbox.fill(&self.link).map_err(broken)? == Some(0) {
                return Err(HandshakeError::Closed);
            }
        }
    }

    /// Takes what the switch says until the connection ends, and says why it did.
    pub(super) fn serve(&self, datapath: DatapathId, inbox: &mut Inbox) -> DownReason {
        let reason = self.serve_until(datapath, inbox);
        // Who closed it knows better than who found it closed.
        lock(&self.closed).take().unwrap_or(reason)
    }

    fn serve_until(&self, datapath: DatapathId, inbox: &mut Inbox) -> DownReason {
        let (clock, config) = (self.context.clock, &self.context.config);
        let mut alive = KeepAlive::new(config.echo_interval, config.echo_timeout, clock.now());
        while !self.context.is_stopping() {
            loop {
                match inbox.next() {
                    Ok(Some(bytes)) => self.take(datapath, bytes),
                    Ok(None) => break,
                    Err(error) => return DownReason::Unreadable(error),
                }
            }
            match inbox.fill(&self.link) {
                Ok(Some(0)) => return DownReason::Closed,
                Ok(Some(_)) => alive.heard(clock.now()),
                Ok(None) => {}
                Err(error) => return DownReason::Broken(error.to_string()),
            }
            let now = clock.now();
            match alive.check(now) {
                Verdict::Well => {}
                // If it cannot be sent, reading says why.
                Verdict::Ask => drop(self.send(&[Body::EchoRequest(Vec::new())], None)),
                Verdict::Gone => return DownReason::Silent,
            }
            self.give_up_late(now);
        }
        DownReason::Stopped
    }

    /// Takes one message.
    fn take(&self, datapath: DatapathId, bytes: &[u8]) {
        self.context.counting.received.add(1);
        match Message::decode(bytes) {
            Ok(message) => self.hear(datapath, message),
            Err(error) => {
                self.context.counting.unreadable.add(1);
                self.hears(datapath, Said::Unreadable(error));
            }
        }
    }

    /// Takes what a message says.
    pub(super) fn hear(&self, datapath: DatapathId, message: Message) {
        let Message { xid, body } = message;
        match body {
            // If it cannot be sent, reading says why.
            Body::EchoRequest(data) => drop(self.say(&[Message { xid, body: Body::EchoReply(data) }])),
            Body::PacketIn(packet) => self.offer_packet(datapath, packet),
            Body::PortStatus(status) => self.hears(datapath, Said::PortStatus(status)),
            Body::FlowRemoved(flow) => self.hears(datapath, Said::FlowRemoved(flow)),
            Body::BarrierReply => self.complete(xid),
            Body::MultipartReply(part) => self.gather(xid, part),
            Body::Error(error) => self.refuse(datapath, xid, error),
            // Answers to what was sent in a batch, which its barrier tells of.
            _ => {}
        }
    }

    fn hears(&self, datapath: DatapathId, said: Said) {
        self.context.listener.hear(datapath, said);
    }

    fn offer_packet(&self, datapath: DatapathId, packet: PacketIn) {
        if !self.context.listener.offer_packet(datapath, packet) {
            self.context.counting.packet_ins_dropped.add(1);
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
                    self.context.counting.done.add(1);
                    self.resolve(waiter, xid, took, Ok(()));
                }
            }
            None => self.context.counting.unexpected_answers.add(1),
        }
    }

    fn gather(&self, xid: Xid, part: MultipartReply) {
        let limit = self.context.config.max_answer_parts;
        let answered = self.with_unanswered(|unanswered| {
            let Some(Waiter::Question(_, parts)) = unanswered.answered(xid)?.waiter.as_mut() else {
                return None;
            };
            let is_too_long = parts.len() >= limit;
            if !is_too_long {
                parts.push(part.reply);
            }
            let is_over = is_too_long || !part.more;
            Some(is_over.then(|| (unanswered.take(xid).expect("found above"), is_too_long)))
        });
        match answered.flatten() {
            None => self.context.counting.unexpected_answers.add(1),
            Some(None) => {}
            Some(Some((Entry { waiter: Some(Waiter::Question(answer, parts)), .. }, is_too_long))) => {
                // Who asked may have given up.
                let _ = answer.try_send(if is_too_long { Err(Failure::TooLong) } else { Ok(parts) });
            }
            Some(Some(_)) => unreachable!("a question was found"),
        }
    }

    fn refuse(&self, datapath: DatapathId, xid: Xid, error: ErrorMessage) {
        let now = self.context.clock.now();
        let found = self.with_unanswered(|unanswered| {
            let (entry, position) = unanswered.with_message(xid)?;
            let waiter = entry.waiter.take()?;
            let (last, took) = (entry.last, entry.took(now));
            if matches!(waiter, Waiter::Question(..)) {
                unanswered.take(last);
            }
            Some((waiter, last, took, position))
        });
        match found.flatten() {
            Some((waiter, last, took, position)) => {
                self.context.counting.refusals.add(1);
                self.resolve(waiter, last, took, Err(Failure::Refused { position, xid, error }));
            }
            None => self.hears(datapath, Said::Error { xid, error }),
        }
    }

    fn give_up_late(&self, now: Timestamp) {
        let late = self.with_unanswered(|unanswered| unanswered.take_late(now));
        self.fail(late.unwrap_or_default(), now, &Failure::Late);
    }

    fn fail(&self, entries: Vec<Entry<Waiter>>, now: Timestamp, failure: &Failure) {
        for entry in entries {
            let took = entry.took(now);
            if let Some(waiter) = entry.waiter {
                if *failure == Failure::Late {
                    self.context.counting.late.add(1);
                }
                self.resolve(waiter, entry.last, took, Err(failure.clone()));
            }
        }
    }

    /// Tells who waits. A question is answered elsewhere, unless it failed.
    fn resolve(&self, waiter: Waiter, xid: Xid, took: Nanos, result: Result<(), Failure>) {
        match waiter {
            Waiter::Batch(outcomes) => {
                if outcomes.try_send(Outcome { xid, result, took }).is_err() {
                    self.context.counting.outcomes_dropped.add(1);
                }
            }
            Waiter::Question(answer, parts) => {
                // Who asked may have given up.
                let _ = answer.try_send(result.map(|()| parts));
            }
        }
    }

    /// Sends these under consecutive xids, in one write, and says which xid the last one has. Whoever waits is told
    /// when that is answered.
    pub(super) fn send(&self, bodies: &[Body], waiting: Option<(Waiter, Nanos)>) -> Result<Xid, SendError> {
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
            Some(Err(_)) => Err(SendError::Full),
            Some(Ok(())) => self.write(&outgoing.bytes, count.into()).map_err(|_| SendError::Down),
        };
        outgoing.clear();
        written.map(|()| last)
    }

    /// The same with a barrier behind them, which is the last.
    pub(super) fn send_with_barrier(
        &self,
        bodies: &[Body],
        waiting: (Waiter, Nanos),
    ) -> Result<Xid, SendError> {
        self.send_all(bodies.iter().chain([&Body::BarrierRequest]), Some(waiting))
    }

    /// Sends these as they are, in one write.
    fn say(&self, messages: &[Message]) -> io::Result<()> {
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

    /// After an error, part of a message may have been sent: nothing can follow it.
    fn write(&self, bytes: &[u8], messages: u64) -> io::Result<()> {
        let written = self.link.write(bytes);
        match &written {
            Ok(()) => self.context.counting.sent.add(messages),
            Err(error) => self.close(DownReason::Broken(error.to_string())),
        }
        written
    }

    /// Ends the connection from here. Its thread finds out, and tells.
    pub(super) fn close(&self, reason: DownReason) {
        lock(&self.closed).get_or_insert(reason);
        self.link.shut_down();
    }

    /// Lets nobody wait any longer, and nobody wait anew.
    pub(super) fn end(&self) {
        self.link.shut_down();
        let unanswered = lock(&self.unanswered).take();
        let entries = unanswered.map(|mut unanswered| unanswered.take_all());
        self.fail(entries.unwrap_or_default(), self.context.clock.now(), &Failure::Down);
    }
}
