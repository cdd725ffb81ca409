//! Error by packets seen: when a sampled sketch has a bound, and whether the bound holds.

use std::path::Path;

use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;
use thalweg_sketch::{CountSketch, Hasher, Key as _, Noise, Probability, RowSketch, Shape, Target};

use super::samples::{Case, Samples};
use super::{Feed, ROWS, Sampling, TOP, WIDTH, any_flows, describe, percent, zipf};
use crate::experiments::Outcome;
use crate::results::{Page, Table, grouped, save};
use crate::row;
use crate::sketches::keys::Key;
use crate::sketches::truth::Truth;

const MODES: [Sampling; 6] = [
    Sampling::VANILLA,
    Sampling::Fixed(Probability::PAPER_MIN),
    Sampling::LineRate(1),
    Sampling::LineRate(10),
    Sampling::LineRate(40),
    Sampling::Correct,
];

/// All runs of one mode at one time.
#[derive(Clone, Debug, Default)]
struct Checkpoint {
    runs: u64,
    /// Minimum and maximum of 1/p.
    one_in: Option<(u64, u64)>,
    answers: u64,
    /// Answers with an interval.
    bounded: u64,
    /// Answers whose interval does not contain the truth.
    outside: u64,
    /// Answers with an error above the limit of AlwaysCorrect.
    beyond_target: u64,
    /// The largest error, in units of L2.
    worst: f64,
}

/// Times in order, with all modes: packets, mode, and its runs.
type Checkpoints = Vec<(String, Sampling, Checkpoint)>;

/// The answers of one run at one time.
struct Answers {
    checkpoint: Checkpoint,
    error: f64,
}

/// Name and exponent of Zipf's law: less skewed streams converge later.
const STREAMS: [(&str, f64); 2] = [("Zipf 1.0", 1.0), ("Zipf 0.8", 0.8)];

/// Runs each mode `seeds` times on each stream.
pub(in crate::experiments) fn run(
    packets: u64,
    seeds: u64,
    command: &str,
    plot: &Path,
) -> anyhow::Result<Outcome> {
    let places: Vec<String> =
        checkpoint_packets(packets).into_iter().map(|upto| grouped(upto as u64)).collect();
    let names = MODES.map(Sampling::name);
    let mut samples = Samples::over("packets");
    let mut page = Page::new("Error against packets seen", command);
    explain(&mut page, seeds);
    for (stream, exponent) in STREAMS {
        let (description, checkpoints) = follow(stream, exponent, packets, seeds, &mut samples)?;
        page.section(stream).paragraph(format_args!("{description}. Over all times:"));
        page.table(&in_all(&checkpoints));
        page.paragraph("Mean relative error of the 100 largest flows so far:");
        page.table(&samples.pivot(stream, "error of the top 100", &places, &names, percent));
        page.paragraph("The sampled modes over time:").table(&along(&checkpoints));
    }
    draw(plot, &samples, &places, &names)?;
    Ok(Outcome { page, table: samples.table() })
}

