//! What a switch tells a controller unasked (section 7.3.10).

use super::codec::{Reader, Wire, Writer};
use super::error::DecodeError;

layout! {
    /// For each kind of message, the reasons for which it is sent: bit N stands for reason N.
    #[derive(Copy)]
    pub struct AsyncConfig {
        /// Of packet-ins, by [`super::PacketInReason`].
        packet_in: ForRoles,
        /// Of port-status messages, by [`super::PortReason`].
        port_status: ForRoles,
        /// Of flow-removed messages, by [`super::FlowRemovedReason`].
        flow_removed: ForRoles,
    }
}

/// Reasons by the role that the controller has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForRoles {
    /// If it is master or equal.
    pub master: u32,
    /// If it is slave.
    pub slave: u32,
}

impl Wire for ForRoles {
    fn read(from: &mut Reader<'_>) -> Result<ForRoles, DecodeError> {
        Ok(ForRoles { master: u32::read(from)?, slave: u32::read(from)? })
    }

    fn write(&self, to: &mut Writer<'_>) {
        self.master.write(to);
        self.slave.write(to);
    }
}
