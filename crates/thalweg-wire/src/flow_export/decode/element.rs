//! Maps information elements to columns (IANA "IPFIX Information Elements"; NetFlow v9 has the same numbers up to 127).

use crate::flow_export::label_stack::MAX_LABELS;

/// The enterprise number of reverse elements: IANA's elements for the other direction (RFC 5103 section 6.1).
pub(super) const REVERSE: u32 = 29305;

/// The target of an element: a column of the batch, or a value from which columns are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Column {
    Exporter,
    SourceAddress,
    DestinationAddress,
    NextHop,
    Octets,
    Packets,
    IngressInterface,
    EgressInterface,
    SourceAs,
    DestinationAs,
    SamplingInterval,
    SourcePort,
    DestinationPort,
    TcpFlags,
    IcmpTypeCode,
    VlanId,
    Protocol,
    ClassOfService,
    SourcePrefixLength,
    DestinationPrefixLength,
    FlowDirection,
    FlowEndReason,
    BiflowDirection,
    FlowStart,
    FlowEnd,
    /// `flowDurationMilliseconds` and similar elements: gives the missing start or end time.
    Duration,
    /// `systemInitTimeMilliseconds`: the origin of uptimes.
    SystemInitTime,
    /// `selectorId`, v9's sampler id: the sampler that selected the packets.
    Selector,
    /// `selectionSequenceId`: the sequence of selectors that the packets passed (RFC 5476).
    SelectionSequence,
    IcmpType,
    IcmpCode,
    // From here on sparse columns, which most exporters do not send.
    SourceMac,
    DestinationMac,
    PostSourceMac,
    PostDestinationMac,
    PostVlanId,
    CustomerVlanId,
    MinimumTtl,
    MaximumTtl,
    ForwardingStatus,
    PostClassOfService,
    IngressVrfId,
    EgressVrfId,
    BgpNextHop,
    NextAs,
    PreviousAs,
    ObservationPointId,
    MplsLabel1,
    MplsLabel2,
    MplsLabel3,
    MplsLabel4,
    MplsLabel5,
    MplsLabel6,
    MplsLabel7,
    MplsLabel8,
    MplsLabel9,
    MplsLabel10,
}

/// The number of columns that are not sparse.
pub(super) const COLUMNS: usize = Column::IcmpCode as usize + 1;

/// The entries of the MPLS label stack, top first.
const MPLS_LABELS: [Column; MAX_LABELS] = [
    Column::MplsLabel1,
    Column::MplsLabel2,
    Column::MplsLabel3,
    Column::MplsLabel4,
    Column::MplsLabel5,
    Column::MplsLabel6,
    Column::MplsLabel7,
    Column::MplsLabel8,
    Column::MplsLabel9,
    Column::MplsLabel10,
];

/// The unit of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Unit {
    /// No conversion.
    #[default]
    Plain,
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970, or a duration in milliseconds.
    Milliseconds,
    /// A duration in microseconds.
    Microseconds,
    /// 64-bit NTP timestamp (RFC 7011 sections 6.1.9 and 6.1.10).
    Ntp,
    /// Microseconds before the message's export time.
    DeltaMicroseconds,
    /// Milliseconds since the exporter started.
    Uptime,
}

/// The use of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) column: Column,
    pub(super) unit: Unit,
    /// The priority among elements for the same column, lowest first; the next one replaces an unspecified value.
    pub(super) rank: u8,
    /// Whether it belongs to the direction from responder to initiator.
    pub(super) reverse: bool,
}

/// Returns the roles of an IANA element: none, one, or two (the time of an event is start and end, `ipTTL` is minimum and
/// maximum).
pub(super) fn roles(id: u16) -> impl Iterator<Item = Role> {
    let also = match id {
        258 | 322..=325 => Some(Column::FlowEnd),
        192 => Some(Column::MaximumTtl),
        _ => None,
    };
    let first = role(id);
    let second = first.zip(also).map(|(role, column)| Role { column, ..role });
    first.into_iter().chain(second)
}

