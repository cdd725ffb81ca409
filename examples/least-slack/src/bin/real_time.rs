//! Runs a custom scheme in real time: decides on the packets of real hosts by the scheme in `lib.rs`.
//!
//! ```text
//! cargo run --release -p least-slack --bin real_time -- 10.9.0.1:6589 4 100
//! ```
//!
//! Listens for endpoints at an address (default: 127.0.0.1:6589), and emulates a rack with so many hosts (default: 4) and links of so
//! many Mbit/s (default: 100). Each host runs `thalweg endpoint --remaining`, so packets carry the bytes that the application has
//! written to the socket beyond them. SIGINT and SIGTERM end it, with a report.

use std::env;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use signal_hook::consts::{SIGINT, SIGTERM};
use thalweg_emulator::core::blueprint::Blueprint;
use thalweg_emulator::core::emulation::Emulation;
use thalweg_linux::clock::realtime;
use thalweg_network::LinkSpec;
use thalweg_network::topology::shapes::rack;
use thalweg_realtime::arbiter::serve::{monotonic_clock, serve};
use thalweg_realtime::arbiter::{Arbiter, BatchSocket, Options};
use thalweg_wire::BitRate;
use thalweg_wire::emulation_protocol::Session;

use least_slack::least_slack;

/// Bytes of the longest packet.
const MTU: u16 = 1_500;

/// Packets that a port holds.
const BUFFER: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let [listen, hosts, mbps] = arguments(["127.0.0.1:6589", "4", "100"])?;
    let mbps: u64 = mbps.parse().map_err(|error| format!("invalid rate {mbps:?} in Mbit/s: {error}"))?;
    let hosts = hosts.parse().map_err(|error| format!("invalid number of hosts {hosts:?}: {error}"))?;
    let rate = BitRate(mbps.saturating_mul(1_000_000));
    let topology = rack(hosts, LinkSpec { rate, ..LinkSpec::default() })?;
    let blueprint = Blueprint::new(&topology, MTU, 1);
    let network = Emulation::new(&blueprint, |routing, ports| least_slack(routing, ports, BUFFER))?;

    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let session = Session::started_at(realtime());
    let mut arbiter = Arbiter::new(Options::default(), Box::new(network), MTU, Vec::new(), session)?;
    let max_datagram = arbiter.options().session.link.max_datagram;
    let mut socket = BatchSocket::bind(listen.parse()?, max_datagram)?;
    println!("least slack on {}: {hosts} hosts, links of {rate}", socket.local_addr()?);
    let report = serve(&mut arbiter, &mut socket, None, &mut monotonic_clock(Instant::now()), None, &stop)?;

    let (packets, pace) = (report.packets(), &report.punctuality);
    println!(
        "{}: {:.4} % of the slots late, worst delay {}; {} packets delivered, {} dropped",
        if report.is_valid { "valid" } else { "INVALID" },
        100.0 * pace.late_share(),
        pace.worst,
        packets.delivered,
        packets.dropped,
    );
    Ok(())
}

/// Returns the arguments, with defaults for those that are not given.
fn arguments<const COUNT: usize>(defaults: [&str; COUNT]) -> Result<[String; COUNT], String> {
    let mut given = env::args().skip(1);
    let arguments = defaults.map(|default| given.next().unwrap_or_else(|| default.to_owned()));
    match given.next() {
        None => Ok(arguments),
        Some(extra) => Err(format!("unexpected argument {extra:?}: expected ADDRESS:PORT, hosts, Mbit/s")),
    }
}
