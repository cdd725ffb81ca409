//! An arbiter without a network: it answers each request after a delay, by a rule.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use thalweg_linux::clock;
use thalweg_linux::wait_set::WaitSet;
use thalweg_realtime::protocol::{ArbiterOptions, ArbiterSession, LinkOptions, RequestId};
use thalweg_wire::emulation_protocol::{EmulatedDelay, Flow, Request, SchemeBytes, Session, Verdict};
use thalweg_wire::{Nanos, Timestamp};

/// How requests are answered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rule {
    /// The time from a request to its answer.
    pub(crate) delay: Nanos,
    /// The emulated delay in the answer; the rest of `delay` is overhead.
    pub(crate) emulated: Nanos,
    /// One of so many packets is dropped; 0 for none.
    pub(crate) drops: u64,
    pub(crate) verdict: Answered,
    /// One of so many datagrams is lost, in each direction, and all others of the arbiter arrive twice; 0 for neither.
    pub(crate) loses: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Answered {
    #[default]
    Send,
    Mark,
    /// With this traffic class.
    Rewrite(u8),
}

/// A running arbiter.
pub(crate) struct EchoArbiter {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    rule: Mutex<Rule>,
    requests: Mutex<Vec<(Flow, Request)>>,
    is_stopped: AtomicBool,
}

impl EchoArbiter {
    /// Starts an arbiter on the loopback interface.
    pub(crate) fn start() -> EchoArbiter {
        EchoArbiter::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), Session::started_at(clock::realtime()))
    }

    /// Starts an arbiter at an address, with this session.
    pub(crate) fn start_at(address: SocketAddr, session: Session) -> EchoArbiter {
        let socket = UdpSocket::bind(address).unwrap();
        socket.set_nonblocking(true).unwrap();
        let (address, shared) = (socket.local_addr().unwrap(), Arc::new(Shared::default()));
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || serve(&socket, session, &shared)
        });
        EchoArbiter { address, shared, thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn set_rule(&self, rule: Rule) {
        *self.shared.rule.lock().unwrap() = rule;
    }

    /// The requests since the last call, once there are this many. Waits for at most 5 s.
    pub(crate) fn wait_for_requests(&self, count: usize) -> Vec<(Flow, Request)> {
        for _ in 0..500 {
            if self.shared.requests.lock().unwrap().len() >= count {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        self.take_requests()
    }

    /// The requests since the last call.
    pub(crate) fn take_requests(&self) -> Vec<(Flow, Request)> {
        std::mem::take(&mut self.shared.requests.lock().unwrap())
    }
}

impl Drop for EchoArbiter {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn serve(socket: &UdpSocket, session: Session, shared: &Shared) {
    let link = LinkOptions { batch_delay: Nanos::ZERO, ..LinkOptions::default() };
    let mut arbiter =
        ArbiterSession::new(ArbiterOptions { endpoint: 1, link, ..ArbiterOptions::default() }, session);
    let arbiter = arbiter.as_mut().unwrap();
    let mut wait_set = WaitSet::new([socket.as_raw_fd()]);
    let (mut buffer, mut peer) = (vec![0; 2_048], None);
    let mut answers: VecDeque<(Timestamp, RequestId, Verdict)> = VecDeque::new();
    let (mut packets, mut datagrams) = (0, 0);
    while !shared.is_stopped.load(Ordering::Relaxed) {
        let now = clock::monotonic();
        let times = [arbiter.next_event(), answers.front().map(|(time, ..)| *time)];
        let next = times.into_iter().flatten().min().unwrap_or(Timestamp(u64::MAX));
        wait_set.wait(Nanos(next.0.saturating_sub(now.0).min(20_000_000))).unwrap();
        let rule = *shared.rule.lock().unwrap();
        let mut is_lost = || {
            datagrams += 1;
            rule.loses > 0 && u64::is_multiple_of(datagrams, rule.loses)
        };
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            peer = Some(from);
            if is_lost() {
                continue;
            }
            let now = clock::monotonic();
            let mut requests = shared.requests.lock().unwrap();
            let _ = arbiter.receive(now, &buffer[..length], |id, flow, request| {
                packets += 1;
                requests.push((*flow, *request));
                answers.push_back((now + rule.delay, id, verdict(&rule, packets)));
            });
        }
        let now = clock::monotonic();
        while let Some((_, id, verdict)) = answers.pop_front_if(|(time, ..)| *time <= now) {
            let _ = arbiter.answer(now, id, verdict, EmulatedDelay::from_nanos(rule.emulated));
        }
        arbiter.tick(now);
        while let Some(length) = arbiter.transmit(now, &mut buffer) {
            let copies = if rule.loses > 0 { 2 } else { 1 };
            if !is_lost()
                && let Some(peer) = peer
            {
                (0..copies).for_each(|_| drop(socket.send_to(&buffer[..length], peer)));
            }
        }
    }
}

fn verdict(rule: &Rule, packet: u64) -> Verdict {
    match rule.verdict {
        _ if rule.drops > 0 && packet.is_multiple_of(rule.drops) => Verdict::Drop,
        Answered::Send => Verdict::Send,
        Answered::Mark => Verdict::SendMarked,
        Answered::Rewrite(traffic_class) => Verdict::SendWith(SchemeBytes::new(&[traffic_class]).unwrap()),
    }
}
