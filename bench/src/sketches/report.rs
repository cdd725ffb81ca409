//! Result page and raw rows.

use super::contender::{Family, Outcome, Subject, TOP};
use super::contenders::TEXTBOOK;
use super::ours::OURS;
use super::targets::TARGETS;
use crate::results::{Page, Table};
use crate::row;
use crate::statistics::median;

/// All runs of one contender.
struct Runs<'a> {
    subject: &'a Subject,
    rate: f64,
    error: f64,
    found: Option<f64>,
}

/// Adds the targets, and a section for each kind of sketch, without and with a heap.
pub(super) fn sections(page: &mut Page, outcomes: &[Vec<Outcome>]) {
    let runs = by_subject(outcomes);
    page.section("Aims").table(&targets(&runs));
    let families =
        [Family::CountMin, Family::CountSketch, Family::KAry, Family::UnivMon, Family::HyperLogLog];
    for family in families {
        for heap in [false, true] {
            let same: Vec<&Runs<'_>> =
                runs.iter().filter(|runs| runs.subject.task() == (family, heap)).collect();
            if same.is_empty() {
                continue;
            }
            let heading = match (family, heap) {
                (Family::UnivMon, _) | (_, false) => family.name().to_owned(),
                (_, true) => format!("{} with the top {TOP}", family.name()),
            };
            page.section(&heading).table(&table(&same));
        }
    }
}

/// Returns a row for each run.
pub(super) fn rows(outcomes: &[Vec<Outcome>]) -> Table {
    let mut table = Table::new([
        "contender",
        "sketch",
        "top",
        "rows",
        "width",
        "key_bytes",
        "memory_bytes",
        "p",
        "packets",
        "run",
        "seconds",
        "error",
        "found",
        "note",
    ]);
    for (run, outcomes) in outcomes.iter().enumerate() {
        for Outcome { subject, packets, seconds, error, found } in outcomes {
            row!(
                table,
                subject.contender,
                subject.sketch.name(),
                subject.top,
                subject.rows,
                subject.width,
                subject.key_bytes,
                subject.memory_bytes,
                subject.p,
                packets,
                run + 1,
                seconds,
                format!("{error:.6}"),
                found.map_or_else(String::new, |found| found.to_string()),
                subject.note,
            );
        }
    }
    table
}

/// Returns medians over the runs, by contender in order and decreasing `p`.
fn by_subject(outcomes: &[Vec<Outcome>]) -> Vec<Runs<'_>> {
    let mut subjects: Vec<&Subject> = Vec::new();
    for Outcome { subject, .. } in outcomes.iter().flatten() {
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    let first = |subject: &Subject| subjects.iter().position(|other| other.contender == subject.contender);
    let mut runs: Vec<Runs<'_>> = subjects.iter().map(|subject| Runs::of(subject, outcomes)).collect();
    runs.sort_by(|a, b| first(a.subject).cmp(&first(b.subject)).then(b.subject.p.total_cmp(&a.subject.p)));
    runs
}

