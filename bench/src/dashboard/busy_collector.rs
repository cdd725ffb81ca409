//! Does a busy collector lose frames when many browsers watch?
//!
//! The collector of the first leaf reads one end of a veth pair with AF_XDP; all flows pass it. The sender and the viewers run on
//! the last processor, the daemon on the others, as if they were other machines. But the kernel runs its side of the veth pair
//! and of the viewers' connections on both.

use std::path::Path;
use std::sync::Arc;
use std::thread::{self, sleep};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use thalweg_daemon::collectors::{CollectorCounters, CollectorRequest};
use thalweg_daemon::config::{CollectorConfig, Config};
use thalweg_linux::priority::{keep_off, run_on};
use thalweg_network::Topology;

use super::DashboardOptions;
use super::network::{ENDPOINTS, Network, topology};
use super::viewers::Viewers;
use crate::machine::last_processor;
use crate::results::{Page, Table, grouped, save_page, save_rows};
use crate::row;
use crate::veth::{FRAME, MOST_FLOWS, Sender, SentFlow, VethPair};

/// The rate of the monitor port, which decides on the collector's default memory.
const MONITOR_RATE: &str = "10gbps";

/// Time for the last frames to arrive.
const REST: Duration = Duration::from_millis(500);

/// What happened to the frames of one run.
struct Fate {
    rate: u64,
    viewers: usize,
    sent: u64,
    received: u64,
    dropped: u64,
    flows: u64,
    /// Received by each viewer.
    messages_per_s: f64,
}

/// Runs each load with each number of viewers, in turn.
pub(super) fn run(options: &DashboardOptions, rates: &[u64]) -> anyhow::Result<()> {
    ensure!(options.flows <= MOST_FLOWS, "--flows {}: expected at most {MOST_FLOWS}", options.flows);
    // All threads of the daemon inherit the processors of the one that starts them.
    let fates = thread::scope(|scope| {
        let measuring = scope.spawn(|| measure_all(options, rates));
        measuring.join().map_err(|_| anyhow::anyhow!("the daemon panicked"))?
    })?;
    save(options, rates, &fates)
}

fn measure_all(options: &DashboardOptions, rates: &[u64]) -> anyhow::Result<Vec<Fate>> {
    let outside = last_processor();
    ensure!(outside > 0, "--frames needs two processors");
    keep_off(outside).context("cannot leave a processor to the sender")?;
    let pair = VethPair::create()?;
    let collector = collector(pair.receiver(), options.ring_size.as_deref())?;
    let sender = Sender::new(&flows(&topology()?, options.flows), pair.indices()?[1])?;
    let mut fates = Vec::new();
    for _ in 0..options.repeat {
        for &rate in rates {
            for &viewers in &options.viewers {
                let fate = measure(options, &collector, &sender, (rate, viewers), outside)?;
                eprintln!(
                    "{} frames/s, {viewers} viewers: {} received, {} dropped",
                    grouped(rate),
                    grouped(fate.received),
                    grouped(fate.dropped)
                );
                fates.push(fate);
            }
        }
    }
    Ok(fates)
}

fn measure(
    options: &DashboardOptions,
    collector: &Arc<CollectorConfig>,
    sender: &Sender,
    (rate, viewers): (u64, usize),
    outside: usize,
) -> anyhow::Result<Fate> {
    let network = Network::start(([127, 0, 0, 1], 0).into(), options.flows, Some(Arc::clone(collector)))?;
    let running = Viewers::connect(network.server.address(), viewers, Some(outside))?;
    let send = |time: Duration| {
        thread::scope(|scope| {
            let sending = scope.spawn(|| {
                run_on(outside)?;
                sender.send(rate, time)
            });
            sending.join().map_err(|_| anyhow::anyhow!("the sender panicked"))?
        })
    };
    // The flow table fills, and first messages are longer.
    send(Duration::from_secs(2))?;
    sleep(REST);
    let counters = || -> anyhow::Result<CollectorCounters> {
        Ok(network.first_collector().request(Duration::from_secs(1), CollectorRequest::Counters)?.value)
    };
    let (before, received_before) = (counters()?, running.received());
    let time = Duration::from_secs(options.seconds);
    let sent = send(time)?;
    let messages = running.received()[1] - received_before[1];
    sleep(REST);
    let after = counters()?;
    Ok(Fate {
        rate,
        viewers,
        sent,
        received: after.source.frames - before.source.frames,
        dropped: after.source.kernel_drops - before.source.kernel_drops,
        flows: after.flows,
        messages_per_s: messages / time.as_secs_f64() / viewers.max(1) as f64,
    })
}

