//! Reconstructs the flows of Parquet files of flow records, and measures the time.
//!
//!     cargo run --release -p thalweg-records --example analyse -- [--all] THREADS MEMORY_BYTES DIRECTORY FILE...
//!
//! Writes `flows.parquet` and `flowsets.parquet` to DIRECTORY. With `--all`, flowsets contain all flows, not only elephants.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use thalweg_records::analyse::{Options, Outputs, analyse};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (options, arguments): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let elephants_only = match &options[..] {
        [] => true,
        [all] if all == "--all" => false,
        _ => return Err("unknown option: expected --all".into()),
    };
    let [threads, memory_bytes, directory, paths @ ..] = &arguments[..] else {
        return Err("expected [--all] THREADS MEMORY_BYTES DIRECTORY FILE...".into());
    };
    let options = Options {
        threads: threads.parse()?,
        memory_bytes: memory_bytes.parse()?,
        elephants_only,
        ..Options::default()
    };
    let directory = PathBuf::from(directory);
    let outputs = Outputs {
        flows: Some(directory.join("flows.parquet")),
        flowsets: Some(directory.join("flowsets.parquet")),
    };
    let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();

    let begun = Instant::now();
    let mut scattered = None;
    let statistics = analyse(&paths, &outputs, &options, &mut |done, of| {
        if done * 2 >= of {
            scattered.get_or_insert_with(|| begun.elapsed());
        }
        ControlFlow::Continue(())
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{statistics:#?}");
    println!("{seconds:.3} s, of which reading {:.3} s", scattered.unwrap_or_default().as_secs_f64());
    println!("{:.2} M records/s", statistics.records as f64 / seconds / 1e6);
    Ok(())
}
