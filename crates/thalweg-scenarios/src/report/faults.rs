//! Results of `faults`.

use std::fmt::Write as _;

use serde_json::json;
use thalweg_wire::Nanos;

use super::{advice, line, milliseconds};
use crate::scenarios::faults;

/// Returns the results of `faults` as text.
pub fn faults(results: &faults::Results) -> String {
    let faults::Results { rate, seed, outcomes } = results;
    let mut text = format!("faults: link rate {rate}, seed {seed}\n\n");
    let _ = writeln!(
        text,
        "{:20}{:10}{:>12}{:>14}{:>14}{:>18}{:>10}",
        "fault", "survived", "recovery", "broken paths", "unreachable", "next collision", "CPU idle"
    );
    let time = |time: Option<Nanos>| time.map_or("never".to_owned(), |time| milliseconds(time.0));
    for outcome in outcomes {
        let row = outcome.row();
        let _ = writeln!(
            text,
            "{:20}{:10}{:>12}{:>14}{:>14}{:>18}{:>8.0} %{}",
            row.fault,
            if row.survived { "yes" } else { "no" },
            time(outcome.recovery),
            outcome.misrouted.len(),
            outcome.unreachable.len(),
            time(outcome.next_collision),
            100.0 * row.idle_ratio,
            if row.conclusive { "" } else { "  times inconclusive" }
        );
    }
    text += advice(outcomes.iter().map(|outcome| outcome.row().conclusive));
    for outcome in outcomes {
        let _ = writeln!(text, "\n{}", outcome.fault.name());
        outcome.log.iter().for_each(|line| text += &format!("  {line}\n"));
        outcome.failures.iter().for_each(|line| text += &format!("  failed: {line}\n"));
    }
    text
}

/// Returns the results of `faults` as a line of JSON.
pub fn faults_json(results: &faults::Results) -> String {
    let rows: Vec<_> = results.outcomes.iter().map(faults::Outcome::row).collect();
    line(&json!({ "type": "faults", "rate_bps": results.rate.0, "seed": results.seed, "faults": rows }))
}
