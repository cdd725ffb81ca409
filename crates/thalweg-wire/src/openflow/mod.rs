//! Decoding and encoding of OpenFlow 1.3 messages.
//!
//! Source: *OpenFlow Switch Specification*, version 1.3.5 (Open Networking Foundation, TS-023, 2015), protocol version
//! 4. Section numbers below refer to it. Names are its names without prefixes: `OFPFC_ADD` is [`FlowModCommand::ADD`].
//!
//! A [`Message`] is an xid and a [`Body`]. [`first_message`] splits a stream into messages, which are decoded by
//! [`Message::decode`]. [`Message::encode`] appends to a vector, so that several messages
//! can be sent in one write.
//!
//! - Any bytes decode to a message or a [`DecodeError`] with its offset, without a panic.
//! - Every length is checked against the remaining bytes before reading or allocation. A decoded message
//!   takes at most about 20 times its length in memory, less than 1.5 MB.
//! - Padding must be present, is otherwise ignored, and is written as zeros (section 7.1.2).
//! - An unknown message, action, instruction, match field or multipart type is kept as received
//!   (`Other`) and encoded unchanged, as are unnamed numbers (reasons, codes, flags).
//! - A decoded message encodes to bytes that decode to the same message.
//!
//! Not implemented: meters, table features, group statistics and features, queue properties (they are `Other`), and the
//! prerequisites of match fields (7.2.3.6), which the switch checks.
//!
//! Structures are declared by four macros (`macros`): `layout!` for consecutive fields,
//! `tagged!` for numbered variants, `numbers!` and `flags!` for named numbers and bits.

mod codec;
mod error;
#[macro_use]
mod macros;

mod action;
mod asynchronous;
mod failure;
mod flow;
mod group;
mod hello;
mod identity;
mod instruction;
mod match_field;
mod message;
pub mod multipart;
mod packet;
mod port;
mod switch;
#[cfg(test)]
mod tests;
mod text;

pub use action::{Action, Output};
pub use asynchronous::{AsyncConfig, RoleMasks};
pub use error::{DecodeError, EncodeError};
pub use failure::{ErrorMessage, ErrorType};
pub use flow::{FlowFlags, FlowMod, FlowModCommand, FlowRemoved, FlowRemovedReason};
pub use group::{Bucket, GroupMod, GroupModCommand, GroupType};
pub use hello::Hello;
pub use identity::{BufferId, DatapathId, GroupId, PortNumber, QueueId, TableId, Xid};
pub use instruction::{Instruction, MetadataWrite};
pub use match_field::{Masked, Match, MatchField, OtherField, VLAN_NONE, VLAN_PRESENT};
pub use message::{Body, Experimenter, Header, Message, first_message};
pub use packet::{PacketIn, PacketInReason, PacketOut};
pub use port::{Port, PortConfig, PortFeatures, PortReason, PortState, PortStatus};
pub use switch::{Capabilities, FragmentHandling, Role, RoleRequest, SwitchConfig, SwitchFeatures};
pub use text::Text;

/// The supported protocol version: OpenFlow 1.3 (section 7.1.1).
pub const VERSION: u8 = 4;

/// The length of the message header in bytes (section 7.1.1).
pub const HEADER_LENGTH: usize = 8;

/// The maximum length of a message in bytes, given by its 16-bit length.
pub const MAX_MESSAGE_LENGTH: usize = u16::MAX as usize;

/// The TCP port of controllers (IANA; section 6.3.1).
pub const TCP_PORT: u16 = 6653;

/// The `max_len` of an output to the controller, or `miss_send_len`, for whole packets (OFPCML_NO_BUFFER, section
/// 7.2.5).
pub const WHOLE_PACKET: u16 = 0xffff;
