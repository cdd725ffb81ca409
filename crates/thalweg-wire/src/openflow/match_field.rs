//! Match fields in the extensible format, OXM (section 7.2.3).
//!
//! A field consists of a class, a number, a mask flag, the length of the payload, the value and the mask.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::codec::{Listed, Reader, Wire, Writer};
use super::error::DecodeError;
use super::identity::PortNumber;
use crate::mac_address::MacAddress;
use crate::protocol::Protocol;

/// The class of the fields of the specification (OFPXMC_OPENFLOW_BASIC, section 7.2.3.3).
const OPENFLOW_BASIC: u16 = 0x8000;

/// The type of a match with OXM fields (OFPMT_OXM, section 7.2.3.1).
const OXM: u16 = 1;

/// Length of the type and length fields of a match, in bytes.
const MATCH_HEADER_LENGTH: usize = 4;

/// The bit of a VLAN id for a tagged packet (OFPVID_PRESENT, section 7.2.3.7). As value and mask, it matches any tag.
pub const VLAN_PRESENT: u16 = 0x1000;

/// The VLAN id of an untagged packet (OFPVID_NONE, section 7.2.3.7).
pub const VLAN_NONE: u16 = 0;

/// A packet matches if all fields match; without fields, every packet matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match(pub Vec<MatchField>);

impl Match {
    /// Returns a match of every packet.
    pub fn any() -> Match {
        Match::default()
    }

    /// Adds a field.
    pub fn with(mut self, field: MatchField) -> Match {
        self.0.push(field);
        self
    }

    /// Sorts the fields by their numbers. A switch may return them in another order.
    pub fn sorted(mut self) -> Match {
        self.0.sort_by_key(MatchField::number);
        self
    }

    /// Returns the ingress port, if it is among the fields; a packet-in always has it.
    pub fn in_port(&self) -> Option<PortNumber> {
        self.0.iter().find_map(|field| match field {
            MatchField::InPort(port) => Some(*port),
            _ => None,
        })
    }
}

impl FromIterator<MatchField> for Match {
    fn from_iter<I: IntoIterator<Item = MatchField>>(fields: I) -> Match {
        Match(fields.into_iter().collect())
    }
}

impl Wire for Match {
    fn read(from: &mut Reader<'_>) -> Result<Match, DecodeError> {
        let offset = from.offset();
        let kind = u16::read(from)?;
        if kind != OXM {
            return Err(DecodeError::MatchType { offset, found: kind });
        }
        let length = usize::from(u16::read(from)?);
        let Some(fields) = length.checked_sub(MATCH_HEADER_LENGTH) else {
            return Err(DecodeError::Length { structure: "Match", offset, length, expected: "4 or more" });
        };
        let fields = Vec::read(&mut from.part("Match", fields)?)?;
        // The length excludes the padding (section 7.2.3.1).
        from.skip(length.next_multiple_of(8) - length)?;
        Ok(Match(fields))
    }

    fn write(&self, to: &mut Writer<'_>) {
        let start = to.position();
        OXM.write(to);
        0_u16.write(to);
        self.0.write(to);
        to.set_length("Match", start, start + 2);
        to.pad_to_8(start);
    }
}

/// A value with an optional mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Masked<T> {
    /// The value. Bits outside the mask must be zero.
    pub value: T,
    /// The bits to compare; all if there is no mask.
    pub mask: Option<T>,
}

impl<T> Masked<T> {
    /// Creates a masked value; sets the bits of `value` outside `mask` to zero.
    pub const fn new(value: T, mask: T) -> Masked<T> {
        Masked { value, mask: Some(mask) }
    }
}

/// A value without a mask.
impl<T> From<T> for Masked<T> {
    fn from(value: T) -> Masked<T> {
        Masked { value, mask: None }
    }
}

/// The type of a match field's value.
trait FieldValue: Sized {
    /// Whether the type can have a mask.
    const MASKABLE: bool;

    fn has_mask(&self) -> bool;

