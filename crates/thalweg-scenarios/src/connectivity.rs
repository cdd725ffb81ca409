//! Who reaches whom: a TCP connection from every host to every other, which takes a packet each way.

use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use thalweg_control::Pair;
use thalweg_lab::Lab;
use thalweg_network::EndpointId;

use super::error::ScenarioError;

/// How long a connection may take to be made: the first packet is sent again after 1 s.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// The pairs of which the source does not reach the destination.
///
/// # Errors
/// If the hosts cannot be entered.
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
            // The kernel answers; nobody has to take the connection.
            let connected = lab.host(source).within(|| TcpStream::connect_timeout(&address, PATIENCE))?;
            if connected.is_err() {
                unreachable.push(Pair { source, destination });
            }
        }
        Ok(unreachable)
    };
    // All destinations at once: most of the time is that of who is waited for in vain.
    let to_one = &to_one;
    let all: Vec<_> = thread::scope(|scope| {
        let begun: Vec<_> = hosts().map(|destination| scope.spawn(move || to_one(destination))).collect();
        begun.into_iter().map(|thread| thread.join()).collect()
    });
    let mistaken = || ScenarioError::Watching("a mistake of the program".to_owned());
    let found = all.into_iter().map(|found| found.map_err(|_| mistaken())?);
    Ok(found.collect::<Result<Vec<_>, _>>()?.concat())
}
