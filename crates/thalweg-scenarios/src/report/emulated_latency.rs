//! Results of `emulated-latency`.

use std::fmt::Write as _;

use serde::Serialize;

use super::{HeadroomJson, line, nanoseconds, verdict};
use crate::emulated::ArbiterRun;
use crate::scenarios::emulated_latency::{ArbiterAtRate, Measurement, Path, RATES, Results, bounds};
use crate::scenarios::isolate::bounds::Check;

/// Returns the results of `emulated-latency` as text.
pub fn emulated_latency(results: &Results) -> String {
    let mut text = format!(
        "emulated-latency: datagrams of 1,500 bytes, {} trials of {} s at each rate\n\n",
        results.options.trials,
        results.options.duration.as_secs_f64(),
    );
    let _ = writeln!(
        text,
        "{:>10}{:>22}{:>22}{:>22}{:>10}{:>10}{:>12}{:>8}",
        "packets/s",
        "bare p50 / p99",
        "emulated p50 / p99",
        "added p50 / p99",
        "max",
        "lost",
        "overtaken",
        "twice"
    );
    for rate in RATES {
        let Some((bare, emulated)) = results.at(rate, Path::Bare).zip(results.at(rate, Path::Emulated))
        else {
            continue;
        };
        row(&mut text, bare, emulated);
    }
    let _ = writeln!(text, "latencies in us; max, lost, overtaken and twice: of emulated datagrams");
    let unseen: u64 = results.measurements.iter().map(|it| it.unseen).sum();
    if unseen > 0 {
        let _ = writeln!(text, "{unseen} frames lost before the record: counts are too low");
    }
    let _ = writeln!(text, "\nruns of the arbiter");
    for ArbiterAtRate { packets_per_second, run } in &results.arbiters {
        let ArbiterRun { valid, slots, late_slots, skipped_slots, late_share, worst_delay_ns, .. } = run;
        let _ = writeln!(
            text,
            "{packets_per_second:>10} packets/s: {}, {late_slots} of {slots} slots late, {skipped_slots} skipped ({:.4} %), worst delay {:.0} us",
            if *valid { "valid" } else { "INVALID" },
            100.0 * late_share,
            *worst_delay_ns as f64 / 1e3
        );
    }
    let _ = writeln!(text, "\nclaims");
    for check in bounds::check(results) {
        let _ = writeln!(text, "{check}");
    }
    text + "\n" + &verdict(&results.headroom)
}

fn row(text: &mut String, bare: &Measurement, emulated: &Measurement) {
    let us = |ns: u64| ns as f64 / 1e3;
    let pair = |it: &Measurement| format!("{:.1} / {:.1}", us(it.latency.p50_ns), us(it.latency.p99_ns));
    let added = |value: fn(&Measurement) -> u64| us(value(emulated)) - us(value(bare));
    let added = format!("{:.1} / {:.1}", added(|it| it.latency.p50_ns), added(|it| it.latency.p99_ns));
    let _ = writeln!(
        text,
        "{:>10}{:>22}{:>22}{added:>22}{:>10.0}{:>10}{:>12}{:>8}",
        bare.packets_per_second,
        pair(bare),
        pair(emulated),
        us(emulated.latency.max_ns),
        emulated.lost,
        emulated.reordered,
        emulated.duplicates,
    );
}

/// Returns the results of `emulated-latency` as a line of JSON.
pub fn emulated_latency_json(results: &Results) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'static str,
        trials: u32,
        duration_ns: u64,
        measurements: &'a [Measurement],
        arbiters: &'a [ArbiterAtRate],
        checks: Vec<Check>,
        headroom: HeadroomJson,
    }
    line(&Line {
        r#type: "emulated-latency",
        trials: results.options.trials,
        duration_ns: nanoseconds(results.options.duration),
        measurements: &results.measurements,
        arbiters: &results.arbiters,
        checks: bounds::check(results),
        headroom: HeadroomJson::from(&results.headroom),
    })
}
