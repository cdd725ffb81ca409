//! Streams of any skew: errors in units of L2, and bounds that do not hold.

use std::path::Path;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;
use thalweg_sketch::{CountSketch, Hasher, Key as _, Probability, RowSketch, Shape, Sums};

use super::samples::{Case, Samples};
use super::{Feed, ROWS, Sampling, TOP, WIDTH, any_flows, percent, zipf};
use crate::experiments::Outcome;
use crate::results::{Page, Table, grouped, save};
use crate::row;
use crate::sketches::keys::Key;
use crate::sketches::truth::Truth;

/// Name, exponent of Zipf's law, share of the flood.
const STREAMS: [(&str, f64, f64); 7] = [
    ("uniform", 0.0, 0.0),
    ("Zipf 0.6", 0.6, 0.0),
    ("Zipf 0.8", 0.8, 0.0),
    ("Zipf 1.0", 1.0, 0.0),
    ("Zipf 1.2", 1.2, 0.0),
    ("Zipf 1.4", 1.4, 0.0),
    ("flood", 1.0, 0.9),
];
/// The paper's smallest sampling probability.
const MIN_PROBABILITY: Probability = Probability::PAPER_MIN;
/// Factor by which short streams are shorter: the window of a fast detector.
const SHORT: u64 = 100;

/// A method of counting.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Method {
    /// A sketch that samples rows.
    Nitro(Sampling),
    /// Whole packets are sampled and weighted before the sketch, which does not know it.
    Skipping,
}

const METHODS: [Method; 5] = [
    Method::Nitro(Sampling::VANILLA),
    Method::Nitro(Sampling::Fixed(MIN_PROBABILITY)),
    Method::Nitro(Sampling::LineRate(40)),
    Method::Nitro(Sampling::Correct),
    Method::Skipping,
];

/// Runs every stream, short and long.
pub(in crate::experiments) fn run(
    packets: u64,
    seeds: u64,
    command: &str,
    plot: &Path,
) -> anyhow::Result<Outcome> {
    let mut samples = Samples::means_over("stream");
    let lengths = [packets / SHORT, packets];
    let names = lengths.map(|length| format!("{} packets", grouped(length)));
    let mut facts = Table::new(["stream", "packets", "flows", "L2", "L2 / packets", "p of AlwaysCorrect"]);
    for (stream, exponent, flood) in STREAMS {
        let keys = zipf(packets, exponent, flood)?.keys;
        for (length, name) in lengths.into_iter().zip(&names) {
            let keys = &keys[..length as usize];
            let truth = Truth::of(keys);
            let queries = [truth.top(TOP), any_flows(&truth, TOP)];
            let mut last = Probability::ONE;
            for method in METHODS {
                for seed in 1..=seeds {
                    let (sketch, probability) = method.count(keys, seed)?;
                    if method == Method::Nitro(Sampling::Correct) {
                        last = probability;
                    }
                    let case = Case { stream: name, place: stream, method: &method.name(), seed };
                    samples.add(case, &score(&sketch, truth.l2(), &queries));
                }
            }
            row!(
                facts,
                stream,
                grouped(truth.l1()),
                grouped(truth.distinct() as u64),
                grouped(truth.l2().round() as u64),
                format!("{:.4}", truth.l2() / truth.l1() as f64),
                last
            );
        }
    }
    let mut page = Page::new("Robustness against skew", command);
    explain(&mut page, packets, seeds);
    page.section("Streams").table(&facts);
    let (places, methods) = (STREAMS.map(|(name, _, _)| name.to_owned()), METHODS.map(Method::name));
    for (measure, heading) in MEASURES {
        for name in &names {
            let table = samples.pivot(name, measure, &places, &methods, percent);
            page.section(&format!("{heading}, {name}")).table(&table);
        }
    }
    draw(plot, &samples, &names, &places, &methods)?;
    Ok(Outcome { page, table: samples.table() })
}

/// Measures and their titles.
const MEASURES: [(&str, &str); 5] = [
    ("mean error, L2", "Mean error of the 100 largest flows, of L2"),
    ("largest error, L2", "Largest error, of L2"),
    ("answers with a bound", "Answers with a bound"),
    ("outside of it", "Of these, outside of the bound"),
    ("beyond the vanilla bound", "Answers beyond the bound of a vanilla sketch"),
];

impl Method {
    fn name(self) -> String {
        match self {
            Method::Nitro(sampling) => sampling.name(),
            Method::Skipping => format!("packets skipped, {MIN_PROBABILITY}"),
        }
    }