fn role(id: u16) -> Option<Role> {
    use Column::*;
    let plain = |column, rank| Some(Role { column, unit: Unit::Plain, rank, reverse: false });
    let time = |column, unit, rank| Some(Role { column, unit, rank, reverse: false });
    match id {
        1 => plain(Octets, 0),
        2 => plain(Packets, 0),
        85 => plain(Octets, 1),
        86 => plain(Packets, 1),
        // Cisco's security event logs: initiatorOctets and responderOctets, initiatorPackets and responderPackets.
        231 => plain(Octets, 2),
        298 => plain(Packets, 2),
        232 => plain(Octets, 2).map(|role| Role { reverse: true, ..role }),
        299 => plain(Packets, 2).map(|role| Role { reverse: true, ..role }),
        // Forwarded traffic, if nothing else is reported: postOctetDeltaCount, postPacketDeltaCount, the totals.
        23 => plain(Octets, 3),
        24 => plain(Packets, 3),
        171 => plain(Octets, 4),
        172 => plain(Packets, 4),
        8 => plain(SourceAddress, 0),
        27 => plain(SourceAddress, 1),
        12 => plain(DestinationAddress, 0),
        28 => plain(DestinationAddress, 1),
        15 => plain(NextHop, 0),
        62 => plain(NextHop, 1),
        18 => plain(BgpNextHop, 0),
        63 => plain(BgpNextHop, 1),
        130 => plain(Exporter, 0),
        131 => plain(Exporter, 1),
        7 => plain(SourcePort, 0),
        11 => plain(DestinationPort, 0),
        // udp and tcp source and destination ports.
        180 | 182 => plain(SourcePort, 1),
        181 | 183 => plain(DestinationPort, 1),
        4 => plain(Protocol, 0),
        5 => plain(ClassOfService, 0),
        6 => plain(TcpFlags, 0),
        32 => plain(IcmpTypeCode, 0),
        139 => plain(IcmpTypeCode, 1),
        176 => plain(IcmpType, 0),
        178 => plain(IcmpType, 1),
        177 => plain(IcmpCode, 0),
        179 => plain(IcmpCode, 1),
        10 => plain(IngressInterface, 0),
        14 => plain(EgressInterface, 0),
        // ingressPhysicalInterface, egressPhysicalInterface.
        252 => plain(IngressInterface, 1),
        253 => plain(EgressInterface, 1),
        16 => plain(SourceAs, 0),
        17 => plain(DestinationAs, 0),
        9 => plain(SourcePrefixLength, 0),
        29 => plain(SourcePrefixLength, 1),
        13 => plain(DestinationPrefixLength, 0),
        30 => plain(DestinationPrefixLength, 1),
        58 => plain(VlanId, 0),
        // dot1qVlanId.
        243 => plain(VlanId, 1),
        59 => plain(PostVlanId, 0),
        // postDot1qVlanId.
        254 => plain(PostVlanId, 1),
        245 => plain(CustomerVlanId, 0),
        56 => plain(SourceMac, 0),
        80 => plain(DestinationMac, 0),
        81 => plain(PostSourceMac, 0),
        57 => plain(PostDestinationMac, 0),
        52 => plain(MinimumTtl, 0),
        53 => plain(MaximumTtl, 0),
        192 => plain(MinimumTtl, 1),
        55 => plain(PostClassOfService, 0),
        70..=79 => plain(MPLS_LABELS[usize::from(id) - 70], 0),
        89 => plain(ForwardingStatus, 0),
        128 => plain(NextAs, 0),
        129 => plain(PreviousAs, 0),
        138 => plain(ObservationPointId, 0),
        234 => plain(IngressVrfId, 0),
        235 => plain(EgressVrfId, 0),
        61 => plain(FlowDirection, 0),
        136 => plain(FlowEndReason, 0),
        239 => plain(BiflowDirection, 0),
        34 => plain(SamplingInterval, 0),
        50 => plain(SamplingInterval, 1),
        48 => plain(Selector, 1),
        302 => plain(Selector, 0),
        301 => plain(SelectionSequence, 0),
        156 => time(FlowStart, Unit::Ntp, 0),
        157 => time(FlowEnd, Unit::Ntp, 0),
        154 => time(FlowStart, Unit::Ntp, 1),
        155 => time(FlowEnd, Unit::Ntp, 1),
        152 => time(FlowStart, Unit::Milliseconds, 2),
        153 => time(FlowEnd, Unit::Milliseconds, 2),
        158 => time(FlowStart, Unit::DeltaMicroseconds, 3),
        159 => time(FlowEnd, Unit::DeltaMicroseconds, 3),
        22 => time(FlowStart, Unit::Uptime, 4),
        21 => time(FlowEnd, Unit::Uptime, 4),
        150 => time(FlowStart, Unit::Seconds, 5),
        151 => time(FlowEnd, Unit::Seconds, 5),
        // observationTime in nanoseconds, microseconds, milliseconds, seconds; collectionTimeMilliseconds.
        325 => time(FlowStart, Unit::Ntp, 6),
        324 => time(FlowStart, Unit::Ntp, 7),
        323 => time(FlowStart, Unit::Milliseconds, 8),
        322 => time(FlowStart, Unit::Seconds, 9),
        258 => time(FlowStart, Unit::Milliseconds, 10),
        160 => time(SystemInitTime, Unit::Milliseconds, 0),
        161 => time(Duration, Unit::Milliseconds, 1),
        162 => time(Duration, Unit::Microseconds, 0),
        _ => None,
    }
}

