//! Found, missed and false reports of detectors, and their delays, against the ground truth of a trace with
//! near-misses.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use thalweg_measure::detect::cfinf::{Cfinf, CfinfParameters};
use thalweg_measure::detect::{Cheetah, Finding};
use thalweg_measure::meter::flow_table::{FlowTable, FlowTableOptions, Output};
use thalweg_wire::{FlowKey, Packet};

use crate::results::{Page, Table, grouped, save_page, save_rows};
use crate::row;
use crate::stages::flow_table;
use crate::statistics::quantile;
use crate::traces::{normal, stream};
use crate::truth::Truth;

/// Options of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct DetectorsOptions {
    /// Length of the trace in packets
    #[arg(long, default_value_t = 38_000_000)]
    pub packets: u64,
    /// Output folder
    #[arg(long, default_value = "bench/results")]
    pub output: PathBuf,
}

/// A detector under test.
#[derive(Debug)]
pub enum Detector {
    /// Our detector, with its flow table.
    SlidingWindow(Box<FlowTable>),
    /// The published detector.
    Cfinf(Box<Cfinf>),
}

impl Detector {
    /// Creates our detector with defaults.
    pub fn sliding_window() -> Detector {
        Detector::SlidingWindow(Box::new(flow_table(FlowTableOptions::default(), true)))
    }

    /// Creates the published detector; `seed` is that of its sampling.
    ///
    /// # Errors
    /// If a parameter is out of range.
    pub fn cfinf(parameters: CfinfParameters, seed: u64) -> anyhow::Result<Detector> {
        Ok(Detector::Cfinf(Box::new(Cfinf::new(parameters, seed)?)))
    }

    /// Processes packets.
    pub fn observe(&mut self, packets: &[Packet], output: &mut Output) {
        match self {
            Detector::SlidingWindow(table) => table.update(packets, output),
            Detector::Cfinf(cfinf) => {
                packets.iter().for_each(|packet| cfinf.handle(packet, &mut output.findings));
            }
        }
        output.records.clear();
    }
}

/// The comparison of findings with the ground truth.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    /// Cheetahs that were reported.
    pub found: u64,
    /// Cheetah flows that were not reported.
    pub missed: u64,
    /// Reported flows that are not cheetah flows.
    pub false_reports: u64,
    /// Repeated reports of a flow.
    pub repeated: u64,
    /// Times from the packet with which a window first exceeded `R * T` to the report, in ms; negative if a detector
    /// with slack reports early.
    pub after_crossing_ms: Vec<f64>,
    /// Times from the first packet of that direction of the flow to the report, in ms.
    pub after_first_ms: Vec<f64>,
    /// Reported and total flows, by the kind of generated flow (`thalweg synth`).
    pub kinds: BTreeMap<String, (u64, u64)>,
}

impl Score {
    /// Compares `findings` with `truth`.
    pub fn of(findings: &[Finding], truth: &Truth) -> Score {
        let mut score = Score::default();
        let mut reports: HashMap<FlowKey, Cheetah> = HashMap::new();
        for finding in findings {
            if let Finding::Began(cheetah) = finding {
                score.repeated += u64::from(reports.contains_key(&cheetah.key));
                reports.entry(cheetah.key).or_insert(*cheetah);
            }
        }
        for row in &truth.rows {
            let (reported, all) = score.kinds.entry(row.kind.clone()).or_default();
            *all += 1;
            *reported += u64::from(reports.contains_key(&row.key));
        }
        for (row, crossed) in truth.cheetahs() {
            match reports.remove(&row.key) {
                None => score.missed += 1,
                Some(cheetah) => {
                    score.found += 1;
                    let ms = |since: u64| (cheetah.detected.0 as f64 - since as f64) / 1e6;
                    score.after_crossing_ms.push(ms(crossed.0));
                    score.after_first_ms.push(ms(row.first.0));
                }
            }
        }
        score.false_reports = reports.len() as u64;
        score
    }
}

/// Formats the median, 99th percentile and maximum to a tenth.
pub fn delays(sample: &[f64]) -> String {
    let at = |share| quantile(sample, share);
    if sample.is_empty() {
        "-".to_owned()
    } else {
        format!("{:.1} / {:.1} / {:.1}", at(0.5), at(0.99), at(1.0))
    }
}

