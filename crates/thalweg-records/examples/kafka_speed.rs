//! Measures the processor time per row of sending to Kafka, by thread, for messages of 1, 10 and 100 rows.
//!
//! ```text
//! cargo run --release -p thalweg-records --features kafka --example kafka_speed -- [MILLIONS OF ROWS] [KEY=VALUE]...
//! ```
//!
//! Measures the conversion to JSON alone, then all steps with librdkafka's mock cluster in the same process. The thread of
//! the mock cluster is listed too; a real broker runs elsewhere.

use std::collections::BTreeMap;
use std::error::Error;
use std::num::NonZeroUsize;
use std::time::Duration;

use rdkafka::mocking::MockCluster;
use thalweg_records::kafka::json_lines::JsonLines;
use thalweg_records::kafka::{Kafka, KafkaOptions, Setting};
use thalweg_wire::flow_export::{Address, Format, Record, RecordBatch};

/// Rows per batch, as from a receiver: 64 datagrams.
const BATCH: usize = 24 * 64;
/// Number of distinct batches, which are repeated.
const BATCHES: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let millions: usize = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let settings = arguments.map(|text| text.parse()).collect::<Result<Vec<Setting>, _>>()?;
    let batches = batches();
    json(&batches, millions * 1_000_000);
    for rows in [1, 10, 100] {
        produce(&batches, millions * 1_000_000, rows, &settings)?;
    }
    Ok(())
}

fn json(batches: &[RecordBatch], rows: usize) {
    let (mut json, mut out, mut bytes) = (JsonLines::new::<RecordBatch>(), Vec::new(), 0);
    let before = processor_seconds();
    for batch in batches.iter().cycle().take(rows / BATCH) {
        out.clear();
        json.lines(batch).append(0..batch.len(), &mut out);
        bytes += out.len();
    }
    let seconds: f64 = spent(&before).values().sum();
    println!(
        "JSON: {:.0} ns and {:.0} bytes per row",
        seconds * 1e9 / rows as f64,
        bytes as f64 / rows as f64
    );
}

fn produce(
    batches: &[RecordBatch],
    rows: usize,
    of_message: usize,
    settings: &[Setting],
) -> Result<(), Box<dyn Error>> {
    let cluster = MockCluster::new(3)?;
    cluster.create_topic("flows", 4, 3)?;
    let before = processor_seconds();
    let mut kafka = Kafka::start(&KafkaOptions {
        records_per_message: NonZeroUsize::new(of_message).ok_or("no rows")?,
        settings: settings.to_vec(),
        close_timeout: Duration::from_secs(60),
        ..KafkaOptions::new(cluster.bootstrap_servers(), "flows")
    })?;
    let mut sender = kafka.sender();
    for batch in batches.iter().cycle().take(rows / BATCH) {
        // At the speed of delivery, so that nothing is lost.
        while !kafka.has_room() {
            std::thread::sleep(Duration::from_millis(1));
        }
        sender.append(batch);
    }
    sender.tick();
    while kafka.statistics().queued > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    println!("{of_message} rows per message, ns of processor time per row:");
    for (thread, seconds) in spent(&before) {
        println!("  {thread:<16} {:>6.0}", seconds * 1e9 / rows as f64);
    }
    drop(sender);
    println!("  {:?}", kafka.finish());
    Ok(())
}

/// Returns the processor time of this process in seconds, by thread name without digits; resolution 10 ms.
fn processor_seconds() -> BTreeMap<String, f64> {
    let mut seconds = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let Some((name, rest)) = stat.rsplit_once(')') else { continue };
        let name = name.split_once('(').map_or(name, |(_, name)| name).trim_end_matches(char::is_numeric);
        let fields: Vec<f64> = rest.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        // After the name and the state, user and system time are the 11th and 12th field; the state is not a number.
        let time = fields.get(10..12).map_or(0.0, |times| (times[0] + times[1]) / 100.0);
        *seconds.entry(name.to_owned()).or_default() += time;
    }
    seconds
}

fn spent(before: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let mut spent = processor_seconds();
    for (thread, seconds) in &mut spent {
        *seconds -= before.get(thread).copied().unwrap_or_default();
    }
    spent.retain(|_, seconds| *seconds > 0.0);
    spent
}

/// Rows like NetFlow v9 of a busy router: random hosts and ports, 24 rows per datagram.
fn batches() -> Vec<RecordBatch> {
    let mut state = 7_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut batches = vec![RecordBatch::default(); BATCHES];
    for (number, batch) in batches.iter_mut().enumerate() {
        for row in 0..BATCH {
            let received_us = 1_795_352_400_000_000 + (number * BATCH + row / 24 * 24) as i64;
            let most = 1 << random(12);
            let packets = 1 + random(most);
            batch.push(&Record {
                received_us,
                exporter: Address::v4(0xC000_0201),
                observation_domain_id: 256,
                format: Format::NetFlow9,
                sampling_interval: 1000,
                flow_start_us: received_us / 1000 * 1000 - 1000 * random(60_000) as i64,
                flow_end_us: received_us / 1000 * 1000 - 1000 * random(15_000) as i64,
                source_address: Address::v4(0x0A00_0000 + random(200_000) as u32),
                destination_address: Address::v4(0x0A00_0000 + random(200_000) as u32),
                source_port: random(65_536) as u16,
                destination_port: 443,
                protocol: 6,
                tcp_flags: 24,
                octets: packets * (40 + random(1400)),
                packets,
                ingress_interface: random(16) as u32,
                egress_interface: random(16) as u32,
                source_as: random(3001) as u32,
                destination_as: random(3001) as u32,
                next_hop: Address::v4(0xC000_0280 + random(16) as u32),
                source_prefix_length: 16 + random(9) as u8,
                destination_prefix_length: 16 + random(9) as u8,
                flow_direction: 0,
                ..Record::default()
            });
        }
    }
    batches
}
