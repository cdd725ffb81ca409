//! Messages: the header and the table of bodies.

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
use super::switch::{RoleRequest, SwitchConfig, SwitchFeatures};
use super::{HEADER_LENGTH, VERSION};

layout! {
    /// The header of a message (section 7.1.1).
    #[derive(Copy)]
    pub struct Header {
        /// The protocol version; in a hello, the highest that its sender supports.
        version: u8,
        /// The message type: [`Body::kind`].
        kind: u8,
        /// The length of the message in bytes, including the header.
        length: u16,
        /// The transaction id.
        xid: Xid,
    }
}

impl Header {
    /// Decodes the header at the start of `bytes`; returns `None` if it is incomplete.
    ///
    /// # Errors
    /// When the length in the header is invalid.
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

/// Returns the bytes of the first message of a stream, or `None` if it is incomplete.
///
/// # Errors
/// When the length in the header is invalid; the rest of the stream cannot be decoded.
pub fn first_message(stream: &[u8]) -> Result<Option<&[u8]>, DecodeError> {
    Ok(Header::decode(stream)?.and_then(|header| stream.get(..header.length.into())))
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The transaction id, which a reply repeats.
    pub xid: Xid,
    /// The body.
    pub body: Body,
}

tagged! {
    /// The body of a message. The sender is in parentheses: controller, switch or either.
    pub enum Body(u8) {
        /// The first message (either).
        0 Hello(hello: Hello),
        /// An error (either; a controller sends only `HELLO_FAILED`).
        1 Error(error: ErrorMessage),
        /// A request for an echo of the data (either).
        2 EchoRequest(data: Vec<u8>),
        /// The echo (either).
        3 EchoReply(data: Vec<u8>),
        /// A message of an extension (either).
        4 Experimenter(experimenter: Experimenter),
        /// Requests the features of the switch (controller).
        5 FeaturesRequest,
        /// The features (switch).
        6 FeaturesReply(features: SwitchFeatures),
        /// Requests the configuration (controller).
        7 GetConfigRequest,
        /// The configuration (switch).
        8 GetConfigReply(config: SwitchConfig),
        /// Sets the configuration (controller).
        9 SetConfig(config: SwitchConfig),
        /// A packet for the controller (switch).
        10 PacketIn(packet: PacketIn),
        /// The removal of a flow entry (switch).
        11 FlowRemoved(flow: FlowRemoved),
        /// The addition, removal or change of a port (switch).
        12 PortStatus(status: PortStatus),
        /// A packet to send (controller).
        13 PacketOut(packet: PacketOut),
        /// A change to flow tables (controller).
        14 FlowMod(flow: FlowMod),
        /// A change to groups (controller).
        15 GroupMod(group: GroupMod),
        /// A request for a reply of one or more parts (controller).
        18 MultipartRequest(request: MultipartRequest),
        /// A part of the reply (switch).
        19 MultipartReply(reply: MultipartReply),
        /// Requests a reply after all earlier messages have been processed (controller).
        20 BarrierRequest,
        /// All earlier messages have been processed (switch).
        21 BarrierReply,
        /// Requests a role (controller).
        24 RoleRequest(role: RoleRequest),
        /// The role of the controller (switch).
        25 RoleReply(role: RoleRequest),
        /// Requests the configuration of asynchronous messages (controller).
        26 GetAsyncRequest,
        /// The configuration of asynchronous messages (switch).
        27 GetAsyncReply(config: AsyncConfig),
        /// Sets the configuration of asynchronous messages (controller).
        28 SetAsync(config: AsyncConfig),
    }
}

/// The number of [`Body::Hello`], which is decoded in any version.
const HELLO: u8 = 0;
/// The number of [`Body::Error`], whose format is the same in all versions.
const ERROR: u8 = 1;

layout! {
    /// A message of an extension (section "Experimenter").
    pub struct Experimenter {
        /// The experimenter: an IEEE OUI, or a number assigned by the ONF.
        experimenter: u32,
        /// The type of the message, defined by the experimenter.
        exp_type: u32,
        /// The data, defined by the experimenter.
        data: Vec<u8>,
    }
}

impl Message {
    /// Decodes the message that consists of all `bytes`, e.g. from [`first_message`]. A hello and an error are decoded
    /// in any version, for version negotiation; other messages must have version [`VERSION`].
    ///
    /// # Errors
    /// When they violate the protocol. [`Header::decode`] gives the xid for an error reply.
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
                // These versions left the body undefined, so it is ignored.
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
    /// When the length of the message or of a structure in it exceeds its length field; `out` is then unchanged.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.body.encode(self.xid, out)
    }
}

impl Body {
    /// Appends a message with this body and xid to `out`.
    ///
    /// # Errors
    /// As for [`Message::encode`].
    pub fn encode(&self, xid: Xid, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let start = out.len();
        let mut to = Writer::new(out);
        Header { version: VERSION, kind: self.kind(), length: 0, xid }.write(&mut to);
        self.write_body(&mut to);
        to.set_length(self.name(), start, start + 2);
        to.finish().inspect_err(|_| out.truncate(start))
    }
}
