//! Ports of a switch (section 7.2.1).

use super::codec::Listed;
use super::identity::PortNumber;
use super::text::Text;
use crate::mac_address::MacAddress;

layout! {
    /// A port of a switch (section 7.2.1.1).
    #[derive(Copy)]
    pub struct Port {
        /// Its number.
        port_no: PortNumber [pad 4],
        /// Its MAC address.
        hw_addr: MacAddress [pad 2],
        /// Its name.
        name: Text<16>,
        /// The configuration.
        config: PortConfig,
        /// The state.
        state: PortState,
        /// The current features.
        curr: PortFeatures,
        /// The features advertised to the peer.
        advertised: PortFeatures,
        /// The supported features.
        supported: PortFeatures,
        /// The features advertised by the peer.
        peer: PortFeatures,
        /// The current rate in kbit/s; 0 if unknown.
        curr_speed: u32,
        /// The maximum rate in kbit/s; 0 if unknown.
        max_speed: u32,
    }
}

impl Listed for Port {}

impl Port {
    /// Returns whether the port can send packets, according to the switch.
    pub fn is_up(&self) -> bool {
        !self.config.contains(PortConfig::PORT_DOWN) && !self.state.contains(PortState::LINK_DOWN)
    }
}

flags! {
    /// The configuration of a port by an operator or controller.
    PortConfig(u32) {
        /// The port is disabled.
        PORT_DOWN = 0;
        /// Received packets are dropped.
        NO_RECV = 2;
        /// Packets to send are dropped.
        NO_FWD = 5;
        /// The port does not cause packet-ins.
        NO_PACKET_IN = 6;
    }

    /// The state of a port.
    PortState(u32) {
        /// There is no link.
        LINK_DOWN = 0;
        /// Forwarding is blocked by something other than OpenFlow.
        BLOCKED = 1;
        /// The port is live for fast failover.
        LIVE = 2;
    }

    /// Features of a port.
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
        /// Another rate, given by [`Port::curr_speed`].
        OTHER_RATE = 10;
        /// Copper.
        COPPER = 11;
        /// Fibre.
        FIBRE = 12;
        /// Auto-negotiation.
        AUTONEGOTIATION = 13;
        /// Pause.
        PAUSE = 14;
        /// Asymmetric pause.
        ASYMMETRIC_PAUSE = 15;
    }
}

layout! {
    /// The addition, removal or change of a port (section 7.4.3).
    #[derive(Copy)]
    pub struct PortStatus {
        /// The reason.
        reason: PortReason [pad 7],
        /// The port; if removed, in its last state.
        port: Port,
    }
}

numbers! {
    /// The reason for a port-status message.
    PortReason(u8) {
        /// The port was added.
        ADD = 0, "added";
        /// The port was removed.
        DELETE = 1, "deleted";
        /// The port was changed.
        MODIFY = 2, "modified";
    }
}
