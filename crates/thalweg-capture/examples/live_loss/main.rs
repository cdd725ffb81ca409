//! Sends packets over a veth pair at a given rate and accounts for every one of them: received, dropped and counted
//! by the source, or dropped and counted by the kernel before the source. Needs root and ip(8).
//!
//! ```text
//! cargo run --release -p thalweg-capture --example live_loss -- [PACKETS_PER_SECOND [SECONDS [BYTES]]]
//! ```
//!
//! By default one million packets/s of 64 bytes for 5 s, to each of: TPACKET_V3, AF_XDP native, AF_XDP native with
//! busy polling, AF_XDP generic. Exits with code 1 if a packet is unaccounted for. The kernel itself sends, on a
//! separate core if there are two, which also does the kernel's part of receiving. So the rate is limited by the
//! processing of one core.

#![expect(unsafe_code, reason = "bpf(2), setns(2), a core for each thread")]

mod generator;

use std::error::Error;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thalweg_capture::backend::Backend;
use thalweg_capture::live::LiveOptions;
use thalweg_capture::xdp::{BusyPoll, XdpMode};
use thalweg_capture::{InterfaceSpec, open};
use thalweg_wire::{Source, SourceCounters};

/// The namespaces of the receiver, with interface `receiver`, and of the sender, with interface `sender`.
const RECEIVER: &str = "thalweg-loss-receiver";
const SENDER: &str = "thalweg-loss-sender";

/// How long the receiver continues after the last packet.
const GRACE: Duration = Duration::from_millis(500);

type Failure = Box<dyn Error + Send + Sync>;

/// The packets to send.
#[derive(Clone, Copy, Debug)]
struct Load {
    packets_per_second: u64,
    seconds: u64,
    length: usize,
}

/// The result of a run.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    sent: u64,
    sent_within: Duration,
    counters: SourceCounters,
    /// Drops that the interfaces count, both ends together, without the source's own drops.
    before_the_source: u64,
    processor_time: Duration,
}

fn main() -> Result<ExitCode, Failure> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut next = |default| arguments.next().unwrap_or(Ok(default));
    let load = Load {
        packets_per_second: next(1_000_000)?.max(generator::LOWEST_RATE),
        seconds: next(5)?,
        length: next(64)?.clamp(60, 1500) as usize,
    };
    println!("{} packets/s of {} bytes for {} s", load.packets_per_second, load.length, load.seconds);
    println!(
        "{:24} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8} {:>9} {:>8}",
        "receiver", "sent/s", "sent", "received", "dropped", "before", "missing", "loss", "ns each"
    );
    let through = |backend, xdp_mode, busy_poll| InterfaceSpec {
        backend: Some(backend),
        xdp_mode: Some(xdp_mode),
        busy_poll,
        ..InterfaceSpec::new(LiveOptions::new("receiver"))
    };
    let mut all_accounted = true;
    for (name, spec) in [
        ("TPACKET_V3", through(Backend::AfPacket, XdpMode::Native, None)),
        ("AF_XDP native", through(Backend::AfXdp, XdpMode::Native, None)),
        ("AF_XDP native, busy poll", through(Backend::AfXdp, XdpMode::Native, Some(BusyPoll::default()))),
        ("AF_XDP generic", through(Backend::AfXdp, XdpMode::Generic, None)),
    ] {
        let outcome = run(&spec, load)?;
        all_accounted &= print(name, &outcome);
    }
    Ok(if all_accounted { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints a line; returns whether no packet is missing.
fn print(name: &str, outcome: &Outcome) -> bool {
    let Outcome { sent, sent_within, counters, before_the_source, processor_time } = *outcome;
    let missing = sent as i64 - (counters.frames + counters.kernel_drops + before_the_source) as i64;
    println!(
        "{name:24} {:>10.0} {sent:>10} {:>10} {:>8} {before_the_source:>8} {missing:>8} {:>8.4}% {:>8.1}",
        sent as f64 / sent_within.as_secs_f64(),
        counters.frames,
        counters.kernel_drops,
        100.0 * (sent - counters.frames.min(sent)) as f64 / sent as f64,
        processor_time.as_nanos() as f64 / counters.frames.max(1) as f64,
    );
    missing == 0
}

fn run(spec: &InterfaceSpec, load: Load) -> Result<Outcome, Failure> {
    let _network = Network::make()?;
    let is_sent = AtomicBool::new(false);
    let is_ready = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            enter(RECEIVER)?;
            take_frames_without_a_program("receiver")?;
            let mut source = open(&spec.clone().into())?.sources.pop().ok_or("no source")?;
            let before = dropped_by_interfaces()?;
            pin(1);
            is_ready.store(true, Ordering::Release);
            let start = processor_time();
            let mut end = None;
            while end.is_none_or(|end| Instant::now() < end) {
                let batch = source.next_batch()?.ok_or("the source ended")?;
                // Touch each packet, as any use of it would.
                std::hint::black_box(batch.iter().map(|frame| u64::from(frame.bytes[12])).sum::<u64>());
                if end.is_none() && is_sent.load(Ordering::Acquire) {
                    end = Some(Instant::now() + GRACE);
                }
            }
            let processor_time = processor_time() - start;
            let counters = source.counters();
            let mut before_the_source = dropped_by_interfaces()? - before;
            if spec.backend == Some(Backend::AfXdp) && spec.xdp_mode == Some(XdpMode::Native) {
                // The driver also counts what AF_XDP rejected as dropped.
                before_the_source = before_the_source.saturating_sub(counters.kernel_drops);
            }
            Ok::<_, Failure>((counters, before_the_source, processor_time))
        });
        while !is_ready.load(Ordering::Acquire) && !receiver.is_finished() {
            std::thread::yield_now();
        }
        let sender = scope.spawn(|| {
            let result = send(load);
            is_sent.store(true, Ordering::Release);
            result
        });
        let sent = sender.join().map_err(|_| "the sender panicked")?;
        let (counters, before_the_source, processor_time) =
            receiver.join().map_err(|_| "the receiver panicked")??;
        let (sent, sent_within) = sent?;
        Ok(Outcome { sent, sent_within, counters, before_the_source, processor_time })
    })
}

