//! IPFIX over TCP and TLS (RFC 7011 section 10.4): a thread that accepts, and one for each connection.
//!
//! A connection is a transport session: its templates are its own, and are forgotten when it ends. Messages have at
//! most 65,535 bytes, connections are limited in number, and one that sends no whole message for too long is closed
//! ([`StreamLimits`]). Memory of a connection: 128 KiB, and what its decoder keeps.
//!
//! | module | what it has |
//! |---|---|
//! | `framing` | messages out of a stream of bytes |
//! | `connection` | one connection, and why it ended ([`End`]) |

mod connection;
mod framing;

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
use super::intake::{Intake, Published};
use super::outlet::{Shared, lock};
use super::receiver::{PATIENCE, is_patience};
use super::{CollectOptions, Listen};
use connection::Connection;

/// Exporters whose connections have ended that are remembered one by one.
const ENDED_EXPORTERS: usize = 4096;

/// A listener of TCP or TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamReport {
    /// What was asked for.
    pub listen: Listen,
    /// Where it listens.
    pub address: SocketAddr,
    /// Connections now.
    pub open: u64,
    /// Connections accepted so far.
    pub accepted: u64,
    /// Connections refused for want of room.
    pub refused: u64,
    /// Connections that ended, by reason.
    pub ended: BTreeMap<End, u64>,
}

/// A socket that accepts connections, and what became of them.
pub(super) struct Listener {
    listen: Listen,
    address: SocketAddr,
    socket: Option<TcpListener>,
    tls: Option<Arc<ServerConfig>>,
    connections: Arc<Connections>,
    pub(super) thread: Option<JoinHandle<()>>,
}

/// What the listener's threads have in common.
#[derive(Default)]
struct Connections {
    open: Mutex<BTreeMap<SocketAddr, Arc<Mutex<Published>>>>,
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

    /// Starts to accept, until `stop` is set.
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
        // One lock after the other, always in this order: no connection is counted twice or left out.
        let open = lock(&self.connections.open);
        exporters.add_all(&lock(&self.connections.ended).exporters);
        open.values().for_each(|published| exporters.add(&lock(published), usize::MAX));
    }
}

/// What the accepting thread works with.
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
                Ok((stream, from)) => self.take(scope, stream, from, stop),
                // Out of descriptors, or the peer is gone already: others may do better later.
                Err(error) => {
                    if !is_patience(&error) {
                        self.connections.refused.fetch_add(1, Ordering::Relaxed);
                    }
                    std::thread::sleep(PATIENCE / 4);
                }
            }
        }
    }

    /// Starts a connection's thread; closes the connection if there are too many, or no thread can be had.
    fn take<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        stream: TcpStream,
        from: SocketAddr,
        stop: &'env AtomicBool,
    ) {
        let published = Arc::<Mutex<Published>>::default();
        let has_room = {
            let mut open = lock(&self.connections.open);
            let has_room = open.len() < self.options.streams.connections;
            if has_room {
                open.insert(from, published.clone());
            }
            has_room
        };
        let started = has_room && {
            let thread = std::thread::Builder::new().name(format!("session-{from}"));
            let started = thread.spawn_scoped(scope, move || self.serve(stream, from, published, stop));
            started.inspect_err(|_| drop(lock(&self.connections.open).remove(&from))).is_ok()
        };
        let counter = if started { &self.connections.accepted } else { &self.connections.refused };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn serve(
        &self,
        stream: TcpStream,
        from: SocketAddr,
        published: Arc<Mutex<Published>>,
        stop: &AtomicBool,
    ) {
        let clock = self.options.clock;
        let mut intake = Intake::new(&self.options, self.outlet.clone(), published);
        let connection = Connection { from, limits: self.options.streams, clock, stop };
        let end = connection.run(stream, self.tls.clone(), &mut intake);
        let counted = intake.end_session(from, clock());
        let mut open = lock(&self.connections.open);
        let mut ended = lock(&self.connections.ended);
        open.remove(&from);
        ended.exporters.add(&counted, ENDED_EXPORTERS);
        *ended.reasons.entry(end).or_default() += 1;
    }
}
