//! A message: its header, and the table of what can follow.

use super::asynchronous::AsyncConfig;
use super::codec::{Reader, Wire, Writer};
use super::error::{DecodeError, EncodeError};
use super::failure::ErrorMessage;
use super::flow::{FlowMod, FlowRemoved};
use super::group::GroupMod;
use super::hello::Hello;
use super::identity::Xid;
use super::multipart::{MultipartReply, MultipartRequest};
use super::packet::{PacketIn, PacketOut};
use super::port::PortStatus;
use super::switch::{RoleClaim, SwitchConfig, SwitchFeatures};
use super::{HEADER_LENGTH, VERSION};

layout! {
    /// What every message begins with (section 7.1.1).
    #[derive(Copy)]
    pub struct Header {
        /// Version of the protocol; of a hello, the highest that its sender speaks.
        version: u8,
        /// Which message it is: [`Body::kind`].
        kind: u8,
        /// Bytes of the message, header included.
        length: u16,
        /// Its name.
        xid: Xid,
    }
}

impl Header {
    /// The header that `bytes` begin with, if all of it is there.
    ///
    /// # Errors
    /// When it claims a length that no message can have.
    pub fn decode(bytes: &[u8]) -> Result<Option<Header>, DecodeError> {
        let Some(bytes) = bytes.get(..HEADER_LENGTH) else { return Ok(None) };
        let header = Header::read(&mut Reader::new("Header", bytes))?;
        let length = usize::from(header.length);
        if length < HEADER_LENGTH {
            let structure = "Header";
            return Err(DecodeError::Length { structure, offset: 0, length, expected: "8 or more" });
        }
        Ok(Some(header))
    }
}

/// The bytes of a stream's first message, or nothing if it is not there in whole.
///
/// # Errors
/// When its header claims a length that no message can have; the stream is lost from there on.
pub fn first_message(stream: &[u8]) -> Result<Option<&[u8]>, DecodeError> {
    Ok(Header::decode(stream)?.and_then(|header| stream.get(..header.length.into())))
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its name, which an answer repeats.
    pub xid: Xid,
    /// What it says.
    pub body: Body,
}

tagged! {
    /// What a message says. By whom it is sent is in brackets: controller, switch or either.
    pub enum Body(u8) {
        /// The first message (either).
        0 Hello(hello: Hello),
        /// What was asked cannot be done (either, but for a failed hello only a switch sends it).
        1 Error(error: ErrorMessage),
        /// To be answered with the same data (either).
        2 EchoRequest(data: Vec<u8>),
        /// The answer (either).
        3 EchoReply(data: Vec<u8>),
        /// What somebody added to the protocol (either).
        4 Experimenter(experimenter: Experimenter),
        /// Asks who the switch is (controller).
        5 FeaturesRequest,
        /// Who it is (switch).
        6 FeaturesReply(features: SwitchFeatures),
        /// Asks how it is set (controller).
        7 GetConfigRequest,
        /// How it is set (switch).
        8 GetConfigReply(config: SwitchConfig),
        /// Sets it (controller).
        9 SetConfig(config: SwitchConfig),
        /// A packet for the controller (switch).
        10 PacketIn(packet: PacketIn),
        /// A flow that is no more (switch).
        11 FlowRemoved(flow: FlowRemoved),
        /// A port that came, went or changed (switch).
        12 PortStatus(status: PortStatus),
        /// A packet to send (controller).
        13 PacketOut(packet: PacketOut),
        /// A change to flow tables (controller).
        14 FlowMod(flow: FlowMod),
        /// A change to groups (controller).
        15 GroupMod(group: GroupMod),
        /// A question whose answer may be long (controller).
        18 MultipartRequest(request: MultipartRequest),
        /// One part of the answer (switch).
        19 MultipartReply(reply: MultipartReply),
        /// Asks to be answered when all before is done (controller).
        20 BarrierRequest,
        /// All before is done (switch).
        21 BarrierReply,
        /// Asks for a role among controllers (controller).
        24 RoleRequest(role: RoleClaim),
        /// The role that it has (switch).
        25 RoleReply(role: RoleClaim),
        /// Asks what is sent unasked (controller).
        26 GetAsyncRequest,
        /// What is (switch).
        27 GetAsyncReply(config: AsyncConfig),
        /// Sets that (controller).
        28 SetAsync(config: AsyncConfig),
    }
}

/// Number of [`Body::Hello`], which is read whatever version it comes in.
const HELLO: u8 = 0;
/// Number of [`Body::Error`], which has had the same form in all versions.
const ERROR: u8 = 1;

layout! {
    /// What somebody added to the protocol (section "Experimenter").
    pub struct Experimenter {
        /// Who: an IEEE OUI, or a number of the ONF.
        experimenter: u32,
        /// What, by their numbering.
        exp_type: u32,
        /// Theirs.
        data: Vec<u8>,
    }
}

impl Message {
    /// The message that `bytes` are, all of them, as [`first_message`] cuts them. A hello and an error are read in any
    /// version, since they are how versions are agreed on; all else is of version [`VERSION`].
    ///
    /// # Errors
    /// When they break the protocol. [`Header::decode`] still tells the xid to answer with.
    pub fn decode(bytes: &[u8]) -> Result<Message, DecodeError> {
        let mut from = Reader::new("Header", bytes);
        let header = Header::read(&mut from)?;
        let (length, offset) = (usize::from(header.length), 0);
        if length != bytes.len() {
            let expected = "the number of bytes given";
            return Err(DecodeError::Length { structure: "Header", offset, length, expected });
        }
        let body = match (header.version, header.kind) {
            (..VERSION, HELLO) => {
                // What follows the header was left open then, and is to be ignored.
                from.rest();
                Body::Hello(Hello::default())
            }
            (VERSION, kind) | (_, kind @ (HELLO | ERROR)) => Body::read_body(kind, &mut from)?,
            (found, _) => return Err(DecodeError::Version { found }),
        };
        from.finish()?;
        Ok(Message { xid: header.xid, body })
    }

    /// Appends the message to `out`.
    ///
    /// # Errors
    /// When the message, or a structure in it, is longer than its length field can say; `out` is then as before.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.body.encode(self.xid, out)
    }
}

impl Body {
    /// Appends the message of this name that says it to `out`.
    ///
    /// # Errors
    /// As of [`Message::encode`].
    pub fn encode(&self, xid: Xid, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let start = out.len();
        let mut to = Writer::new(out);
        Header { version: VERSION, kind: self.kind(), length: 0, xid }.write(&mut to);
        self.write_body(&mut to);
        to.set_length(self.name(), start, start + 2);
        to.finish().inspect_err(|_| out.truncate(start))
    }
}