/// Measures all modes at all times of one stream; also returns a description of the stream.
fn follow(
    name: &str,
    exponent: f64,
    packets: u64,
    seeds: u64,
    samples: &mut Samples,
) -> anyhow::Result<(String, Checkpoints)> {
    let stream = zipf(packets, exponent, 0.0)?;
    let mut truth = Truth::default();
    let mut runs: Vec<(Sampling, u64, Feed<CountSketch>)> = Vec::new();
    for sampling in MODES {
        for seed in 1..=seeds {
            let sketch = CountSketch::new(Shape::new(ROWS, WIDTH)?, Hasher::new(seed));
            runs.push((sampling, seed, Feed::new(sketch, sampling, WIDTH, seed)));
        }
    }
    let mut checkpoints = Checkpoints::new();
    let mut seen = 0;
    for upto in checkpoint_packets(packets) {
        let new = &stream.keys[seen..upto];
        seen = upto;
        truth.extend(new);
        let (l2, largest, any) = (truth.l2(), truth.top(TOP), any_flows(&truth, TOP));
        let place = grouped(upto as u64);
        for (sampling, seed, feed) in &mut runs {
            feed.take(new);
            let Answers { checkpoint, error } = ask(feed, l2, &largest, &any);
            let case = Case { stream: name, place: &place, method: &sampling.name(), seed: *seed };
            samples.add(
                case,
                &[
                    ("error of the top 100", error),
                    ("one in", feed.nitro.probability().inverse() as f64),
                    ("answers with a bound", checkpoint.bounded as f64 / checkpoint.answers as f64),
                    ("outside of it", checkpoint.outside as f64 / checkpoint.answers as f64),
                    ("largest error, L2", checkpoint.worst),
                ],
            );
            match checkpoints.last_mut() {
                Some((last, mode, all)) if *last == place && mode == sampling => all.join(&checkpoint),
                _ => checkpoints.push((place.clone(), *sampling, checkpoint)),
            }
        }
    }
    Ok((describe(&stream, &truth), checkpoints))
}

/// Returns 10,000, 20,000, 50,000 and so on, and the end.
fn checkpoint_packets(packets: u64) -> Vec<usize> {
    let steps = (4..).flat_map(|power| [1, 2, 5].map(|step| step * 10u64.pow(power)));
    steps.take_while(|step| *step < packets).chain([packets]).map(|step| step as usize).collect()
}

fn ask(feed: &Feed<CountSketch>, l2: f64, largest: &[(Key, u64)], any: &[(Key, u64)]) -> Answers {
    let (sketch, eps) = (feed.sketch(), Target::for_width(WIDTH).eps);
    let noise: Noise = RowSketch::noise(sketch);
    let hasher = RowSketch::hasher(sketch);
    let one_in = feed.nitro.probability().inverse();
    let mut checkpoint = Checkpoint { runs: 1, one_in: Some((one_in, one_in)), ..Checkpoint::default() };
    let mut relative = 0.0;
    for (number, (key, count)) in largest.iter().chain(any).enumerate() {
        let count = *count as f64;
        let estimate = sketch.estimate(hasher.digest(key.as_bytes()), &noise);
        let error = (estimate.value - count).abs();
        relative += if number < largest.len() { error / count } else { 0.0 };
        checkpoint.answers += 1;
        checkpoint.bounded += u64::from(estimate.contains(count).is_some());
        checkpoint.outside += u64::from(estimate.contains(count) == Some(false));
        checkpoint.beyond_target += u64::from(error > eps * l2);
        checkpoint.worst = checkpoint.worst.max(error / l2);
    }
    Answers { checkpoint, error: relative / largest.len() as f64 }
}

impl Checkpoint {
    fn join(&mut self, other: &Checkpoint) {
        self.runs += other.runs;
        self.one_in = match (self.one_in, other.one_in) {
            (Some(one), Some(another)) => Some((one.0.min(another.0), one.1.max(another.1))),
            (one, another) => one.or(another),
        };
        self.answers += other.answers;
        self.bounded += other.bounded;
        self.outside += other.outside;
        self.beyond_target += other.beyond_target;
        self.worst = self.worst.max(other.worst);
    }
}

fn explain(page: &mut Page, seeds: u64) {
    let eps = Target::for_width(WIDTH).eps;
    page.paragraph(format_args!(
        "Count Sketch of {ROWS} rows by {WIDTH} counters, {seeds} runs of each mode, which differ in the \
                   seeds of hash and draws. Each time every run is queried for the {TOP} largest flows so far and for {TOP} random \
                  flows. An interval should hold with a probability of at least 0.967. AlwaysCorrect keeps errors below eps L2, \
                  eps = {eps:.4}; all modes are compared with that. AlwaysLineRate may use a tenth of a core and decides every \
                  millisecond."
    ));
}

