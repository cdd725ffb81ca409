//! What came of `reroute-latency`.

use std::fmt::Write as _;

use serde::Serialize;
use thalweg_wire::Nanos;

use super::{Spare, line, milliseconds, verdict};
use crate::scenarios::collide::{Trial, Turn};
use crate::scenarios::reroute_latency::{Course, Results};
use crate::spread::Spread;

type Row = (&'static str, fn(&Turn) -> Nanos);

const ROWS: [Row; 3] = [
    ("event to decision", |turn| Nanos(turn.decision_ns)),
    ("decision to new path", Turn::decision_to_path),
    ("event to new path", Turn::event_to_path),
];

/// The table of `reroute-latency`.
pub fn reroute_latency(results: &Results) -> String {
    let mut text = format!("reroute-latency: links of {}\n", results.rate);
    for course in &results.courses {
        let collisions = &course.collisions;
        let (apart, all) = (collisions.turns().count(), collisions.trials.len());
        let _ = writeln!(text, "\n{}: {apart} of {all} trials taken apart", course.name());
        let _ = writeln!(text, "{:24}{:>10}{:>10}{:>10}", "", "p50", "p99", "longest");
        for (name, time) in ROWS {
            let Spread { p50_ns, p99_ns, most_ns, .. } = collisions.spread(time);
            let [p50, p99, most] = [p50_ns, p99_ns, most_ns].map(milliseconds);
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
        courses: Vec<Of<'a>>,
    }
    #[derive(Serialize)]
    struct Of<'a> {
        switches: &'static str,
        by: &'static str,
        decision_to_path: Spread,
        event_to_path: Spread,
        headroom: Spare,
        missed_frames: u64,
        trials: &'a [Trial],
    }
    let of = |course: &'_ Course| -> (&'static str, &'static str) {
        (if course.plane == thalweg_lab::Plane::Ovs { "ovs" } else { "ebpf" }, course.by.name())
    };
    let courses = results.courses.iter().map(|course| {
        let (switches, by) = of(course);
        let collisions = &course.collisions;
        Of {
            switches,
            by,
            decision_to_path: collisions.spread(Turn::decision_to_path),
            event_to_path: collisions.spread(Turn::event_to_path),
            headroom: Spare::from(&collisions.headroom),
            missed_frames: collisions.missed_frames,
            trials: &collisions.trials,
        }
    });
    line(&Line { r#type: "reroute-latency", rate_bps: results.rate.0, courses: courses.collect() })
}
