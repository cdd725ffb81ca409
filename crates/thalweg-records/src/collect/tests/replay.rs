use thalweg_wire::LinkType;
use thalweg_wire::source::Frame;

use super::*;

/// 2014-06-19 13:00 UTC.
const THEN: Timestamp = Timestamp::new(1_403_182_800, 0);

/// Returns an IPv4 packet with a UDP datagram.
pub(super) fn packet(to_port: u16, payload: &[u8]) -> Vec<u8> {
    let length = |above: usize| u16::to_be_bytes((above + payload.len()) as u16);
    let ip = [&[0x45, 0][..], &length(28), &[0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]].concat();
    let udp = [&[0x27, 0x10][..], &to_port.to_be_bytes(), &length(8), &[0, 0]].concat();
    [&ip[..], &udp, payload].concat()
}

pub(super) fn frame(bytes: &[u8], seconds: u64) -> Frame<'_> {
    let time = Timestamp::new(THEN.seconds() + seconds, 0);
    Frame { time, bytes, original_length: bytes.len() as u32, link_type: LinkType::RawIp }
}

fn replay(folder: &TempDir, ports: &[u16]) -> Replay {
    Replay::new(&options("udp:0", folder), ports.iter().copied().collect(), None).unwrap()
}

#[test]
fn records_are_stored_by_the_time_of_the_capture() {
    let folder = TempDir::new().unwrap();
    let mut replay = replay(&folder, &[]);
    let messages = netflow9_messages(&mut netflow9_encoder(), 10_000);
    for (number, message) in messages.iter().enumerate() {
        let seconds = if number < messages.len() / 2 { 0 } else { 3600 };
        replay.frame(&frame(&packet(2055, message), seconds));
    }
    let report = replay.finish();
    assert_eq!((report.records(), stored(folder.path(), "flows")), (10_000, 10_000));
    let hours = std::fs::read_dir(folder.path().join("flows/date=2014-06-19")).unwrap();
    let mut hours: Vec<_> = hours.map(|hour| hour.unwrap().file_name().into_string().unwrap()).collect();
    hours.sort();
    assert_eq!(hours, ["hour=13", "hour=14"]);
    assert_eq!(report.exporters[0].from.to_string(), "10.0.0.1");
}

#[test]
fn other_traffic_is_skipped_by_content_or_by_port() {
    let folder = TempDir::new().unwrap();
    let messages = netflow9_messages(&mut netflow9_encoder(), 10);
    let message = messages.iter().next().unwrap();
    let dns = [&[0, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], b"\x03www\x07example\0\0\x01\0\x01"].concat();
    let rtp = [[0x80, 0x60].as_slice(), &[7; 170]].concat();
    let mut tcp = packet(2055, message);
    tcp[9] = 6;
    let mut fragment = packet(2055, message);
    fragment[6] = 0x20;
    let mut later = packet(2055, &[1; 64]);
    (later[6], later[7]) = (0, 185);
    let cut = packet(2055, message);
    let mut replay = replay(&folder, &[]);
    for bytes in [&packet(53, &dns), &packet(4000, &rtp), &tcp, &fragment, &later, &packet(9995, message)] {
        replay.frame(&frame(bytes, 0));
    }
    replay.frame(&Frame { bytes: &cut[..cut.len() - 1], ..frame(&cut, 0) });
    replay.frame(&frame(&[0x45, 0, 0, 20], 0));
    let counts = replay.counts();
    assert_eq!(
        counts,
        ReplayCounts { frames: 8, messages: 1, other: 3 + 1, fragments: 2, truncated: 0, unparsed: 1 },
        "a truncated message does not look like one"
    );
    assert_eq!(replay.finish().records(), 10);
    let folder = TempDir::new().unwrap();
    let mut by_port = super::replay::replay(&folder, &[9995]);
    for bytes in [&packet(2055, message), &packet(9995, message)] {
        by_port.frame(&frame(bytes, 0));
    }
    let cut = packet(9995, message);
    by_port.frame(&Frame { bytes: &cut[..cut.len() - 1], ..frame(&cut, 0) });
    let counts = by_port.counts();
    assert_eq!((counts.messages, counts.other, counts.truncated), (1, 1, 1));
}

#[test]
fn a_small_queue_drops_nothing() {
    let folder = TempDir::new().unwrap();
    let mut options = options("udp:0", &folder);
    options.store.queue_rows = 1 << 16;
    let mut replay = Replay::new(&options, Default::default(), None).unwrap();
    let mut encoder = netflow9_encoder();
    for _ in 0..30 {
        for message in netflow9_messages(&mut encoder, 10_000).iter() {
            replay.frame(&frame(&packet(2055, message), 0));
        }
    }
    let report = replay.finish();
    assert_eq!((report.flows.written, report.flows.lost.total()), (300_000, 0));
}
