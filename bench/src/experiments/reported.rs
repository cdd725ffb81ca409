//! Figure 3.6a: cheetahs reported with and without length filter `L` and sampling `S`, compared with our detector and
//! the ground truth.

use std::path::Path;

use thalweg_measure::detect::Finding;
use thalweg_measure::detect::cfinf::CfinfParameters;
use thalweg_measure::meter::flow_table::Output;
use thalweg_plot::boxes::Boxes;
use thalweg_plot::figure::{self, ALONE, Legend};
use thalweg_plot::page::Heading;

use super::Outcome;
use crate::detectors::{Detector, Score};
use crate::results::{Page, Table, grouped, save};
use crate::row;
use crate::statistics::FiveNumbers;
use crate::traces::{normal, stream};

/// `L` and `S` in the order of the figure.
const SETTINGS: [(u32, f64); 4] = [(0, 1.0), (600, 1.0), (0, 0.001), (600, 0.001)];
/// The total of the source's eight instances with 50,000 entries each.
const FLOW_CACHE_ENTRIES: u32 = 400_000;

/// The run of a detector with a seed.
struct Run {
    setting: String,
    seed: u64,
    detector: Detector,
    output: Output,
}

/// Runs all settings and seeds in one pass over the trace.
pub(super) fn run(packets: u64, seeds: u64, command: &str, plot: &Path) -> anyhow::Result<Outcome> {
    let mut runs = Vec::new();
    for (packet_length_threshold, sampling_probability) in SETTINGS {
        // Without sampling the seed has no effect.
        let seeds = if sampling_probability < 1.0 { seeds.max(1) } else { 1 };
        for seed in 1..=seeds {
            let defaults = CfinfParameters::default();
            let parameters = CfinfParameters {
                packet_length_threshold,
                sampling_probability,
                flow_cache_entries: FLOW_CACHE_ENTRIES,
                ..defaults
            };
            let setting = format!("L={packet_length_threshold}, S={sampling_probability}");
            let detector = Detector::cfinf(parameters, seed)?;
            runs.push(Run { setting, seed, detector, output: Output::default() });
        }
    }
    let (setting, detector) = ("ours".to_owned(), Detector::sliding_window());
    runs.push(Run { setting, seed: 1, detector, output: Output::default() });
    let (contents, truth) = stream(&normal(packets), |packets| {
        runs.iter_mut().for_each(|Run { detector, output, .. }| detector.observe(packets, output));
    })?;

    let mut table = Table::new(["setting", "seed", "reports", "cheetahs_found", "missed", "false"]);
    let mut samples: Vec<(String, Vec<(f64, Score)>)> = Vec::new();
    for Run { setting, seed, output, .. } in &runs {
        let reports = output.findings.iter().filter(|finding| matches!(finding, Finding::Began(_))).count();
        let score = Score::of(&output.findings, &truth);
        row!(table, setting, seed, reports, score.found, score.missed, score.false_reports);
        match samples.last_mut() {
            Some((last, sample)) if last == setting => sample.push((reports as f64, score)),
            _ => samples.push((setting.clone(), vec![(reports as f64, score)])),
        }
    }
    row!(table, "truth", "", contents.cheetahs, contents.cheetahs, 0, 0);

    let mut shown =
        Table::new(["setting", "reports, median (min to max)", "cheetahs found, median", "false, median"]);
    let mut sample = Vec::new();
    for (setting, scores) in &samples {
        let of = |what: &dyn Fn(&(f64, Score)) -> f64| {
            FiveNumbers::of(&scores.iter().map(what).collect::<Vec<_>>())
        };
        let (reports, found) = (of(&|(reports, _)| *reports), of(&|(_, score)| score.found as f64));
        let wrong = of(&|(_, score)| score.false_reports as f64);
        let range = format!("{} ({} to {})", reports.median, reports.min, reports.max);
        row!(shown, setting, range, found.median, wrong.median);
        sample.push((setting.clone(), reports));
    }
    row!(shown, "the truth", contents.cheetahs, contents.cheetahs, 0);
    sample.push(("truth".to_owned(), FiveNumbers::of(&[contents.cheetahs as f64])));
    let title = format!("Cheetahs reported, {} packets, T = 100 ms, R = 50 Mbit/s", grouped(packets));
    let boxes = Boxes {
        title: "reports".to_owned(),
        x_title: "length threshold L (bytes) and sampling probability S".to_owned(),
        boxes: sample.into_iter().map(|(setting, reports)| (setting, reports.in_order())).collect(),
    };
    save(plot, &figure::draw(&Heading::new(title, ""), &Legend::default(), ALONE, &[boxes])?)?;
    let mut page = Page::new("Cheetahs reported", command);
    page.paragraph(format_args!(
        "{} packets; settings with S < 1 over {} sampling seeds; one flow cache of {} entries.",
        grouped(packets),
        seeds.max(1),
        grouped(FLOW_CACHE_ENTRIES.into())
    ));
    page.table(&shown);
    Ok(Outcome { page, table })
}
