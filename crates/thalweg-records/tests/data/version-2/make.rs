//! Leaves what a collector of version 2 of the columns leaves after a crash: `DIR/spool` with a segment and templates, and
//! `DIR/data-only`. See the README beside it.
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use thalweg_records::collect::{CollectOptions, CollectingProcess};
use thalweg_records::store::StoreOptions;
use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::encode::{Messages, ipfix, netflow9};
use thalweg_wire::flow_export::{Address, Record, RecordBatch};

fn clock() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::new(now.as_secs(), now.subsec_nanos())
}

fn main() {
    let directory = std::env::args().nth(1).unwrap();
    std::fs::create_dir_all(&directory).unwrap();
    let mut options = CollectOptions::new(StoreOptions::new(&directory), clock);
    options.listen = vec!["udp:127.0.0.1:0".parse().unwrap()];
    options.receive_buffer = 1 << 20;
    let mut process = CollectingProcess::start(options, None).unwrap();
    let to = process.addresses()[0].1;
    let now = clock();
    let mut rows = RecordBatch::default();
    for number in 0..100u32 {
        rows.push(&Record {
            flow_start_us: (now.0 / 1000) as i64 - 1_000_000,
            flow_end_us: (now.0 / 1000) as i64,
            source_address: if number % 4 == 0 {
                Address(0x2001_0db8 << 96 | u128::from(number))
            } else {
                Address::v4(0x0A00_0000 + number)
            },
            destination_address: if number % 4 == 0 {
                Address(0x2001_0db8 << 96 | 0xffff)
            } else {
                Address::v4(0xC000_0201)
            },
            source_port: 443,
            destination_port: 1024 + number as u16,
            protocol: 6,
            tcp_flags: 0x1b,
            octets: 1000 + u64::from(number),
            packets: 1 + u64::from(number),
            source_as: 64500 + number,
            vlan_id: number as u16,
            sampling_interval: 100,
            ..Record::default()
        });
    }
    let mut send = |port: u16, messages: &Messages, records: u64| {
        let socket = UdpSocket::bind(SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
        for message in messages.iter() {
            socket.send_to(message, to).unwrap();
        }
        for _ in 0..500 {
            process.tick(clock());
            if process.report().records() == records {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{:#?}", process.report());
    };
    let mut messages = Messages::new();
    let boot = Timestamp::new(now.seconds() - 100, 0);
    let mut encoder = netflow9::Encoder::new(netflow9::Options::new(boot)).unwrap();
    encoder.encode(&rows, clock(), &mut messages);
    send(20_009, &messages, 100);
    // A message without templates, as the exporter sends it after the restart.
    let mut later = Messages::new();
    encoder.encode(&rows, clock(), &mut later);
    std::fs::write(format!("{directory}/data-only"), later.iter().next().unwrap()).unwrap();
    let mut messages = Messages::new();
    ipfix::Encoder::new(ipfix::Options::default()).unwrap().encode(&rows, clock(), &mut messages);
    send(20_010, &messages, 200);
    for _ in 0..150 {
        process.tick(clock());
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("{:#?}", process.report());
    std::process::abort();
}
