//! A daemon in this process: collectors with fixed responses and the real API.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use thalweg_daemon::api::Server;
use thalweg_daemon::api::convert::live_status;
use thalweg_daemon::daemon::Daemon;
use thalweg_daemon::event::CollectorState;
use thalweg_daemon::event::{Event, EventKind};
use thalweg_daemon::hub::Hub;
use thalweg_daemon::live::run_live;
use thalweg_http::access::{Access, AccessOptions};
use thalweg_measure::collector::{CongestionChange, CongestionEvent, LinkDirection, PortDirection};
use thalweg_network::topology::shapes::rack;
use thalweg_network::{Forwarding, LinkSpec, LinkState, NetworkState, PortIndex, Versions};
use thalweg_wire::Timestamp;

use crate::api::bench_collector::{self, NOW};
use crate::api::client::Client;

/// A daemon, its API, and a client with all permissions.
pub(crate) struct Fixture {
    pub(crate) daemon: Daemon,
    pub(crate) server: Server,
    pub(crate) client: Client,
    pub(crate) access: Arc<Access>,
    pub(crate) options: AccessOptions,
    is_over: Arc<AtomicBool>,
    is_silent: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Fixture {
    /// Creates collectors `tor0` and `quiet`, a rack of four hosts, and no tokens.
    pub(crate) fn new() -> Fixture {
        Fixture::with(|_| {})
    }

    /// Creates a fixture with other access options.
    pub(crate) fn with(change: impl FnOnce(&mut AccessOptions)) -> Fixture {
        Fixture::with_hub(Hub::default(), change)
    }

    /// Creates a fixture with another hub.
    pub(crate) fn with_hub(hub: Hub, change: impl FnOnce(&mut AccessOptions)) -> Fixture {
        let mut options =
            AccessOptions { listen: "127.0.0.1:0".parse().unwrap(), ..AccessOptions::default() };
        change(&mut options);
        let daemon = Daemon::new(Some(Versions::new(network())), hub);
        let [is_over, is_silent] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (mut handles, mut threads) = (Vec::new(), Vec::new());
        for name in ["tor0", "quiet"] {
            let (handle, mailbox) = bench_collector::new(name);
            handles.push(handle);
            // Before the first request, because the daemon must be ready.
            mailbox.set_state(CollectorState::Running);
            let [is_over, is_silent] = [&is_over, &is_silent].map(Arc::clone);
            threads.push(std::thread::spawn(move || {
                mailbox.task_report_writer().set(bench_collector::tasks());
                while !is_over.load(Ordering::Relaxed) {
                    let question = mailbox.wait(Duration::from_millis(20));
                    if let Some(question) = question.filter(|_| !is_silent.load(Ordering::Relaxed)) {
                        bench_collector::answer_request(question, mailbox.description());
                    }
                }
            }));
        }
        daemon.set_collectors(handles);
        let access = Arc::new(Access::new(&options).unwrap());
        let listener = Server::bind(&options).unwrap();
        let parts = daemon.api_parts();
        {
            let (parts, is_over) = (parts.clone(), Arc::clone(&is_over));
            threads.push(std::thread::spawn(move || {
                let status = |now, packet_time| live_status(&parts, now, packet_time);
                run_live(&parts.live, &parts.collectors, status, || is_over.load(Ordering::Relaxed));
            }));
        }
        let server = Server::start(listener, parts, Arc::clone(&access), &options, true, None).unwrap();
        let scheme = if options.tls_key.is_some() { "https" } else { "http" };
        let client = Client::new(format!("{scheme}://{}", server.address()));
        Fixture { daemon, server, client, access, options, is_over, is_silent, threads }
    }

    /// Lets the collectors answer no request any more.
    pub(crate) fn silence(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    /// Publishes this many congestion events.
    pub(crate) fn publish(&self, events: u64) {
        for _ in 0..events {
            self.daemon.hub().publish(event("tor0", 3));
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// A rack of four, ECMP.
pub(crate) fn network() -> NetworkState {
    let topology = rack(4, LinkSpec::default()).unwrap();
    let links = LinkState::new(&topology);
    NetworkState::new(topology, links, Forwarding::ecmp(1)).unwrap()
}

/// A congestion event: the utilisation of an output link rose to the upper threshold.
pub(crate) fn event(switch: &str, port: u16) -> Event {
    let side = LinkDirection { port: PortIndex(port), direction: PortDirection::Output };
    let flow = bench_collector::flow(1).rate.unwrap();
    Event {
        collector: switch.into(),
        switch: switch.into(),
        time: NOW,
        emitted: Timestamp(NOW.0 + 4_200),
        kind: EventKind::Congestion(CongestionEvent {
            change: CongestionChange::Began,
            link: bench_collector::link(side),
            rule: 0,
            threshold: 0.9,
            version: 1,
            time: NOW,
            flows: vec![flow; 2],
            flows_left_out: 1,
        }),
    }
}
