//! Parsers and encoders of packet headers, capture files, OpenFlow and flow export; types for time, units and flow
//! keys.
//!
//! The crate at the bottom of the dependency graph. No I/O, no clock, no `unsafe`: callers pass bytes, and get values
//! or a typed error with the offset and the expected value.

#![forbid(unsafe_code)]

mod amount;
pub mod capture_file;
pub mod capture_filter;
pub mod emulation_protocol;
pub mod flow_export;
pub mod flow_key;
pub mod ip_prefix;
pub mod link_type;
pub mod mac_address;
pub mod nearest;
pub mod nfcapd;
pub mod openflow;
pub mod packet;
pub mod parse;
pub mod protocol;
pub mod secret;
pub mod source;
pub mod time;
pub mod units;
pub mod web_url;

pub use flow_key::{Direction, FlowKey, HashSeed, IpVersion};
pub use ip_prefix::{IpPrefix, ParsePrefixError};
pub use link_type::LinkType;
pub use mac_address::MacAddress;
pub use packet::{EthernetAddresses, Fragment, Packet, PacketNotes, TcpFlags, VlanTags};
pub use protocol::Protocol;
pub use secret::Secret;
pub use source::{Batch, Frame, FrameRef, Interface, Progress, Source, SourceCounters};
pub use time::{Nanos, Timestamp};
pub use units::{BitRate, Bytes};
pub use web_url::WebUrl;
