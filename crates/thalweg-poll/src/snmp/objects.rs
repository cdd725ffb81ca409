//! Objects of SNMPv2-MIB (RFC 3418) and IF-MIB (RFC 2863).

use async_snmp::Oid;

/// `sysUpTime.0`.
pub(super) const SYS_UP_TIME: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 3, 0];

const IF_TABLE: [u32; 9] = [1, 3, 6, 1, 2, 1, 2, 2, 1];
const IF_X_TABLE: [u32; 10] = [1, 3, 6, 1, 2, 1, 31, 1, 1, 1];

/// A column of `ifTable` or `ifXTable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// Its name.
    pub(super) name: &'static str,
    is_extended: bool,
    number: u32,
}

const fn column(name: &'static str, number: u32) -> Column {
    Column { name, is_extended: false, number }
}

const fn extended(name: &'static str, number: u32) -> Column {
    Column { name, is_extended: true, number }
}

pub(super) const IF_DESCR: Column = column("ifDescr", 2);
pub(super) const IF_OPER_STATUS: Column = column("ifOperStatus", 8);
pub(super) const IF_NAME: Column = extended("ifName", 1);
pub(super) const IF_ALIAS: Column = extended("ifAlias", 18);
pub(super) const IF_HIGH_SPEED: Column = extended("ifHighSpeed", 15);
pub(super) const IF_SPEED: Column = column("ifSpeed", 5);
pub(super) const IF_COUNTER_DISCONTINUITY_TIME: Column = extended("ifCounterDiscontinuityTime", 19);

pub(super) const IF_HC_IN_OCTETS: Column = extended("ifHCInOctets", 6);
pub(super) const IF_HC_OUT_OCTETS: Column = extended("ifHCOutOctets", 10);
pub(super) const IF_IN_OCTETS: Column = column("ifInOctets", 10);
pub(super) const IF_OUT_OCTETS: Column = column("ifOutOctets", 16);

/// The columns of one direction.
pub(super) struct PortColumns {
    /// Bytes in 64 and in 32 bits.
    pub(super) bytes: [Column; 2],
    /// Unicast, multicast and broadcast packets in 64 bits.
    pub(super) wide_packets: [Column; 3],
    /// Unicast and other packets in 32 bits.
    pub(super) narrow_packets: [Column; 2],
    pub(super) discards: Column,
    pub(super) errors: Column,
}

pub(super) const INPUT: PortColumns = PortColumns {
    bytes: [IF_HC_IN_OCTETS, IF_IN_OCTETS],
    wide_packets: [
        extended("ifHCInUcastPkts", 7),
        extended("ifHCInMulticastPkts", 8),
        extended("ifHCInBroadcastPkts", 9),
    ],
    narrow_packets: [column("ifInUcastPkts", 11), column("ifInNUcastPkts", 12)],
    discards: column("ifInDiscards", 13),
    errors: column("ifInErrors", 14),
};

pub(super) const OUTPUT: PortColumns = PortColumns {
    bytes: [IF_HC_OUT_OCTETS, IF_OUT_OCTETS],
    wide_packets: [
        extended("ifHCOutUcastPkts", 11),
        extended("ifHCOutMulticastPkts", 12),
        extended("ifHCOutBroadcastPkts", 13),
    ],
    narrow_packets: [column("ifOutUcastPkts", 17), column("ifOutNUcastPkts", 18)],
    discards: column("ifOutDiscards", 19),
    errors: column("ifOutErrors", 20),
};

impl Column {
    /// Returns the OID of the column.
    pub(super) fn oid(self) -> Oid {
        let table = if self.is_extended { &IF_X_TABLE[..] } else { &IF_TABLE[..] };
        Oid::from_slice(table).child(self.number)
    }

    /// Returns the OID of the column's value for an interface.
    pub(super) fn of(self, index: u32) -> Oid {
        self.oid().child(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oids_are_those_of_the_mibs() {
        assert_eq!(OUTPUT.discards.of(7).to_string(), "1.3.6.1.2.1.2.2.1.19.7");
        assert_eq!(IF_HC_OUT_OCTETS.of(7).to_string(), "1.3.6.1.2.1.31.1.1.1.10.7");
        assert_eq!(IF_COUNTER_DISCONTINUITY_TIME.of(1).to_string(), "1.3.6.1.2.1.31.1.1.1.19.1");
    }
}
