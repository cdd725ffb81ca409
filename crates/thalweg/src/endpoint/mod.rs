//! `thalweg endpoint`: runs an endpoint of a real-time emulation until a signal or a limit stops it.

pub mod json;
mod text;

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use thalweg_linux::clock;
use thalweg_realtime::endpoint::{EndpointProcess, Event, ProcessOptions};
use thalweg_wire::{Nanos, Timestamp};

use crate::console;

/// What to run.
#[derive(Clone, Debug)]
pub struct EndpointRequest {
    /// The endpoint.
    pub options: ProcessOptions,
    /// Whether to write JSON lines instead of text.
    pub json: bool,
    /// The status interval.
    pub interval: Nanos,
    /// Stop after this long.
    pub duration: Option<Nanos>,
}

/// Runs an endpoint.
///
/// # Errors
/// If it cannot start, its interface is removed, or the output cannot be written.
pub fn run(EndpointRequest { options, json, interval, duration }: EndpointRequest) -> anyhow::Result<()> {
    let stop = Arc::<AtomicBool>::default();
    for signal in [SIGINT, SIGTERM] {
        // A second signal ends the process while it is stopping.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let is_stopped = || stop.load(Ordering::Relaxed);
    let (deadline, name) = (options.protocol.deadline, options.interface.clone());
    let mut process = EndpointProcess::start(options)?;
    if !json {
        console::note(format_args!("thalweg: intercepting the packets of {name}; Ctrl-C stops"));
    }
    let on_event = |event: Event| match json {
        true => write(&json::event(&event)),
        false => {
            text::event(&event, deadline);
            Ok(())
        }
    };
    let end = duration.map_or(Timestamp(u64::MAX), |duration| clock::monotonic() + duration);
    let mut written = Ok(());
    let mut next = clock::monotonic();
    while !is_stopped() && clock::monotonic() < end && written.is_ok() {
        next = next + interval.max(Nanos::from_millis(1));
        process.run(next.min(end), is_stopped, |event| written = on_event(event))?;
        let report = process.report();
        written = written.and_then(|()| match json {
            true => write(&json::status(&report)),
            false => write(&text::status(&report)),
        });
    }
    let report = process.finish(|| false, |event| drop(on_event(event)))?;
    written.and_then(|()| match json {
        true => write(&json::summary(&report)),
        false => write(&text::summary(&report)),
    })
}

/// Writes lines to standard output.
fn write(lines: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{lines}").and_then(|()| out.flush()).context("cannot write to standard output")
}
