//! Tests reachability by a TCP connection from every host to every other.

use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use thalweg_control::Pair;
use thalweg_lab::Lab;
use thalweg_network::EndpointId;

use super::error::ScenarioError;

/// Connection timeout. The first SYN is retransmitted after 1 s.
const TIMEOUT: Duration = Duration::from_millis(1_500);

/// Returns the pairs whose source cannot connect to the destination.
///
/// # Errors
/// If a host's namespace cannot be entered.
pub(super) fn unreachable(lab: &Lab) -> Result<Vec<Pair>, ScenarioError> {
    let hosts = || lab.topology().endpoint_ids();
    let failed = |pair: Pair, source| {
        let [from, to] = [pair.source, pair.destination]
            .map(|host: EndpointId| lab.topology().endpoints()[host.index()].name.clone());
        ScenarioError::Transfer { from, to, source }
    };
    let to_one = |destination: EndpointId| -> Result<Vec<Pair>, ScenarioError> {
        let mut unreachable = Vec::new();
        let ip = lab.topology().endpoints()[destination.index()].ip;
        let itself = |error| failed(Pair { source: destination, destination }, error);
        let listener = lab.host(destination).within(|| TcpListener::bind((ip, 0)))?.map_err(itself)?;
        let address = listener.local_addr().map_err(itself)?;
        for source in hosts().filter(|&source| source != destination) {
            // The kernel completes the handshake; nobody has to accept the connection.
            let connected = lab.host(source).within(|| TcpStream::connect_timeout(&address, TIMEOUT))?;
            if connected.is_err() {
                unreachable.push(Pair { source, destination });
            }
        }
        Ok(unreachable)
    };
    // All destinations at once: timeouts take most of the time.
    let to_one = &to_one;
    let all: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = hosts().map(|destination| scope.spawn(move || to_one(destination))).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let mistaken = || ScenarioError::Monitoring("a test thread panicked".to_owned());
    let found = all.into_iter().map(|found| found.map_err(|_| mistaken())?);
    Ok(found.collect::<Result<Vec<_>, _>>()?.concat())
}
