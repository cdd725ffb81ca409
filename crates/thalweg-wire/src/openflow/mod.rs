//! OpenFlow 1.3: what a controller and a switch say to each other, decoded and encoded.
//!
//! Source: *OpenFlow Switch Specification*, version 1.3.5 (Open Networking Foundation, TS-023, 2015), protocol version
//! 4. Sections below are its. Names are its names without their prefixes: `OFPFC_ADD` is [`FlowModCommand::ADD`].
//!
//! A [`Message`] is an xid and a [`Body`]. A stream is cut into messages by [`first_message`], each is decoded by
//! [`Message::decode`], and any number of them are encoded into one vector by [`Message::encode`], so that a batch
//! goes out in one write.
//!
//! - Any bytes give a message or a [`DecodeError`] with its offset; none give a panic.
//! - Every length is checked against the bytes that are there before anything is read or allocated. What a message
//!   takes in memory is at most some 20 times its length, so less than 1.5 MB.
//! - Padding is checked to be there and otherwise ignored, and is written as zeros, as section 7.1.2 asks.
//! - A kind of message, action, instruction, match field or multipart that has no place here is kept as it came
//!   (`Other`) and written back like that. So are numbers (reasons, codes, flags) that have no name here.
//! - What decodes is encoded to bytes that decode to the same.
//!
//! Left out: meters, table features, group statistics and features, queue properties (they are `Other`), and the
//! rules of what may be matched together (7.2.3.6), which the switch checks and answers with an error.
//!
//! How structures are laid out is said once, by four macros (`macros`): `layout!` for fields one after the other,
//! `tagged!` for one of several by number, `numbers!` and `flags!` for what a number means.

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
pub use asynchronous::{AsyncConfig, ForRoles};
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
pub use switch::{Capabilities, FragmentHandling, Role, RoleClaim, SwitchConfig, SwitchFeatures};
pub use text::Text;

/// Version of the protocol that is spoken here: 1.3 (section 7.1.1).
pub const VERSION: u8 = 4;

/// Bytes of the header that every message begins with (section 7.1.1).
pub const HEADER_LENGTH: usize = 8;

/// Most bytes of a message: what its 16-bit length can say.
pub const MAX_MESSAGE_LENGTH: usize = u16::MAX as usize;

/// Port that controllers listen at (IANA; section 6.3.1).
pub const TCP_PORT: u16 = 6653;

/// `max_len` of an output to the controller, and `miss_send_len`, that asks for whole packets (OFPCML_NO_BUFFER, section
/// 7.2.5).
pub const WHOLE_PACKET: u16 = 0xffff;
