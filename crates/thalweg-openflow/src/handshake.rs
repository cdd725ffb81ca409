//! The handshake: from a TCP connection to a switch with known state (sections 6.3.1 and 7.3.1).

use thalweg_wire::openflow::multipart::{FlowFilter, FlowStats, GroupDescription, Reply, Request};
use thalweg_wire::openflow::{
    AsyncConfig, Body, DecodeError, ErrorMessage, ErrorType, FragmentHandling, Hello, Message, Port,
    PortReason, RoleMasks, SwitchConfig, SwitchFeatures, VERSION, Xid,
};
use thiserror::Error;

use crate::config::Config;

/// Xids of the handshake's requests; unsolicited messages have zero.
const FEATURES: Xid = Xid(1);
const SET_CONFIG: Xid = Xid(2);
const PORTS: Xid = Xid(3);
const FLOWS: Xid = Xid(4);
const GROUPS: Xid = Xid(5);
const BARRIER: Xid = Xid(6);
const SET_ASYNC: Xid = Xid(7);

/// The first xid after the handshake's own.
pub(crate) const FIRST_XID: Xid = Xid(8);

/// Maximum number of port and flow changes during the handshake.
const MAX_EARLY: usize = 4_096;

/// Why a connection was not established.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandshakeError {
    /// No TCP connection could be established.
    #[error("cannot connect: {0}")]
    Unreachable(String),
    /// [`Config::max_connections`] is reached.
    #[error("too many OpenFlow connections")]
    TooManyConnections,
    /// The other side closed it.
    #[error("closed by the other side")]
    Closed,
    /// The connection failed, TLS errors included.
    #[error("connection failed: {0}")]
    Broken(String),
    /// The handshake took longer than [`Config::handshake_timeout`].
    #[error("the handshake timed out")]
    TimedOut,
    /// The controller closed all connections.
    #[error("closed by the controller")]
    Stopped,
    /// The bytes received are not OpenFlow.
    #[error("invalid OpenFlow message: {0}")]
    Unreadable(DecodeError),
    /// The first message was not a hello.
    #[error("first message is {0}, expected Hello")]
    NotHello(&'static str),
    /// The switch does not support OpenFlow 1.3.
    #[error(
        "the switch supports OpenFlow 1.{} at most, or not 1.3: enable 1.3 (Open vSwitch: ovs-vsctl set bridge NAME \
         protocols=OpenFlow13)",
        .highest.saturating_sub(1)
    )]
    Version {
        /// The highest version that it supports, as a wire number: 1 for OpenFlow 1.0.
        highest: u8,
    },
    /// The switch refused a mandatory request.
    #[error("the switch refused {what}: {error}")]
    Refused {
        /// The request.
        what: &'static str,
        /// The switch's error.
        error: ErrorMessage,
    },
    /// The switch answered every request except the one for its features.
    #[error("the switch did not report its features")]
    NoFeatures,
    /// An auxiliary connection (section 6.3.5), which is not supported.
    #[error("unsupported auxiliary connection: expected main connections only")]
    Auxiliary,
    /// An answer has more than [`Config::max_answer_parts`] messages, or too much changed during the handshake.
    #[error("too many messages for {0}")]
    TooLong(&'static str),
}

/// The state of the handshake.
#[derive(Debug)]
pub(crate) struct Handshake {
    hello_received: bool,
    /// Number of answer messages still allowed.
    parts_left: usize,
    features: Option<SwitchFeatures>,
    known: SwitchState,
}

/// The state of a switch when its handshake is complete.
#[derive(Debug, Default)]
pub(crate) struct SwitchState {
    pub(crate) ports: Vec<Port>,
    pub(crate) flows: Vec<FlowStats>,
    pub(crate) groups: Vec<GroupDescription>,
    /// Unsolicited messages during the handshake.
    pub(crate) early: Vec<Message>,
}

/// The result of a message.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Wait for the next message.
    Wait,
    /// Send these messages.
    Send(Vec<Message>),
    /// The handshake is complete.
    Up(SwitchFeatures, SwitchState),
}

impl Handshake {
    /// Starts a handshake. Returns the first message to send.
    pub(crate) fn begin(config: &Config) -> (Message, Handshake) {
        let hello = Message { xid: Xid(0), body: Body::Hello(Hello::supported()) };
        let parts_left = config.max_answer_parts;
        (
            hello,
            Handshake { hello_received: false, parts_left, features: None, known: SwitchState::default() },
        )
    }

