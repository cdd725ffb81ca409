//! Collection from capture files.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use thalweg_capture::file::FileSource;
use thalweg_records::collect::listen::Protocol;
use thalweg_records::collect::{Listen, Replay};
use thalweg_wire::source::Source;

use super::run::{Signals, finish, print_recovered};
use super::{CollectRequest, Outcome};
use crate::console;
use crate::figures::grouped;

/// Reads all capture files into the store.
pub(super) fn run(request: CollectRequest, signals: &Signals) -> anyhow::Result<Outcome> {
    let started = Instant::now();
    let udp = |listen: &Listen| (listen.protocol == Protocol::Udp).then_some(listen.port);
    let ports: BTreeSet<u16> = request.process.listen.iter().filter_map(udp).collect();
    let sources = request
        .replay
        .iter()
        .map(|file| FileSource::open(file).with_context(|| format!("cannot read {}", file.display())));
    let sources = sources.collect::<anyhow::Result<Vec<_>>>()?;
    let mut replay = Replay::new(&request.process, ports, None)?;
    print_recovered(&replay.recovered());
    let mut outcome = Outcome::Complete;
    for source in sources {
        if let Err(error) = read(source, &mut replay, &request, signals) {
            console::warn(format_args!("{error}; everything before is stored"));
            outcome = Outcome::CutShort;
        }
    }
    let counts = replay.counts();
    finish(replay.finish(), &request, started.elapsed(), Some(&counts))?;
    Ok(outcome)
}

fn read(
    mut source: FileSource,
    replay: &mut Replay,
    request: &CollectRequest,
    signals: &Signals,
) -> Result<(), <FileSource as Source>::Error> {
    let bar = progress_bar();
    while !signals.is_stopped() {
        let Some(batch) = source.next_batch()? else { break };
        for frame in batch.iter() {
            replay.frame(&frame);
        }
        if request.count.is_some_and(|count| replay.report().records() >= count) {
            break;
        }
        if let Some(progress) = source.progress() {
            bar.set_length(progress.total);
            bar.set_position(progress.done);
            bar.set_message(format!("{} messages", grouped(replay.counts().messages)));
        }
    }
    bar.finish_and_clear();
    Ok(())
}

/// Returns a progress bar on standard error, hidden if that is not a terminal.
fn progress_bar() -> ProgressBar {
    if !console::shows_progress() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes}  {msg}  {eta} left");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
