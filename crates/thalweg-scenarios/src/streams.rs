//! Transfers between hosts over TCP sockets of this process: many at once cost two threads each, and no processes.
//!
//! A socket belongs to the namespace that it was opened in, whoever uses it: to the kernel these are connections between
//! the hosts.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_control::Pair;
use thalweg_lab::Lab;

use super::error::ScenarioError;

/// What is written and read in one go.
const CHUNK: usize = 64 << 10;

/// How long a connection may take to be made, and how long a socket may be silent, until it is given up.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sends `bytes` from the source of a pair to its destination, and waits until they are there. Gives how long that took,
/// from the connection on. Ends early when `is_stopped` says so.
///
/// # Errors
/// If the hosts cannot be entered, or the connection fails.
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
    let begun = Instant::now();
    let stream = lab.host(pair.source).within(|| TcpStream::connect_timeout(&address, PATIENCE))?;
    let stream = stream.map_err(failed)?;
    let received = thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&listener));
        let sent = send(stream, bytes, is_stopped);
        let received = receiver.join().map_err(|_| io::Error::other("a mistake of the program"))?;
        sent.and(received)
    });
    let received = received.map_err(failed)?;
    match is_stopped() {
        true => Err(ScenarioError::Interrupted),
        false if received < bytes => Err(failed(io::ErrorKind::UnexpectedEof.into())),
        false => Ok(begun.elapsed()),
    }
}

fn send(mut stream: TcpStream, bytes: u64, is_stopped: &(dyn Fn() -> bool + Sync)) -> io::Result<()> {
    let zeros = vec![0; CHUNK];
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut left = bytes;
    while left > 0 && !is_stopped() {
        let chunk = left.min(CHUNK as u64) as usize;
        left -= stream.write(&zeros[..chunk])? as u64;
    }
    stream.shutdown(Shutdown::Write)
}

fn receive(listener: &TcpListener) -> io::Result<u64> {
    // It has been made already, or never will be.
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut room = vec![0; CHUNK];
    let mut received = 0;
    loop {
        match stream.read(&mut room)? {
            0 => return Ok(received),
            count => received += count as u64,
        }
    }
}
