//! Results of `reroute-latency`.

use std::fmt::Write as _;

use serde::Serialize;
use thalweg_lab::Plane;
use thalweg_wire::Nanos;

use super::{HeadroomJson, line, milliseconds, moves, verdict};
use crate::quantiles::Quantiles;
use crate::scenarios::collide::{LatencyBreakdown, Trial};
use crate::scenarios::reroute_latency::Results;

type Row = (&'static str, fn(&LatencyBreakdown) -> Nanos);

const ROWS: [Row; 3] = [
    ("event to decision", |latency| Nanos(latency.decision_ns)),
    ("decision to new path", LatencyBreakdown::decision_to_path),
    ("event to new path", LatencyBreakdown::event_to_path),
];

/// Returns the results of `reroute-latency` as text.
pub fn reroute_latency(results: &Results) -> String {
    let mut text = format!("reroute-latency: link rate {}\n", results.rate);
    for case in &results.cases {
        let collisions = &case.collisions;
        let (resolved, all) = (collisions.latencies().count(), collisions.trials.len());
        let _ = writeln!(text, "\n{}: {resolved} of {all} trials resolved", case.name());
        let _ = writeln!(text, "network: {}", collisions.network);
        let _ = writeln!(text, "{:24}{:>10}{:>10}{:>10}", "", "p50", "p99", "max");
        for (name, time) in ROWS {
            let Quantiles { p50_ns, p99_ns, max_ns, .. } = collisions.quantiles(time);
            let [p50, p99, max] = [p50_ns, p99_ns, max_ns].map(milliseconds);
            let _ = writeln!(text, "{name:24}{p50:>10}{p99:>10}{max:>10}");
        }
        text += &moves(collisions);
        text += &verdict(&collisions.headroom);
    }
    text
}

/// Returns the results of `reroute-latency` as a line of JSON.
pub fn reroute_latency_json(results: &Results) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'static str,
        rate_bps: u64,
        cases: Vec<CaseJson<'a>>,
    }
    #[derive(Serialize)]
    struct CaseJson<'a> {
        switch_type: Plane,
        network: &'a str,
        actuator: &'static str,
        decision_to_path: Quantiles,
        event_to_path: Quantiles,
        headroom: HeadroomJson,
        lost_frames: u64,
        trials: &'a [Trial],
    }
    let cases = results.cases.iter().map(|case| {
        let collisions = &case.collisions;
        CaseJson {
            switch_type: case.plane,
            network: &collisions.network,
            actuator: case.actuator.key(),
            decision_to_path: collisions.quantiles(LatencyBreakdown::decision_to_path),
            event_to_path: collisions.quantiles(LatencyBreakdown::event_to_path),
            headroom: HeadroomJson::from(&collisions.headroom),
            lost_frames: collisions.lost_frames,
            trials: &collisions.trials,
        }
    });
    line(&Line { r#type: "reroute-latency", rate_bps: results.rate.0, cases: cases.collect() })
}
