//! Options of a collecting process.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

use rustls::ServerConfig;
use thalweg_wire::flow_export::Limits;
use thalweg_wire::{Nanos, Timestamp};

use super::Listen;
use crate::geo::GeoDatabases;
use crate::kafka::KafkaOptions;
use crate::store::StoreOptions;

/// Options of a collecting process.
#[derive(Clone, Debug)]
pub struct CollectOptions {
    /// Listen addresses.
    pub listen: Vec<Listen>,
    /// Sockets per UDP address, each with its own thread.
    pub receivers: NonZeroUsize,
    /// Bytes of each UDP socket's receive buffer. Default 64 MiB: one second at a million records per second, including
    /// the kernel's overhead.
    pub receive_buffer: usize,
    /// Memory limits of each decoder.
    pub limits: Limits,
    /// Sampling intervals by exporter. They replace those that the exporters report.
    pub sampling: BTreeMap<IpAddr, u32>,
    /// Whether rows describe the packet in a tunnel instead of the tunnel's, where exporters send both headers.
    pub decapsulate: bool,
    /// Databases of countries and AS numbers.
    pub geo: Option<Arc<GeoDatabases>>,
    /// Limits of TCP and TLS connections.
    pub streams: StreamLimits,
    /// TLS certificate, key and client authentication.
    pub tls: Option<Arc<ServerConfig>>,
    /// The store.
    pub store: StoreOptions,
    /// Kafka, in addition to the store.
    pub kafka: Option<KafkaOptions>,
    /// Returns the time of day.
    pub clock: fn() -> Timestamp,
}

impl CollectOptions {
    /// Returns the default options.
    pub fn new(store: StoreOptions, clock: fn() -> Timestamp) -> CollectOptions {
        CollectOptions {
            listen: Listen::DEFAULT.to_vec(),
            receivers: NonZeroUsize::MIN,
            receive_buffer: 64 << 20,
            limits: Limits::default(),
            sampling: BTreeMap::new(),
            decapsulate: false,
            geo: None,
            streams: StreamLimits::default(),
            tls: None,
            store,
            kafka: None,
            clock,
        }
    }
}

/// Limits of TCP and TLS connections. The length field limits a message to 65,535 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Maximum number of connections per listener. Default 256.
    pub connections: usize,
    /// Maximum number of connections per listener and source: an IPv4 address or an IPv6 subnet of 64 bits. Default 64, a
    /// quarter of all, so that one source cannot exclude the others.
    pub connections_per_source: usize,
    /// A connection that sends no complete message for this long is closed. Default 30 minutes, the longest active timeout
    /// that routers have by default.
    pub idle_timeout: Nanos,
    /// Maximum duration of a TLS handshake. Connections that have sent no message for this long after their start make room
    /// for others when a limit is reached. Default 10 s.
    pub handshake_timeout: Nanos,
    /// A connection whose message is not complete this long after its first byte is closed. Default 10 s.
    pub message_timeout: Nanos,
}

impl Default for StreamLimits {
    fn default() -> StreamLimits {
        StreamLimits {
            connections: 256,
            connections_per_source: 64,
            idle_timeout: Nanos::from_secs(30 * 60),
            handshake_timeout: Nanos::from_secs(10),
            message_timeout: Nanos::from_secs(10),
        }
    }
}
