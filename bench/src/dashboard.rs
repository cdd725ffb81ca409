//! The dashboard at its largest: a leaf-spine network of 1,000 links and 10,000 flows whose every load changes ten times a second.
//!
//! The daemon's API and its live thread are the real ones. Collectors are stand-ins that answer at once, so that the cost measured is
//! that of the dashboard: the processor time of the threads `live`, `api` and `api-worker`.
//!
//! With `--serve` it only serves, for a browser: `dashboard/tests/frames.mjs` measures the time of scripts per frame.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use thalweg_daemon::api::Server;
use thalweg_daemon::api::convert::live_status;
use thalweg_daemon::collectors::handle::reply_to;
use thalweg_daemon::collectors::{CollectorHandle, CollectorRequest, Description, FlowChunk, Mailbox};
use thalweg_daemon::daemon::Daemon;
use thalweg_daemon::event::CollectorState;
use thalweg_daemon::hub::Hub;
use thalweg_daemon::live::run_live;
use thalweg_http::access::{Access, AccessOptions, Limits};
use thalweg_linux::clock::realtime;
use thalweg_measure::collector::{FlowRate, FlowReport, LinkDirection, LinkReport, PortDirection};
use thalweg_measure::rates::Basis;
use thalweg_network::topology::shapes::{Tiers, leaf_spine};
use thalweg_network::{Forwarding, LinkState, NetworkState, Node, PortIndex, Versions};
use thalweg_sketch::Estimate;
use thalweg_wire::{BitRate, Bytes, EthernetAddresses, FlowKey, Protocol, Timestamp};

use crate::results::{Page, Table, save_page, save_rows};
use crate::row;

/// Leaves, spines and endpoints of each leaf: 600 links between routers and 400 to endpoints.
const SHAPE: (u32, u32, u32) = (40, 15, 10);

/// Threads of the dashboard.
const THREADS: [&str; 3] = ["live", "api", "api-worker"];

/// Clock ticks per second of processor times (proc(5), `sysconf(_SC_CLK_TCK)` on Linux).
const TICKS: f64 = 100.0;

/// Options of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct DashboardOptions {
    /// Flows of all collectors together
    #[arg(long, default_value_t = 10_000)]
    pub flows: u32,
    /// Seconds to measure with each number of viewers
    #[arg(long, default_value_t = 20)]
    pub seconds: u64,
    /// Numbers of viewers, each with a connection of its own
    #[arg(long, value_delimiter = ',', default_value = "0,1,10,100")]
    pub viewers: Vec<usize>,
    /// Serve at this address until killed, and measure nothing
    #[arg(long)]
    pub serve: Option<SocketAddr>,
    /// Output folder
    #[arg(long, default_value = "bench/results")]
    pub output: PathBuf,
}

/// Runs the benchmark.
///
/// # Errors
/// If the server cannot be started, or results cannot be written.
pub fn run(options: &DashboardOptions) -> anyhow::Result<()> {
    let listen = options.serve.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
    let network = Network::start(listen, options.flows)?;
    println!("http://{}", network.server.address());
    if options.serve.is_some() {
        loop {
            thread::park();
        }
    }
    let mut rows = Vec::new();
    for &viewers in &options.viewers {
        rows.push(measure(&network, viewers, options.seconds)?);
    }
    save(options, &rows)
}

/// The cost with a number of viewers.
struct Measured {
    viewers: usize,
    /// Share of a processor that each thread took.
    processor: BTreeMap<&'static str, f64>,
    /// Received by all viewers together.
    bytes_per_s: f64,
    /// Received by each viewer.
    messages_per_s: f64,
}

fn measure(network: &Network, viewers: usize, seconds: u64) -> anyhow::Result<Measured> {
    let received = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let is_over = Arc::new(AtomicBool::new(false));
    let address = network.server.address();
    let viewers_running: Vec<JoinHandle<()>> = (0..viewers)
        .map(|_| {
            let (received, is_over) = (Arc::clone(&received), Arc::clone(&is_over));
            let stream = subscribe(address)?;
            Ok(thread::spawn(move || view(stream, &received, &is_over)))
        })
        .collect::<anyhow::Result<_>>()?;
    // First messages are longer.
    sleep(Duration::from_secs(3));
    let counts = || received.each_ref().map(|count| count.load(Ordering::Relaxed) as f64);
    let (start, before, bytes_before) = (Instant::now(), processor_times()?, counts());
    sleep(Duration::from_secs(seconds));
    let (elapsed, after, bytes_after) = (start.elapsed().as_secs_f64(), processor_times()?, counts());
    is_over.store(true, Ordering::Relaxed);
    for viewer in viewers_running {
        viewer.join().map_err(|_| anyhow::anyhow!("a viewer panicked"))?;
    }
    let share = |name: &'static str| (name, (after[name] - before[name]) / elapsed);
    let per_second = |kind: usize| (bytes_after[kind] - bytes_before[kind]) / elapsed;
    Ok(Measured {
        viewers,
        processor: THREADS.map(share).into_iter().collect(),
        bytes_per_s: per_second(0),
        messages_per_s: per_second(1) / viewers.max(1) as f64,
    })
}