    /// Handles the next message, whose header has this version.
    pub(crate) fn take(
        &mut self,
        version: u8,
        message: Message,
        config: &Config,
    ) -> Result<Progress, HandshakeError> {
        if self.hello_received {
            return self.gather(message);
        }
        match message.body {
            Body::Hello(hello) if hello.supports_our_version(version) => {
                self.hello_received = true;
                Ok(Progress::Send(requests(config)))
            }
            Body::Hello(hello) => Err(HandshakeError::Version { highest: highest(&hello, version) }),
            Body::Error(error) => Err(HandshakeError::Refused { what: "Hello", error }),
            other => Err(HandshakeError::NotHello(other.name())),
        }
    }

    fn gather(&mut self, message: Message) -> Result<Progress, HandshakeError> {
        let Message { xid, body } = message;
        match body {
            Body::FeaturesReply(features) if features.auxiliary_id != 0 => {
                return Err(HandshakeError::Auxiliary);
            }
            Body::FeaturesReply(features) => self.features = Some(features),
            Body::MultipartReply(part) => {
                let left = self.parts_left.checked_sub(1);
                self.parts_left = left.ok_or(HandshakeError::TooLong("its ports, flows and groups"))?;
                match part.reply {
                    Reply::PortDesc(ports) => self.known.ports.extend(ports),
                    Reply::Flow(flows) => self.known.flows.extend(flows),
                    Reply::GroupDesc(groups) => self.known.groups.extend(groups),
                    _ => {}
                }
            }
            // Groups and the choice of asynchronous messages are optional.
            Body::Error(_) if xid == GROUPS || xid == SET_ASYNC => {}
            Body::Error(error) => return Err(HandshakeError::Refused { what: what(xid), error }),
            Body::BarrierReply if xid == BARRIER => {
                let features = self.features.ok_or(HandshakeError::NoFeatures)?;
                return Ok(Progress::Up(features, std::mem::take(&mut self.known)));
            }
            body @ (Body::PortStatus(_) | Body::FlowRemoved(_)) => {
                if self.known.early.len() == MAX_EARLY {
                    return Err(HandshakeError::TooLong("changes during the handshake"));
                }
                self.known.early.push(Message { xid, body });
            }
            _ => {}
        }
        Ok(Progress::Wait)
    }
}

/// Returns all requests. The barrier is answered after all of them (section 6.2).
fn requests(config: &Config) -> Vec<Message> {
    let ask = |request: Request| Body::MultipartRequest(request.into());
    let flags = FragmentHandling::NORMAL;
    let flows = FlowFilter::by_cookie(config.read_back.cookie, config.read_back.mask);
    if config.reads_only {
        return [
            (FEATURES, Body::FeaturesRequest),
            (SET_ASYNC, Body::SetAsync(only_port_status())),
            (PORTS, ask(Request::PortDesc)),
            (BARRIER, Body::BarrierRequest),
        ]
        .map(|(xid, body)| Message { xid, body })
        .into();
    }
    [
        (FEATURES, Body::FeaturesRequest),
        (SET_CONFIG, Body::SetConfig(SwitchConfig { flags, miss_send_len: config.miss_send_length })),
        (PORTS, ask(Request::PortDesc)),
        (FLOWS, ask(Request::Flow(flows))),
        (GROUPS, ask(Request::GroupDesc)),
        (BARRIER, Body::BarrierRequest),
    ]
    .map(|(xid, body)| Message { xid, body })
    .into()
}

/// Selects port-status messages of all reasons in any role, and no others.
fn only_port_status() -> AsyncConfig {
    let reasons = [PortReason::ADD, PortReason::DELETE, PortReason::MODIFY];
    let mask = reasons.into_iter().fold(0, |mask, reason| mask | 1 << reason.0);
    AsyncConfig {
        packet_in: RoleMasks::default(),
        port_status: RoleMasks { master: mask, slave: mask },
        flow_removed: RoleMasks::default(),
    }
}

fn what(xid: Xid) -> &'static str {
    match xid {
        FEATURES => "the request for its features",
        SET_CONFIG => "its configuration",
        PORTS => "the request for its ports",
        FLOWS => "the request for its flows",
        BARRIER => "the barrier",
        _ => "a request",
    }
}

fn highest(hello: &Hello, version: u8) -> u8 {
    match hello.versions.first() {
        Some(word) if *word != 0 => word.ilog2() as u8,
        _ => version,
    }
}

/// Returns the error for a switch with an incompatible version (OFPHFC_INCOMPATIBLE, section "Error Message").
pub(crate) fn incompatible() -> Message {
    let data = format!("only OpenFlow 1.{} is supported", VERSION - 1).into_bytes();
    let error = ErrorMessage { error_type: ErrorType::HELLO_FAILED, code: 0, data };
    Message { xid: Xid(0), body: Body::Error(error) }
}
