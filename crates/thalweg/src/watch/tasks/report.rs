//! What the tasks have to say, in the report at the end of a run.

use std::io::{self, Write};

use thalweg_measure::tasks::{
    Changes, FlowName, HeavyHitters, HeavyPrefixes, PlannedTask, Spreaders, TaskSpec, TaskValue, Weight,
};
use thalweg_sketch::Estimate;
use thalweg_wire::{Nanos, Timestamp};

use super::collector::{Finished, Health};
use super::ledger::{Answer, TaskLedger};
use crate::figures::{bound_in_words, bounds, grouped, number, percent};
use crate::watch::report::row;

/// Writes what was measured, and in how much memory.
pub(in crate::watch) fn overview(out: &mut impl Write, ledger: &TaskLedger) -> io::Result<()> {
    let options = ledger.plan.options();
    writeln!(out, "Measurement tasks")?;
    let empty = match ledger.empty_windows {
        0 => String::new(),
        empty => format!(", and {} without packets", grouped(empty)),
    };
    row(out, "windows", format_args!("{} of {}{empty}", grouped(ledger.windows), options.window))?;
    row(out, "memory", format_args!("{} of {} for sketches", ledger.plan.bytes(), options.memory))?;
    row(out, "sampling", format_args!("p = {}", options.sampling))
}

/// Writes what each task has to say; `top` is the length of lists.
pub(in crate::watch) fn answers(out: &mut impl Write, ledger: &TaskLedger, top: usize) -> io::Result<()> {
    for (number, planned) in ledger.plan.tasks().iter().enumerate() {
        writeln!(out, "\n{}  ({})", planned.spec, planned.size)?;
        let Some(answer) = &ledger.tasks[number].latest else {
            writeln!(out, "  nothing to say: {}", reason(planned))?;
            continue;
        };
        let kind = if matches!(planned.spec, TaskSpec::Change { .. }) { "periods" } else { "last window" };
        write_answer(out, answer, kind, ledger.window(), top)?;
        let together = ledger.together.as_ref().filter(|together| together.report.windows > 1);
        let Some(together) = together else { continue };
        if let Some(answer) = answer_of(together, number) {
            let windows = format!("last {} windows", together.report.windows);
            write_answer(out, &answer, &windows, ledger.window(), top)?;
        }
    }
    Ok(())
}

fn reason(planned: &PlannedTask) -> &'static str {
    match planned.spec {
        TaskSpec::Change { .. } => "two whole periods have to be over first",
        _ => "there were no packets",
    }
}

/// What a task says of several windows together.
fn answer_of(finished: &Finished, task: usize) -> Option<Answer> {
    let result = finished.report.results.iter().find(|result| result.task == task)?.clone();
    let health = finished.health.get(task).copied().unwrap_or_default();
    Some(Answer { start: finished.report.start, end: finished.report.end, result, health })
}

fn write_answer(
    out: &mut impl Write,
    answer: &Answer,
    which: &str,
    window: Nanos,
    top: usize,
) -> io::Result<()> {
    let span = format!("{which}, {} to {}", moment(answer.start, window), moment(answer.end, window));
    let notes = notes(&answer.health);
    match &answer.result.value {
        TaskValue::Distinct(distinct) => {
            let value = number(distinct.value, 0);
            writeln!(out, "  {span}: {value} keys{}{notes}", bound_in_words(distinct, 0))
        }
        TaskValue::Entropy(entropy) => {
            let share = entropy.normalised.map_or_else(String::new, |share| {
                format!(", {:.0} % of the most that so many keys can have", share * 100.0)
            });
            let value = number(entropy.bits.value, 3);
            writeln!(out, "  {span}: {value} bits{}{share}{notes}", bound_in_words(&entropy.bits, 3))
        }
        TaskValue::Moments(moments) => {
            let (l1, l2) = (grouped(moments.l1), number(moments.l2.value, 0));
            writeln!(out, "  {span}: L1 {l1}, L2 {l2}{}{notes}", bound_in_words(&moments.l2, 0))
        }
        value => {
            let table = Table::of(&answer.result.spec, value);
            writeln!(out, "  {span}: {}{notes}", table.summary)?;
            table.write(out, top)
        }
    }
}

fn notes(health: &Health) -> String {
    let mut notes = String::new();
    if let Some(sampled) = health.sampled.filter(|sampled| sampled.inverse() > 1) {
        notes += &format!(", sampled with p = {sampled}");
    }
    if health.saturations > 0 {
        notes += &format!(", {} counters at the end of their range", grouped(health.saturations));
    }
    notes
}

/// Keys in rows, whatever the task.
pub(in crate::watch) struct Table {
    /// How many, and of how many.
    pub(in crate::watch) summary: String,
    /// What the estimates are of.
    pub(in crate::watch) unit: &'static str,
    /// What stands beside them.
    pub(in crate::watch) aside_name: &'static str,
    pub(in crate::watch) rows: Vec<TableRow>,
}

/// A key.
pub(in crate::watch) struct TableRow {
    pub(in crate::watch) name: FlowName,
    /// What the task lists it for.
    pub(in crate::watch) estimate: Estimate,
    /// The estimate as a share of all, or what more there is to say.
    pub(in crate::watch) aside: String,
}

