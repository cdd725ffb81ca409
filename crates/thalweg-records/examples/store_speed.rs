//! Measures the store: nanoseconds of processor time, and bytes, per record.
//!
//! ```text
//! cargo run --release -p thalweg-records --example store_speed -- DIR [MILLIONS OF RECORDS]
//! ```
//!
//! Records resemble NetFlow v9 of a busy router: 200,000 hosts by Zipf's law, random ports, times in milliseconds, 24
//! records per datagram. They are generated before the measurement. Measures Parquet alone, then queue, spool and Parquet.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use thalweg_records::store::parquet::FileWriter;
use thalweg_records::store::{Store, StoreOptions};
use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::{Address, Format, Record, RecordBatch};

/// Number of distinct records; they are repeated with later times.
const MADE: usize = 1 << 20;
/// Rows per batch, as from a receiver of many datagrams.
const BATCH: usize = 24 * 64;
/// Records per datagram.
const DATAGRAM: usize = 24;
const HOSTS: f64 = 200_000.0;
/// 2026-11-22 13:00 UTC.
const BEGIN_US: i64 = 1_795_352_400_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("usage: store_speed DIR [MILLIONS]")?);
    let millions: usize = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let mut batches = records();
    let rounds = (millions * 1_000_000).div_ceil(MADE);
    parquet(&mut batches, rounds)?;
    store(&mut batches, rounds, directory)
}

fn parquet(batches: &mut [RecordBatch], rounds: usize) -> Result<(), Box<dyn Error>> {
    let options = StoreOptions::new("");
    let mut file = FileWriter::new(Vec::new(), options.row_group_rows, options.compression_level)?;
    let mut pages = Vec::new();
    for batch in batches.iter() {
        match pages.last_mut() {
            Some(page) if RecordBatch::len(page) + BATCH <= 1 << 15 => page.append(batch),
            _ => pages.push(batch.clone()),
        }
    }
    let begin = (Instant::now(), processor_seconds());
    for _ in 0..rounds {
        for page in &mut pages {
            file.push(page)?;
            later(page);
        }
    }
    let (bytes, _) = file.finish()?;
    say("Parquet in memory", begin, rounds * MADE, bytes.len() as u64);
    Ok(())
}

fn store(batches: &mut [RecordBatch], rounds: usize, directory: PathBuf) -> Result<(), Box<dyn Error>> {
    let now = |batch: &RecordBatch| Timestamp(batch.received_us[0] as u64 * 1000);
    let (mut store, recovered) = Store::open(StoreOptions::new(directory), now(&batches[0]))?;
    println!("{recovered:?}");
    let begin = (Instant::now(), processor_seconds());
    for _ in 0..rounds {
        for batch in batches.iter_mut() {
            // At the speed of the disk, so that nothing is lost.
            while store.statistics().queued > 1 << 17 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            store.append(batch, now(batch));
            later(batch);
        }
        store.tick(now(&batches[0]));
    }
    let statistics = store.finish(now(&batches[0]));
    say("store", begin, rounds * MADE, statistics.bytes);
    println!("{statistics:#?}");
    Ok(())
}

/// Shifts the times of the records by the duration of a round at a million records per second.
fn later(batch: &mut RecordBatch) {
    let step = MADE as i64;
    batch.received_us.iter_mut().for_each(|time| *time += step);
    batch.flow_start_us.iter_mut().for_each(|time| *time += step / 1000 * 1000);
    batch.flow_end_us.iter_mut().for_each(|time| *time += step / 1000 * 1000);
}

fn say(what: &str, (begin, processor): (Instant, f64), records: usize, bytes: u64) {
    let nanoseconds = |seconds: f64| seconds * 1e9 / records as f64;
    println!(
        "{what}: {:.0} ns of processor time per record, {:.0} ns of time, {:.1} bytes per record",
        nanoseconds(processor_seconds() - processor),
        nanoseconds(begin.elapsed().as_secs_f64()),
        bytes as f64 / records as f64
    );
}

/// Returns the processor time of this process in seconds, from `/proc/self/stat`; resolution 10 ms.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<i64> =
        stat.rsplit(')').next().unwrap_or("").split(' ').filter_map(|field| field.parse().ok()).collect();
    // After the name and the state, user and system time are the 11th and 12th field.
    fields.get(10..12).map_or(0.0, |times| (times[0] + times[1]) as f64 / 100.0)
}

fn records() -> Vec<RecordBatch> {
    let mut state = 7_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut batches = Vec::new();
    let mut batch = RecordBatch::with_capacity(BATCH);
    let (mut received, mut message) = (BEGIN_US, 0_u32);
    for row in 0..MADE {
        if row % DATAGRAM == 0 {
            received += (random() * 2.0 * DATAGRAM as f64) as i64;
            message = message.wrapping_add(1);
        }
        let mut host = || {
            let rank = HOSTS.powf(random()) as u32;
            Address::v4(0x0A00_0000 | rank.wrapping_mul(0x9E37_79B9) >> 12)
        };
        let (source_address, destination_address) = (host(), host());
        let protocol = if random() < 0.8 { 6 } else { 17 };
        let packets = (1.0 / random().powf(0.9)) as u64;
        let octets = packets * (40.0 + random() * 1400.0) as u64;
        let end = received / 1000 - (random() * 15_000.0) as i64;
        let start = end - if packets == 1 { 0 } else { (random() * random() * 60_000.0) as i64 };
        let service = [443, 443, 443, 80, 53, 22, 8080, 993][(random() * 8.0) as usize];
        let ephemeral = 32_768 + (random() * 28_000.0) as u16;
        let (source_port, destination_port) =
            if random() < 0.5 { (service, ephemeral) } else { (ephemeral, service) };
        batch.push(&Record {
            received_us: received,
            exporter: Address::v4(0xC000_0201),
            observation_domain_id: 256,
            format: Format::NetFlow9,
            sampling_interval: 1000,
            flow_start_us: start * 1000,
            flow_end_us: end * 1000,
            source_address,
            destination_address,
            source_port,
            destination_port,
            protocol,
            tcp_flags: if protocol == 6 { [16, 24, 27, 2, 18, 25][(random() * 6.0) as usize] } else { 0 },
            octets,
            packets,
            ingress_interface: 1 + (random() * 16.0) as u32,
            egress_interface: 1 + (random() * 16.0) as u32,
            source_as: (source_address.0 as u32) % 3001,
            destination_as: (destination_address.0 as u32) % 3001,
            next_hop: Address::v4(0xC000_0280 + (destination_address.0 as u32) % 16),
            source_prefix_length: 16 + (source_address.0 % 9) as u8,
            destination_prefix_length: 16 + (destination_address.0 % 9) as u8,
            flow_direction: 0,
            ..Record::default()
        });
        if batch.len() == BATCH {
            batches.push(std::mem::replace(&mut batch, RecordBatch::with_capacity(BATCH)));
        }
    }
    batches.push(batch);
    batches
}
