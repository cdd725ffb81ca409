//! TCP through a scavenger queue and back: a release that waits until the flow's packets have left causes no retransmission.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command as Process;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use thalweg_actuators::isolation::Isolator;
use thalweg_actuators::isolation::tc::{QueuePlan, Queueing, TcOptions};
use thalweg_control::isolate::{Command, Input, Isolation, IsolationOptions, Reason};
use thalweg_linux::Namespace;
use thalweg_wire::{BitRate, FlowKey, Nanos};

use super::router::{Router, SCAVENGER, now, options, wait};

/// Two parts of a transfer: the first fills the scavenger queue, the second follows the release.
const PART: usize = 3_000_000;

/// Bytes in the scavenger queue when the flow moves back at once: more than a segment that a network card would cut.
const QUEUED: u64 = 100_000;

/// Creates a sender behind the router. The sender's own host would hold packets back while its queue is long.
fn sender(router: &Router) -> Namespace {
    let sender = Namespace::create(format!("{}s", router.router.name())).unwrap();
    let (ours, name) = ("link add in0 type veth peer name out0 netns", sender.name());
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let run = |namespace: &Namespace, command: &str| {
        let command = words(command);
        let output =
            namespace.within(|| Process::new(&command[0]).args(&command[1..]).output()).unwrap().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(&router.router, &format!("ip {ours} {name}"));
    for command in
        ["ip addr add 10.8.0.1/24 dev in0", "ip link set in0 up", "sysctl -qw net.ipv4.ip_forward=1"]
    {
        run(&router.router, command);
    }
    for command in
        ["ip addr add 10.8.0.2/24 dev out0", "ip link set out0 up", "ip route add default via 10.8.0.1"]
    {
        run(&sender, command);
    }
    run(&router.receiver, "ip route add 10.8.0.0/24 via 10.9.0.1");
    sender
}

/// Opens a connection through the router, whose receiver reads everything.
fn connect(router: &Router, sender: &Namespace) -> (TcpStream, FlowKey, Arc<AtomicUsize>) {
    let address = "10.9.0.2:9100";
    let listener = router.receiver.within(|| TcpListener::bind(address).unwrap()).unwrap();
    let total = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&total);
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = vec![0; 1 << 16];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            counted.fetch_add(read, Ordering::Relaxed);
        }
    });
    let stream = sender.within(|| TcpStream::connect(address).unwrap()).unwrap();
    let key = format!("tcp {} > {address}", stream.local_addr().unwrap()).parse().unwrap();
    (stream, key, total)
}

/// Segments that the connection to the receiver has retransmitted, by the kernel's count.
fn retransmitted(sender: &Namespace) -> u64 {
    let mut ss = Process::new("ss");
    ss.args(["-tinH", "dst", "10.9.0.2"]);
    let output = sender.within(|| ss.output()).unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let count = |word: &str| word.strip_prefix("retrans:")?.split_once('/')?.1.parse().ok();
    text.split_whitespace().find_map(count).unwrap_or(0)
}

/// Sends a part of a transfer through the scavenger queue of a link of 20 Mbit/s, has the flow released, and sends the other part.
/// Released by the decisions of the loop, or at once with packets in the queue. Returns the retransmitted segments.
fn transfer(conditionally: bool) -> Option<u64> {
    let router = Router::start()?;
    let queues = QueuePlan { rate: BitRate(20_000_000), queueing: Queueing::Strict, ..options().queues };
    let mut tc = router.open(TcOptions { queues, ..options() }).unwrap();
    let sender = sender(&router);
    let (mut stream, key, received) = connect(&router, &sender);
    let limits = IsolationOptions { quiet: Nanos::from_secs(900), ..IsolationOptions::default() };
    let mut isolation = Isolation::new(limits, now());
    isolation.handle(now(), Input::Began { key, reason: Reason::Pinned });
    let step = |isolation: &mut Isolation, tc: &mut dyn Isolator| {
        while let Some(command) = isolation.next_command() {
            if let Some(answer) = tc.execute(command, now()) {
                isolation.handle(now(), answer);
            }
        }
        let reading = tc.read(&isolation.next_to_read(1), now()).unwrap().unwrap();
        isolation.handle(now(), Input::Reading(reading));
        isolation.handle(now(), Input::Tick);
    };
    step(&mut isolation, &mut tc);
    match conditionally {
        true => {
            stream.write_all(&vec![1; PART]).unwrap();
            isolation.handle(now(), Input::Release(key));
            wait("it is released", || {
                step(&mut isolation, &mut tc);
                isolation.of(&key).is_none()
            });
            stream.write_all(&vec![2; PART]).unwrap();
        }
        false => {
            let mut writer = stream.try_clone().unwrap();
            std::thread::spawn(move || writer.write_all(&vec![1; 2 * PART]));
            wait("packets are queued", || router.classes()[&SCAVENGER].counters.backlog.0 > QUEUED);
            let id = isolation.of(&key).unwrap().id;
            tc.execute(Command::Release { id, key, if_packets: None }, now());
        }
    }
    wait("all of it arrives", || received.load(Ordering::Relaxed) == 2 * PART);
    let retransmitted = retransmitted(&sender);
    sender.delete().unwrap();
    Some(retransmitted)
}

#[test]
fn a_tcp_flow_moves_back_without_retransmissions() {
    let Some(waited) = transfer(true) else { return };
    let at_once = transfer(false).unwrap();
    // The queue holds more than TCP sends, and nothing is lost: a retransmission is a reordering.
    assert_eq!(waited, 0, "released when its packets had left");
    assert!(at_once > 0, "the test would notice");
}
