//! `thalweg endpoint`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use thalweg_linux::Namespace;
use thalweg_realtime::endpoint::{HostTable, ProcessOptions, Unlisted, Waiting};
use thalweg_realtime::protocol::EndpointOptions;
use thalweg_wire::{BitRate, Nanos};

use super::exit_code::ExitCode;
use crate::config::value::parse;
use crate::endpoint::{self, EndpointRequest};

/// Send the packets of this host through an emulated network (Linux 6.6, root).
///
/// Intercepts every IP packet that the host sends by an interface, and asks the arbiter, `thalweg emulate --real-time`, for a
/// decision. The arbiter emulates the network. It answers when the packet would have arrived: the endpoint sends it at once,
/// marks it before, or drops it. Applications, addresses and routes stay as they are. Ctrl-C, SIGTERM and even SIGKILL end the
/// interception: the host sends as before.
#[derive(Args, Debug)]
pub(super) struct EndpointArgs {
    /// Interface whose outgoing packets are intercepted.
    #[arg(short, long, value_name = "NAME")]
    interface: String,

    /// Number of this endpoint in the emulated network and in the host table.
    #[arg(short, long, value_name = "NUMBER")]
    number: u16,

    /// Arbiter.
    #[arg(short, long, value_name = "ADDRESS:PORT")]
    arbiter: SocketAddr,

    /// Secondary arbiter. It is used when the arbiter is silent.
    #[arg(long, value_name = "ADDRESS:PORT")]
    standby: Option<SocketAddr>,

    /// Host table: lines with the number of an endpoint and its addresses or prefixes, such as `1 10.0.0.1 fd00::1`.
    #[arg(long, value_name = "FILE")]
    hosts: PathBuf,

    /// Network namespace of the interface. Datagrams for the arbiter are still sent from the current namespace.
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,

    /// Packets for addresses that the host table does not have, multicast and broadcast included.
    #[arg(long, value_name = "ACTION", default_value = "pass")]
    unlisted: UnlistedArg,

    /// How to wait for packets.
    #[arg(long, value_name = "HOW", default_value = "sleep")]
    wait: WaitArg,

    /// Rate of this host's emulated link, such as `100mbps` [default: none].
    ///
    /// Packets then wait in a queue of the kernel, as at a real interface: TCP keeps it short (TCP small queues), and UDP waits for room. Without it, a
    /// connection sends its whole window into the emulated interface at once, and other packets of the host wait behind it.
    #[arg(long, value_name = "RATE", value_parser = parse::<BitRate>)]
    link_rate: Option<BitRate>,

    /// Send the remaining bytes of TCP flows with each request. pFabric needs them.
    #[arg(long)]
    remaining: bool,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Maximum packets held. Further ones are dropped and counted. Each has 9 KiB of memory, once it is used.
    #[arg(long, value_name = "N", default_value = "16384")]
    max_packets: u32,

    /// Maximum flows. At most that of the arbiter.
    #[arg(long, value_name = "N", default_value = "1024")]
    max_flows: u32,

    /// Drop packets without an answer after this long, counted.
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse::<Nanos>)]
    deadline: Nanos,

    /// Ask the arbiter at least this often whether it is alive.
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = parse::<Nanos>)]
    keep_alive: Nanos,

    /// Use the other arbiter if this one does not answer for this long.
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = parse::<Nanos>)]
    silence: Nanos,

    /// Give all packets this overhead: release each when its emulated delay and this time have passed [default: with its answer].
    ///
    /// The overhead is the time to the arbiter and back, with all waiting. The same value at all endpoints, at least the largest
    /// overhead p99 that they report, makes it equal for all packets. Packets with more are released at once and counted.
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    overhead: Option<Nanos>,

    /// Let requests wait for others for this long [default: none].
    ///
    /// More packets share a datagram, which costs less of the network and of the processor, and delays each packet. The arbiter has the same option.
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    batch_delay: Option<Nanos>,

    /// Stop after this long.
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    duration: Option<Nanos>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
struct OutputArgs {
    /// Write JSON lines: events, a status every --interval, and a summary at the end.
    #[arg(long)]
    json: bool,

    /// Status interval.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse::<Nanos>)]
    interval: Nanos,
}

/// What happens to packets for other addresses.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum UnlistedArg {
    /// Send them at once, without emulation.
    Pass,
    /// Drop them.
    Drop,
}

/// How to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum WaitArg {
    /// Sleep until something arrives.
    Sleep,
    /// Sleep, and wake up before other work of the processor. Idle processors of the host do not sleep.
    RealTime,
    /// Poll without a pause: the shortest delay, for a whole processor.
    BusyPoll,
}

impl EndpointArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If the host table is invalid, or as [`endpoint::run`].
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let EndpointArgs { interface, number, arbiter, standby, hosts, namespace, unlisted, wait, .. } = self;
        let LimitArgs {
            max_packets,
            max_flows,
            deadline,
            keep_alive,
            silence,
            overhead,
            batch_delay,
            duration,
        } = self.limits;
        let default = ProcessOptions::new(interface, number, arbiter, HostTable::load(&hosts)?);
        let options = ProcessOptions {
            namespace: namespace.map(Namespace::named),
            standby,
            unlisted: match unlisted {
                UnlistedArg::Pass => Unlisted::Pass,
                UnlistedArg::Drop => Unlisted::Drop,
            },
            waiting: match wait {
                WaitArg::Sleep => Waiting::Sleep,
                WaitArg::RealTime => Waiting::RealTime,
                WaitArg::BusyPoll => Waiting::BusyPoll,
            },
            sends_remaining: self.remaining,
            link_rate: self.link_rate,
            overhead,
            protocol: EndpointOptions {
                max_packets,
                max_flows,
                deadline,
                keep_alive,
                silence,
                link: batch_delay
                    .map_or(default.protocol.link, |delay| default.protocol.link.with_batches(delay)),
                ..default.protocol
            },
            ..default
        };
        let OutputArgs { json, interval } = self.output;
        endpoint::run(EndpointRequest { options, json, interval, duration })?;
        Ok(ExitCode::Complete)
    }
}