    fn read_value(from: &mut Reader<'_>, has_mask: bool) -> Result<Self, DecodeError>;

    fn write_value(&self, to: &mut Writer<'_>);
}

impl<T: Wire> FieldValue for T {
    const MASKABLE: bool = false;

    fn has_mask(&self) -> bool {
        false
    }

    fn read_value(from: &mut Reader<'_>, _: bool) -> Result<T, DecodeError> {
        Wire::read(from)
    }

    fn write_value(&self, to: &mut Writer<'_>) {
        Wire::write(self, to);
    }
}

impl<T: Wire> FieldValue for Masked<T> {
    const MASKABLE: bool = true;

    fn has_mask(&self) -> bool {
        self.mask.is_some()
    }

    fn read_value(from: &mut Reader<'_>, has_mask: bool) -> Result<Masked<T>, DecodeError> {
        let value = T::read(from)?;
        let mask = if has_mask { Some(T::read(from)?) } else { None };
        Ok(Masked { value, mask })
    }

    fn write_value(&self, to: &mut Writer<'_>) {
        self.value.write(to);
        self.mask.iter().for_each(|mask| mask.write(to));
    }
}

/// A field that [`MatchField`] does not define, as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherField {
    /// The class (section 7.2.3.3).
    pub class: u16,
    /// The number in the class, 7 bits.
    pub field: u8,
    /// Whether the second half of the payload is a mask.
    pub has_mask: bool,
    /// Value and mask.
    pub payload: Vec<u8>,
}

macro_rules! match_fields {
    ($($(#[$meta:meta])* $number:literal $variant:ident($type:ty),)+) => {
        /// A match field (section 7.2.3.7).
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum MatchField {
            $($(#[$meta])* $variant($type),)+
            /// Any other field, as received, including a field of this table with an unsupported mask.
            Other(OtherField),
        }

        impl MatchField {
            /// Returns the class and the number of the field.
            pub fn number(&self) -> (u16, u8) {
                match self {
                    $(MatchField::$variant(_) => (OPENFLOW_BASIC, $number),)+
                    MatchField::Other(other) => (other.class, other.field),
                }
            }

            /// Returns whether the field has a mask.
            pub fn has_mask(&self) -> bool {
                match self {
                    $(MatchField::$variant(value) => value.has_mask(),)+
                    MatchField::Other(other) => other.has_mask,
                }
            }

            fn read_payload(
                (class, field): (u16, u8),
                has_mask: bool,
                from: &mut Reader<'_>,
            ) -> Result<MatchField, DecodeError> {
                Ok(match (class, field) {
                    $((OPENFLOW_BASIC, $number) if !has_mask || <$type>::MASKABLE => {
                        from.enter(stringify!($variant));
                        MatchField::$variant(FieldValue::read_value(from, has_mask)?)
                    })+
                    _ => {
                        let payload = from.rest().to_vec();
                        MatchField::Other(OtherField { class, field, has_mask, payload })
                    }
                })
            }

            fn write_payload(&self, to: &mut Writer<'_>) {
                match self {
                    $(MatchField::$variant(value) => value.write_value(to),)+
                    MatchField::Other(other) => to.bytes(&other.payload),
                }
            }
        }

        #[cfg(test)]
        impl super::tests::Sample for MatchField {
            fn sample(draw: &mut super::tests::Draw) -> MatchField {
                let makers: &[fn(&mut super::tests::Draw) -> MatchField] = &[
                    $(|draw| MatchField::$variant(super::tests::Sample::sample(draw)),)+
                    |draw| MatchField::Other(super::tests::Sample::sample(draw)),
                ];
                draw.one_of(makers)(draw)
            }
        }
    };
}

match_fields! {
    /// The ingress port.
    0 InPort(PortNumber),
    /// The metadata of earlier tables.
    2 Metadata(Masked<u64>),
    /// Ethernet destination.
    3 EthDst(Masked<MacAddress>),
    /// Ethernet source.
    4 EthSrc(Masked<MacAddress>),
    /// The Ethernet type after all tags.
    5 EthType(u16),
    /// VLAN id with [`VLAN_PRESENT`], or [`VLAN_NONE`].
    6 VlanVid(Masked<u16>),
    /// VLAN priority, 3 bits.
    7 VlanPcp(u8),
    /// DSCP of IPv4 or IPv6, 6 bits.
    8 IpDscp(u8),
    /// ECN of IPv4 or IPv6, 2 bits.
    9 IpEcn(u8),
    /// The protocol over IPv4 or IPv6.
    10 IpProto(Protocol),
    /// IPv4 source.
    11 Ipv4Src(Masked<Ipv4Addr>),
    /// IPv4 destination.
    12 Ipv4Dst(Masked<Ipv4Addr>),
    /// TCP source port.
    13 TcpSrc(u16),
    /// TCP destination port.
    14 TcpDst(u16),
    /// UDP source port.
    15 UdpSrc(u16),
    /// UDP destination port.
    16 UdpDst(u16),
    /// SCTP source port.
    17 SctpSrc(u16),
    /// SCTP destination port.
    18 SctpDst(u16),
    /// ARP operation.
    21 ArpOp(u16),
    /// The sender IPv4 address of an ARP packet.
    22 ArpSpa(Masked<Ipv4Addr>),
    /// The target IPv4 address of an ARP packet.
    23 ArpTpa(Masked<Ipv4Addr>),
    /// The sender MAC address of an ARP packet.
    24 ArpSha(Masked<MacAddress>),
    /// The target MAC address of an ARP packet.
    25 ArpTha(Masked<MacAddress>),
    /// IPv6 source.
    26 Ipv6Src(Masked<Ipv6Addr>),
    /// IPv6 destination.
    27 Ipv6Dst(Masked<Ipv6Addr>),
}

impl Wire for MatchField {
    fn read(from: &mut Reader<'_>) -> Result<MatchField, DecodeError> {
        from.enter("MatchField");
        let class = u16::read(from)?;
        let field = u8::read(from)?;
        let length = u8::read(from)?;
        let mut payload = from.part("MatchField", length.into())?;
        let read = MatchField::read_payload((class, field >> 1), field & 1 != 0, &mut payload)?;
        payload.finish()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) {
        let (class, field) = self.number();
        class.write(to);
        (field << 1 | u8::from(self.has_mask())).write(to);
        0_u8.write(to);
        let start = to.position();
        self.write_payload(to);
        to.set_short_length("MatchField", start);
    }
}

impl Listed for MatchField {}
