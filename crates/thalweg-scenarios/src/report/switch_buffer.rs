//! Results of `switch-buffer`.

use std::fmt::Write as _;

use serde::Serialize;

use super::{HeadroomJson, line, mean, verdict};
use crate::scenarios::isolate::bounds::Check;
use crate::scenarios::switch_buffer::bounds::{self, STEADY_FROM};
use crate::scenarios::switch_buffer::{Case, Results, Run, Trial};

/// Returns the results of `switch-buffer` as text.
pub fn switch_buffer(results: &Results) -> String {
    let parameters = &results.parameters;
    let mut text = format!(
        "switch-buffer: link {}, buffer of {} B, background {}, {} trials of {} s, {}\n\n",
        parameters.link_rate,
        parameters.buffer.0,
        parameters.background,
        results.trials.len(),
        results.duration.as_secs(),
        results.congestion_control,
    );
    let _ = writeln!(
        text,
        "{:5}{:>13}{:>10}{:>16}{:>16}{:>20}{:>10}{:>10}{:>12}{:>9}{:>10}",
        "case",
        "TCP buffer",
        "delay",
        "flow at most",
        "flow",
        "window (kB)",
        "retrans.",
        "lost",
        "background",
        "losses",
        "source"
    );
    for case in &parameters.cases {
        row(&mut text, results, case);
    }
    let _ = writeln!(
        text,
        "flow, retrans., lost, background (packets that the queue dropped): means per run; window: least and greatest from \
         {STEADY_FROM} s on; losses: runs in which the queue dropped packets"
    );
    let rate = mean(all(results).map(|run| run.background_rate_bps)) / 1e6;
    let _ = writeln!(text, "background {rate:.1} Mbit/s");
    let _ = writeln!(text, "\nclaims");
    for check in bounds::check(results) {
        let _ = writeln!(text, "{check}");
    }
    type Sum = (&'static str, fn(&Run) -> u64);
    let sums: [Sum; 3] = [
        ("packets lost before the records: counts are too low", |run| run.lost_frames),
        ("packets dropped by the flow's own host", |run| run.host_dropped_packets),
        ("acknowledgements dropped by the delay line", |run| run.delay_dropped_packets),
    ];
    for (what, value) in sums {
        let sum: u64 = all(results).map(value).sum();
        if sum > 0 {
            let _ = writeln!(text, "{sum} {what}");
        }
    }
    text + "\n" + &verdict(&results.headroom)
}

fn all(results: &Results) -> impl Iterator<Item = &Run> {
    results.trials.iter().flat_map(|trial| &trial.runs)
}

fn row(text: &mut String, results: &Results, case: &Case) {
    let runs = || results.runs(case.number);
    let per_run = |value: fn(&Run) -> u64| mean(runs().map(|run| value(run) as f64));
    let ranges = || runs().filter_map(|run| run.cwnd_range(STEADY_FROM));
    let least = ranges().map(|range| range.0).min();
    let window = match least.zip(ranges().map(|range| range.1).max()) {
        Some((least, most)) => format!("{:.1} to {:.1}", least as f64 / 1e3, most as f64 / 1e3),
        None => "-".to_owned(),
    };
    let rate = mean(runs().map(|run| run.flow_rate_bps)) / 1e6;
    let losing = format!("{}/{}", runs().filter(|run| run.loses()).count(), runs().count());
    let _ = writeln!(
        text,
        "{:<5}{:>11} B{:>10}{:>16}{rate:>9.1} Mbit/s{window:>20}{:>10.1}{:>10.1}{:>12.1}{losing:>9}{:>10}",
        case.number,
        case.tcp_buffer.0,
        case.delay.to_string(),
        case.flow_limit.to_string(),
        per_run(|run| run.transmissions.retransmitted),
        per_run(|run| run.transmissions.lost),
        per_run(Run::background_lost),
        if case.loses { "losses" } else { "none" },
    );
}

/// Returns the results of `switch-buffer` as a line of JSON.
pub fn switch_buffer_json(results: &Results) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'static str,
        rate_bps: u64,
        buffer_bytes: u64,
        background_bps: u64,
        duration_ns: u64,
        congestion_control: &'a str,
        checks: Vec<Check>,
        headroom: HeadroomJson,
        trials: &'a [Trial],
    }
    let parameters = &results.parameters;
    line(&Line {
        r#type: "switch-buffer",
        rate_bps: parameters.link_rate.0,
        buffer_bytes: parameters.buffer.0,
        background_bps: parameters.background.0,
        duration_ns: super::nanoseconds(results.duration),
        congestion_control: &results.congestion_control,
        checks: bounds::check(results),
        headroom: HeadroomJson::from(&results.headroom),
        trials: &results.trials,
    })
}
