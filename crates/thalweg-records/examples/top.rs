//! Prints the largest groups of Parquet files of flow records, and the time taken.
//!
//!     cargo run --release -p thalweg-records --example top -- THREADS COLUMN,... FILE...

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use thalweg_records::top::{Key, KeyColumn, Options, Order, top};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [threads, columns, paths @ ..] = &arguments[..] else {
        return Err("expected THREADS COLUMN,... FILE...".into());
    };
    let key = |name| Some(Key { column: KeyColumn::named(name)?, either: None });
    let key = columns.split(',').map(key).collect::<Option<Vec<_>>>().ok_or("no such column")?;
    let options = Options {
        key,
        order: Order::Bytes,
        limit: Some(10),
        memory_bytes: 4 << 30,
        threads: threads.parse()?,
    };
    let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();

    let (begun, mut records) = (Instant::now(), 0);
    let groups = top(&paths, &options, &mut |_, of| {
        records = of;
        ControlFlow::Continue(())
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    for group in groups {
        println!("{:?} {} bytes, {} packets, {} records", group.key, group.bytes, group.packets, group.flows);
    }
    println!("{seconds:.3} s, {:.2} M records/s", records as f64 / seconds / 1e6);
    Ok(())
}
