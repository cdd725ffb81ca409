//! Compares tasks with exact counts of the same packets.

mod keys;
mod memory;
mod oracle;
mod tables;
mod windows;
mod workers;

use thalweg_wire::{Bytes, FlowKey, Fragment, Nanos, Packet, PacketNotes, Protocol, TcpFlags, Timestamp};

use super::{
    KeyDefinition, Monitor, Plan, PrefixLengths, Sampling, Side, TaskList, TaskResult, TaskValue,
    TasksOptions, WindowReport, Windows,
};

const SECOND: u64 = 1_000_000_000;

/// The start of tests: a multiple of all their windows and periods.
const BEGIN: u64 = 1_800_000_000;

/// A definition of each kind.
fn definitions() -> [KeyDefinition; 8] {
    let lengths = |v4, v6| PrefixLengths::new(v4, v6).unwrap();
    [
        KeyDefinition::FiveTuple,
        KeyDefinition::Address(Side::Source),
        KeyDefinition::Address(Side::Destination),
        KeyDefinition::DestinationPort,
        KeyDefinition::Prefix(Side::Source, lengths(24, 48)),
        KeyDefinition::Prefix(Side::Destination, lengths(16, 56)),
        KeyDefinition::Prefix(Side::Source, lengths(32, 128)),
        KeyDefinition::Prefix(Side::Destination, lengths(1, 1)),
    ]
}

fn packet(key: FlowKey, time: u64, ip_length: u32) -> Packet {
    Packet {
        time: Timestamp(time),
        key,
        ip_length,
        payload_length: 0,
        identification: 0,
        tcp_sequence: 0,
        ethernet: Default::default(),
        tcp_flags: TcpFlags::default(),
        fragment: Fragment::Whole,
        notes: PacketNotes::default(),
    }
}

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// `count` packets over `span`, a third of them IPv6, between few hosts: sizes are skewed.
fn traffic(count: u64, begin: u64, span: u64, seed: u64) -> Vec<Packet> {
    let mut state = seed;
    let packets = (0..count).map(|number| {
        let draw = random(&mut state);
        // The product of two uniform numbers is skewed towards zero.
        let host = ((draw & 0xFF) * (draw >> 8 & 0xFF)) >> 8;
        let peer = ((draw >> 16 & 0x3F) * (draw >> 24 & 0x3F)) >> 6;
        let (src_port, dst_port) = (1024 + (draw >> 32 & 1) as u16, 80 + (draw >> 33 & 1) as u16);
        let protocol = if draw >> 34 & 1 == 0 { Protocol::TCP } else { Protocol::UDP };
        let key = if number % 3 == 0 {
            let network = 0x2001_0DB8_u128 << 96;
            let src = network | u128::from(host >> 4) << 80 | u128::from(host);
            FlowKey::v6(src, network | u128::from(peer) << 64 | 1, src_port, dst_port, protocol)
        } else {
            let src = 0x0A00_0000 + (host >> 3 << 8 | host & 7) as u32;
            FlowKey::v4(src, 0xC0A8_0000 + ((peer as u32) << 12), src_port, dst_port, protocol)
        };
        packet(key, begin + number * span / count, 40 + (draw >> 40) as u32 % 1460)
    });
    packets.collect()
}

fn options(tasks: &str, window: Nanos) -> TasksOptions {
    let tasks = tasks.parse::<TaskList>().unwrap().0;
    TasksOptions { tasks, memory: Bytes(16 << 20), window, seed: 7, ..TasksOptions::default() }
}

/// Plenty of memory, one worker, windows of ten seconds, every packet counted.
fn plan(tasks: &str) -> Plan {
    let plan = Plan::new(options(tasks, Nanos::from_secs(10))).unwrap();
    assert_eq!(plan.options().sampling, Sampling::default());
    plan
}

/// All reports of the packets, processed in batches.
fn run(plan: &Plan, packets: &[Packet]) -> (Vec<WindowReport>, Windows) {
    let (mut monitor, mut windows, mut reports) = (Monitor::new(plan, 0), Windows::new(plan), Vec::new());
    for batch in packets.chunks(1000) {
        monitor.packets(batch, |state| windows.add(state));
        let latest = batch.iter().map(|packet| packet.time).max().unwrap();
        monitor.advance(latest, |_| panic!("a packet of this time was counted"));
        reports.extend(std::iter::from_fn(|| windows.next_report()));
    }
    monitor.finish(|state| windows.add(state));
    windows.finish();
    reports.extend(std::iter::from_fn(|| windows.next_report()));
    (reports, windows)
}

/// The only task's answer for packets of one window.
fn only(task: &str, packets: &[Packet]) -> TaskValue {
    let (reports, _) = run(&plan(task), packets);
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].results.len(), 1);
    reports[0].results[0].value.clone()
}

/// Asserts equal results; an entropy is a sum whose rounding depends on the order of its terms.
fn assert_same(results: &[TaskResult], expected: &[TaskResult]) {
    assert_eq!(results.len(), expected.len());
    for (result, expected) in results.iter().zip(expected) {
        match (&result.value, &expected.value) {
            (TaskValue::Entropy(found), TaskValue::Entropy(expected)) => {
                assert!((found.bits.value - expected.bits.value).abs() < 1e-9, "{found:?} {expected:?}");
            }
            _ => assert_eq!(result, expected),
        }
    }
}
