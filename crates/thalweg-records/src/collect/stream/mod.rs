//! IPFIX over TCP and TLS (RFC 7011 section 10.4): one accepting thread per listener, and one thread per connection.
//!
//! A connection is a transport session: its templates are its own and are discarded at its end. Messages have at most
//! 65,535 bytes. [`StreamLimits`] limits the number of connections, in total and per source, and closes idle ones and those
//! that do not finish a message. At a limit, a new connection replaces the oldest that has not sent a message for some time
//! since its start. A connection uses 128 KiB, and the memory of its decoder.
//!
//! | module | contents |
//! |---|---|
//! | `framing` | splits a byte stream into messages |
//! | `open` | open connections within the limits |
//! | `connection` | one connection, and why it ended ([`End`]) |

mod connection;
mod framing;
mod open;

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, Scope};

use rustls::ServerConfig;

pub use super::options::StreamLimits;
pub use connection::End;
pub use framing::FramingError;

use super::exporters::Exporters;
use super::intake::{Intake, Snapshot};
use super::outlet::{Shared, lock};
use super::receiver::{READ_TIMEOUT, is_timeout};
use super::{CollectOptions, Listen};
use connection::{Connection, ConnectionState};
use open::OpenConnections;

/// Maximum number of exporters with closed connections that are still listed individually.
const ENDED_EXPORTERS: usize = 4096;

/// A TCP or TLS listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamReport {
    /// The listen address from the options.
    pub listen: Listen,
    /// The address it is bound to.
    pub address: SocketAddr,
    /// Open connections.
    pub open: u64,
    /// Connections accepted so far.
    pub accepted: u64,
    /// Connections refused because too many were open, in total or from their source.
    pub refused: u64,
    /// Closed connections by reason.
    pub ended: BTreeMap<End, u64>,
}

/// A listening socket and the counters of its connections.
pub(super) struct Listener {
    listen: Listen,
    address: SocketAddr,
    socket: Option<TcpListener>,
    tls: Option<Arc<ServerConfig>>,
    connections: Arc<Connections>,
    pub(super) thread: Option<JoinHandle<()>>,
}

/// State shared by the listener's threads.
#[derive(Default)]
struct Connections {
    open: Mutex<OpenConnections>,
    ended: Mutex<Ended>,
    accepted: AtomicU64,
    refused: AtomicU64,
}

#[derive(Default)]
struct Ended {
    exporters: Exporters,
    reasons: BTreeMap<End, u64>,
}

impl Listener {
    pub(super) fn bind(listen: Listen, tls: Option<Arc<ServerConfig>>) -> io::Result<Listener> {
        let socket = match TcpListener::bind(listen.socket_address()) {
            Err(_) if listen.address.is_none() => TcpListener::bind(("0.0.0.0", listen.port))?,
            result => result?,
        };
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Listener { listen, address, socket: Some(socket), tls, connections: Arc::default(), thread: None })
    }

    pub(super) fn listen(&self) -> Listen {
        self.listen
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts accepting connections, until `stop` is set.
    pub(super) fn start(
        &mut self,
        options: &CollectOptions,
        outlet: Shared,
        stop: Arc<AtomicBool>,
    ) -> io::Result<()> {
        let Some(socket) = self.socket.take() else { return Ok(()) };
        let acceptor = Acceptor {
            options: options.clone(),
            tls: self.tls.clone(),
            outlet,
            connections: self.connections.clone(),
        };
        let thread = std::thread::Builder::new()
            .name(format!("accept-{}", self.address.port()))
            .spawn(move || std::thread::scope(|scope| acceptor.run(scope, &socket, &stop)))?;
        self.thread = Some(thread);
        Ok(())
    }

    pub(super) fn report(&self) -> StreamReport {
        let connections = &self.connections;
        StreamReport {
            listen: self.listen,
            address: self.address,
            open: lock(&connections.open).len() as u64,
            accepted: connections.accepted.load(Ordering::Relaxed),
            refused: connections.refused.load(Ordering::Relaxed),
            ended: lock(&connections.ended).reasons.clone(),
        }
    }

    pub(super) fn add_exporters(&self, exporters: &mut Exporters) {
        // Both locks are held, always in this order, so that no connection is counted twice or missed.
        let open = lock(&self.connections.open);
        exporters.add_all(&lock(&self.connections.ended).exporters);
        open.snapshots().for_each(|snapshot| exporters.add(&lock(snapshot), usize::MAX));
    }
}

/// State of the accepting thread.
struct Acceptor {
    options: CollectOptions,
    tls: Option<Arc<ServerConfig>>,
    outlet: Shared,
    connections: Arc<Connections>,
}

impl Acceptor {
    fn run<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        socket: &TcpListener,
        stop: &'env AtomicBool,
    ) {
        while !stop.load(Ordering::Relaxed) {
            match socket.accept() {
                Ok((stream, from)) => self.accept(scope, stream, from, stop),
                // Out of descriptors, or the peer has closed already. Later connections may succeed.
                Err(error) => {
                    if !is_timeout(&error) {
                        self.connections.refused.fetch_add(1, Ordering::Relaxed);
                    }
                    std::thread::sleep(READ_TIMEOUT / 4);
                }
            }
        }
    }

    /// Starts a thread for the connection; closes the connection at a limit or if the thread cannot be started.
    fn accept<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        stream: TcpStream,
        from: SocketAddr,
        stop: &'env AtomicBool,
    ) {
        let now = (self.options.clock)();
        let admitted = lock(&self.connections.open).admit(from, &self.options.streams, now);
        let is_started = admitted.is_some_and(|(snapshot, state)| {
            let thread = std::thread::Builder::new().name(format!("session-{from}"));
            let started =
                thread.spawn_scoped(scope, move || self.serve(stream, from, snapshot, &state, stop));
            started.inspect_err(|_| lock(&self.connections.open).remove(from)).is_ok()
        });
        let counter = if is_started { &self.connections.accepted } else { &self.connections.refused };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn serve(
        &self,
        stream: TcpStream,
        from: SocketAddr,
        snapshot: Arc<Mutex<Snapshot>>,
        state: &ConnectionState,
        stop: &AtomicBool,
    ) {
        let clock = self.options.clock;
        let mut intake = Intake::new(&self.options, self.outlet.clone(), snapshot);
        let connection = Connection { from, limits: self.options.streams, state, clock, stop };
        let end = connection.run(stream, self.tls.clone(), &mut intake);
        let counted = intake.end_session(from, clock());
        let mut open = lock(&self.connections.open);
        let mut ended = lock(&self.connections.ended);
        open.remove(from);
        ended.exporters.add(&counted, ENDED_EXPORTERS);
        *ended.reasons.entry(end).or_default() += 1;
    }
}
