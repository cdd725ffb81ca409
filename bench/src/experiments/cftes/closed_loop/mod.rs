//! Fourteen days with a threshold that follows the traffic, which the dissertation does not run.
//!
//! Each hour stands for a minute or so of emulated time. Every hour is run with every threshold of the grid at once; a policy
//! then only chooses among these outcomes. So all policies see the same bursts and the same cheetah flows, and a sweep of
//! settings costs nothing.
//!
//! | module | contents |
//! |---|---|
//! | [`traffic`] | background traffic and cheetah flows |
//! | [`flows`] | cheetah flows that are moved above a threshold |
//! | [`hour`] | one hour with every threshold |
//! | [`policies`] | how the threshold is chosen |

mod flows;
mod hour;
mod policies;
mod traffic;

use std::collections::BTreeMap;
use std::path::Path;

use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;

use super::runs::{finish, run_all};
use super::{Size, significant, within};
use crate::experiments::Outcome as Results;
use crate::experiments::flexplane::{Study, Trends};
use crate::results::{Page, Table, save};
use crate::row;
use hour::{Hour, Outcome, RATES, rate};
use policies::{Total, by_equation, by_forecast, by_oracle, fixed, moved_at};
use traffic::{HOURS, Kind};

/// Emulated seconds per hour by default.
const SECONDS: f64 = 60.0;

/// The seed of the fourteen days; others are the oracle's.
const SEED: u64 = 0;

/// Acceptable losses of policies that have one.
const LOSSES: [f64; 13] = [1e-6, 3e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 3e-2];

/// Alpha of equation 3.2 for a burstiness of 1.
const SCALES: [f64; 10] = [0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6];

/// Total losses at which policies are compared.
const COMPARED: [f64; 3] = [1e-4, 3e-4, 1e-3];

/// A policy with all its settings.
struct Policy {
    name: &'static str,
    settings: Vec<(String, Total)>,
}

impl Policy {
    fn totals(&self) -> Vec<Total> {
        self.settings.iter().map(|(_, total)| *total).collect()
    }
}

/// An hour to be run: of the fourteen days, or one of the oracle's.
enum Task {
    Day(u64),
    Other(Kind),
}

impl Task {
    fn name(&self) -> String {
        match self {
            Task::Day(hour) => format!("hour {hour}"),
            Task::Other(kind) => format!("kind {}", kind.name()),
        }
    }
}

pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Results> {
    let size = Size::of(study, SECONDS);
    let kinds: Vec<Kind> = (0..HOURS).map(Kind::of).collect();
    let mut distinct = kinds.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let days: Vec<Task> = (0..HOURS).map(Task::Day).collect();
    let others: Vec<Task> = distinct.iter().copied().map(Task::Other).collect();
    let until_ps = size.until_ps();
    let run_task = |task: &Task, seed: u64| match task {
        Task::Day(hour) => hour::run(Kind::of(*hour), SEED, *hour, until_ps, true),
        // Hours that no day has, so that they differ from those of the fourteen days.
        Task::Other(kind) => hour::run(*kind, seed, HOURS + kind.hour_of_day, until_ps, false),
    };
    let one = Size { seeds: 1, ..size.clone() };
    let hours: Vec<Hour> = run_all(&one, &days, Task::name, run_task)?.into_iter().flatten().collect();
    let runs: Vec<Vec<Hour>> = run_all(&size, &others, Task::name, run_task)?;
    let others: BTreeMap<Kind, Vec<Vec<Outcome>>> = distinct
        .into_iter()
        .zip(runs)
        .map(|(kind, hours)| (kind, hours.into_iter().map(|hour| hour.outcomes).collect()))
        .collect();
    let (_, errors, simulated) = by_forecast(&hours, COMPARED[0], size.seconds);
    let policies = policies_of(&hours, &kinds, &others, size.seconds);

    let mut page = Page::new("Fourteen days with a threshold that follows the traffic", study.command);
    page.paragraph(format!(
        "An hour stands for {} s of emulated time. A port of 1 Gbit/s with 5 MB for each queue, strict priority; background traffic of \
         80 to 280 Mbit/s on usual days; cheetah flows of 50 to 900 Mbit/s, one after the other. Loss is that of the background \
         traffic over all {HOURS} hours. The oracle knows {} other hours of each kind.",
        size.seconds, size.seeds
    ));
    page.section("Share of cheetah flows that are moved, at equal loss").table(&compared(&policies));
    let errors = errors.map_or("Forecasts were not compared.".to_owned(), |errors| {
        format!(
            "Mean error of {} forecasts: {:.0} %; of the threshold of the hour before: {:.0} %. {simulated} of {HOURS} hours were \
             simulated; the others had the tag of an earlier one (acceptable loss {}).",
            errors.periods,
            100.0 * errors.forecast,
            100.0 * errors.previous,
            COMPARED[0]
        )
    });
    page.paragraph(errors);
    page.section("All settings").table(&settings(&policies));
    page.section("Trends").table(&trends(&policies).0);
    draw(study.plot, &policies)?;
    finish(&size)?;
    Ok(Results { page, table: raw(&policies) })
}