fn subscribe(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    write!(stream, "GET /v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    Ok(stream)
}

/// Reads the stream; counts bytes, and messages by their ends.
fn view(mut stream: TcpStream, [bytes, messages]: &[AtomicU64; 2], is_over: &AtomicBool) {
    let mut buffer = vec![0; 1 << 16];
    while !is_over.load(Ordering::Relaxed) {
        let Ok(length @ 1..) = stream.read(&mut buffer) else { return };
        bytes.fetch_add(length as u64, Ordering::Relaxed);
        let ends = buffer[..length].windows(2).filter(|pair| pair == b"\n\n").count();
        messages.fetch_add(ends as u64, Ordering::Relaxed);
    }
}

/// Returns the processor seconds of the dashboard's threads, by name.
fn processor_times() -> anyhow::Result<BTreeMap<&'static str, f64>> {
    let mut times: BTreeMap<_, _> = THREADS.into_iter().map(|name| (name, 0.0)).collect();
    for task in fs::read_dir("/proc/self/task")? {
        // A thread may end meanwhile.
        let Ok(stat) = fs::read_to_string(task?.path().join("stat")) else { continue };
        let (start, end) = (stat.find('(').context("stat")?, stat.rfind(')').context("stat")?);
        let fields: Vec<&str> = stat[end + 2..].split(' ').collect();
        let ticks: f64 = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
        if let Some(time) = times.get_mut(&stat[start + 1..end]) {
            *time += ticks / TICKS;
        }
    }
    Ok(times)
}

fn save(options: &DashboardOptions, rows: &[Measured]) -> anyhow::Result<()> {
    let mut table =
        Table::new(["viewers", "live %", "api %", "api-worker %", "all %", "MB/s", "messages/s for each"]);
    for Measured { viewers, processor, bytes_per_s, messages_per_s } in rows {
        let all: f64 = processor.values().sum();
        let percent = |share: f64| format!("{:.2}", share * 100.0);
        row![
            table,
            viewers,
            percent(processor["live"]),
            percent(processor["api"]),
            percent(processor["api-worker"]),
            percent(all),
            format!("{:.2}", bytes_per_s / 1e6),
            format!("{messages_per_s:.1}")
        ];
    }
    let (leaves, spines, endpoints) = SHAPE;
    let links = leaves * (spines + endpoints);
    let command = format!("thalweg-bench dashboard --flows {} --seconds {}", options.flows, options.seconds);
    let mut page = Page::new("Cost of the live stream of the dashboard", &command);
    page.paragraph(format!(
        "{links} links whose loads all change, {} flows; processor time of the daemon's threads in percent of a processor, \
         for {} s with each number of viewers.",
        options.flows, options.seconds
    ));
    page.table(&table);
    save_rows(&options.output, "dashboard", &table)?;
    save_page(&options.output, "dashboard", &page)
}

/// A daemon whose collectors are stand-ins.
struct Network {
    server: Server,
    _daemon: Daemon,
}

impl Network {
    fn start(listen: SocketAddr, flows: u32) -> anyhow::Result<Network> {
        let (leaves, spines, endpoints) = SHAPE;
        let topology = leaf_spine(leaves, spines, endpoints, Tiers::default())?;
        let links = LinkState::new(&topology);
        let routers: Vec<_> = topology.router_ids().collect();
        let switches: Vec<(String, u16)> = routers
            .iter()
            .map(|&router| (topology.name(Node::Router(router)).to_owned(), topology.ports(router) as u16))
            .collect();
        let state = NetworkState::new(topology, links, Forwarding::ecmp(1))?;
        let daemon = Daemon::new(Some(Versions::new(state)), Hub::default());
        let per_leaf = flows / leaves;
        let mut handles = Vec::new();
        for (number, (name, ports)) in switches.into_iter().enumerate() {
            // Each flow enters the network at one leaf.
            let flows = if number < leaves as usize { per_leaf } else { 0 };
            handles.push(stand_in(number as u32, &name, ports, flows)?);
        }
        daemon.set_collectors(handles);
        let limits = Limits { requests_per_second: 10_000, request_burst: 10_000, ..Limits::default() };
        let options = AccessOptions { listen, limits, ..AccessOptions::default() };
        let access = Arc::new(Access::new(&options)?);
        let parts = daemon.api_parts();
        let listener = Server::bind(&options)?;
        thread::Builder::new().name("live".into()).spawn({
            let parts = parts.clone();
            move || {
                let status = |now, packet_time| live_status(&parts, now, packet_time);
                run_live(&parts.live, &parts.collectors, status, || false);
            }
        })?;
        let server = Server::start(listener, parts, access, &options, true, None)?;
        ensure!(daemon.collectors().len() == routers.len(), "a collector for each switch");
        Ok(Network { server, _daemon: daemon })
    }
}