/// Returns flows from the endpoints of the first leaf to those of all others.
fn flows(topology: &Topology, count: u32) -> Vec<SentFlow> {
    let endpoints = topology.endpoints();
    let (own, others) = endpoints.split_at(ENDPOINTS as usize);
    let flow = |number: usize| {
        let (source, destination) = (&own[number % own.len()], &others[number % others.len()]);
        SentFlow {
            ethernet: [source.mac, destination.mac],
            ip: [source.ip, destination.ip],
            ports: [10_000 + (number / others.len()) as u16, 443],
        }
    };
    (0..count as usize).map(flow).collect()
}

fn collector(interface: &str, ring_size: Option<&str>) -> anyhow::Result<Arc<CollectorConfig>> {
    let ring_size = ring_size.map_or_else(String::new, |size| format!("ring_size = \"{size}\"\n"));
    let text = format!(
        "[[collector]]\nname = \"leaf0\"\ninterface = \"{interface}\"\nbackend = \"af_xdp\"\nmonitor_rate = \"{MONITOR_RATE}\"\nmonitor_buffer = \"1MiB\"\n{ring_size}"
    );
    let config = Config::parse(&text, "the benchmark's configuration", Path::new("."))?;
    Ok(Arc::clone(&config.collectors[0]))
}

fn save(options: &DashboardOptions, rates: &[u64], fates: &[Fate]) -> anyhow::Result<()> {
    let mut table = Table::new([
        "frames/s",
        "viewers",
        "sent",
        "lost before the collector",
        "received",
        "dropped",
        "flows",
        "messages/s for each",
    ]);
    for fate in fates {
        let lost = fate.sent.saturating_sub(fate.received + fate.dropped);
        row![
            table,
            grouped(fate.rate),
            fate.viewers,
            grouped(fate.sent),
            grouped(lost),
            grouped(fate.received),
            grouped(fate.dropped),
            grouped(fate.flows),
            format!("{:.1}", fate.messages_per_s)
        ];
    }
    let list = |values: Vec<String>| values.join(",");
    let rates = list(rates.iter().map(u64::to_string).collect());
    let viewers = list(options.viewers.iter().map(usize::to_string).collect());
    let ring = options.ring_size.as_ref().map_or_else(String::new, |size| format!(" --ring-size {size}"));
    let command = format!(
        "thalweg-bench dashboard --flows {} --seconds {} --viewers {viewers} --frames {rates}{ring} --repeat {}",
        options.flows, options.seconds, options.repeat
    );
    let mut page = Page::new("A busy collector beside viewers of the dashboard", &command);
    page.paragraph(format!(
        "{} links, {} flows; a collector (AF_XDP, a monitor port of {MONITOR_RATE}, {} for frames that wait) receives frames of {FRAME} \
         bytes for {} s in each row. The sender and the viewers run on one processor, the daemon on the others. `dropped` are \
         frames that found the collector's memory full; `lost before the collector` never reached it.",
        super::LINKS,
        options.flows,
        options.ring_size.as_deref().unwrap_or("the default memory"),
        options.seconds
    ));
    page.table(&table);
    save_rows(&options.output, "dashboard-busy-collector", &table)?;
    save_page(&options.output, "dashboard-busy-collector", &page)
}