    /// Returns the sketch after the stream, and p at the end.
    fn count(self, keys: &[Key], seed: u64) -> anyhow::Result<(CountSketch, Probability)> {
        let sketch = CountSketch::new(Shape::new(ROWS, WIDTH)?, Hasher::new(seed));
        match self {
            Method::Nitro(sampling) => {
                let mut feed = Feed::new(sketch, sampling, WIDTH, seed);
                feed.take(keys);
                let probability = feed.nitro.probability();
                Ok((feed.nitro.into_sketch(), probability))
            }
            Method::Skipping => Ok((skipping(sketch, keys, seed), MIN_PROBABILITY)),
        }
    }
}

/// Counts randomly sampled packets, with the inverse probability as weight, in all rows.
fn skipping(mut sketch: CountSketch, keys: &[Key], seed: u64) -> CountSketch {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (hasher, one_in) = (RowSketch::hasher(&sketch), MIN_PROBABILITY.inverse());
    for key in keys {
        if random.next_u64() % one_in == 0 {
            let weight = one_in as i64;
            sketch.add_batch(&[hasher.digest(key.as_bytes())], &Sums::of([weight]), |_| weight);
        }
    }
    sketch
}

fn score(sketch: &CountSketch, l2: f64, queries: &[Vec<(Key, u64)>; 2]) -> [(&'static str, f64); 5] {
    let noise = RowSketch::noise(sketch);
    let (eps, _) = CountSketch::<i32>::guarantee(RowSketch::shape(sketch));
    let [largest, any] = queries;
    let (mut sum, mut worst) = (0.0, 0.0f64);
    let (mut bounded, mut outside, mut beyond) = (0, 0, 0);
    for (number, (key, count)) in largest.iter().chain(any).enumerate() {
        let count = *count as f64;
        let estimate = sketch.estimate(RowSketch::hasher(sketch).digest(key.as_bytes()), &noise);
        let error = (estimate.value - count).abs() / l2;
        sum += if number < largest.len() { error } else { 0.0 };
        worst = worst.max(error);
        bounded += i32::from(estimate.contains(count).is_some());
        outside += i32::from(estimate.contains(count) == Some(false));
        beyond += i32::from(error > eps);
    }
    let answers = (largest.len() + any.len()) as f64;
    let outside = if bounded > 0 { f64::from(outside) / f64::from(bounded) } else { f64::NAN };
    [
        (MEASURES[0].0, sum / largest.len() as f64),
        (MEASURES[1].0, worst),
        (MEASURES[2].0, f64::from(bounded) / answers),
        (MEASURES[3].0, outside),
        (MEASURES[4].0, f64::from(beyond) / answers),
    ]
}

fn explain(page: &mut Page, packets: u64, seeds: u64) {
    let shape = Shape::new(ROWS, WIDTH).expect("a shape in range");
    let (eps, delta) = CountSketch::<i32>::guarantee(shape);
    page.paragraph(format_args!(
                "Streams of {} packets and their first {}, of up to {} flows; in the flood nine of ten packets are the only one \
                 of their flow, the others follow Zipf 1.0. Count Sketch of {shape} counters, queried for the {TOP} largest \
                 flows and {TOP} random ones; means over {seeds} seeds of hash and draws. A vanilla sketch has errors below {} \
                 of L2 with a probability of {:.3}; intervals computed from the sketch should hold with 0.967. With skipped \
                 packets the sketch does not know of the sampling, and its bounds are those of a stream without losses.",
        grouped(packets),
        grouped(packets / SHORT),
        grouped((packets / 10).max(1_000)),
        percent(eps),
        1.0 - delta,
    ));
}

fn draw(
    path: &Path,
    samples: &Samples,
    names: &[String; 2],
    places: &[String],
    methods: &[String],
) -> anyhow::Result<()> {
    let lines = |name: &str, measure| samples.lines(name, measure, places, methods);
    let title = |what: &str, name: &str| format!("{what}, {name}");
    let [short, long] = names;
    let (mean, beyond) = (MEASURES[0].0, MEASURES[4].0);
    let panel = |title: &str, y: &str, scale: Scale, lines: Vec<Vec<f64>>| {
        Panel::over_names(format!("{title} ({y})"), "stream", places, scale, &lines)
    };
    let panels = [
        panel(&title("Mean error", short), "of L2", Scale::LOGARITHMIC.in_percent(), lines(short, mean)),
        panel(&title("Mean error", long), "of L2", Scale::LOGARITHMIC.in_percent(), lines(long, mean)),
        panel(
            &title("Beyond the vanilla bound", short),
            "answers",
            Scale::LINEAR.in_percent(),
            lines(short, beyond),
        ),
        panel(
            &title("Answers with a bound", short),
            "answers",
            Scale::LINEAR.in_percent(),
            lines(short, MEASURES[2].0),
        ),
    ];
    save(
        path,
        &figure::draw(&Heading::new("Robustness against skew", ""), &Legend::of(methods), SEVERAL, &panels)?,
    )
}