/// Starts a collector that answers with loads and rates that change with time.
fn stand_in(number: u32, switch: &str, ports: u16, flows: u32) -> anyhow::Result<CollectorHandle> {
    let (handle, mailbox) = CollectorHandle::new(Description {
        name: switch.into(),
        switch: switch.into(),
        source: "bench".into(),
        is_live: true,
    });
    mailbox.set_state(CollectorState::Running);
    thread::Builder::new().name("stand-in".into()).spawn(move || serve(number, ports, flows, &mailbox))?;
    Ok(handle)
}

fn serve(number: u32, ports: u16, flows: u32, mailbox: &Mailbox) {
    loop {
        let Some(request) = mailbox.wait(Duration::from_secs(1)) else { continue };
        let now = realtime();
        match request {
            CollectorRequest::Links(reply) => {
                let sides = (0..ports).flat_map(|port| {
                    [PortDirection::Input, PortDirection::Output]
                        .map(|direction| LinkDirection { port: PortIndex(port), direction })
                });
                reply_to(&reply, now, sides.map(|side| link(number, side, now)).collect());
            }
            CollectorRequest::Flows(slots, reply) => {
                let flows_now =
                    (0..flows).filter(|flow| slots.contains(flow)).map(|flow| flow_at(number, flow, now));
                reply_to(&reply, now, FlowChunk { flows: flows_now.collect(), slots: flows });
            }
            CollectorRequest::Flow(key, reply) => {
                let flow = (0..flows).map(|flow| flow_at(number, flow, now)).find(|flow| flow.key == key);
                reply_to(&reply, now, flow);
            }
            _ => {}
        }
    }
}

/// A load that moves between idle and full, with a phase of its own for each link.
fn load(phase: u32, now: Timestamp) -> f64 {
    let seconds = now.0 as f64 / 1e9 % 3_600.0;
    0.5 + 0.5 * libm::sin(seconds * 0.7 + f64::from(phase) * 0.37)
}

fn link(number: u32, side: LinkDirection, now: Timestamp) -> LinkReport {
    let capacity = 10_000_000_000;
    let phase = number * 97 + u32::from(side.port.0) * 2 + u32::from(side.direction == PortDirection::Output);
    let utilisation = load(phase, now);
    let smoothed = utilisation * capacity as f64;
    LinkReport {
        side,
        capacity: BitRate(capacity),
        rate: Estimate::within(smoothed, smoothed * 0.97, smoothed * 1.03, 0.95),
        smoothed,
        peak: capacity as f64,
        utilisation,
        flows: 25,
        changed: now,
    }
}

fn flow_at(number: u32, flow: u32, now: Timestamp) -> FlowReport {
    let key = FlowKey::v4(0x0A00_0000 + number, 0x0A01_0000 + flow, 443, 51_000, Protocol::TCP);
    let value = load(number * 31 + flow, now) * 1e8;
    let rate = FlowRate {
        key,
        ethernet: EthernetAddresses::default(),
        rate: Estimate::within(value, value * 0.97, value * 1.03, 0.95),
        basis: Basis::SequenceNumbers,
        span: (Timestamp(now.0 - 500_000), now),
    };
    FlowReport {
        key,
        rate: Some(rate),
        input: Some(PortIndex((flow % 10) as u16)),
        output: Some(PortIndex((10 + flow % 15) as u16)),
        first: Timestamp(now.0 - 10_000_000_000),
        last: now,
        samples: u64::from(flow),
        sampled: Bytes(1_500 * u64::from(flow)),
        repeated: Bytes(0),
        reordered: 0,
        is_cheetah: flow.is_multiple_of(100),
    }
}
