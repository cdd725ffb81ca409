//! One BGP session over one TCP connection (RFC 4271).
//!
//! The state machine and the messages are those of the crates rustbgpd-fsm and rustbgpd-wire. Here are the connection, the
//! timers and the bytes that wait to be sent. A thread connects and reads; nothing else blocks.
//!
//! The session announces FlowSpec for IPv4 and IPv6 and no graceful restart, so the peer drops all rules when the session
//! ends, whatever the reason.

use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpStream};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use crossbeam_channel::{Receiver, Sender, bounded};
use rustbgpd_fsm::{Action as Step, Event, NegotiatedSession, PeerConfig, Session, SessionState, TimerType};
use rustbgpd_wire::notification::{description, extract_shutdown_communication};
use rustbgpd_wire::{
    Afi, DecodeError, EXTENDED_MAX_MESSAGE_LEN, Message, NotificationCode, NotificationMessage,
    RouteRefreshMessage, RouteRefreshSubtype, Safi, UpdateMessage, decode_message, encode_message,
    peek_message_length,
};
use thalweg_linux::tcp::{self, ConnectOptions};

use super::FlowspecOptions;
use super::rule::{Encoding, FAMILIES};

/// Maximum time that connecting takes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Messages that were read and not yet handled; the peer waits when there are more.
const INCOMING: usize = 64;

/// Minimum hold time that the peer may propose, in seconds. Without one, rules would outlive a host that lost its power.
pub const MIN_HOLD_TIME: u16 = 3;

/// What arrives from the thread that connects and reads.
pub(super) enum Incoming {
    Connected(TcpStream),
    Message(Message),
    Malformed(DecodeError),
    /// The connection failed or ended, for this reason.
    Closed(String),
}

/// A session, from its connection to its end.
pub(super) struct BgpSession {
    fsm: Session,
    stream: TcpStream,
    negotiated: Option<NegotiatedSession>,
    local_as: u32,
    /// Whether it has become established since the last call of [`take_established`](Self::take_established).
    is_new: bool,
    /// Families whose rules the peer asks to repeat.
    refreshes: Vec<Afi>,
    output: Output,
    hold: Option<Instant>,
    keepalive: Option<Instant>,
    /// Why it ends; while it runs, what would have been the reason.
    reason: String,
    has_ended: bool,
}

/// Bytes that wait until the kernel takes them.
struct Output {
    bytes: BytesMut,
    /// Bytes queued, ever.
    queued: u64,
    /// Bytes that the kernel has taken, ever.
    written: u64,
    /// When it last took some, or when there were none.
    progress: Instant,
}

/// Starts the thread that connects and reads.
///
/// # Errors
/// A message, if there is no thread.
pub(super) fn connect(options: &FlowspecOptions) -> Result<Receiver<Incoming>, String> {
    let options = ConnectOptions {
        peer: options.peer,
        local_address: options.local_address,
        password: options.password.clone(),
        timeout: CONNECT_TIMEOUT,
    };
    let (sender, incoming) = bounded(INCOMING);
    let work = move || {
        // An error means that nobody listens any more.
        let _ = read(&options, &sender);
    };
    let thread = std::thread::Builder::new().name("bgp-reader".to_owned()).spawn(work);
    thread.map(|_| incoming).map_err(|error| format!("cannot start a thread: {error}"))
}

/// Connects, and reads until the connection ends.
fn read(
    options: &ConnectOptions,
    incoming: &Sender<Incoming>,
) -> Result<(), crossbeam_channel::SendError<Incoming>> {
    let connected = tcp::connect(options).and_then(|stream| Ok((stream.try_clone()?, stream)));
    let mut stream = match connected {
        Ok((writer, stream)) => {
            incoming.send(Incoming::Connected(writer))?;
            stream
        }
        Err(error) => {
            // With another password, the peer ignores all segments.
            let hint = match options.password.is_some() && error.kind() == std::io::ErrorKind::TimedOut {
                true => ": it cannot be reached, or has another password",
                false => "",
            };
            return incoming.send(Incoming::Closed(format!("cannot connect: {error}{hint}")));
        }
    };
    let (mut received, mut chunk) = (BytesMut::new(), [0; 16_384]);
    loop {
        match peek_message_length(&received, EXTENDED_MAX_MESSAGE_LEN) {
            Ok(Some(length)) if received.len() >= usize::from(length) => {
                let mut bytes = received.split_to(length.into()).freeze();
                match decode_message(&mut bytes, EXTENDED_MAX_MESSAGE_LEN) {
                    Ok(message) => incoming.send(Incoming::Message(message))?,
                    Err(error) => return incoming.send(Incoming::Malformed(error)),
                }
                continue;
            }
            Ok(_) => {}
            Err(error) => return incoming.send(Incoming::Malformed(error)),
        }
        match stream.read(&mut chunk) {
            Ok(0) => return incoming.send(Incoming::Closed("the peer closed the connection".to_owned())),
            Ok(count) => received.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return incoming.send(Incoming::Closed(format!("connection lost: {error}"))),
        }
    }
}

