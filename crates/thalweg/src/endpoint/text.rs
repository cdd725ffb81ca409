//! Text: a line per event and status, and a summary.

use std::fmt::{self, Write as _};

use thalweg_realtime::endpoint::{Event, Report, TimeHistogram};
use thalweg_wire::Nanos;

use crate::console;
use crate::figures::grouped;

/// Prints something that happened.
pub(super) fn event(event: &Event, deadline: Nanos) {
    match event {
        Event::ArbiterSilent { address, silence } => console::warn(format_args!(
            "arbiter_silent address={address} silence=\"{silence}\": packets wait for {deadline}, then they are dropped"
        )),
        Event::ArbiterAnswers { address } => {
            console::note(format_args!("thalweg: arbiter_answers address={address}"));
        }
        Event::SwitchedArbiter { address } => {
            console::warn(format_args!("arbiter_switched address={address}: the other arbiter is silent"));
        }
        Event::ArbiterRestarted { address } => {
            console::warn(format_args!(
                "arbiter_restarted address={address}: held packets are requested again"
            ));
        }
        Event::OtherVersion { address, version } => console::warn(format_args!(
            "other_version address={address} version={version}: this program has version {}; use the same release",
            thalweg_wire::emulation_protocol::VERSION
        )),
        Event::InterfaceDown => {
            console::warn("interface_down: packets cannot be sent, they are dropped when they are released");
        }
        Event::InterfaceUp => console::note("thalweg: interface_up"),
        Event::PacketsLost { losses } => {
            let named = losses.named();
            let reasons = named.iter().filter(|(_, packets)| *packets > 0);
            let reasons: Vec<_> = reasons.map(|(name, packets)| format!("{name}={packets}")).collect();
            console::warn(format_args!(
                "packets_lost {}: the emulated network does not decide on them",
                reasons.join(" ")
            ));
        }
        Event::MtuChanged { mtu } => console::note(format_args!("thalweg: mtu_changed mtu={mtu}")),
        _ => {}
    }
}

/// A line with the most important figures.
pub(super) fn status(report: &Report) -> String {
    let (packets, protocol) = (&report.packets, &report.protocol);
    let refused = protocol.refused_packets + protocol.refused_flows + protocol.refused_window;
    format!(
        "elapsed={:.1}s held={} sent={} dropped={} marked={} expired={} refused={refused} passed={} overflow={} \
         held_p50={} held_p99={} overhead_p50={} overhead_p99={} above_overhead={}",
        report.elapsed.as_secs_f64(),
        report.held,
        protocol.sent,
        protocol.dropped,
        packets.marked,
        protocol.expired,
        packets.unlisted_passed + packets.unparsed_passed + packets.local_passed,
        packets.overflow,
        micros(report.hold_times.quantile(0.5)),
        micros(report.hold_times.quantile(0.99)),
        micros(report.overheads.quantile(0.5)),
        micros(report.overheads.quantile(0.99)),
        packets.above_overhead,
    )
}

fn micros(time: Option<Nanos>) -> String {
    time.map_or_else(|| "-".to_owned(), |Nanos(time)| format!("{}us", time.div_ceil(1_000)))
}

/// All figures.
pub(super) fn summary(report: &Report) -> String {
    let mut text = String::new();
    write_summary(&mut text, report).expect("a string takes everything");
    text
}

fn write_summary(out: &mut String, report: &Report) -> fmt::Result {
    let (packets, protocol) = (&report.packets, &report.protocol);
    let (datagrams, control) = (&protocol.datagrams, &report.control);
    writeln!(out, "Ran for {:.1} s.\n", report.elapsed.as_secs_f64())?;
    let rows = |out: &mut String, title: &str, rows: &[(&str, u64)]| -> fmt::Result {
        writeln!(out, "{title}")?;
        // Zeros only where somebody expects a number.
        for (place, (name, count)) in rows.iter().enumerate() {
            if place == 0 || *count > 0 {
                writeln!(out, "  {name:<44} {:>15}", grouped(*count))?;
            }
        }
        Ok(())
    };
    rows(
        out,
        "Packets",
        &[
            ("intercepted", packets.intercepted),
            ("emulated", protocol.submitted),
            ("  sent", protocol.sent),
            ("    with congestion experienced", packets.marked),
            ("    unmarked, because not capable of ECN", packets.marks_ignored),
            ("    with another traffic class", packets.rewritten),
            ("    with unknown scheme bytes", packets.scheme_bytes_ignored),
            ("  dropped by the emulated network", protocol.dropped),
            ("  dropped without an answer at the deadline", protocol.expired),
            ("refused: too many packets held", protocol.refused_packets),
            ("refused: too many flows", protocol.refused_flows),
            ("refused: window of the flow", protocol.refused_window),
            ("passed: address not in the host table", packets.unlisted_passed),
            ("dropped: address not in the host table", packets.unlisted_dropped),
            ("passed: address of this endpoint", packets.local_passed),
            ("passed: headers cannot be parsed", packets.unparsed_passed),
            ("passed: not IP (ARP, ...)", packets.not_ip),
            ("passed: neighbour discovery", packets.neighbour_discovery),
            ("dropped: longer than 9,216 bytes", packets.too_long),
            ("dropped: not read in time", packets.overflow),
            ("dropped: queue of the link is full", packets.queue_full),
            ("dropped: refused by the interface", packets.release_refused),
            ("released with more overhead", packets.above_overhead),
            ("released with less overhead: too many waited", packets.released_early),
            ("TCP with unknown remaining bytes", packets.remaining_unknown),
        ],
    )?;
    rows(
        out,
        "\nDatagrams",
        &[
            ("sent", datagrams.sent),
            ("received", datagrams.received),
            ("not acknowledged in time", datagrams.timed_out),
            ("requests sent again", protocol.requests_repeated),
            ("refused: malformed", datagrams.malformed),
            ("refused: another version", control.other_version),
            ("refused: not for this endpoint", datagrams.misdirected),
            ("refused: earlier session", datagrams.stale),
            ("refused: duplicate", datagrams.duplicate),
            ("answers without a packet", protocol.unmatched_answers),
            ("not sent: refused by the kernel", control.send_refused),
            ("arbiter unreachable", control.unreachable),
            ("restarts of the arbiter", protocol.arbiter_restarts),
            ("switches to the other arbiter", protocol.switches),
        ],
    )?;
    for (name, times) in [
        ("Time from packet to answer", &report.hold_times),
        ("Overhead of answers", &report.overheads),
        ("Overhead at the release", &report.release_overheads),
    ] {
        write_times(out, name, times)?;
    }
    match report.round_trip {
        None => write!(out, "\nThe arbiter has never answered."),
        Some(time) => write!(out, "\nRound trip to the arbiter, smoothed: {}", micros(Some(time))),
    }
}

fn write_times(out: &mut String, name: &str, times: &TimeHistogram) -> fmt::Result {
    let [min, p50, p99, max] =
        [times.min(), times.quantile(0.5), times.quantile(0.99), times.max()].map(micros);
    write!(out, "\n{name}: min {min}, p50 {p50}, p99 {p99}, max {max}")
}
