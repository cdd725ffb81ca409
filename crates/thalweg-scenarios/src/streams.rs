//! Transfers between hosts over TCP sockets of this process: two threads each instead of processes.
//!
//! A socket belongs to the namespace in which it was opened: to the kernel these are connections between the hosts.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_control::Pair;
use thalweg_lab::Lab;

use super::error::ScenarioError;

/// Bytes per read and write.
const CHUNK: usize = 64 << 10;

/// Timeout of connecting, reading and writing.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Sends `bytes` from the source of a pair to its destination, waits for their arrival, and returns the time since
/// connecting. Ends early when `is_stopped` returns true.
///
/// # Errors
/// If a host's namespace cannot be entered, or the connection fails.
pub(super) fn transfer(
    lab: &Lab,
    pair: Pair,
    bytes: u64,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Duration, ScenarioError> {
    let name =
        |endpoint: thalweg_network::EndpointId| lab.topology().endpoints()[endpoint.index()].name.clone();
    let failed =
        |source| ScenarioError::Transfer { from: name(pair.source), to: name(pair.destination), source };
    let address = lab.topology().endpoints()[pair.destination.index()].ip;
    let listener = lab.host(pair.destination).within(|| TcpListener::bind((address, 0)))?.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let start = Instant::now();
    let stream = lab.host(pair.source).within(|| TcpStream::connect_timeout(&address, TIMEOUT))?;
    let stream = stream.map_err(failed)?;
    let received = thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&listener));
        let sent = send(stream, bytes, is_stopped);
        let received = receiver.join().map_err(|_| io::Error::other("the receiving thread panicked"))?;
        sent.and(received)
    });
    let received = received.map_err(failed)?;
    match is_stopped() {
        true => Err(ScenarioError::Interrupted),
        false if received < bytes => Err(failed(io::ErrorKind::UnexpectedEof.into())),
        false => Ok(start.elapsed()),
    }
}

fn send(mut stream: TcpStream, bytes: u64, is_stopped: &(dyn Fn() -> bool + Sync)) -> io::Result<()> {
    let zeros = vec![0; CHUNK];
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut left = bytes;
    while left > 0 && !is_stopped() {
        let chunk = left.min(CHUNK as u64) as usize;
        left -= stream.write(&zeros[..chunk])? as u64;
    }
    stream.shutdown(Shutdown::Write)
}

fn receive(listener: &TcpListener) -> io::Result<u64> {
    // The handshake is complete, or the connection has failed.
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut room = vec![0; CHUNK];
    let mut received = 0;
    loop {
        match stream.read(&mut room)? {
            0 => return Ok(received),
            count => received += count as u64,
        }
    }
}