impl Column {
    /// Whether most exporters do not send it, so that the batch's column is sparse.
    pub(super) fn is_sparse(self) -> bool {
        self >= Column::SourceMac
    }

    /// Returns the position in the MPLS label stack, from 0.
    pub(super) fn label_position(self) -> Option<usize> {
        MPLS_LABELS.iter().position(|&label| label == self)
    }

    /// Returns the column that a forward value has in the reverse row; `None` if the value does not apply to both
    /// directions.
    pub(super) fn reversed(self) -> Option<Column> {
        use Column::*;
        match self {
            SourceAddress => Some(DestinationAddress),
            DestinationAddress => Some(SourceAddress),
            SourcePort => Some(DestinationPort),
            DestinationPort => Some(SourcePort),
            SourceAs => Some(DestinationAs),
            DestinationAs => Some(SourceAs),
            SourcePrefixLength => Some(DestinationPrefixLength),
            DestinationPrefixLength => Some(SourcePrefixLength),
            IngressInterface => Some(EgressInterface),
            EgressInterface => Some(IngressInterface),
            Exporter | Protocol | IcmpTypeCode | IcmpType | IcmpCode | VlanId | FlowEndReason
            | SamplingInterval | Selector | SelectionSequence | FlowStart | FlowEnd | Duration
            | SystemInitTime | BiflowDirection => Some(self),
            SourceMac => Some(DestinationMac),
            DestinationMac => Some(SourceMac),
            IngressVrfId => Some(EgressVrfId),
            EgressVrfId => Some(IngressVrfId),
            NextAs => Some(PreviousAs),
            PreviousAs => Some(NextAs),
            CustomerVlanId | ObservationPointId => Some(self),
            NextHop | Octets | Packets | TcpFlags | ClassOfService | FlowDirection => None,
            PostSourceMac | PostDestinationMac | PostVlanId | PostClassOfService | BgpNextHop => None,
            MinimumTtl | MaximumTtl | ForwardingStatus => None,
            MplsLabel1 | MplsLabel2 | MplsLabel3 | MplsLabel4 | MplsLabel5 => None,
            MplsLabel6 | MplsLabel7 | MplsLabel8 | MplsLabel9 | MplsLabel10 => None,
        }
    }
}
