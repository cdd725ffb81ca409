//! Connections to the switches of one address, shared by the sources that read them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Select, TryRecvError};
use thalweg_linux::Namespace;
use thalweg_openflow::{Config, Event, OpenFlowError, Switch, Switches, Tls};
use thalweg_wire::openflow::DatapathId;

/// Switches in an error message.
const SWITCHES_SHOWN: usize = 8;

/// Who connects to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Switches connect to this address.
    Listen(SocketAddr),
    /// A switch listens at this address; with TLS, its certificate is for the name.
    Connect(SocketAddr, String),
}

/// Connections to the switches of one address. Closed on drop.
pub struct Connections {
    peer: Peer,
    tls: Option<Tls>,
    namespace: Option<Namespace>,
    /// The address at which it listens.
    bound: OnceLock<SocketAddr>,
    /// Taken from while `shared` is locked only, so that all events before an answer are known with the answer.
    events: Receiver<Event>,
    shared: Arc<Shared>,
    /// `None` once dropped.
    switches: Option<Switches>,
    /// The thread that takes events.
    thread: OnceLock<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// A switch has connected.
    connected: Condvar,
}

#[derive(Default)]
struct State {
    up: BTreeMap<DatapathId, Up>,
    /// Why the latest connection ended or was not established, and the other side of one that was not.
    problem: Option<(Option<SocketAddr>, String)>,
}

/// A connected switch.
struct Up {
    switch: Switch,
    /// Changes of its ports that it reported over this connection.
    port_changes: u64,
}

impl Connections {
    /// Creates an instance without connections and threads.
    pub fn new(peer: Peer, tls: Option<Tls>, namespace: Option<Namespace>) -> Connections {
        let (switches, events) = Switches::new(Config { reads_only: true, ..Config::default() });
        Connections {
            peer,
            tls,
            namespace,
            bound: OnceLock::new(),
            events,
            shared: Arc::default(),
            switches: Some(switches),
            thread: OnceLock::new(),
        }
    }

    /// Listens or connects, in the network namespace if there is one, and reconnects whenever a connection ends. Needs no
    /// privileges except to enter the namespace and to listen at a port below 1,024. Call it once.
    ///
    /// # Errors
    /// A message, if the address cannot be bound, the namespace cannot be entered, or the name is in no certificate.
    pub fn start(&self) -> Result<(), String> {
        // Threads stay in the namespace that they are started in, and reconnect there.
        let connected = match &self.namespace {
            None => self.connect(),
            Some(namespace) => namespace.within(|| self.connect()).map_err(|error| error.to_string())?,
        };
        if let Some(address) = connected.map_err(|error| error.to_string())? {
            self.bound.get_or_init(|| address);
        }
        let (shared, events) = (Arc::clone(&self.shared), self.events.clone());
        let thread = std::thread::Builder::new()
            .name("openflow-poll".to_owned())
            .spawn(move || shared.take_until_closed(&events))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        self.thread.get_or_init(|| thread);
        Ok(())
    }

    fn connect(&self) -> Result<Option<SocketAddr>, OpenFlowError> {
        let Some(switches) = &self.switches else { return Ok(None) };
        match &self.peer {
            Peer::Listen(address) => switches.listen(*address, self.tls.clone()).map(Some),
            Peer::Connect(address, name) => {
                let tls = self.tls.clone().map(|tls| (tls, name.as_str()));
                switches.connect(*address, tls).map(|()| None)
            }
        }
    }

    /// Returns who connects to whom. A listening address has the port that was bound, once it has started.
    pub fn peer(&self) -> Peer {
        self.bound.get().map_or_else(|| self.peer.clone(), |address| Peer::Listen(*address))
    }

    /// Returns a switch and the number of port changes so far. Waits for its connection, at most for `within`.
    ///
    /// # Errors
    /// A message, if it is not connected.
    pub(super) fn switch(&self, datapath: DatapathId, within: Duration) -> Result<(Switch, u64), String> {
        let deadline = Instant::now() + within;
        let mut state = self.shared.lock();
        loop {
            self.shared.take(&mut state, &self.events);
            if let Some(up) = state.up.get(&datapath) {
                return Ok((up.switch.clone(), up.port_changes));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.absence(&state));
            }
            let waited = self.shared.connected.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the number of port changes of a switch; `None` if this connection has ended.
    pub(super) fn port_changes(&self, switch: &Switch) -> Option<u64> {
        let mut state = self.shared.lock();
        self.shared.take(&mut state, &self.events);
        let up = state.up.get(&switch.datapath()).filter(|up| up.switch.is_same_connection(switch));
        up.map(|up| up.port_changes)
    }

    /// Says why a switch is not connected.
    fn absence(&self, state: &State) -> String {
        let others: Vec<String> =
            state.up.keys().take(SWITCHES_SHOWN).map(|datapath| format!("switch {datapath}")).collect();
        let others = match others.is_empty() {
            true => String::new(),
            false => format!("; connected: {}", others.join(", ")),
        };
        let own = self.peer();
        match (&state.problem, &own) {
            (Some((Some(other), problem)), Peer::Listen(_)) => {
                format!("{own}: {other}: {problem}{others}")
            }
            (Some((_, problem)), _) => format!("{own}: {problem}{others}"),
            (None, _) => format!("{own}: no connection yet{others}"),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes events until all connections are closed.
    fn take_until_closed(&self, events: &Receiver<Event>) {
        let mut waiting = Select::new();
        waiting.recv(events);
        loop {
            waiting.ready();
            if !self.take(&mut self.lock(), events) {
                return;
            }
        }
    }

    /// Takes all events. Returns whether further ones may follow.
    fn take(&self, state: &mut State, events: &Receiver<Event>) -> bool {
        let (is_open, has_connected) = state.take(events);
        if has_connected {
            self.connected.notify_all();
        }
        is_open
    }
}

impl State {
    /// Takes all events. Returns whether further ones may follow, and whether a switch has connected.
    fn take(&mut self, events: &Receiver<Event>) -> (bool, bool) {
        let mut has_connected = false;
        loop {
            match events.try_recv() {
                Ok(event) => has_connected |= self.handle(event),
                Err(error) => return (error != TryRecvError::Disconnected, has_connected),
            }
        }
    }

    /// Returns whether a switch has connected.
    fn handle(&mut self, event: Event) -> bool {
        match event {
            Event::Up(up) => {
                self.up.insert(up.switch.datapath(), Up { switch: up.switch, port_changes: 0 });
                self.problem = None;
                return true;
            }
            Event::Down { datapath, reason } => {
                self.up.remove(&datapath);
                self.problem = Some((None, format!("switch {datapath}: {reason}")));
            }
            Event::Refused { peer, error } => self.problem = Some((Some(peer), error.to_string())),
            Event::PortStatus { datapath, .. } => {
                if let Some(up) = self.up.get_mut(&datapath) {
                    up.port_changes += 1;
                }
            }
            // A switch that cannot choose its messages sends those of an equal.
            _ => {}
        }
        false
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.switches = None;
        if let Some(thread) = self.thread.take() {
            // A panicked thread has already reported its panic.
            let _ = thread.join();
        }
    }
}

/// Formats as `at 127.0.0.1:6654`, or `listening at` the address.
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Listen(address) => write!(f, "listening at {address}"),
            Peer::Connect(address, _) => write!(f, "at {address}"),
        }
    }
}
