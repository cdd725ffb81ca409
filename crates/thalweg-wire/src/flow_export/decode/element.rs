//! Which column an information element goes to (IANA "IPFIX Information Elements"; NetFlow v9 numbers its field
//! types alike up to 127).

/// The enterprise number whose elements are those of IANA, of the other direction (RFC 5103 section 6.1).
pub(super) const REVERSE: u32 = 29305;

/// What an element says something about: a column of the batch, or what columns are worked out from.
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
    /// `flowDurationMilliseconds` and its kin: gives the end that was not told.
    Duration,
    /// `systemInitTimeMilliseconds`: what times since then count from.
    SystemInitTime,
    /// `selectorId`, v9's sampler id: which of the exporter's samplers drew the packets.
    Selector,
    IcmpType,
    IcmpCode,
}

/// How many columns there are.
pub(super) const COLUMNS: usize = Column::IcmpCode as usize + 1;

/// How a number is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Unit {
    /// As it stands.
    #[default]
    Plain,
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970, or a duration of them.
    Milliseconds,
    /// Microseconds: a duration.
    Microseconds,
    /// 64-bit NTP timestamp (RFC 7011 sections 6.1.9 and 6.1.10).
    Ntp,
    /// Microseconds before the message's export time.
    DeltaMicroseconds,
    /// Milliseconds since the exporter started.
    Uptime,
}

/// What an element is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) column: Column,
    pub(super) unit: Unit,
    /// Of several elements for one column the lowest rank is taken, the next where that says nothing.
    pub(super) rank: u8,
    /// Whether it is of the direction from responder to initiator.
    pub(super) reverse: bool,
}

/// The roles of an element of IANA: none, one, or two (an event's time is its start and its end).
pub(super) fn roles(id: u16) -> impl Iterator<Item = Role> {
    let also_end = matches!(id, 258 | 322..=325);
    let first = role(id);
    let second = first.filter(|_| also_end).map(|role| Role { column: Column::FlowEnd, ..role });
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
        // What was sent on, where that alone is told: postOctetDeltaCount, postPacketDeltaCount, the totals.
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
        // bgpNextHopIPv4Address and IPv6.
        18 => plain(NextHop, 2),
        63 => plain(NextHop, 3),
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
        // dot1qVlanId, postVlanId.
        243 => plain(VlanId, 1),
        59 => plain(VlanId, 2),
        61 => plain(FlowDirection, 0),
        136 => plain(FlowEndReason, 0),
        239 => plain(BiflowDirection, 0),
        34 => plain(SamplingInterval, 0),
        50 => plain(SamplingInterval, 1),
        48 => plain(Selector, 1),
        302 => plain(Selector, 0),
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
    /// The column that a key of the forward direction goes to in the row of the reverse direction; none for what is
    /// not the same both ways.
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
            | SamplingInterval | Selector | FlowStart | FlowEnd | Duration | SystemInitTime
            | BiflowDirection => Some(self),
            NextHop | Octets | Packets | TcpFlags | ClassOfService | FlowDirection => None,
        }
    }
}