fn policies_of(
    hours: &[Hour],
    kinds: &[Kind],
    others: &BTreeMap<Kind, Vec<Vec<Outcome>>>,
    seconds: f64,
) -> Vec<Policy> {
    let total = |choices| Total::of(hours, &choices);
    let by_loss = |choose: &dyn Fn(f64) -> policies::Choices| {
        LOSSES.map(|loss| (format!("{loss:e}"), total(choose(loss)))).to_vec()
    };
    vec![
        Policy {
            name: "fixed",
            settings: (0..RATES)
                .map(|place| (format!("{} Mbit/s", rate(place).0 / 1_000_000), total(fixed(hours, place))))
                .collect(),
        },
        Policy {
            name: "equation 3.2",
            settings: SCALES.map(|scale| (format!("{scale}"), total(by_equation(hours, scale)))).to_vec(),
        },
        Policy { name: "forecast", settings: by_loss(&|loss| by_forecast(hours, loss, seconds).0) },
        Policy { name: "oracle", settings: by_loss(&|loss| by_oracle(kinds, others, loss)) },
    ]
}

fn compared(policies: &[Policy]) -> Table {
    let columns = COMPARED.map(|loss| format!("loss {loss:e}"));
    let mut table = Table::with_header(std::iter::once("policy".to_owned()).chain(columns).collect());
    for policy in policies {
        let cells = COMPARED.map(|loss| {
            moved_at(&policy.totals(), loss).map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
        });
        table.push(std::iter::once(policy.name.to_owned()).chain(cells).collect());
    }
    table
}

fn settings(policies: &[Policy]) -> Table {
    let mut table =
        Table::new(["policy", "setting", "loss, percent", "moved, percent", "cheetah flows, Mbit/s"]);
    for policy in policies {
        for (setting, total) in &policy.settings {
            row!(
                table,
                policy.name,
                setting,
                significant(100.0 * total.loss),
                format!("{:.1}", 100.0 * total.moved),
                format!("{:.0}", total.mbps),
            );
        }
    }
    table
}

fn raw(policies: &[Policy]) -> Table {
    let mut table = Table::new(["policy", "setting", "loss", "moved", "flow mbit/s"]);
    for policy in policies {
        for (setting, total) in &policy.settings {
            row!(table, policy.name, setting, total.loss, total.moved, total.mbps);
        }
    }
    table
}

fn trends(policies: &[Policy]) -> Trends {
    let mut trends = Trends::with_header("claim");
    let moved = |name: &str, loss: f64| {
        let policy = policies.iter().find(|policy| policy.name == name)?;
        moved_at(&policy.totals(), loss)
    };
    for loss in COMPARED {
        let ratio =
            |name: &str| moved(name, loss).zip(moved("oracle", loss)).map(|(one, oracle)| one / oracle);
        let mut check = |says: &str, value: Option<f64>, bounds: (f64, f64)| {
            let says = format!("{says}, at a loss of {loss:e}: {} to {}", bounds.0, bounds.1);
            let found = value.map_or("not reached".to_owned(), |value| format!("{value:.3}"));
            trends.check(&says, value.is_some_and(|value| within(value, bounds)), &found);
        };
        check("forecast moves as many flows as the oracle", ratio("forecast"), (0.8, 1.1));
        check("a fixed threshold moves more flows than the oracle", ratio("fixed"), (1.0, 3.0));
    }
    trends
}

fn draw(path: &Path, policies: &[Policy]) -> anyhow::Result<()> {
    let curve = |policy: &Policy| {
        let mut points: Vec<(f64, f64)> =
            policy.totals().iter().map(|total| (100.0 * total.moved, 100.0 * total.loss)).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        points
    };
    let curves = policies.iter().map(curve).collect();
    let title = "loss of background traffic (%)";
    let panel = Panel::curves(title, "cheetah flows that are moved (%)", Scale::LOGARITHMIC, curves);
    let names: Vec<&str> = policies.iter().map(|policy| policy.name).collect();
    let heading = Heading::new("Loss by the share of isolated flows", "");
    save(path, &figure::draw(&heading, &Legend::of(&names), SEVERAL, &[panel])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hours are deterministic; a lower threshold moves more flows and loses no more.
    #[test]
    fn a_lower_threshold_moves_more_flows() {
        let kind = Kind::of(15);
        let until_ps = 20_000_000_000_000;
        let first = hour::run(kind, 1, 15, until_ps, true).unwrap();
        assert_eq!(hour::run(kind, 1, 15, until_ps, true).unwrap(), first);
        assert_ne!(hour::run(kind, 2, 15, until_ps, false).unwrap().outcomes, first.outcomes);
        let moved: Vec<u64> = first.outcomes.iter().map(|outcome| outcome.moved).collect();
        assert!(moved.is_sorted_by(|one, other| one >= other) && moved[0] > moved[RATES - 1], "{moved:?}");
        let dropped = |place: usize| first.outcomes[place].dropped.iter().sum::<u64>();
        assert!(dropped(0) <= dropped(RATES - 1), "{} {}", dropped(0), dropped(RATES - 1));
        assert_eq!(first.losses.len(), RATES);
        assert!(first.outcomes.iter().all(|it| it.offered == first.outcomes[0].offered));
    }
}
