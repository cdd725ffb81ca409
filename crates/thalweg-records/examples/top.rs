//! Prints the largest groups of Parquet files of flow records, and the time taken.
//!
//!     cargo run --release -p thalweg-records --example top -- THREADS all|once COLUMN,... FILE...

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use thalweg_records::top::{Key, KeyColumn, Once, Options, Order, top};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [threads, counted, columns, paths @ ..] = &arguments[..] else {
        return Err("expected THREADS all|once COLUMN,... FILE...".into());
    };
    let key = |name| Some(Key { column: KeyColumn::named(name)?, either: None });
    let key = columns.split(',').map(key).collect::<Option<Vec<_>>>().ok_or("no such column")?;
    let once = (counted == "once").then_some(Once { gap_us: 60_000_000, per_exporter: false });
    let options = Options {
        key,
        once,
        order: Order::Bytes,
        limit: Some(10),
        memory_bytes: 4 << 30,
        threads: threads.parse()?,
    };
    let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();

    let begun = Instant::now();
    let found = top(&paths, &options, &mut |_, _| ControlFlow::Continue(()))?;
    let seconds = begun.elapsed().as_secs_f64();
    for group in found.groups {
        println!("{:?} {} bytes, {} packets, {} records", group.key, group.bytes, group.packets, group.flows);
    }
    println!("{seconds:.3} s, {} records left out", found.records_left_out);
    Ok(())
}