/// Returns the adaptive modes over time.
fn along(checkpoints: &[(String, Sampling, Checkpoint)]) -> Table {
    let mut table = Table::new([
        "packets",
        "mode",
        "p in use",
        "answers with a bound",
        "outside of it",
        "beyond eps L2",
        "largest error, L2",
    ]);
    for (place, sampling, checkpoint) in checkpoints {
        if *sampling == Sampling::VANILLA {
            continue;
        }
        let p = match checkpoint.one_in {
            Some((1, 1)) => "1".to_owned(),
            Some((least, greatest)) if least == greatest => format!("1/{least}"),
            Some((least, greatest)) => format!("1/{greatest} to 1/{least}").replace("1/1 ", "1 "),
            None => "-".to_owned(),
        };
        let Checkpoint { answers, bounded, outside, beyond_target, worst, .. } = checkpoint;
        row!(
            table,
            place,
            sampling.name(),
            p,
            format!("{bounded} of {answers}"),
            outside,
            beyond_target,
            format!("{worst:.4}")
        );
    }
    table
}

/// Returns the totals of each mode.
fn in_all(checkpoints: &[(String, Sampling, Checkpoint)]) -> Table {
    let mut table = Table::new([
        "mode",
        "answers",
        "with a bound",
        "outside of it",
        "beyond eps L2",
        "largest error, L2",
    ]);
    for sampling in MODES {
        let mut all = Checkpoint::default();
        checkpoints
            .iter()
            .filter(|(_, mode, _)| *mode == sampling)
            .for_each(|(_, _, checkpoint)| all.join(checkpoint));
        let Checkpoint { answers, bounded, outside, beyond_target, worst, .. } = all;
        row!(
            table,
            sampling.name(),
            grouped(answers),
            grouped(bounded),
            grouped(outside),
            grouped(beyond_target),
            format!("{worst:.4}")
        );
    }
    table
}

fn draw(path: &Path, samples: &Samples, places: &[String], names: &[String]) -> anyhow::Result<()> {
    let lines = |stream, measure| samples.lines(stream, measure, places, names);
    let [(skewed, _), (flatter, _)] = STREAMS;
    let short: Vec<String> = places.iter().map(|place| shortened(place)).collect();
    let panel = |title: &str, y: &str, scale: Scale, lines: Vec<Vec<f64>>| {
        Panel::over_names(format!("{title} ({y})"), "packets", &short, scale, &lines)
    };
    let panels = [
        panel(
            &format!("Error of the 100 largest flows, {skewed}"),
            "mean relative error",
            Scale::LOGARITHMIC.in_percent(),
            lines(skewed, "error of the top 100"),
        ),
        panel(&format!("Rows counted: one in, {skewed}"), "1/p", Scale::LOGARITHMIC, lines(skewed, "one in")),
        panel(
            &format!("Answers with a bound, {flatter}"),
            "share",
            Scale::LINEAR.in_percent(),
            lines(flatter, "answers with a bound"),
        ),
        panel(
            &format!("Largest error, {flatter}"),
            "of L2",
            Scale::LOGARITHMIC.in_percent(),
            lines(flatter, "largest error, L2"),
        ),
    ];
    save(
        path,
        &figure::draw(&Heading::new("Error against packets seen", ""), &Legend::of(names), SEVERAL, &panels)?,
    )
}

/// Shortens a number: 20,000 to 20k.
fn shortened(number: &str) -> String {
    match number.strip_suffix(",000") {
        Some(thousands) => match thousands.strip_suffix(",000") {
            Some(millions) => format!("{millions}M"),
            None => format!("{thousands}k"),
        },
        None => number.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_checkpoint_is_the_end_of_the_stream() {
        assert_eq!(checkpoint_packets(60_000), [10_000, 20_000, 50_000, 60_000]);
        assert_eq!(checkpoint_packets(5_000), [5_000]);
        assert_eq!(["10,000", "2,000,000", "38,123"].map(shortened), ["10k", "2M", "38,123"]);
    }
}