impl<'a> Runs<'a> {
    fn of(subject: &'a Subject, outcomes: &[Vec<Outcome>]) -> Runs<'a> {
        let same: Vec<&Outcome> = outcomes.iter().flatten().filter(|run| run.subject == *subject).collect();
        let median_of =
            |what: fn(&Outcome) -> f64| median(&same.iter().map(|run| what(run)).collect::<Vec<_>>());
        Runs {
            subject,
            rate: median_of(Outcome::rate),
            error: median_of(|run| run.error),
            found: (subject.top > 0).then(|| median_of(|run| run.found.unwrap_or(0) as f64)),
        }
    }
}

/// Returns the target speeds and our measured ones.
fn targets(runs: &[Runs<'_>]) -> Table {
    let mut table = Table::new([
        "sketch",
        "p",
        "target, M updates/s",
        "ambitious target",
        "measured",
        "textbook",
        "ratio",
        "error relative to the textbook's at p = 1",
    ]);
    for target in &TARGETS {
        let find = |contender, p: f64| {
            let is_it = |runs: &&Runs<'_>| {
                let Subject { contender: whose, p: its, .. } = runs.subject;
                whose == contender && runs.subject.task() == (target.sketch, target.top) && *its == p
            };
            runs.iter().find(is_it)
        };
        let p = 1.0 / f64::from(target.one_in);
        let (Some(ours), Some(textbook)) = (find(OURS, p), find(TEXTBOOK, 1.0)) else { continue };
        row!(
            table,
            target.what,
            probability(p),
            target.target,
            target.ambitious,
            format!("{:.1}", ours.rate),
            format!("{:.1}", textbook.rate),
            format!("{:.2}", ours.rate / textbook.rate),
            format!("{:.2}", ours.error / textbook.error),
        );
    }
    table
}

fn table(runs: &[&Runs<'_>]) -> Table {
    let mut table = Table::new([
        "contender",
        "p",
        "M updates/s",
        "relative to the textbook",
        "error of the top 100",
        "error relative to the textbook",
        "found of the top 100",
        "rows x width",
        "counters, KiB",
        "key, bytes",
        "remark",
    ]);
    let textbook = runs.iter().find(|runs| runs.subject.contender == TEXTBOOK && runs.subject.p == 1.0);
    for Runs { subject, rate, error, found } in runs {
        let ratio = |to: fn(&Runs<'_>) -> f64, what: f64| {
            textbook.map_or_else(|| "-".to_owned(), |book| format!("{:.2}", what / to(book)))
        };
        row!(
            table,
            subject.contender,
            probability(subject.p),
            format!("{rate:.1}"),
            ratio(|book| book.rate, *rate),
            format!("{:.2} %", 100.0 * error),
            ratio(|book| book.error, *error),
            found.map_or_else(|| "-".to_owned(), |found| found.to_string()),
            format!("{} x {}", subject.rows, subject.width),
            subject.memory_bytes / 1024,
            subject.key_bytes,
            subject.note,
        );
    }
    table
}

/// Formats a probability as 1/n where possible.
fn probability(p: f64) -> String {
    let one_in = 1.0 / p;
    match one_in {
        1.0 => "1".to_owned(),
        _ if (one_in - one_in.round()).abs() < 1e-9 => format!("1/{}", one_in.round()),
        _ => p.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(contender: &str, p: f64, seconds: f64) -> Outcome {
        let subject = Subject::new(contender, Family::CountMin, p);
        Outcome { subject, packets: 1_000_000, seconds, error: 0.0123, found: None }
    }

    #[test]
    fn rows_have_the_median_rate_and_its_ratio_to_the_textbook() {
        let run = |textbook, other| {
            vec![
                outcome(TEXTBOOK, 1.0, textbook),
                outcome("fast", 1.0 / 16.0, other),
                outcome("fast", 1.0, 0.05),
            ]
        };
        let outcomes = [run(0.1, 0.02), run(0.2, 0.01), run(0.1, 0.02)];
        let mut page = Page::new("", "");
        sections(&mut page, &outcomes);
        let lines: Vec<&str> = page.text().lines().filter(|line| line.contains(" x 8192")).collect();
        assert!(lines[0].starts_with("| textbook | 1 | 10.0 | 1.00 | 1.23 % | 1.00 | - |"), "{lines:?}");
        assert!(lines[1].starts_with("| fast | 1 | 20.0 | 2.00 |"), "{lines:?}");
        assert!(lines[2].starts_with("| fast | 1/16 | 50.0 | 5.00 |"), "{lines:?}");
        assert_eq!(rows(&outcomes).csv().lines().count(), 1 + 9);
    }

    #[test]
    fn outcome_survives_json() {
        let outcome = Outcome { found: Some(97), ..outcome("fast", 1.0 / 128.0, 0.5) };
        let json = serde_json::to_string(&outcome).unwrap();
        assert!(json.contains(r#""sketch":"Count-Min""#), "{json}");
        assert_eq!(serde_json::from_str::<Outcome>(&json).unwrap(), outcome);
    }

    #[test]
    fn probabilities_are_formatted_as_fractions() {
        assert_eq!([1.0, 0.0625, 0.01, 0.3].map(probability), ["1", "1/16", "1/100", "0.3"]);
    }
}
