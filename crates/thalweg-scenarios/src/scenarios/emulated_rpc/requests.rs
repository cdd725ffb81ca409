//! Requests and responses over TCP between the hosts of a testbed, by sockets of this process.
//!
//! A connection carries one request at a time: eight bytes with the size of the response. A client takes an idle connection to its server,
//! and opens another one if there is none. Connections stay open, so a response is not delayed by a handshake. Two threads
//! per connection wait in the kernel, one at each end; the time of a request is that from the call that sends it until the
//! client has read the last byte.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use thalweg_lab::Namespace;
use thalweg_wire::Nanos;

use super::network::{CLIENTS, SERVERS, Testbed};
use crate::error::ScenarioError;

/// Connections of each client to each server that are open from the start.
const INITIAL: usize = 2;

/// Bytes per read and write.
const CHUNK: usize = 64 << 10;

/// Timeout of connecting.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Stacks of threads that only read and write.
const STACK: usize = 128 << 10;

/// A response that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Completed {
    /// When the request was sent.
    pub(super) sent_at: Instant,
    /// Bytes of the response.
    pub(super) bytes: u64,
    /// The time until its last byte was read.
    pub(super) time: Nanos,
}

/// A connection of a client to a server.
struct Connection {
    stream: TcpStream,
    /// Bytes of the current response, for the thread that reads it.
    expected: Arc<AtomicU64>,
    current: Option<(Instant, u64)>,
    pair: usize,
}

/// The end of a response: its connection, and when the last byte was read.
type Arrival = (usize, io::Result<Instant>);

/// The connections of all clients to all servers.
pub(super) struct Connections<'a> {
    testbed: &'a Testbed,
    /// By server.
    listeners: Vec<TcpListener>,
    connections: Vec<Connection>,
    /// Those without a request, by client and server.
    idle: Vec<Vec<usize>>,
    arrivals: (Sender<Arrival>, Receiver<Arrival>),
    threads: Vec<JoinHandle<()>>,
    outstanding: usize,
}

impl Connections<'_> {
    /// Opens connections between all clients and servers.
    ///
    /// # Errors
    /// If a connection cannot be opened.
    pub(super) fn open(testbed: &Testbed) -> Result<Connections<'_>, ScenarioError> {
        let listen = |server: u16| {
            let address = (testbed.address(server), 0);
            let listener = testbed.host(server).within(|| TcpListener::bind(address))?;
            listener.map_err(|source| failed(server, server, source))
        };
        let listeners = (CLIENTS..CLIENTS + SERVERS).map(listen).collect::<Result<_, _>>()?;
        let pairs = usize::from(CLIENTS * SERVERS);
        let mut all = Connections {
            testbed,
            listeners,
            connections: Vec::new(),
            idle: vec![Vec::new(); pairs],
            arrivals: unbounded(),
            threads: Vec::new(),
            outstanding: 0,
        };
        for _ in 0..INITIAL {
            for pair in 0..pairs {
                let number = all.connect(pair)?;
                all.idle[pair].push(number);
            }
        }
        Ok(all)
    }

    /// Requests a response of so many bytes.
    ///
    /// # Errors
    /// If the connection fails, or another one is needed and cannot be opened.
    pub(super) fn request(&mut self, client: u16, server: u16, bytes: u64) -> Result<(), ScenarioError> {
        let pair = pair(client, server);
        let number = match self.idle[pair].pop() {
            Some(number) => number,
            None => self.connect(pair)?,
        };
        let connection = &mut self.connections[number];
        connection.expected.store(bytes, Ordering::Release);
        let now = Instant::now();
        connection.current = Some((now, bytes));
        self.outstanding += 1;
        let written = connection.stream.write_all(&bytes.to_be_bytes());
        written.map_err(|source| failed(client, server, source))
    }

    /// Waits until `until` for the next response.
    ///
    /// # Errors
    /// If a connection fails.
    pub(super) fn wait(&mut self, until: Instant) -> Result<Option<Completed>, ScenarioError> {
        let (number, arrived) = match self.arrivals.1.recv_deadline(until) {
            Ok(arrival) => arrival,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(None),
        };
        let Connection { current, pair, .. } = &mut self.connections[number];
        let (client, server) = ends(*pair);
        let arrived = arrived.map_err(|source| failed(server, client, source))?;
        self.idle[*pair].push(number);
        self.outstanding -= 1;
        let (sent_at, bytes) = current.take().expect("a response has a request");
        let time = Nanos(arrived.saturating_duration_since(sent_at).as_nanos() as u64);
        Ok(Some(Completed { sent_at, bytes, time }))
    }

    /// Requests whose responses have not arrived.
    pub(super) fn outstanding(&self) -> usize {
        self.outstanding
    }

    fn connect(&mut self, pair: usize) -> Result<usize, ScenarioError> {
        let (client, server) = ends(pair);
        let failed = |source| failed(client, server, source);
        let listener = &self.listeners[usize::from(server - CLIENTS)];
        let address = listener.local_addr().map_err(failed)?;
        let host = self.testbed.host(client);
        let stream = host.within(|| TcpStream::connect_timeout(&address, TIMEOUT))?.map_err(failed)?;
        // The handshake is complete.
        let (responder, _) = listener.accept().map_err(failed)?;
        for end in [&stream, &responder] {
            end.set_nodelay(true).map_err(failed)?;
        }
        let reader = stream.try_clone().map_err(failed)?;
        let (number, expected) = (self.connections.len(), Arc::<AtomicU64>::default());
        let (arrivals, size) = (self.arrivals.0.clone(), Arc::clone(&expected));
        self.threads.push(start(&self.testbed.host(server), move || respond(responder))?.map_err(failed)?);
        let read = move || read(reader, number, &size, &arrivals);
        self.threads.push(start(&self.testbed.host(client), read)?.map_err(failed)?);
        self.connections.push(Connection { stream, expected, current: None, pair });
        Ok(number)
    }
}