/// Runs the benchmark and writes its results.
///
/// # Errors
/// If the trace cannot be generated or the results cannot be written.
pub fn run(options: &DetectorsOptions) -> anyhow::Result<()> {
    let cfinf = |flow_cache_entries, packet_length_threshold| {
        let defaults = CfinfParameters::default();
        Detector::cfinf(CfinfParameters { flow_cache_entries, packet_length_threshold, ..defaults }, 1)
    };
    let mut detectors = [
        ("sliding window (ours)", Detector::sliding_window(), Output::default()),
        ("CFINF, 50,000 entries", cfinf(50_000, 0)?, Output::default()),
        ("CFINF, 50,000 entries, L = 600 B", cfinf(50_000, 600)?, Output::default()),
        ("CFINF, 4 M entries", cfinf(4_000_000, 0)?, Output::default()),
    ];
    let (contents, truth) = stream(&normal(options.packets), |packets| {
        detectors.iter_mut().for_each(|(_, detector, output)| detector.observe(packets, output));
    })?;
    let scores: Vec<(&str, Score)> =
        detectors.iter().map(|(name, _, output)| (*name, Score::of(&output.findings, &truth))).collect();
    let command = format!("thalweg-bench detectors --packets {}", options.packets);
    let mut page = Page::new("Detectors against the truth", &command);
    page.paragraph(format_args!(
                "{} packets, {} cheetahs and {} near-misses; T = 100 ms, R = 50 Mbit/s. Delays in milliseconds, median / 99th \
                 percentile / maximum. \"After crossing\" is the time from the packet with which a window of length T first \
                 exceeded R*T; negative values are early reports.",
        grouped(contents.packets),
        grouped(contents.cheetahs),
        grouped(truth.rows.len() as u64 - contents.cheetahs)
    ));
    page.table(&summary(&scores));
    page.section("Reports by kind of flow").table(&by_kind(&scores));
    save_page(&options.output, "detectors", &page)?;
    save_rows(&options.output, "detectors", &rows(&scores, options.packets))
}

fn summary(scores: &[(&str, Score)]) -> Table {
    let mut table = Table::new([
        "detector",
        "found",
        "missed",
        "false",
        "repeated",
        "after crossing, ms",
        "after first packet, ms",
    ]);
    for (name, score) in scores {
        let Score { found, missed, false_reports, repeated, .. } = score;
        let (crossing, first) = (delays(&score.after_crossing_ms), delays(&score.after_first_ms));
        row!(table, name, found, missed, false_reports, repeated, crossing, first);
    }
    table
}

fn by_kind(scores: &[(&str, Score)]) -> Table {
    let names = scores.iter().map(|(name, _)| (*name).to_owned());
    let mut table =
        Table::with_header(["kind", "flows"].map(str::to_owned).into_iter().chain(names).collect());
    let kinds = scores.first().map(|(_, score)| &score.kinds).into_iter().flatten();
    for (kind, (_, flows)) in kinds {
        let reported = scores.iter().map(|(_, score)| score.kinds[kind].0.to_string());
        table.push([kind.clone(), flows.to_string()].into_iter().chain(reported).collect());
    }
    table
}

fn rows(scores: &[(&str, Score)], packets: u64) -> Table {
    let mut table = Table::new([
        "detector",
        "packets",
        "found",
        "missed",
        "false",
        "repeated",
        "delay",
        "min_ms",
        "median_ms",
        "p99_ms",
        "max_ms",
    ]);
    for (name, score) in scores {
        for (delay, sample) in
            [("after_crossing", &score.after_crossing_ms), ("after_first_packet", &score.after_first_ms)]
        {
            let at = |share| format!("{:.4}", quantile(sample, share));
            let Score { found, missed, false_reports, repeated, .. } = score;
            row!(
                table,
                name,
                packets,
                found,
                missed,
                false_reports,
                repeated,
                delay,
                at(0.0),
                at(0.5),
                at(0.99),
                at(1.0)
            );
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_detector_has_no_missed_or_false_reports() {
        let mut detector = Detector::sliding_window();
        let mut output = Output::default();
        let (contents, truth) =
            stream(&normal(400_000), |packets| detector.observe(packets, &mut output)).unwrap();
        let score = Score::of(&output.findings, &truth);
        assert!(contents.cheetahs >= 8, "{contents:?}");
        assert_eq!((score.found, score.missed, score.false_reports), (contents.cheetahs, 0, 0));
        // Windows that begin before a flow is logged are decided up to one quantum later.
        let latest = score.after_crossing_ms.iter().copied().fold(f64::MIN, f64::max);
        let at_once = score.after_crossing_ms.iter().filter(|delay| **delay == 0.0).count();
        assert!(latest <= 100.0 / 64.0, "{latest} ms");
        assert!(2 * at_once >= score.after_crossing_ms.len(), "{at_once}");
        assert!(
            score.after_crossing_ms.iter().all(|delay| *delay >= 0.0),
            "none is named before it is a cheetah"
        );
    }

    #[test]
    fn reports_count_as_found_false_or_repeated() {
        let mut output = Output::default();
        let mut detector = Detector::sliding_window();
        let (_, truth) = stream(&normal(200_000), |packets| detector.observe(packets, &mut output)).unwrap();
        let mut findings = output.findings;
        let began = *findings.iter().find(|finding| matches!(finding, Finding::Began(_))).unwrap();
        let Finding::Began(cheetah) = began else { unreachable!("chosen above") };
        findings.push(began);
        findings.push(Finding::Began(Cheetah { key: cheetah.key.with_ports(1, 1), ..cheetah }));
        let score = Score::of(&findings, &truth);
        assert_eq!((score.missed, score.false_reports, score.repeated), (0, 1, 1));
    }
}
