//! How fast links are.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use thalweg_lab::{DEFAULT_RATE, Headroom, Verdict};
use thalweg_network::EndpointId;

use crate::setup::{TestLab, plan, skip};

/// What has to come of a link's rate: a stall of the machine that [`Headroom`] lets pass costs a few hundredths of a second,
/// or TCP's recovery from it.
const LEAST: f64 = 0.85;

/// What may come of it in a second: its rate, and what waited in queues before.
const MOST: f64 = 1.05;

/// Bytes on the wire a byte of payload: 1448 of 1514 are payload, with timestamps.
const WIRE: f64 = 1_514.0 / 1_448.0;

/// What connections between hosts carry in a second each, after half a second to get going; payload, bits a second.
fn throughput<const N: usize>(lab: &TestLab, pairs: [(u16, u16); N]) -> [f64; N] {
    let connections = pairs.map(|(from, to)| connect(lab, from, to));
    std::thread::scope(|scope| {
        let measured = connections.map(|(mut sender, receiver)| {
            // Until the receiver hangs up.
            scope.spawn(move || while sender.write_all(&[0; 16 << 10]).is_ok() {});
            scope.spawn(|| receive(receiver))
        });
        measured.map(|thread| thread.join().unwrap())
    })
}

/// A connection's ends at the two hosts.
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
fn one_connection_has_the_rate_of_its_link() {
    let Some(lab) = TestLab::up(plan()) else { return };
    let (rate, headroom) = Headroom::measure(|| throughput(&lab, [(0, 4)])).unwrap();
    let share = rate[0] * WIRE / DEFAULT_RATE.0 as f64;
    if headroom.verdict() == Verdict::Inconclusive {
        return skip(format!("{share:.3} of the rate, with too little time to spare: {headroom:?}"));
    }
    assert!((LEAST..MOST).contains(&share), "{share} of the rate, {headroom:?}");
}

#[test]
fn two_connections_that_collide_fill_the_queue_before_their_common_link_and_share_it() {
    let Some(lab) = TestLab::up(plan()) else { return };
    // Both over the first spine, r3, and from there to the third leaf: port 2.
    let (rates, headroom) = Headroom::measure(|| throughput(&lab, [(0, 4), (2, 4)])).unwrap();
    let sum = rates.iter().sum::<f64>() * WIRE / DEFAULT_RATE.0 as f64;
    let queue = lab.status().unwrap().switches[3].ports[2].queue;
    // Were frames held by their sockets all the way, the senders would wait for each other, and nothing be lost.
    assert!(queue.dropped_packets > 0, "{queue:?}");
    if headroom.verdict() == Verdict::Inconclusive {
        return skip(format!("{sum:.3} of the rate, with too little time to spare: {headroom:?}"));
    }
    assert!((LEAST..MOST).contains(&sum), "{rates:?}, {sum} of the rate, {headroom:?}");
}
