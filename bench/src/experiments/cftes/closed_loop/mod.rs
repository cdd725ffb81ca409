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

use thalweg_control::threshold::ForecastErrors;
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
use hour::{Hour, Outcome, PARTS, RATES, rate};
use policies::{
    Forecasts, Total, by_equation, by_forecast, by_oracle, by_regulator, fixed, forecasts, moved_at,
};
use traffic::{HOURS, Kind};

/// Emulated seconds per hour by default.
const SECONDS: f64 = 60.0;

/// The seed of the fourteen days; others are the oracle's.
const SEED: u64 = 0;

/// Acceptable losses of policies that have one. Between 2e-3 and 5e-3, where the total loss triples, they are denser.
const LOSSES: [f64; 18] = [
    1e-6, 3e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 2.5e-3, 3e-3, 3.5e-3, 4e-3, 4.5e-3, 5e-3,
    1e-2, 3e-2,
];

/// Alpha of equation 3.2 for a burstiness of 1.
const SCALES: [f64; 10] = [0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6];

/// Total losses at which policies are compared.
const COMPARED: [f64; 3] = [1e-4, 3e-4, 1e-3];

/// Fixed thresholds that are shown on their own, as places: 300, 600 and 800 Mbit/s.
const THREE: [usize; 3] = [5, 11, 15];

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
    let forecasts: Vec<(f64, Forecasts)> =
        LOSSES.map(|loss| (loss, forecasts(&hours, loss, size.seconds))).into();
    let policies = policies_of(&hours, &kinds, &others, &forecasts)?;

    let mut page = Page::new("Fourteen days with a threshold that follows the traffic", study.command);
    page.paragraph(format!(
        "An hour stands for {} s of emulated time. A port of 1 Gbit/s with 5 MB for each queue, strict priority; background traffic of \
         80 to 280 Mbit/s on usual days; cheetah flows of 50 to 900 Mbit/s, one after the other. Loss is that of the background \
         traffic over all {HOURS} hours. The oracle knows {} other hours of each kind.",
        size.seconds, size.seeds
    ));
    page.section("Share of cheetah flows that are moved, at equal loss").table(&compared(&policies));
    page.section("Three fixed thresholds").table(&three(&policies));
    page.section("Forecasts").table(&errors(&forecasts));
    page.paragraph(format!(
        "Errors are means of |forecast / R - 1|; R is what the curves of similar traffic say of the hour's own traffic. Simulated \
         are hours of new traffic, and of such that its curves did not settle R; of {HOURS}."
    ));
    page.section("All settings").table(&settings(&policies));
    page.section("Trends").table(&trends(&policies, &forecasts).0);
    draw(study.plot, &policies)?;
    finish(&size)?;
    Ok(Results { page, table: raw(&policies) })
}

/// `forecasts` has one for each acceptable loss.
fn policies_of(
    hours: &[Hour],
    kinds: &[Kind],
    others: &BTreeMap<Kind, Vec<Vec<Outcome>>>,
    forecasts: &[(f64, Forecasts)],
) -> anyhow::Result<Vec<Policy>> {
    let total = |choices| Total::of(hours, &choices);
    let by_loss = |choose: &dyn Fn(f64) -> policies::Choices| {
        LOSSES.map(|loss| (format!("{loss:e}"), total(choose(loss)))).to_vec()
    };
    let regulated = |polls: usize| {
        let of = |(loss, forecasts): &(f64, Forecasts)| -> anyhow::Result<(String, Total)> {
            Ok((format!("{loss:e}"), total(by_regulator(hours, forecasts, *loss, polls)?)))
        };
        forecasts.iter().map(of).collect::<anyhow::Result<Vec<_>>>()
    };
    Ok(vec![
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
        Policy {
            name: "forecast",
            settings: forecasts
                .iter()
                .map(|(loss, forecasts)| (format!("{loss:e}"), total(by_forecast(forecasts))))
                .collect(),
        },
        Policy { name: "forecast with RQA", settings: regulated(PARTS)? },
        Policy { name: "forecast with RQA of single polls", settings: regulated(1)? },
        Policy { name: "oracle", settings: by_loss(&|loss| by_oracle(kinds, others, loss)) },
    ])
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

/// What three fixed thresholds lead to, and what the oracle moves at the same loss.
fn three(policies: &[Policy]) -> Table {
    let mut table = Table::new([
        "threshold",
        "loss, percent",
        "moved, percent",
        "oracle moves, percent",
        "flows, Mbit/s",
    ]);
    let named = |name: &str| policies.iter().find(|policy| policy.name == name);
    let (Some(fixed), Some(oracle)) = (named("fixed"), named("oracle")) else { return table };
    for place in THREE {
        let (setting, total) = &fixed.settings[place];
        let best = moved_at(&oracle.totals(), total.loss);
        row!(
            table,
            setting,
            significant(100.0 * total.loss),
            format!("{:.1}", 100.0 * total.moved),
            best.map_or("-".to_owned(), |share| format!("{:.1}", 100.0 * share)),
            format!("{:.0}", total.mbps),
        );
    }
    table
}

/// How far forecasts were off, by acceptable loss.
fn errors(forecasts: &[(f64, Forecasts)]) -> Table {
    let mut table = Table::new([
        "acceptable loss",
        "error of the forecast, percent",
        "of the hour before, percent",
        "hours",
        "simulated",
    ]);
    for (loss, forecasts) in forecasts {
        if let Some(errors) = forecasts.errors {
            row!(
                table,
                format!("{loss:e}"),
                format!("{:.1}", 100.0 * errors.forecast),
                format!("{:.1}", 100.0 * errors.previous),
                errors.periods,
                forecasts.counters.simulated,
            );
        }
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

fn trends(policies: &[Policy], forecasts: &[(f64, Forecasts)]) -> Trends {
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
        check("forecast with RQA moves as many flows as the oracle", ratio("forecast with RQA"), (0.8, 1.1));
        check("a fixed threshold moves more flows than the oracle", ratio("fixed"), (1.0, 3.0));
    }
    // Where R varies: neither the lowest nor the highest of the grid all the time.
    let errors: Vec<_> =
        forecasts.iter().filter_map(|(_, it)| it.errors).filter(|it| it.previous > 0.0).collect();
    let mean =
        |of: fn(&ForecastErrors) -> f64| errors.iter().map(of).sum::<f64>() / errors.len().max(1) as f64;
    let (forecast, previous) = (mean(|it| it.forecast), mean(|it| it.previous));
    let found = format!("{:.1} %, {:.1} %", 100.0 * forecast, 100.0 * previous);
    let says = "forecasts are less off than the hour before, on average over all acceptable losses";
    trends.check(says, forecast < previous, &found);
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
        let moved: Vec<u64> = first.outcomes.iter().map(|outcome| outcome.moved.iter().sum()).collect();
        assert!(moved.is_sorted_by(|one, other| one >= other) && moved[0] > moved[RATES - 1], "{moved:?}");
        let dropped = |place: usize| first.outcomes[place].dropped.iter().sum::<u64>();
        assert!(dropped(0) <= dropped(RATES - 1), "{} {}", dropped(0), dropped(RATES - 1));
        assert_eq!(first.losses.len(), RATES);
        assert!(first.outcomes.iter().all(|it| it.offered == first.outcomes[0].offered));
    }
}
