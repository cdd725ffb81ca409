//! Results of measurement tasks in the report.

use std::io::{self, Write};

use thalweg_measure::tasks::{Headline, PlannedTask, Table};
use thalweg_wire::{Nanos, Timestamp};

use crate::figures::{bound_in_words, bounds, grouped, number, percent};
use crate::task_text::{aside, words};
use crate::watch::row::row;
use thalweg_watch::tasks::{Answer, FinishedWindow, Health, TaskLedger};

/// Writes the number of windows, memory and sampling.
pub(in crate::watch) fn overview(out: &mut impl Write, ledger: &TaskLedger) -> io::Result<()> {
    let options = ledger.plan.options();
    writeln!(out, "Measurement tasks")?;
    let empty = match ledger.empty_windows {
        0 => String::new(),
        empty => format!(", {} without packets", grouped(empty)),
    };
    row(out, "windows", format_args!("{} of {}{empty}", grouped(ledger.windows), options.window))?;
    row(out, "memory", format_args!("{} of {} for sketches", ledger.plan.bytes(), options.memory))?;
    row(out, "sampling", format_args!("p = {}", options.sampling))
}

/// Writes the results of each task; `top` is the maximum length of lists.
pub(in crate::watch) fn answers(out: &mut impl Write, ledger: &TaskLedger, top: usize) -> io::Result<()> {
    for (number, planned) in ledger.plan.tasks().iter().enumerate() {
        writeln!(out, "\n{}  ({})", planned.spec, planned.size)?;
        let Some(answer) = &ledger.tasks[number].latest else {
            writeln!(out, "  no result: {}", reason(planned))?;
            continue;
        };
        let kind = if planned.spec.period().is_some() { "periods" } else { "last window" };
        write_answer(out, answer, kind, ledger.window(), top)?;
        let combined = ledger.combined.as_ref().filter(|combined| combined.report.windows > 1);
        let Some(combined) = combined else { continue };
        if let Some(answer) = answer_of(combined, number) {
            let windows = format!("last {} windows", combined.report.windows);
            write_answer(out, &answer, &windows, ledger.window(), top)?;
        }
    }
    Ok(())
}

fn reason(planned: &PlannedTask) -> &'static str {
    match planned.spec.period() {
        Some(_) => "needs two complete periods",
        None => "no packets",
    }
}

/// Returns the result of a task over several windows combined.
fn answer_of(finished: &FinishedWindow, task: usize) -> Option<Answer> {
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
    let span =
        format!("{which}, {} to {}", time_of_day(answer.start, window), time_of_day(answer.end, window));
    let notes = notes(&answer.health);
    let table = answer.result.table();
    match &table.headline {
        Headline::Estimate { estimate, unit, decimals, more } => {
            let value = number(estimate.value, *decimals);
            let more = if more.is_empty() { String::new() } else { format!(", {}", words(more)) };
            let bound = bound_in_words(estimate, *decimals);
            writeln!(out, "  {span}: {value} {unit}{bound}{more}{notes}")
        }
        Headline::Keys(keys) => {
            writeln!(out, "  {span}: {}{notes}", words(keys))?;
            write_rows(out, &table, top)
        }
    }
}

fn notes(health: &Health) -> String {
    let mut notes = String::new();
    if let Some(sampled) = health.sampled.filter(|sampled| sampled.inverse() > 1) {
        notes += &format!(", sampled with p = {sampled}");
    }
    if health.saturations > 0 {
        notes += &format!(", {} counter overflows", grouped(health.saturations));
    }
    notes
}

fn write_rows(out: &mut impl Write, table: &Table, top: usize) -> io::Result<()> {
    if table.rows.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = table.rows.iter().take(top).map(|row| (row, aside(table, row))).collect();
    let aside_width = rows.iter().map(|(_, aside)| aside.len()).max().unwrap_or(0);
    let aside_width = aside_width.max(table.aside_name().len());
    let beside = |text: &str| if aside_width == 0 { String::new() } else { format!(" {text:>aside_width$}") };
    let line = |value: &str, [lower, upper]: [&str; 2], text: &str, name: &str| {
        format!("  {value:>12}{} {lower:>12} {upper:>12}  {name}", beside(text))
    };
    writeln!(out, "{}", line(table.unit, ["lower", "upper"], table.aside_name(), "key"))?;
    for (row, aside) in &rows {
        let estimate = table.listed_for(row);
        let bound = bounds(&estimate, 0);
        let bound = bound.each_ref().map(String::as_str);
        writeln!(out, "{}", line(&number(estimate.value, 0), bound, aside, &row.name.to_string()))?;
    }
    let more = table.rows.len().saturating_sub(top);
    if more > 0 {
        writeln!(
            out,
            "  and {} more (--limit {} shows more, --json shows all)",
            grouped(more as u64),
            top * 10
        )?;
    }
    if let Some(confidence) = table.confidence() {
        writeln!(out, "  each bound holds with probability {} or more", percent(confidence))?;
    }
    Ok(())
}

/// Formats the time of day, with milliseconds if the window length needs them.
fn time_of_day(time: Timestamp, window: Nanos) -> String {
    let digits = if window.0.is_multiple_of(1_000_000_000) { 11..19 } else { 11..23 };
    time.to_string()[digits].to_owned()
}
