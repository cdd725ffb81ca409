//! Results of `emulated-queues`.

use std::fmt::Write as _;

use serde::Serialize;

use super::{HeadroomJson, line, nanoseconds, verdict};
use crate::scenarios::emulated_queues::{
    Measured, OfScheme, Results, Run, bounds, experiment::SENDERS, link_payload,
};
use crate::scenarios::isolate::bounds::Check;

/// Returns the results of `emulated-queues` as text.
pub fn emulated_queues(results: &Results) -> String {
    let mut text = format!(
        "emulated-queues: {SENDERS} senders to one receiver, links of {}, {} trials of {} s after {} s\n\n",
        results.rate,
        results.options.trials,
        results.options.duration.as_secs(),
        results.options.warm_up().as_secs(),
    );
    let _ = writeln!(
        text,
        "{:10}{:18}{:>10}{:>10}{:>9}{:>9}{:>9}{:>9}{:>9}{:>11}",
        "scheme", "hosts", "goodput", "of link", "median", "p5", "p95", "max", "mean", "deviation"
    );
    for it in results.schemes() {
        let payload = link_payload(results.rate);
        row(&mut text, it.scheme.name(), "real TCP", &it.real, payload);
        row(&mut text, "", "emulated hosts", &it.hosts, payload);
    }
    let _ = writeln!(
        text,
        "goodput in Mbit/s of payload, and as a share of what the link leaves for it (1,448 of 1,538 bytes: {:.1} Mbit/s); queue of the \
         receiver's port in packets, every millisecond",
        link_payload(results.rate) / 1e6
    );
    let _ = writeln!(text, "\nruns of the arbiter");
    for Run { scheme, trial, overhead_ns, protocol_share, arbiter, .. } in &results.runs {
        let verdict = if arbiter.valid { "valid" } else { "INVALID" };
        let _ = writeln!(
            text,
            "{:10}trial {trial}: {verdict}, {:.4} % of the slots late, worst delay {:.0} us; endpoints add {:.0} us; protocol {:.2} % of the bytes",
            scheme.name(),
            100.0 * arbiter.late_share,
            arbiter.worst_delay_ns as f64 / 1e3,
            *overhead_ns as f64 / 1e3,
            100.0 * protocol_share,
        );
    }
    let _ = writeln!(text, "\nclaims");
    for check in bounds::check(results) {
        let _ = writeln!(text, "{check}");
    }
    text + "\n" + &verdict(&results.headroom)
}

fn row(text: &mut String, scheme: &str, hosts: &str, measured: &Measured, payload: f64) {
    let Measured { goodput_bps, queue } = measured;
    let _ = writeln!(
        text,
        "{scheme:10}{hosts:18}{:>10.1}{:>8.1} %{:>9}{:>9}{:>9}{:>9}{:>9.1}{:>11.1}",
        goodput_bps / 1e6,
        100.0 * goodput_bps / payload,
        queue.median,
        queue.p5,
        queue.p95,
        queue.max,
        queue.mean,
        queue.deviation,
    );
}

/// Returns the results of `emulated-queues` as a line of JSON.
pub fn emulated_queues_json(results: &Results) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'static str,
        rate_bps: u64,
        trials: u32,
        duration_ns: u64,
        link_payload_bps: f64,
        schemes: Vec<OfScheme>,
        runs: &'a [Run],
        checks: Vec<Check>,
        headroom: HeadroomJson,
    }
    line(&Line {
        r#type: "emulated-queues",
        rate_bps: results.rate.0,
        trials: results.options.trials,
        duration_ns: nanoseconds(results.options.duration),
        link_payload_bps: link_payload(results.rate),
        schemes: results.schemes(),
        runs: &results.runs,
        checks: bounds::check(results),
        headroom: HeadroomJson::from(&results.headroom),
    })
}