/// Starts a thread on a host.
fn start(
    host: &Namespace,
    work: impl FnOnce() + Send + 'static,
) -> Result<io::Result<JoinHandle<()>>, ScenarioError> {
    let thread = thread::Builder::new().name("rpc".to_owned()).stack_size(STACK);
    Ok(host.within(|| thread.spawn(work))?)
}

impl Drop for Connections<'_> {
    fn drop(&mut self) {
        for connection in self.connections.drain(..) {
            // A connection that has failed is shut down already.
            let _ = connection.stream.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            // A panicked thread has printed its message.
            let _ = thread.join();
        }
    }
}

/// The number of a client and a server, and back.
fn pair(client: u16, server: u16) -> usize {
    usize::from(client * SERVERS + server - CLIENTS)
}

fn ends(pair: usize) -> (u16, u16) {
    let pair = pair as u16;
    (pair / SERVERS, CLIENTS + pair % SERVERS)
}

fn failed(from: u16, to: u16, source: io::Error) -> ScenarioError {
    ScenarioError::Transfer { from: format!("h{from}"), to: format!("h{to}"), source }
}

/// Answers requests until the connection ends.
fn respond(mut stream: TcpStream) {
    let zeros = vec![0; CHUNK];
    let mut request = [0; 8];
    while stream.read_exact(&mut request).is_ok() {
        let mut left = u64::from_be_bytes(request);
        while left > 0 {
            let chunk = left.min(CHUNK as u64) as usize;
            match stream.write_all(&zeros[..chunk]) {
                Ok(()) => left -= chunk as u64,
                Err(_) => return,
            }
        }
    }
}

/// Reads responses until the connection ends.
fn read(mut stream: TcpStream, number: usize, expected: &AtomicU64, arrivals: &Sender<Arrival>) {
    let mut room = vec![0; CHUNK];
    let mut received = 0;
    loop {
        let result = match stream.read(&mut room) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                received += count as u64;
                if received < expected.load(Ordering::Acquire) {
                    continue;
                }
                received = 0;
                Ok(Instant::now())
            }
            Err(error) => Err(error),
        };
        let has_ended = result.is_err();
        // Nobody receives at the end of a run.
        if arrivals.send((number, result)).is_err() || has_ended {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_have_numbers() {
        let all =
            (0..CLIENTS).flat_map(|client| (CLIENTS..CLIENTS + SERVERS).map(move |server| (client, server)));
        for (number, (client, server)) in all.enumerate() {
            assert_eq!((pair(client, server), ends(number)), (number, (client, server)));
        }
    }

    #[test]
    fn a_response_has_the_requested_size() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        let (responder, (arrivals, arrived)) = (thread::spawn(|| respond(server)), unbounded());
        let (reader, expected) = (client.try_clone().unwrap(), Arc::new(AtomicU64::new(0)));
        let size = Arc::clone(&expected);
        let reader = thread::spawn(move || read(reader, 7, &size, &arrivals));
        for bytes in [1, 200_000, 8] {
            expected.store(bytes, Ordering::Release);
            client.write_all(&bytes.to_be_bytes()).unwrap();
            let (number, result) = arrived.recv_timeout(TIMEOUT).unwrap();
            assert!(number == 7 && result.is_ok());
            assert!(arrived.try_recv().is_err(), "one arrival per response");
        }
        client.shutdown(Shutdown::Both).unwrap();
        assert!(arrived.recv_timeout(TIMEOUT).unwrap().1.is_err());
        responder.join().unwrap();
        reader.join().unwrap();
    }
}