impl BgpSession {
    /// Opens a session over a new connection.
    pub(super) fn open(options: &FlowspecOptions, stream: TcpStream, now: Instant) -> BgpSession {
        let mut config = PeerConfig::new(options.local_as, options.peer_as, router_id(options, &stream));
        config.hold_time = options.hold_time;
        config.min_hold_time = Some(MIN_HOLD_TIME);
        config.families = FAMILIES.map(|family| (family, Safi::FlowSpec)).to_vec();
        config.disable_ipv4_unicast = true;
        let mut session = BgpSession {
            fsm: Session::new(config),
            stream,
            negotiated: None,
            local_as: options.local_as,
            is_new: false,
            refreshes: Vec::new(),
            output: Output { bytes: BytesMut::new(), queued: 0, written: 0, progress: now },
            hold: None,
            keepalive: None,
            reason: "the session was not established".to_owned(),
            has_ended: false,
        };
        session.handle(Event::ManualStart, now);
        session.handle(Event::TcpConnectionConfirmed, now);
        session
    }

    /// Returns why it has ended.
    pub(super) fn ended(&self) -> Option<&str> {
        self.has_ended.then_some(&*self.reason)
    }

    /// Whether it is established, and the peer accepts rules of the family.
    pub(super) fn accepts(&self, family: Afi) -> bool {
        let negotiated = self.negotiated.as_ref();
        negotiated.is_some_and(|it| it.negotiated_families.contains(&(family, Safi::FlowSpec)))
    }

    /// Whether rules can be announced.
    pub(super) fn is_established(&self) -> bool {
        self.negotiated.is_some()
    }

    /// Whether it has become established since the last call.
    pub(super) fn take_established(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    /// Returns families whose rules the peer asks to repeat.
    pub(super) fn take_refreshes(&mut self) -> Vec<Afi> {
        std::mem::take(&mut self.refreshes)
    }

    /// Returns how attributes are written.
    pub(super) fn encoding(&self) -> Encoding {
        let negotiated = self.negotiated.as_ref();
        Encoding {
            local_as: self.local_as,
            is_internal: negotiated.is_some_and(|it| it.peer_asn == self.local_as),
            four_octet_as: negotiated.is_some_and(|it| it.four_octet_as),
        }
    }

    /// Handles what has arrived.
    pub(super) fn receive(&mut self, incoming: Incoming, now: Instant) {
        let event = match incoming {
            Incoming::Connected(_) => return,
            Incoming::Closed(reason) => {
                self.reason = reason;
                Event::TcpConnectionFails
            }
            Incoming::Malformed(error) => {
                self.reason = format!("the peer sent an invalid message: {error}");
                Event::DecodeError(error)
            }
            Incoming::Message(message) => match message {
                Message::Open(open) => {
                    self.reason = format!(
                        "OPEN message with AS {}, hold time {} s",
                        open.four_byte_as(),
                        open.hold_time
                    );
                    Event::OpenReceived(open)
                }
                Message::Keepalive => Event::KeepaliveReceived,
                Message::Notification(notification) => {
                    self.reason = format!("the peer sent NOTIFICATION {}", text(&notification));
                    Event::NotificationReceived(notification)
                }
                // Rules and routes of the peer mean nothing here.
                Message::Update(_) => Event::UpdateReceived,
                Message::RouteRefresh(request) => match FAMILIES.into_iter().find(|family| {
                    request.safi_raw == Safi::FlowSpec as u8 && request.afi_raw == *family as u16
                }) {
                    Some(family) => {
                        if request.subtype() == RouteRefreshSubtype::Normal {
                            self.refreshes.push(family);
                        }
                        Event::RouteRefreshReceived { afi: family, safi: Safi::FlowSpec }
                    }
                    // Of a family that was not announced, to be ignored (RFC 2918, section 4).
                    None => return,
                },
                _ => return,
            },
        };
        self.handle(event, now);
    }

    /// Passes an event to the state machine, and does what it says.
    fn handle(&mut self, event: Event, now: Instant) {
        if self.has_ended {
            return;
        }
        for step in self.fsm.handle_event(event) {
            self.perform(step, now);
        }
        self.flush(now);
    }

    fn perform(&mut self, step: Step, now: Instant) {
        match step {
            Step::SendOpen(open) => self.push(&Message::Open(open)),
            Step::SendKeepalive => self.push(&Message::Keepalive),
            Step::SendNotification(notification) => {
                match notification.code {
                    NotificationCode::OpenMessage => {
                        self.reason = format!("{} refused: {}", self.reason, text(&notification));
                    }
                    NotificationCode::FsmError => {
                        self.reason = "the peer sent a message out of order".to_owned();
                    }
                    _ => {}
                }
                self.push(&Message::Notification(notification));
            }
            Step::StartTimer(timer, seconds) => {
                let at = now + Duration::from_secs(seconds.into());
                self.set_timer(timer, Some(at));
            }
            Step::StopTimer(timer) => self.set_timer(timer, None),
            Step::SessionEstablished(negotiated) => {
                self.negotiated = Some(*negotiated);
                self.is_new = true;
            }
            // A NOTIFICATION message may follow.
            Step::CloseTcpConnection
            | Step::SessionDown
            | Step::StateChanged { new: SessionState::Idle | SessionState::Active, .. } => self.end(),
            // The connection exists before the session.
            _ => {}
        }
    }

    fn set_timer(&mut self, timer: TimerType, at: Option<Instant>) {
        match timer {
            TimerType::Hold => self.hold = at,
            TimerType::Keepalive => self.keepalive = at,
            _ => {}
        }
    }

    /// The session is over, for the reason set before.
    fn end(&mut self) {
        self.negotiated = None;
        self.has_ended = true;
    }

    /// Ends the session for this reason.
    pub(super) fn fail(&mut self, reason: String) {
        self.reason = reason;
        self.end();
    }

    /// Ends the session as an administrator does (RFC 4486).
    pub(super) fn shut_down(&mut self, now: Instant) {
        self.handle(Event::ManualStop { reason: None }, now);
    }

    /// Does what is due at `now`.
    pub(super) fn advance(&mut self, now: Instant) {
        if self.hold.is_some_and(|at| now >= at) {
            self.hold = None;
            self.reason = "the peer was silent for the hold time".to_owned();
            self.handle(Event::HoldTimerExpires, now);
        }
        if self.keepalive.is_some_and(|at| now >= at) {
            self.keepalive = None;
            self.handle(Event::KeepaliveTimerExpires, now);
        }
        self.flush(now);
        let patience = self.negotiated.as_ref().map(|it| rustbgpd_fsm::default_send_hold_time(it.hold_time));
        let silence = now.saturating_duration_since(self.output.progress);
        if patience.is_some_and(|seconds| silence >= Duration::from_secs(seconds.into())) {
            // RFC 9687.
            self.fail(format!("the peer has read nothing for {} s", silence.as_secs()));
        }
    }

    /// Returns when something is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.hold, self.keepalive].into_iter().flatten().min()
    }

