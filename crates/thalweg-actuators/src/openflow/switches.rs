//! All switches: who listens, who connects, who is up.

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

use super::back_off::Waits;
use super::clock::Clock;
use super::config::Config;
use super::connection::{Connection, Inbox};
use super::context::{Context, Listener, Said};
use super::counters::{Counters, Counting};
use super::event::{Event, Up};
use super::handshake::{HandshakeError, Known};
use super::link::lock;
use super::outcome::DownReason;
use super::switch::Switch;
use super::tls::{Tls, TlsError, server_name};

/// How often a listening thread looks for connections. A switch takes longer to start.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(20);

/// Why switches cannot be listened or connected to.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenFlowError {
    /// The address cannot be had.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// There is no thread to be had.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// TLS cannot be had.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// All connections to switches. Dropping it closes them and waits for its threads; whether this is still told depends on
/// whether there is room for events.
pub struct Switches {
    shared: Arc<Shared>,
    /// Dropped to stop; nothing is ever sent.
    running: Option<Sender<Infallible>>,
}

/// What all threads share.
struct Shared {
    context: Arc<Context>,
    outbox: Outbox,
    up: Mutex<BTreeMap<DatapathId, Arc<Connection>>>,
    /// Held while it is told that a switch is up or down, so that this is told in the order in which it happens. Nobody
    /// who takes events needs it.
    announcing: Mutex<()>,
    connections: AtomicUsize,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Switches {
    /// None yet; and where to take events from.
    pub fn new(config: Config) -> (Switches, Receiver<Event>) {
        let (events, taken) = crossbeam_channel::bounded(config.max_events);
        let (running, stop) = crossbeam_channel::bounded(0);
        let outbox = Outbox { events, stop: stop.clone() };
        let context = Context {
            config,
            clock: Clock::start(),
            counting: Counting::default(),
            stop,
            listener: Box::new(outbox.clone()),
        };
        let shared = Shared {
            context: Arc::new(context),
            outbox,
            up: Mutex::default(),
            announcing: Mutex::default(),
            connections: AtomicUsize::new(0),
            threads: Mutex::default(),
        };
        (Switches { shared: Arc::new(shared), running: Some(running) }, taken)
    }

    /// Has switches connect to this address (port 0: any that is free), and says which it is. For Open vSwitch:
    /// `ovs-vsctl set-controller BRIDGE tcp:ADDRESS:PORT`, or `ssl:` with TLS.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub fn listen(&self, address: SocketAddr, tls: Option<Tls>) -> Result<SocketAddr, OpenFlowError> {
        let failed = |source| OpenFlowError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let shared = Arc::clone(&self.shared);
        self.shared
            .spawn(move || shared.accept_all(&listener, tls.as_ref()))
            .map_err(OpenFlowError::Thread)?;
        Ok(bound)
    }

    /// Connects to a switch that listens (`ovs-vsctl set-controller BRIDGE ptcp:PORT`, or `pssl:`), and again whenever
    /// the connection ends. With TLS, the switch's certificate is to be for the name that comes with it.
    ///
    /// # Errors
    /// When no thread can be started, or the name is none.
    pub fn connect(&self, address: SocketAddr, tls: Option<(Tls, &str)>) -> Result<(), OpenFlowError> {
        let tls = match tls {
            Some((tls, name)) => Some((tls, server_name(name)?)),
            None => None,
        };
        let shared = Arc::clone(&self.shared);
        self.shared
            .spawn(move || shared.connect_again_and_again(address, tls.as_ref()))
            .map_err(OpenFlowError::Thread)
    }

    /// A switch, if it is up.
    pub fn switch(&self, datapath: DatapathId) -> Option<Switch> {
        lock(&self.shared.up).get(&datapath).map(|connection| Switch::new(datapath, Arc::clone(connection)))
    }

    /// Those that are up.
    pub fn datapaths(&self) -> Vec<DatapathId> {
        lock(&self.shared.up).keys().copied().collect()
    }

    /// What has come to pass so far.
    pub fn counters(&self) -> Counters {
        self.shared.context.counting.read()
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        self.running = None;
        // A thread may have started another one before it saw this.
        loop {
            let threads = std::mem::take(&mut *lock(&self.shared.threads));
            if threads.is_empty() {
                return;
            }
            for thread in threads {
                // A thread that panicked has said so itself.
                let _ = thread.join();
            }
        }
    }
}

/// Where events are put.
#[derive(Clone)]
struct Outbox {
    events: Sender<Event>,
    /// Disconnected when all is to stop.
    stop: Receiver<Infallible>,
}

