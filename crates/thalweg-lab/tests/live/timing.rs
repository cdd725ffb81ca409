//! Rates of links.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use thalweg_lab::{DEFAULT_RATE, Headroom, Verdict};
use thalweg_network::EndpointId;

use crate::setup::{TestLab, plan, skip};

/// Minimum throughput as a share of the link's rate. A stall of the machine that [`Headroom`] tolerates costs a few
/// hundredths of a second, or TCP's recovery from it.
const MIN_SHARE: f64 = 0.85;

/// Maximum throughput as a share of the link's rate: the rate, and data queued before the measurement.
const MAX_SHARE: f64 = 1.05;

/// Bytes on the wire per byte of payload: 1448 of 1514 are payload, with timestamps.
const WIRE: f64 = 1_514.0 / 1_448.0;

/// Returns the payload rates of concurrent connections over one second, after half a second of slow start, in bits per
/// second.
fn throughput<const N: usize>(lab: &TestLab, pairs: [(u16, u16); N]) -> [f64; N] {
    let connections = pairs.map(|(from, to)| connect(lab, from, to));
    std::thread::scope(|scope| {
        let measured = connections.map(|(mut sender, receiver)| {
            // Until the receiver closes the connection.
            scope.spawn(move || while sender.write_all(&[0; 16 << 10]).is_ok() {});
            scope.spawn(|| receive(receiver))
        });
        measured.map(|thread| thread.join().unwrap())
    })
}

/// Opens a connection and returns its ends at the two hosts.
fn connect(lab: &TestLab, from: u16, to: u16) -> (TcpStream, TcpStream) {
    let host = |host| lab.host(EndpointId(host));
    let address = lab.topology().endpoints()[usize::from(to)].ip;
    let listener = host(to).within(|| TcpListener::bind((address, 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let sender = host(from).within(|| TcpStream::connect(address)).unwrap().unwrap();
    (sender, listener.accept().unwrap().0)
}

fn receive(mut receiver: TcpStream) -> f64 {
    let mut buffer = vec![0; 64 << 10];
    let mut rate_over = |time: Duration| {
        let (start, mut bytes) = (Instant::now(), 0);
        while start.elapsed() < time {
            bytes += receiver.read(&mut buffer).unwrap();
        }
        bytes as f64 * 8.0 / start.elapsed().as_secs_f64()
    };
    rate_over(Duration::from_millis(500));
    rate_over(Duration::from_secs(1))
}

#[test]
fn single_connection_fills_its_link() {
    let Some(lab) = TestLab::up(plan()) else { return };
    let (rate, headroom) = Headroom::measure(|| throughput(&lab, [(0, 4)])).unwrap();
    let share = rate[0] * WIRE / DEFAULT_RATE.0 as f64;
    if headroom.verdict() == Verdict::Inconclusive {
        return skip(format!("{share:.3} of the rate, with too little time to spare: {headroom:?}"));
    }
    assert!((MIN_SHARE..MAX_SHARE).contains(&share), "{share} of the rate, {headroom:?}");
}

#[test]
fn colliding_connections_fill_the_queue_and_share_the_link() {
    let Some(lab) = TestLab::up(plan()) else { return };
    // Both over the first spine, r3, and from there to the third leaf: port 2.
    let (rates, headroom) = Headroom::measure(|| throughput(&lab, [(0, 4), (2, 4)])).unwrap();
    let sum = rates.iter().sum::<f64>() * WIRE / DEFAULT_RATE.0 as f64;
    let queue = lab.status().unwrap().switches[3].ports[2].queue;
    // If sockets held their frames along the whole path, senders would wait for each other and nothing would be
    // dropped.
    assert!(queue.dropped_packets > 0, "{queue:?}");
    if headroom.verdict() == Verdict::Inconclusive {
        return skip(format!("{sum:.3} of the rate, with too little time to spare: {headroom:?}"));
    }
    assert!((MIN_SHARE..MAX_SHARE).contains(&sum), "{rates:?}, {sum} of the rate, {headroom:?}");
}