    /// Queues an UPDATE message.
    pub(super) fn update(&mut self, update: UpdateMessage) {
        self.push(&Message::Update(update));
    }

    /// Queues a mark around repeated rules, if both sides know marks (RFC 7313).
    pub(super) fn mark_refresh(&mut self, family: Afi, subtype: RouteRefreshSubtype) {
        if self.negotiated.as_ref().is_some_and(|it| it.peer_enhanced_route_refresh) {
            let mark = RouteRefreshMessage::new_with_subtype(family, Safi::FlowSpec, subtype);
            self.push(&Message::RouteRefresh(mark));
        }
    }

    fn push(&mut self, message: &Message) {
        match encode_message(message) {
            Ok(bytes) => {
                self.output.queued += bytes.len() as u64;
                self.output.bytes.extend_from_slice(&bytes);
            }
            Err(error) => self.fail(format!("cannot encode a message: {error}")),
        }
    }

    /// Passes as many bytes to the kernel as it takes.
    pub(super) fn flush(&mut self, now: Instant) {
        while !self.output.bytes.is_empty() {
            match tcp::send_now(&self.stream, &self.output.bytes) {
                Ok(0) => return,
                Ok(count) => {
                    let _ = self.output.bytes.split_to(count);
                    self.output.written += count as u64;
                    self.output.progress = now;
                }
                Err(_) if self.has_ended => return,
                Err(error) => return self.fail(format!("connection lost: {error}")),
            }
        }
        self.output.progress = now;
    }

    /// Returns the number of bytes queued, ever.
    pub(super) fn queued(&self) -> u64 {
        self.output.queued
    }

    /// Returns the number of bytes that the kernel has taken, ever.
    pub(super) fn written(&self) -> u64 {
        self.output.written
    }
}

impl Drop for BgpSession {
    /// Ends the reading thread too.
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Returns the identifier of this speaker: that of the configuration, or the local IPv4 address.
fn router_id(options: &FlowspecOptions, stream: &TcpStream) -> Ipv4Addr {
    let local = || match stream.local_addr().map(|address| address.ip()) {
        Ok(IpAddr::V4(address)) => address,
        // A configuration with an IPv6 peer has an identifier.
        _ => Ipv4Addr::LOCALHOST,
    };
    options.router_id.unwrap_or_else(local)
}

/// Returns code, subcode, name and text of a NOTIFICATION message.
fn text(notification: &NotificationMessage) -> String {
    let NotificationMessage { code, subcode, .. } = notification;
    let name = description(*code, *subcode);
    let why = extract_shutdown_communication(notification).ok().flatten().unwrap_or_default();
    let why: String = why.chars().filter(|letter| !letter.is_control()).collect();
    format!("{}/{subcode}, {name}{}{why}", code.as_u8(), if why.is_empty() { "" } else { ": " })
}