impl Outbox {
    /// Tells an event, and waits until there is room for it.
    fn tell(&self, event: Event) {
        crossbeam_channel::select! {
            send(self.events, event) -> _ => {} // Perhaps nobody wants to know.
            recv(self.stop) -> _ => {}
        }
    }
}

impl Listener for Outbox {
    fn hear(&self, datapath: DatapathId, said: Said) {
        self.tell(match said {
            Said::PortStatus(status) => Event::PortStatus { datapath, status },
            Said::FlowRemoved(flow) => Event::FlowRemoved { datapath, flow },
            Said::Error { xid, error } => Event::Error { datapath, xid, error },
            Said::Unreadable(error) => Event::Unreadable { datapath, error },
        });
    }

    fn offer_packet(&self, datapath: DatapathId, packet: PacketIn) -> bool {
        let offered = self.events.try_send(Event::PacketIn { datapath, packet });
        !matches!(offered, Err(TrySendError::Full(_)))
    }
}

impl Shared {
    /// Waits, and says whether to go on.
    fn wait(&self, time: Duration) -> bool {
        self.context.stop.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
    }

    fn spawn(&self, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(std::thread::Builder::new().name("openflow".into()).spawn(run)?);
        Ok(())
    }

    fn accept_all(self: Arc<Self>, listener: &TcpListener, tls: Option<&Tls>) {
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
                        self.context.counting.accept_failures.add(1);
                    }
                }
                Err(error) => {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        self.context.counting.accept_failures.add(1);
                    }
                    if !self.wait(ACCEPT_INTERVAL) {
                        return;
                    }
                }
            }
        }
    }

    fn connect_again_and_again(
        self: Arc<Self>,
        address: SocketAddr,
        tls: Option<&(Tls, ServerName<'static>)>,
    ) {
        let mut waits = Waits::new(self.context.config.back_off);
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
            let wait = if was_up { waits.after_success() } else { waits.after_failure() };
            if !self.wait(wait.into()) {
                return;
            }
        }
    }

    /// Runs a connection to its end, and says whether it was up.
    fn run(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, tls: Option<rustls::Connection>) -> bool {
        let place = Place::take(&self);
        if place.number > self.context.config.max_connections {
            self.refuse(peer, HandshakeError::TooMany);
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
        match connection.come_up(&mut inbox) {
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

    fn serve(&self, connection: &Arc<Connection>, features: SwitchFeatures, known: Known, inbox: &mut Inbox) {
        let datapath = features.datapath_id;
        let Known { ports, flows, groups, early } = known;
        let switch = Switch::new(datapath, Arc::clone(connection));
        self.announce_up(connection, Up { switch, features, ports, flows, groups });
        for message in early {
            connection.hear(datapath, message);
        }
        let reason = connection.serve(datapath, inbox);
        connection.end();
        self.announce_down(datapath, connection, reason);
    }

    fn refuse(&self, peer: SocketAddr, error: HandshakeError) {
        self.context.counting.refused.add(1);
        self.outbox.tell(Event::Refused { peer, error });
    }

    /// The newest connection of a switch counts: it would not have begun another one if the one before were well.
    fn announce_up(&self, connection: &Arc<Connection>, up: Up) {
        let datapath = up.features.datapath_id;
        let _announcing = lock(&self.announcing);
        if let Some(before) = lock(&self.up).insert(datapath, Arc::clone(connection)) {
            before.close(DownReason::Replaced);
            self.outbox.tell(Event::Down { datapath, reason: DownReason::Replaced });
        }
        self.context.counting.up.add(1);
        self.outbox.tell(Event::Up(Box::new(up)));
    }

    /// Nothing if it has been replaced, which was told then.
    fn announce_down(&self, datapath: DatapathId, connection: &Arc<Connection>, reason: DownReason) {
        let _announcing = lock(&self.announcing);
        let was_current = {
            let mut up = lock(&self.up);
            let is_current = up.get(&datapath).is_some_and(|current| Arc::ptr_eq(current, connection));
            is_current && up.remove(&datapath).is_some()
        };
        if was_current {
            self.outbox.tell(Event::Down { datapath, reason });
        }
    }
}

/// One of the connections that there may be at once.
struct Place<'a> {
    shared: &'a Shared,
    /// How many there are with it.
    number: usize,
}

impl Place<'_> {
    fn take(shared: &Shared) -> Place<'_> {
        let number = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
        Place { shared, number }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.shared.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
