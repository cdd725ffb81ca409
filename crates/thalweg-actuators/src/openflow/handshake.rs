//! From a TCP connection to a switch that is known (sections 6.3.1 and 7.3.1).

use thalweg_wire::openflow::multipart::{FlowFilter, FlowStats, GroupDescription, Reply, Request};
use thalweg_wire::openflow::{
    Body, DecodeError, ErrorMessage, ErrorType, FragmentHandling, Hello, Message, Port, SwitchConfig,
    SwitchFeatures, VERSION, Xid,
};
use thiserror::Error;

use super::config::Config;

/// Xids of what is asked; what a switch says unasked has zero.
const FEATURES: Xid = Xid(1);
const SET_CONFIG: Xid = Xid(2);
const PORTS: Xid = Xid(3);
const FLOWS: Xid = Xid(4);
const GROUPS: Xid = Xid(5);
const BARRIER: Xid = Xid(6);

/// The first xid after the handshake's own.
pub(super) const FIRST_XID: Xid = Xid(7);

/// Most ports and flows that may change while a switch connects.
const MAX_EARLY: usize = 4_096;

/// Why a connection did not come up.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandshakeError {
    /// There is no TCP connection to be had.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// There are [`Config::max_connections`].
    #[error("one connection too many")]
    TooMany,
    /// The other side closed it.
    #[error("closed by the other side")]
    Closed,
    /// It broke, TLS's doing included.
    #[error("connection broken: {0}")]
    Broken(String),
    /// It took longer than [`Config::handshake_timeout`].
    #[error("the handshake took too long")]
    TimedOut,
    /// All connections are closed.
    #[error("closed by us")]
    Stopped,
    /// What came is no OpenFlow.
    #[error("not OpenFlow: {0}")]
    Unreadable(DecodeError),
    /// The first message was none that can be.
    #[error("began with {0}, expected Hello")]
    NotHello(&'static str),
    /// The switch does not speak OpenFlow 1.3.
    #[error(
        "the switch speaks OpenFlow 1.{} at most, or not 1.3; allow 1.3 (Open vSwitch: ovs-vsctl set bridge NAME \
         protocols=OpenFlow13)",
        .highest.saturating_sub(1)
    )]
    Version {
        /// Number of the highest version that it speaks: 1 for OpenFlow 1.0.
        highest: u8,
    },
    /// The switch refused something that it must be able to do.
    #[error("the switch refused {what}: {error}")]
    Refused {
        /// What.
        what: &'static str,
        /// Why.
        error: ErrorMessage,
    },
    /// It has not said who it is, by the time that it has answered everything.
    #[error("the switch does not say who it is")]
    NoFeatures,
    /// It is an auxiliary connection (section 6.3.5), which we have no use for.
    #[error("an auxiliary connection, expected only main ones")]
    Auxiliary,
    /// An answer has more than [`Config::max_answer_parts`] messages, or too much changed meanwhile.
    #[error("{0} take too many messages")]
    TooLong(&'static str),
}

/// What has been learnt so far.
#[derive(Debug)]
pub(super) struct Handshake {
    said_hello: bool,
    /// Messages that the answers may still take.
    parts_left: usize,
    features: Option<SwitchFeatures>,
    known: Known,
}

/// What is known of a switch when it is up.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) ports: Vec<Port>,
    pub(super) flows: Vec<FlowStats>,
    pub(super) groups: Vec<GroupDescription>,
    /// What it has said unasked meanwhile.
    pub(super) early: Vec<Message>,
}

/// What follows from a message.
#[derive(Debug)]
pub(super) enum Progress {
    /// The next message is waited for.
    Wait,
    /// These are to be sent.
    Say(Vec<Message>),
    /// The switch is up.
    Up(SwitchFeatures, Known),
}

impl Handshake {
    /// What is sent first, and what is waited for then.
    pub(super) fn begin(config: &Config) -> (Message, Handshake) {
        let hello = Message { xid: Xid(0), body: Body::Hello(Hello::ours()) };
        let parts_left = config.max_answer_parts;
        (hello, Handshake { said_hello: false, parts_left, features: None, known: Known::default() })
    }

    /// Takes the next message, whose header has this version.
    pub(super) fn take(
        &mut self,
        version: u8,
        message: Message,
        config: &Config,
    ) -> Result<Progress, HandshakeError> {
        if self.said_hello {
            return self.gather(message);
        }
        match message.body {
            Body::Hello(hello) if hello.speaks_ours(version) => {
                self.said_hello = true;
                Ok(Progress::Say(questions(config)))
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
            // A switch need not know groups.
            Body::Error(_) if xid == GROUPS => {}
            Body::Error(error) => return Err(HandshakeError::Refused { what: what(xid), error }),
            Body::BarrierReply if xid == BARRIER => {
                let features = self.features.ok_or(HandshakeError::NoFeatures)?;
                return Ok(Progress::Up(features, std::mem::take(&mut self.known)));
            }
            body @ (Body::PortStatus(_) | Body::FlowRemoved(_)) => {
                if self.known.early.len() == MAX_EARLY {
                    return Err(HandshakeError::TooLong("changes while it connects"));
                }
                self.known.early.push(Message { xid, body });
            }
            _ => {}
        }
        Ok(Progress::Wait)
    }
}

/// All that is asked of a switch. Answers come before that to the barrier (section 6.2).
fn questions(config: &Config) -> Vec<Message> {
    let ask = |request: Request| Body::MultipartRequest(request.into());
    let flags = FragmentHandling::NORMAL;
    let flows = FlowFilter::by_cookie(config.read_back.cookie, config.read_back.mask);
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

fn what(xid: Xid) -> &'static str {
    match xid {
        FEATURES => "to say who it is",
        SET_CONFIG => "to be set",
        PORTS => "to say which ports it has",
        FLOWS => "to say which flows it has",
        BARRIER => "a barrier",
        _ => "something",
    }
}

fn highest(hello: &Hello, version: u8) -> u8 {
    match hello.versions.first() {
        Some(word) if *word != 0 => word.ilog2() as u8,
        _ => version,
    }
}

/// What a switch that cannot be spoken to is told (OFPHFC_INCOMPATIBLE, section "Error Message").
pub(super) fn incompatible() -> Message {
    let data = format!("only OpenFlow 1.{} is spoken here", VERSION - 1).into_bytes();
    let error = ErrorMessage { error_type: ErrorType::HELLO_FAILED, code: 0, data };
    Message { xid: Xid(0), body: Body::Error(error) }
}
