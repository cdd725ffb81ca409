//! Generates flow records of sampling routers as a Parquet file, and optionally sends them as NetFlow v9.
//!
//!     cargo run --release -p thalweg-synth --example synthetic_records -- RECORDS SAMPLING SEED FILE [ADDRESS:PORT]
//!
//! `bench/records.sh` uses it. Records are sent at a rate that `nfcapd` on the same machine sustains.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use thalweg_records::store::StoreOptions;
use thalweg_records::store::parquet::FileWriter;
use thalweg_synth::records::{Generator, Options};
use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::RecordBatch;
use thalweg_wire::flow_export::encode::{Messages, netflow9};

/// Rows generated at a time: a page of the file.
const ROWS: usize = 1 << 15;
/// Maximum records sent per second: a tenth of what `nfcapd` sustains.
const MAX_RATE: f64 = 250_000.0;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [records, sampling, seed, file, to @ ..] = &arguments[..] else {
        return Err("expected RECORDS SAMPLING SEED FILE [ADDRESS:PORT]".into());
    };
    let options =
        Options { records: records.parse()?, sampling_interval: sampling.parse()?, ..Options::default() };
    let start = options.start;
    let mut generator = Generator::new(options, seed.parse()?)?;
    let store = StoreOptions::new("");
    let out = BufWriter::new(File::create(file)?);
    let mut out = FileWriter::<RecordBatch, _>::new(out, store.row_group_rows, store.compression_level)?;
    let mut sender = to.first().map(|to| Sender::new(to, start)).transpose()?;

    let mut batch = RecordBatch::with_capacity(ROWS);
    while generator.fill(&mut batch, ROWS) > 0 {
        if let Some(sender) = &mut sender {
            sender.send(&batch)?;
        }
        out.push(&batch)?;
        batch.clear();
    }
    out.finish()?.0.into_inner()?.sync_all()?;
    Ok(())
}

/// A NetFlow v9 exporter with one observation domain, since the benchmark does not depend on the exporter.
struct Sender {
    socket: UdpSocket,
    encoder: netflow9::Encoder,
    messages: Messages,
    started: Instant,
    sent: usize,
}

impl Sender {
    fn new(to: &str, boot: Timestamp) -> Result<Sender, Box<dyn Error>> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(to)?;
        let encoder = netflow9::Encoder::new(netflow9::Options::new(boot))?;
        Ok(Sender { socket, encoder, messages: Messages::new(), started: Instant::now(), sent: 0 })
    }

    fn send(&mut self, batch: &RecordBatch) -> Result<(), Box<dyn Error>> {
        let received = batch.received_us.last().copied().unwrap_or_default();
        self.messages.clear();
        self.encoder.encode(batch, Timestamp(received as u64 * 1000), &mut self.messages);
        let each = batch.len() as f64 / self.messages.len().max(1) as f64;
        for (number, message) in self.messages.iter().enumerate() {
            self.socket.send(message)?;
            let due = Duration::from_secs_f64((self.sent as f64 + each * number as f64) / MAX_RATE);
            if let Some(early) = due.checked_sub(self.started.elapsed())
                && early > Duration::from_millis(1)
            {
                std::thread::sleep(early);
            }
        }
        self.sent += batch.len();
        Ok(())
    }
}
