//! Measures the decoding rate by format on one core: `decode_speed [SECONDS [FORMAT]]`.
//!
//! Messages fill an Ethernet frame, as from routers, and are in memory; decoded rows are cleared every 8,192
//! records, like the batches of a collector. Output: a line for each format with name, records/s, messages/s,
//! bytes per record.

use std::hint::black_box;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::{Decoded, Decoder, Limits};

/// The arrival time of messages, which does not affect the result.
const RECEIVED: Timestamp = Timestamp(1_700_000_000_000_000_000);

/// The number of rows in a batch of a collector.
const ROWS: usize = 8192;

/// The number of different messages, so that the cache holds more than one.
const MESSAGES: u32 = 256;

/// The element and length of the 16 fields of a typical NetFlow v9 record.
const FIELDS: [(u16, u16); 16] = [
    (8, 4),
    (12, 4),
    (7, 2),
    (11, 2),
    (4, 1),
    (5, 1),
    (6, 1),
    (10, 4),
    (14, 4),
    (15, 4),
    (1, 4),
    (2, 4),
    (22, 4),
    (21, 4),
    (16, 4),
    (17, 4),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().map_or(2.0, |text| text.parse().expect("SECONDS is a number"));
    let only = arguments.next();
    let budget = Duration::from_secs_f64(seconds);
    // IPFIX has absolute times: flowStartMilliseconds and flowEndMilliseconds.
    let fields = FIELDS.map(|field| match field {
        (22, _) => (152, 8),
        (21, _) => (153, 8),
        other => other,
    });
    let formats = [
        ("netflow5", netflow5(), 30),
        ("netflow9", sets(9, &FIELDS, false), 27),
        ("ipfix", sets(10, &fields, false), 27),
        ("ipfix-variable", sets(10, &fields, true), 25),
        ("sflow5", sflow5(), 7),
    ];
    for (name, messages, records) in formats {
        if only.as_deref().is_none_or(|only| only == name) {
            measure(name, &messages, records, budget);
        }
    }
}

/// Decodes messages with `records` records each for the duration.
fn measure(name: &str, messages: &[Vec<u8>], records: u64, budget: Duration) {
    let from: SocketAddr = "192.0.2.1:2055".parse().expect("an address");
    let mut decoder = Decoder::new(Limits::default());
    let mut decoded = Decoded::default();
    let (mut sent, mut rows) = (0, 0);
    let start = Instant::now();
    while start.elapsed() < budget {
        for message in messages {
            decoder.datagram(from, RECEIVED, message, &mut decoded).expect("a sound message");
            if decoded.flows.len() >= ROWS {
                rows += black_box(&decoded).flows.len() as u64;
                decoded.clear();
            }
        }
        sent += messages.len() as u64;
    }
    rows += decoded.flows.len() as u64;
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(rows, sent * records, "{name}: every record gives a row");
    let bytes =
        messages.iter().map(Vec::len).sum::<usize>() as f64 / (messages.len() as u64 * records) as f64;
    println!("{name} {:.0} {:.0} {bytes:.1}", rows as f64 / seconds, sent as f64 / seconds);
}

/// A generator of pseudo-random bytes (xorshift), so that flows differ.
struct Noise(u64);

impl Noise {
    fn fill(&mut self, to: &mut Vec<u8>, length: usize) {
        for _ in 0..length {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            to.push(self.0 as u8);
        }
    }
}

fn netflow5() -> Vec<Vec<u8>> {
    let mut noise = Noise(1);
    let message = |index: u32| {
        let mut bytes = vec![0, 5, 0, 30];
        for word in [90_000_000, 1_700_000_000, 0, index * 30, 0] {
            bytes.extend_from_slice(&u32::to_be_bytes(word));
        }
        noise.fill(&mut bytes, 30 * 48);
        bytes
    };
    (0..MESSAGES).map(message).collect()
}

/// Returns messages with sets. The first has the template; all have the same sequence number, so that they can be
/// repeated.
fn sets(version: u16, fields: &[(u16, u16)], variable: bool) -> Vec<Vec<u8>> {
    let mut noise = Noise(2);
    let records = if variable { 25 } else { 27 };
    let message = |index: u32| {
        let mut content = Vec::new();
        if index == 0 {
            let count = fields.len() as u16 + u16::from(variable);
            let template_set = if version == 9 { 0 } else { 2 };
            let mut words = vec![template_set, 8 + 4 * count, 256, count];
            words.extend(fields.iter().flat_map(|&(id, length)| [id, length]));
            // interfaceName
            words.extend([82, 0xFFFF].iter().filter(|_| variable));
            content.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        }
        let start = content.len();
        content.extend([1, 0, 0, 0]);
        for _ in 0..records {
            noise.fill(&mut content, fields.iter().map(|&(_, length)| usize::from(length)).sum());
            if variable {
                content.extend(b"\x04eth0");
            }
        }
        let length = (content.len() - start) as u16;
        content[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
        let mut bytes = version.to_be_bytes().to_vec();
        if version == 9 {
            bytes.extend(27u16.to_be_bytes());
            bytes.extend(
                [90_000_000, 1_700_000_000, index, 1].iter().flat_map(|word: &u32| word.to_be_bytes()),
            );
        } else {
            bytes.extend((16 + content.len() as u16).to_be_bytes());
            bytes
                .extend([1_700_000_000, index * records, 1].iter().flat_map(|word: &u32| word.to_be_bytes()));
        }
        bytes.append(&mut content);
        bytes
    };
    (0..MESSAGES).map(message).collect()
}

/// Returns datagrams with seven flow samples, each with the first 128 bytes of a TCP segment.
fn sflow5() -> Vec<Vec<u8>> {
    let mut noise = Noise(3);
    let message = |index: u32| {
        let mut bytes = Vec::new();
        let words = |words: &[u32], bytes: &mut Vec<u8>| {
            bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        };
        words(&[5, 1, 0xC000_0201, 0, index, 90_000_000, 7], &mut bytes);
        for sample in 0..7 {
            words(&[1, 184, index * 7 + sample, 3, 1000, 0, 0, 3, 4, 1], &mut bytes);
            words(&[1, 144, 1, 1518, 4, 128], &mut bytes);
            noise.fill(&mut bytes, 12);
            bytes.extend([8, 0, 0x45, 0, 5, 220, 0, 0, 0x40, 0, 64, 6, 0, 0]);
            noise.fill(&mut bytes, 12);
            bytes.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
            noise.fill(&mut bytes, 128 - 14 - 20 - 20);
        }
        bytes
    };
    (0..MESSAGES).map(message).collect()
}
