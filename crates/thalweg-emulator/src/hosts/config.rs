//! The configuration of hosts and its validation.

use thalweg_wire::Nanos;
use thiserror::Error;

use super::p_fabric::PFabricConfig;
use super::segment::{IP_AND_TCP_HEADER_BYTES, TIMESTAMPS_BYTES};
use super::tcp::{AckPolicy, Echo, TcpConfig};
use crate::packet::FRAMING;

/// The transport of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// TCP with some congestion control.
    Tcp(TcpConfig),
    /// pFabric's minimal transport.
    PFabric(PFabricConfig),
}

impl Transport {
    /// Whether data segments are ECN-capable.
    pub(super) fn is_ecn_capable(&self) -> bool {
        matches!(self, Transport::Tcp(tcp) if tcp.is_ecn_capable())
    }

    /// Whether acknowledgements are ECN-capable, too. RFC 3168 forbids it for pure acknowledgements (section 6.1.4).
    /// Linux does it for DCTCP, because a switch that marks above a threshold drops packets that it cannot mark.
    pub(super) fn has_capable_acks(&self) -> bool {
        matches!(self, Transport::Tcp(tcp) if tcp.echo() == Echo::Exact)
    }

    /// When receivers acknowledge. With pFabric they acknowledge each segment.
    pub(super) fn ack_policy(&self) -> AckPolicy {
        match self {
            Transport::Tcp(tcp) => tcp.ack,
            Transport::PFabric(_) => AckPolicy { every: 1, ..AckPolicy::default() },
        }
    }

    /// How receivers echo marks.
    pub(super) fn echo(&self) -> Echo {
        match self {
            Transport::Tcp(tcp) => tcp.echo(),
            Transport::PFabric(_) => Echo::Never,
        }
    }
}

/// The configuration of all hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// The transport. Default TCP with CUBIC.
    pub transport: Transport,
    /// Bytes of the longest IP packet. Default 1500 (Ethernet), for segments of 1448 bytes.
    pub mtu: u16,
    /// Bytes that a receiver buffers per flow. Default 6 MiB, the maximum that Linux chooses by itself (`tcp_rmem`).
    pub receive_window: u32,
    /// Hosts hand segments to their network interface while fewer bytes than this are queued there, like Linux (TCP
    /// small queues). The rest waits in the host, which knows the flow. Default 3076, two full-size packets. A link
    /// that carries several such packets per slot needs two slots' worth.
    pub interface_backlog: u32,
    /// The delay between the arrival of a segment and its processing: interrupts and the kernel's stack. Default 10 us:
    /// a round trip through an idle rack takes about 25 us at 10 Gbit/s, similar to real kernels.
    pub stack_delay: Nanos,
    /// The maximum number of concurrent flows. More are refused and counted. Default 1,048,576.
    pub max_flows: u32,
    /// Segments can still be read until this many others were freed after them, for copies at monitor ports. Default 0.
    pub segment_history: u32,
    /// The seed of the order in which hosts take turns within a slot. Default 1.
    pub seed: u64,
}

impl Default for HostConfig {
    fn default() -> HostConfig {
        HostConfig {
            transport: Transport::Tcp(TcpConfig::default()),
            mtu: 1500,
            receive_window: 6 << 20,
            interface_backlog: 2 * 1538,
            stack_delay: Nanos::from_micros(10),
            max_flows: 1 << 20,
            segment_history: 0,
            seed: 1,
        }
    }
}

/// The smallest MTU that IPv4 hosts must support (RFC 791, section 3.1).
const MIN_MTU: u16 = 576;
/// The largest MTU for which packet lengths, framing included, are 16-bit numbers.
const MAX_MTU: u16 = u16::MAX - FRAMING;

impl HostConfig {
    /// The defaults with another transport.
    pub fn with(transport: Transport) -> HostConfig {
        HostConfig { transport, ..HostConfig::default() }
    }

    /// The payload of a full-size segment in bytes.
    pub const fn mss(&self) -> u16 {
        self.mtu - IP_AND_TCP_HEADER_BYTES - TIMESTAMPS_BYTES
    }

