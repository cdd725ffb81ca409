//! Connections to all switches: listening, connecting and serving.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError};
use rustls::pki_types::ServerName;
use thalweg_wire::openflow::{DatapathId, PacketIn, SwitchFeatures};
use thiserror::Error;

use crate::clock::Clock;
use crate::config::Config;
use crate::connection::{Connection, Inbox};
use crate::context::{Context, Listener, SwitchMessage};
use crate::counters::{AtomicCounters, Counters};
use crate::event::{Event, Up};
use crate::handshake::{HandshakeError, SwitchState};
use crate::outcome::DownReason;
use crate::retry::RetryDelays;
use crate::socket::lock;
use crate::switch::Switch;
use crate::tls::{Tls, TlsError, server_name};

/// Interval at which a listening thread polls for connections. A switch takes longer to start.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(20);

/// Why listening or connecting failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenFlowError {
    /// The address cannot be bound.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// TLS could not be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// All connections to switches. Dropping it closes them and waits for its threads. It reports their end only if the
/// event queue has room.
pub struct Switches {
    shared: Arc<Shared>,
    /// Dropped to stop all threads; never sends anything.
    running: Option<Sender<Infallible>>,
}

/// State shared by all threads.
struct Shared {
    context: Arc<Context>,
    queue: EventQueue,
    up: Mutex<BTreeMap<DatapathId, Arc<Connection>>>,
    /// Held while `Up` and `Down` events are queued, so that their order is that of the connections. Takers of events
    /// do not lock it.
    announcing: Mutex<()>,
    connections: AtomicUsize,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Switches {
    /// Creates an instance without connections. Returns it with the channel of events.
    pub fn new(config: Config) -> (Switches, Receiver<Event>) {
        let (events, receiver) = crossbeam_channel::bounded(config.max_events);
        let (running, stop) = crossbeam_channel::bounded(0);
        let queue = EventQueue { events, stop: stop.clone() };
        let context = Context {
            config,
            clock: Clock::start(),
            counters: AtomicCounters::default(),
            stop,
            listener: Box::new(queue.clone()),
        };
        let shared = Shared {
            context: Arc::new(context),
            queue,
            up: Mutex::default(),
            announcing: Mutex::default(),
            connections: AtomicUsize::new(0),
            threads: Mutex::default(),
        };
        (Switches { shared: Arc::new(shared), running: Some(running) }, receiver)
    }

    /// Listens for switches at this address (port 0: any free port). Returns the bound address. For Open vSwitch:
    /// `ovs-vsctl set-controller BRIDGE tcp:ADDRESS:PORT`, or `ssl:` with TLS.
    ///
    /// # Errors
    /// If the address cannot be bound, or no thread can be started.
    pub fn listen(&self, address: SocketAddr, tls: Option<Tls>) -> Result<SocketAddr, OpenFlowError> {
        let failed = |source| OpenFlowError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let shared = Arc::clone(&self.shared);
        self.shared
            .spawn(move || shared.accept_loop(&listener, tls.as_ref()))
            .map_err(OpenFlowError::Thread)?;
        Ok(bound)
    }

    /// Connects to a switch that listens (`ovs-vsctl set-controller BRIDGE ptcp:PORT`, or `pssl:`), and reconnects
    /// whenever the connection ends. With TLS, the switch's certificate must be for the given name.
    ///
    /// # Errors
    /// If no thread can be started, or the name is invalid.
    pub fn connect(&self, address: SocketAddr, tls: Option<(Tls, &str)>) -> Result<(), OpenFlowError> {
        let tls = match tls {
            Some((tls, name)) => Some((tls, server_name(name)?)),
            None => None,
        };
        let shared = Arc::clone(&self.shared);
        self.shared.spawn(move || shared.connect_loop(address, tls.as_ref())).map_err(OpenFlowError::Thread)
    }

    /// Returns a switch, if connected.
    pub fn switch(&self, datapath: DatapathId) -> Option<Switch> {
        lock(&self.shared.up).get(&datapath).map(|connection| Switch::new(datapath, Arc::clone(connection)))
    }

    /// Returns the connected switches.
    pub fn datapaths(&self) -> Vec<DatapathId> {
        lock(&self.shared.up).keys().copied().collect()
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        self.shared.context.counters.read()
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        self.running = None;
        // A thread may have started another one before it noticed the stop.
        loop {
            let threads = std::mem::take(&mut *lock(&self.shared.threads));
            if threads.is_empty() {
                return;
            }
            for thread in threads {
                // A panicked thread has already reported its panic.
                let _ = thread.join();
            }
        }
    }
}

/// The queue of events.
#[derive(Clone)]
struct EventQueue {
    events: Sender<Event>,
    /// Disconnected to stop all threads.
    stop: Receiver<Infallible>,
}

impl EventQueue {
    /// Queues an event; blocks until there is room. During a stop, an event that has room is queued too: the end of a connection must not
    /// be lost, because the receiver may keep its [`Switch`], and with it the queue.
    fn push(&self, event: Event) {
        let Err(TrySendError::Full(event)) = self.events.try_send(event) else { return };
        crossbeam_channel::select! {
            send(self.events, event) -> _ => {} // The receiver may be gone.
            recv(self.stop) -> _ => {}
        }
    }
}

impl Listener for EventQueue {
    fn receive(&self, datapath: DatapathId, said: SwitchMessage) {
        self.push(match said {
            SwitchMessage::PortStatus(status) => Event::PortStatus { datapath, status },
            SwitchMessage::FlowRemoved(flow) => Event::FlowRemoved { datapath, flow },
            SwitchMessage::Role(role) => Event::Role { datapath, role },
            SwitchMessage::Error { xid, error } => Event::Error { datapath, xid, error },
            SwitchMessage::Unreadable(error) => Event::Unreadable { datapath, error },
        });
    }

