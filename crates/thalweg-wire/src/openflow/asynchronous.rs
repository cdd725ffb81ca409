//! The configuration of asynchronous messages (section 7.3.10).

use super::codec::{Reader, Wire, Writer};
use super::error::DecodeError;

layout! {
    /// The reasons for which each kind of asynchronous message is sent; bit N represents reason N.
    #[derive(Copy)]
    pub struct AsyncConfig {
        /// Reasons for packet-ins: [`super::PacketInReason`].
        packet_in: RoleMasks,
        /// Reasons for port-status messages: [`super::PortReason`].
        port_status: RoleMasks,
        /// Reasons for flow-removed messages: [`super::FlowRemovedReason`].
        flow_removed: RoleMasks,
    }
}

/// Bit masks of reasons by the role of the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleMasks {
    /// For a master or equal controller.
    pub master: u32,
    /// For a slave.
    pub slave: u32,
}

impl Wire for RoleMasks {
    fn read(from: &mut Reader<'_>) -> Result<RoleMasks, DecodeError> {
        Ok(RoleMasks { master: u32::read(from)?, slave: u32::read(from)? })
    }

    fn write(&self, to: &mut Writer<'_>) {
        self.master.write(to);
        self.slave.write(to);
    }
}