/// Sends the load; returns the number of packets and the duration.
fn send(load: Load) -> Result<(u64, Duration), Failure> {
    enter(SENDER)?;
    pin(0);
    // SAFETY: takes a C string.
    let index = unsafe { libc::if_nametoindex(c"sender".as_ptr()) };
    let count = u32::try_from(load.packets_per_second * load.seconds)?;
    let gap_ns = u32::try_from(1_000_000_000 / load.packets_per_second)?;
    let start = Instant::now();
    generator::send(index, &udp_frame(load.length), count, gap_ns)?;
    Ok((u64::from(count), start.elapsed()))
}

/// A UDP datagram to the receiver, without checksum.
fn udp_frame(length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(((length - 14) as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 99, 0, 2, 10, 99, 0, 1, 0x13, 0x88, 0x17, 0x70]);
    frame.extend(((length - 34) as u16).to_be_bytes());
    frame.resize(length, 0);
    frame
}

/// The namespaces and the veth pair; deleted when dropped.
struct Network;

impl Network {
    fn make() -> Result<Network, Failure> {
        // Delete what a killed run left behind.
        drop(Network);
        let network = Network;
        for name in [RECEIVER, SENDER] {
            ip(&["netns", "add", name])?;
            // Otherwise both ends send packets of their own when they come up.
            let silence = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6";
            ip(&["netns", "exec", name, "sh", "-c", silence])?;
        }
        let receiver = ["-n", RECEIVER, "link", "add", "receiver", "address", "02:00:00:00:00:01"];
        let sender =
            ["type", "veth", "peer", "name", "sender", "address", "02:00:00:00:00:02", "netns", SENDER];
        ip(&[receiver.as_slice(), &sender].concat())?;
        ip(&["-n", RECEIVER, "link", "set", "receiver", "up"])?;
        ip(&["-n", SENDER, "link", "set", "sender", "up"])?;
        Ok(network)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in [RECEIVER, SENDER] {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<String, Failure> {
    let output = Command::new("ip").args(arguments).output()?;
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)?)
    } else {
        Err(format!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr)).into())
    }
}

/// Returns the packets that both ends of the pair count as dropped: the fourth number of each line of counters.
fn dropped_by_interfaces() -> Result<u64, Failure> {
    let mut dropped = 0;
    for (namespace, interface) in [(RECEIVER, "receiver"), (SENDER, "sender")] {
        let shown = ip(&["-n", namespace, "-stats", "link", "show", "dev", interface])?;
        let lines: Vec<_> = shown.lines().map(str::trim).collect();
        for (heading, numbers) in lines.iter().zip(lines.iter().skip(1)) {
            if heading.starts_with("RX:") || heading.starts_with("TX:") {
                dropped += numbers.split_whitespace().nth(3).ok_or("no fourth number")?.parse::<u64>()?;
            }
        }
    }
    Ok(dropped)
}

/// Moves the calling thread to a namespace.
fn enter(namespace: &str) -> Result<(), Failure> {
    let file = File::open(format!("/run/netns/{namespace}"))?;
    // SAFETY: the descriptor is open.
    checked(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) })?;
    Ok(())
}

/// Pins the calling thread to a core, if that core exists.
fn pin(core: usize) {
    // SAFETY: all-zero bytes are an empty set; the set has the given length.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Returns the CPU time of the calling thread.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to one time, which the kernel fills.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Enables GRO, with which a veth accepts XDP frames without having an XDP program itself.
fn take_frames_without_a_program(interface: &str) -> Result<(), Failure> {
    /// ETHTOOL_SGRO of ethtool.h.
    const SET_GRO: u32 = 0x2c;
    let mut value = [SET_GRO, 1];
    // SAFETY: all-zero bytes are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as _;
    }
    request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: the request points to a `struct ethtool_value`.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut request) })?;
    Ok(())
}

fn checked(status: libc::c_int) -> std::io::Result<libc::c_int> {
    if status < 0 { Err(std::io::Error::last_os_error()) } else { Ok(status) }
}