    fn offer_packet(&self, datapath: DatapathId, packet: PacketIn) -> bool {
        let offered = self.events.try_send(Event::PacketIn { datapath, packet });
        !matches!(offered, Err(TrySendError::Full(_)))
    }
}

impl Shared {
    /// Waits. Returns whether to go on.
    fn wait(&self, time: Duration) -> bool {
        self.context.stop.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
    }

    fn spawn(&self, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(std::thread::Builder::new().name("openflow".into()).spawn(run)?);
        Ok(())
    }

    fn accept_loop(self: Arc<Self>, listener: &TcpListener, tls: Option<&Tls>) {
        loop {
            match listener.accept() {
                Ok((stream, peer)) => {
                    let tls = match tls.map(Tls::accept).transpose() {
                        Ok(tls) => tls,
                        Err(error) => {
                            self.refuse(peer, HandshakeError::Broken(error.to_string()));
                            continue;
                        }
                    };
                    let shared = Arc::clone(&self);
                    let run = move || {
                        shared.run(stream, peer, tls);
                    };
                    if self.spawn(run).is_err() {
                        self.context.counters.accept_failures.add(1);
                    }
                }
                Err(error) => {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        self.context.counters.accept_failures.add(1);
                    }
                    if !self.wait(ACCEPT_INTERVAL) {
                        return;
                    }
                }
            }
        }
    }

    fn connect_loop(self: Arc<Self>, address: SocketAddr, tls: Option<&(Tls, ServerName<'static>)>) {
        let mut delays = RetryDelays::new(self.context.config.back_off);
        let timeout = Duration::from(self.context.config.handshake_timeout).max(Duration::from_millis(1));
        loop {
            let connected = TcpStream::connect_timeout(&address, timeout).map_err(|error| error.to_string());
            let connected = connected.and_then(|stream| {
                let tls = tls.map(|(tls, name)| tls.connect(name.clone())).transpose();
                tls.map(|tls| (stream, tls)).map_err(|error| error.to_string())
            });
            let was_up = match connected {
                Ok((stream, tls)) => Arc::clone(&self).run(stream, address, tls),
                Err(message) => {
                    self.refuse(address, HandshakeError::Unreachable(message));
                    false
                }
            };
            let wait = if was_up { delays.after_success() } else { delays.after_failure() };
            if !self.wait(wait.into()) {
                return;
            }
        }
    }

    /// Runs a connection to its end. Returns whether it was established.
    fn run(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, tls: Option<rustls::Connection>) -> bool {
        let slot = ConnectionSlot::take(&self);
        if slot.number > self.context.config.max_connections {
            self.refuse(peer, HandshakeError::TooManyConnections);
            return false;
        }
        let connection = match Connection::new(Arc::clone(&self.context), stream, peer, tls) {
            Ok(connection) => connection,
            Err(error) => {
                self.refuse(peer, HandshakeError::Broken(error.to_string()));
                return false;
            }
        };
        let mut inbox = Inbox::default();
        match connection.handshake(&mut inbox) {
            Ok((features, known)) => {
                self.serve(&connection, features, known, &mut inbox);
                true
            }
            Err(error) => {
                connection.end();
                self.refuse(peer, error);
                false
            }
        }
    }

    fn serve(
        &self,
        connection: &Arc<Connection>,
        features: SwitchFeatures,
        known: SwitchState,
        inbox: &mut Inbox,
    ) {
        let datapath = features.datapath_id;
        let SwitchState { ports, flows, groups, early } = known;
        let switch = Switch::new(datapath, Arc::clone(connection));
        self.announce_up(connection, Up { switch, features, ports, flows, groups });
        for message in early {
            connection.handle(datapath, message);
        }
        let reason = connection.serve(datapath, inbox);
        connection.end();
        self.announce_down(datapath, connection, reason);
    }

    fn refuse(&self, peer: SocketAddr, error: HandshakeError) {
        self.context.counters.refused.add(1);
        self.queue.push(Event::Refused { peer, error });
    }

    /// Replaces an older connection of the same switch: a switch opens a new one only if the old one failed.
    fn announce_up(&self, connection: &Arc<Connection>, up: Up) {
        let datapath = up.features.datapath_id;
        let _announcing = lock(&self.announcing);
        if let Some(before) = lock(&self.up).insert(datapath, Arc::clone(connection)) {
            before.close(DownReason::Replaced);
            self.queue.push(Event::Down { datapath, reason: DownReason::Replaced });
        }
        self.context.counters.up.add(1);
        self.queue.push(Event::Up(Box::new(up)));
    }

    /// Reports the end, unless the connection was replaced, which was reported then.
    fn announce_down(&self, datapath: DatapathId, connection: &Arc<Connection>, reason: DownReason) {
        let _announcing = lock(&self.announcing);
        let was_current = {
            let mut up = lock(&self.up);
            let is_current = up.get(&datapath).is_some_and(|current| Arc::ptr_eq(current, connection));
            is_current && up.remove(&datapath).is_some()
        };
        if was_current {
            self.queue.push(Event::Down { datapath, reason });
        }
    }
}

/// A slot among the allowed connections.
struct ConnectionSlot<'a> {
    shared: &'a Shared,
    /// Number of connections, this one included.
    number: usize,
}

impl ConnectionSlot<'_> {
    fn take(shared: &Shared) -> ConnectionSlot<'_> {
        let number = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
        ConnectionSlot { shared, number }
    }
}

impl Drop for ConnectionSlot<'_> {
    fn drop(&mut self) {
        self.shared.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
