//! The memory of collectors with few flows. A process of its own, because it measures the memory of the process.

use thalweg_measure::collector::{Collector, CollectorOptions, Output};
use thalweg_measure::samples::{SampleRing, SampleRingOptions};
use thalweg_wire::{FlowKey, Fragment, Frame, LinkType, Packet, PacketNotes, Protocol, TcpFlags, Timestamp};

const COLLECTORS: usize = 20;

/// The resident memory of this process.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    1_024 * line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
}

/// Returns packets of 16 flows.
fn packets() -> Vec<Packet> {
    let packet = |number: u32| Packet {
        time: Timestamp(1_000_000_000 + 100_000 * u64::from(number)),
        key: FlowKey::v4(0x0A00_0001 + number % 16, 0x0A00_FFFF, 443, 50_000, Protocol::TCP),
        ethernet: Default::default(),
        ip_length: 1_500,
        payload_length: 1_460,
        identification: 0,
        tcp_sequence: 1_460 * (number / 16),
        tcp_flags: TcpFlags::ACK,
        fragment: Fragment::Whole,
        notes: PacketNotes::default(),
    };
    (0..10_000).map(packet).collect()
}

#[test]
fn a_collector_needs_the_memory_of_its_flows() {
    let packets = packets();
    let before = resident();
    let mut collectors = Vec::new();
    for _ in 0..COLLECTORS {
        let mut collector = Collector::new(CollectorOptions::default(), None).unwrap();
        let (mut writer, ring) = SampleRing::new(SampleRingOptions::default()).unwrap();
        let mut output = Output::default();
        packets.chunks(16).for_each(|packets| collector.update(packets, &mut output));
        for packet in &packets {
            let frame = Frame {
                time: packet.time,
                bytes: &[0; 60],
                original_length: 1_514,
                link_type: LinkType::Ethernet,
            };
            writer.write(&frame);
        }
        collectors.push((collector, writer, ring));
    }
    let each = (resident() - before) / COLLECTORS as u64;
    assert!(each < 10_000_000, "{each} bytes for each collector");
}