    /// Checks the configuration.
    ///
    /// # Errors
    /// If hosts cannot work with it.
    pub fn validate(&self) -> Result<(), HostConfigError> {
        if !(MIN_MTU..=MAX_MTU).contains(&self.mtu) {
            return Err(HostConfigError::Mtu(self.mtu));
        }
        if self.receive_window < 2 * u32::from(self.mss()) {
            return Err(HostConfigError::ReceiveWindow { window: self.receive_window, mss: self.mss() });
        }
        if self.interface_backlog == 0 {
            return Err(HostConfigError::InterfaceBacklog);
        }
        match self.transport {
            Transport::Tcp(tcp) if tcp.initial_window == 0 => Err(HostConfigError::InitialWindow),
            Transport::Tcp(tcp) if tcp.ack.every == 0 => Err(HostConfigError::AckEvery),
            Transport::Tcp(tcp) if tcp.rto.min == Nanos::ZERO || tcp.rto.min > tcp.rto.max => {
                Err(HostConfigError::Rto { min: tcp.rto.min, max: tcp.rto.max })
            }
            Transport::PFabric(p_fabric) if p_fabric.window == 0 => Err(HostConfigError::InitialWindow),
            Transport::PFabric(p_fabric) if p_fabric.rto == Nanos::ZERO || p_fabric.probe_after == 0 => {
                Err(HostConfigError::PFabric)
            }
            _ => Ok(()),
        }
    }
}

/// Why a configuration is invalid.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostConfigError {
    /// The MTU is out of bounds.
    #[error("invalid MTU {0}: expected {MIN_MTU} to {MAX_MTU} bytes")]
    Mtu(u16),
    /// The receive window is too small.
    #[error("receive window of {window} bytes is too small: expected at least two segments of {mss} bytes")]
    ReceiveWindow {
        /// As configured.
        window: u32,
        /// Bytes of a full-size segment.
        mss: u16,
    },
    /// The interface backlog is zero, so nothing would be sent.
    #[error("interface backlog is 0 bytes: expected more, or nothing is sent")]
    InterfaceBacklog,
    /// The initial window is empty.
    #[error("initial window is 0: expected at least 1 segment")]
    InitialWindow,
    /// Receivers would never acknowledge.
    #[error("acknowledgements every 0 segments: expected at least 1")]
    AckEvery,
    /// The bounds of the retransmission timeout contradict each other.
    #[error(
        "invalid minimum retransmission timeout {min}: expected more than 0 and at most the maximum, {max}"
    )]
    Rto {
        /// The lower bound.
        min: Nanos,
        /// The upper bound.
        max: Nanos,
    },
    /// pFabric's timeout or number of timeouts is zero.
    #[error("invalid pFabric timeout: expected more than 0, and at least 1 timeout before it probes")]
    PFabric,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_leave_1448_bytes_of_payload() {
        assert_eq!(HostConfig::default().validate(), Ok(()));
        assert_eq!(HostConfig::with(Transport::PFabric(PFabricConfig::default())).validate(), Ok(()));
        assert_eq!(HostConfig::default().mss(), 1448);
    }

    #[test]
    fn invalid_host_settings_are_refused_by_name() {
        let fine = HostConfig::default();
        let tcp = |tcp| HostConfig::with(Transport::Tcp(tcp));
        let refused = |config: HostConfig| config.validate().unwrap_err();
        assert_eq!(refused(HostConfig { mtu: 60, ..fine }), HostConfigError::Mtu(60));
        assert_eq!(refused(HostConfig { mtu: u16::MAX, ..fine }), HostConfigError::Mtu(u16::MAX));
        let window = HostConfigError::ReceiveWindow { window: 2000, mss: 1448 };
        assert_eq!(refused(HostConfig { receive_window: 2000, ..fine }), window);
        assert_eq!(refused(HostConfig { interface_backlog: 0, ..fine }), HostConfigError::InterfaceBacklog);
        let config = TcpConfig { initial_window: 0, ..TcpConfig::default() };
        assert_eq!(refused(tcp(config)), HostConfigError::InitialWindow);
        let mut config = TcpConfig::default();
        config.ack.every = 0;
        assert_eq!(refused(tcp(config)), HostConfigError::AckEvery);
        config = TcpConfig::default();
        config.rto.max = Nanos(1);
        assert!(matches!(refused(tcp(config)), HostConfigError::Rto { .. }));
    }
}