impl Table {
    /// The keys of an answer; none of one that has no keys.
    pub(in crate::watch) fn of(spec: &TaskSpec, value: &TaskValue) -> Table {
        let unit = match spec.weight() {
            Weight::Packets => "packets",
            Weight::Bytes => "bytes",
        };
        match value {
            TaskValue::Heavy(heavy) => Table::heavy(heavy, unit),
            TaskValue::Change(changes) => Table::change(changes, unit),
            TaskValue::Spread(spreaders) => Table::spread(spreaders),
            TaskValue::Hierarchy(prefixes) => Table::hierarchy(prefixes, unit),
            _ => Table { summary: String::new(), unit, aside_name: "", rows: Vec::new() },
        }
    }

    fn heavy(heavy: &HeavyHitters, unit: &'static str) -> Table {
        let rows = heavy.keys.iter().map(|key| TableRow {
            name: key.name,
            estimate: key.estimate,
            aside: share_in_words(key.share),
        });
        Table {
            summary: format!("{} of {} {unit}", keys(heavy.keys.len(), heavy.room), grouped(heavy.total)),
            unit,
            aside_name: "share",
            rows: rows.collect(),
        }
    }

    fn change(changes: &Changes, unit: &'static str) -> Table {
        let rows = changes.keys.iter().map(|key| TableRow {
            name: key.name,
            estimate: key.change,
            aside: format!("{} > {}", number(key.from.value, 0), number(key.to.value, 0)),
        });
        let [before, now] = [&changes.before, &changes.now].map(|period| grouped(period.total));
        let partial = if changes.before.is_partial { " (a part of a period)" } else { "" };
        let keys = keys(changes.keys.len(), changes.room);
        let summary = format!("{keys}; {before}{partial}, then {now} {unit}");
        Table { summary, unit, aside_name: "before > after", rows: rows.collect() }
    }

    fn spread(spreaders: &Spreaders) -> Table {
        let rows = spreaders.keys.iter().map(|key| TableRow {
            name: key.name,
            estimate: key.peers,
            aside: String::new(),
        });
        let missed = match spreaders.missed_up_to {
            0 => String::new(),
            peers => format!(", incomplete under {} peers", grouped(peers)),
        };
        let keys = keys(spreaders.keys.len(), usize::MAX);
        Table { summary: format!("{keys}{missed}"), unit: "peers", aside_name: "", rows: rows.collect() }
    }

    fn hierarchy(prefixes: &HeavyPrefixes, unit: &'static str) -> Table {
        let rows = prefixes.prefixes.iter().map(|prefix| TableRow {
            name: prefix.name,
            estimate: prefix.beyond,
            aside: share_in_words(prefix.share),
        });
        let summary =
            format!("{} of {} {unit}", keys(prefixes.prefixes.len(), usize::MAX), grouped(prefixes.total));
        Table { summary, unit, aside_name: "share", rows: rows.collect() }
    }

    fn write(&self, out: &mut impl Write, top: usize) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let aside_width = self.rows.iter().take(top).map(|row| row.aside.len()).max().unwrap_or(0);
        let aside_width = aside_width.max(self.aside_name.len());
        let aside =
            |text: &str| if aside_width == 0 { String::new() } else { format!(" {text:>aside_width$}") };
        let line = |value: &str, [lower, upper]: [&str; 2], text: &str, name: &str| {
            format!("  {value:>12}{} {lower:>12} {upper:>12}  {name}", aside(text))
        };
        writeln!(out, "{}", line(self.unit, ["lower", "upper"], self.aside_name, "key"))?;
        for TableRow { name, estimate, aside } in self.rows.iter().take(top) {
            let bound = bounds(estimate, 0);
            let bound = bound.each_ref().map(String::as_str);
            writeln!(out, "{}", line(&number(estimate.value, 0), bound, aside, &name.to_string()))?;
        }
        let more = self.rows.len().saturating_sub(top);
        if more > 0 {
            writeln!(out, "  and {} more (--top {} shows more, --json all)", grouped(more as u64), top * 10)?;
        }
        self.confidence(out)
    }

    /// How sure the bounds are.
    fn confidence(&self, out: &mut impl Write) -> io::Result<()> {
        let least = self.rows.iter().filter_map(|row| row.estimate.confidence()).min_by(f64::total_cmp);
        if let Some(confidence) = least {
            writeln!(out, "  each bound holds with probability {} or more", percent(confidence))?;
        }
        Ok(())
    }
}

fn keys(count: usize, room: usize) -> String {
    match count {
        1 => "1 key".to_owned(),
        count if count >= room => format!("{} keys, more may be missing", grouped(count as u64)),
        count => format!("{} keys", grouped(count as u64)),
    }
}

fn share_in_words(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// Time of day, in as many digits as windows need.
fn moment(time: Timestamp, window: Nanos) -> String {
    let digits = if window.0.is_multiple_of(1_000_000_000) { 11..19 } else { 11..23 };
    time.to_string()[digits].to_owned()
}
