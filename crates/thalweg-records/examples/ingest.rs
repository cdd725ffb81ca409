//! dev
use std::error::Error;
use std::time::{Duration, Instant};
use thalweg_records::collect::{CollectOptions, CollectingProcess};
use thalweg_records::generator::datagrams::Datagrams;
use thalweg_records::generator::sender::{Prepared, Sender};
use thalweg_records::generator::{Generator, Options};
use thalweg_records::store::StoreOptions;
use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::RecordBatch;

fn clock() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Timestamp(since.as_nanos() as u64)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["collect", dir, records] => {
            let records: u64 = records.parse()?;
            let mut options = CollectOptions::new(StoreOptions::new(dir), clock);
            options.listen = vec!["127.0.0.1:2055".parse()?];
            let mut process = CollectingProcess::start(options, None)?;
            let mut last = (0, Instant::now());
            loop {
                std::thread::sleep(Duration::from_millis(100));
                process.tick(clock());
                let report = process.report();
                if report.flows.records != last.0 {
                    last = (report.flows.records, Instant::now());
                }
                if last.0 >= records || (last.0 > 0 && last.1.elapsed() > Duration::from_secs(2)) {
                    break;
                }
            }
            let report = process.finish(clock());
            println!(
                "written {} lost {:?} kernel {} bytes/record {:.2} cpu {:?}",
                report.flows.written,
                report.flows.lost,
                report.sockets[0].kernel_drops,
                report.flows.bytes as f64 / report.flows.written as f64,
                cpu()
            );
        }
        ["send", records, rate] => {
            let options = Options { records: records.parse()?, ..Options::default() };
            let rate: f64 = rate.parse()?;
            let mut generator = Generator::new(options, 1)?;
            let mut datagrams = Datagrams::full(generator.start());
            let mut prepared = Prepared::default();
            let mut batch = RecordBatch::default();
            let mut count = 0;
            while generator.fill(&mut batch, 1 << 15) > 0 {
                datagrams.push(&batch, &mut prepared)?;
                count += batch.len();
                batch.clear();
            }
            datagrams.finish(&mut prepared)?;
            let mut sender = Sender::new("127.0.0.1:2055".parse()?)?;
            let begun = Instant::now();
            let each = count as f64 / prepared.len() as f64;
            let mut at = 0;
            while at < prepared.len() {
                let to = prepared.len().min(at + 256);
                sender.send(&prepared, at..to)?;
                at = to;
                let due = Duration::from_secs_f64(at as f64 * each / rate);
                std::thread::sleep(due.saturating_sub(begun.elapsed()));
            }
            let t = begun.elapsed().as_secs_f64();
            println!(
                "sent {count} in {t:.3} s: {:.2} M/s; {} datagrams",
                count as f64 / t / 1e6,
                prepared.len()
            );
        }
        ["pages", records, rounds] => {
            use thalweg_records::store::parquet::{FileWriter, PAGE_ROWS};
            let options = Options { records: records.parse()?, ..Options::default() };
            let mut generator = Generator::new(options, 1)?;
            let mut datagrams = Datagrams::full(generator.start());
            struct Sink(
                thalweg_wire::flow_export::Decoder,
                thalweg_wire::flow_export::Decoded,
                Vec<RecordBatch>,
                i64,
            );
            impl thalweg_records::generator::datagrams::Deliver for Sink {
                fn deliver(
                    &mut self,
                    _: thalweg_wire::flow_export::Address,
                    _: Timestamp,
                    d: &[u8],
                ) -> std::io::Result<()> {
                    self.3 += 1;
                    let t = Timestamp(1_403_182_800_000_000_000 + (self.3 as u64 / 64) * 320_000);
                    self.0.datagram("127.0.0.1:5".parse().unwrap(), t, d, &mut self.1).unwrap();
                    if self.1.flows.len() >= PAGE_ROWS {
                        let rest = self.1.flows.len() - PAGE_ROWS;
                        let mut b = std::mem::take(&mut self.1.flows);
                        for row in b.len() - rest..b.len() {
                            self.1.flows.push(&b.record(row));
                        }
                        b.truncate(PAGE_ROWS);
                        self.2.push(b);
                    }
                    Ok(())
                }
            }
            let mut sink = Sink(
                thalweg_wire::flow_export::Decoder::new(Default::default()),
                Default::default(),
                Vec::new(),
                0,
            );
            let mut batch = RecordBatch::default();
            while generator.fill(&mut batch, 1 << 15) > 0 {
                datagrams.push(&batch, &mut sink)?;
                batch.clear();
            }
            let (mut best, mut size) = (f64::MAX, 0);
            for _ in 0..rounds.parse::<usize>()? {
                let begun = Instant::now();
                let mut file = FileWriter::new(Vec::new(), 1 << 20, 1)?;
                for batch in &sink.2 {
                    file.push(batch)?;
                }
                let rows = file.rows() as f64;
                size = file.finish()?.0.len();
                let ns = begun.elapsed().as_nanos() as f64 / rows;
                best = best.min(ns);
                print!("{ns:.0} ");
            }
            println!(
                " best {best:.1} ns/record, {:.2} bytes",
                size as f64 / (sink.2.len() * PAGE_ROWS) as f64
            );
        }
        _ => return Err("?".into()),
    }
    Ok(())
}

fn cpu() -> (i64, i64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<i64> =
        stat.rsplit(')').next().unwrap_or("").split(' ').filter_map(|field| field.parse().ok()).collect();
    (fields[10], fields[11])
}
