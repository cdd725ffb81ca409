//! Ports of a switch (section 7.2.1).

use super::codec::Listed;
use super::identity::PortNumber;
use super::text::Text;
use crate::mac_address::MacAddress;

layout! {
    /// What a switch says of one of its ports (section 7.2.1.1).
    #[derive(Copy)]
    pub struct Port {
        /// Its number.
        port_no: PortNumber [pad 4],
        /// Its MAC address.
        hw_addr: MacAddress [pad 2],
        /// Its name.
        name: Text<16>,
        /// How it is set.
        config: PortConfig,
        /// How it is.
        state: PortState,
        /// What it does now.
        curr: PortFeatures,
        /// What it offers its peer.
        advertised: PortFeatures,
        /// What it could do.
        supported: PortFeatures,
        /// What its peer offers.
        peer: PortFeatures,
        /// Its rate now, in kbit/s; 0 if unknown.
        curr_speed: u32,
        /// Its greatest rate, in kbit/s; 0 if unknown.
        max_speed: u32,
    }
}

impl Listed for Port {}

impl Port {
    /// Whether packets can leave by it, as far as the switch knows.
    pub fn is_up(&self) -> bool {
        !self.config.contains(PortConfig::PORT_DOWN) && !self.state.contains(PortState::LINK_DOWN)
    }
}

flags! {
    /// How an operator or controller has set a port.
    PortConfig(u32) {
        /// It is taken out of use.
        PORT_DOWN = 0;
        /// What comes in is dropped.
        NO_RECV = 2;
        /// What is to be sent is dropped.
        NO_FWD = 5;
        /// It causes no packet-ins.
        NO_PACKET_IN = 6;
    }

    /// How a port is.
    PortState(u32) {
        /// There is no link.
        LINK_DOWN = 0;
        /// Something other than OpenFlow keeps it from forwarding.
        BLOCKED = 1;
        /// Fast failover may use it.
        LIVE = 2;
    }

    /// What a port does or can do.
    PortFeatures(u32) {
        /// 10 Mbit/s, half duplex.
        HALF_10_MBIT = 0;
        /// 10 Mbit/s, full duplex.
        FULL_10_MBIT = 1;
        /// 100 Mbit/s, half duplex.
        HALF_100_MBIT = 2;
        /// 100 Mbit/s, full duplex.
        FULL_100_MBIT = 3;
        /// 1 Gbit/s, half duplex.
        HALF_1_GBIT = 4;
        /// 1 Gbit/s, full duplex.
        FULL_1_GBIT = 5;
        /// 10 Gbit/s, full duplex.
        FULL_10_GBIT = 6;
        /// 40 Gbit/s, full duplex.
        FULL_40_GBIT = 7;
        /// 100 Gbit/s, full duplex.
        FULL_100_GBIT = 8;
        /// 1 Tbit/s, full duplex.
        FULL_1_TBIT = 9;
        /// Another rate, which [`Port::curr_speed`] says.
        OTHER_RATE = 10;
        /// Copper.
        COPPER = 11;
        /// Fibre.
        FIBRE = 12;
        /// It negotiates.
        AUTONEGOTIATION = 13;
        /// It can pause.
        PAUSE = 14;
        /// It can pause one way.
        ASYMMETRIC_PAUSE = 15;
    }
}

layout! {
    /// A port that came, went or changed (section 7.4.3).
    #[derive(Copy)]
    pub struct PortStatus {
        /// Which of these.
        reason: PortReason [pad 7],
        /// The port as it is now, or was when it went.
        port: Port,
    }
}

numbers! {
    /// What happened to a port.
    PortReason(u8) {
        /// It came.
        ADD = 0, "added";
        /// It went.
        DELETE = 1, "deleted";
        /// It changed.
        MODIFY = 2, "modified";
    }
}
