//! What came of `reroute-latency`.

use std::fmt::Write as _;

use serde::Serialize;
use thalweg_wire::Nanos;

use super::{HeadroomJson, line, milliseconds, verdict};
use crate::quantiles::Quantiles;
use crate::scenarios::collide::{LatencyBreakdown, Trial};
use crate::scenarios::reroute_latency::{Results, TestCase};

type Row = (&'static str, fn(&LatencyBreakdown) -> Nanos);

const ROWS: [Row; 3] = [
    ("event to decision", |latency| Nanos(latency.decision_ns)),
    ("decision to new path", LatencyBreakdown::decision_to_path),
    ("event to new path", LatencyBreakdown::event_to_path),
];

/// The table of `reroute-latency`.
pub fn reroute_latency(results: &Results) -> String {
    let mut text = format!("reroute-latency: links of {}\n", results.rate);
    for case in &results.cases {
        let collisions = &case.collisions;
        let (apart, all) = (collisions.latencies().count(), collisions.trials.len());
        let _ = writeln!(text, "\n{}: {apart} of {all} trials taken apart", case.name());
        let _ = writeln!(text, "{:24}{:>10}{:>10}{:>10}", "", "p50", "p99", "longest");
        for (name, time) in ROWS {
            let Quantiles { p50_ns, p99_ns, max_ns, .. } = collisions.quantiles(time);
            let [p50, p99, most] = [p50_ns, p99_ns, max_ns].map(milliseconds);
            let _ = writeln!(text, "{name:24}{p50:>10}{p99:>10}{most:>10}");
        }
        text += &verdict(&collisions.headroom);
    }
    text
}

/// The line of `reroute-latency`.
pub fn reroute_latency_json(results: &Results) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'static str,
        rate_bps: u64,
        cases: Vec<Of<'a>>,
    }
    #[derive(Serialize)]
    struct Of<'a> {
        switches: &'static str,
        by: &'static str,
        decision_to_path: Quantiles,
        event_to_path: Quantiles,
        headroom: HeadroomJson,
        lost_frames: u64,
        trials: &'a [Trial],
    }
    let of = |case: &'_ TestCase| -> (&'static str, &'static str) {
        (if case.plane == thalweg_lab::Plane::Ovs { "ovs" } else { "ebpf" }, case.actuator.name())
    };
    let cases = results.cases.iter().map(|case| {
        let (switches, by) = of(case);
        let collisions = &case.collisions;
        Of {
            switches,
            by,
            decision_to_path: collisions.quantiles(LatencyBreakdown::decision_to_path),
            event_to_path: collisions.quantiles(LatencyBreakdown::event_to_path),
            headroom: HeadroomJson::from(&collisions.headroom),
            lost_frames: collisions.lost_frames,
            trials: &collisions.trials,
        }
    });
    line(&Line { r#type: "reroute-latency", rate_bps: results.rate.0, cases: cases.collect() })
}
