//! Table 2 and section 5.1: five senders to one receiver; throughput, and the queue at the bottleneck.

use thalweg_experiment::Experiment;
use thalweg_plot::boxes::Boxes;
use thalweg_plot::figure::{self, ALONE, Legend};
use thalweg_plot::page::Heading;

use super::{Contender, Keep, Study, Trends, digits, idle_one_way_us, link_to, mean, quantile, sweep, with};
use crate::experiments::Outcome;
use crate::results::{Page, Table, save};
use crate::row;
use crate::statistics::FiveNumbers;

const CONTENDERS: [Contender; 3] = [
    Contender::new("DropTail", &[("scheme", "droptail")]),
    Contender::new("RED", &[("scheme", "red")]),
    Contender::new("DCTCP", &[("scheme", "dctcp")]),
];

/// Stack delays with which a segment takes as long as in figure 3: on hardware, and through Flexplane.
const STACK_DELAYS: [&str; 2] = ["8us", "27us"];

/// Queue of a port in packets.
const BUFFER: f64 = 1024.0;

/// One scheme with one stack delay, over all seeds.
struct Measured {
    name: &'static str,
    one_way_us: f64,
    /// Goodput in bits per second, by seed.
    goodput_bps: Vec<f64>,
    /// Utilisation of the link to the receiver, by seed.
    utilisation: Vec<f64>,
    /// Queue at the bottleneck in packets, every millisecond, of all seeds.
    queue: Vec<f64>,
}

impl Measured {
    /// Returns the range from the 5th to the 95th percentile.
    fn spread(&self) -> f64 {
        quantile(&self.queue, 0.95) - quantile(&self.queue, 0.05)
    }
}

fn deviation(sample: &[f64]) -> f64 {
    let mean = mean(sample);
    let squares: f64 = sample.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / sample.len() as f64).sqrt()
}

pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let experiment = study.experiment("experiment.toml")?;
    let mut raw = Table::new([
        "scheme",
        "stack delay",
        "seed",
        "goodput bit/s",
        "utilisation",
        "queue p5",
        "median",
        "p95",
        "deviation",
        "dropped",
        "marked",
        "retransmissions",
        "timeouts",
    ]);
    let mut all = Vec::new();
    for stack_delay in STACK_DELAYS {
        let experiment = with(&experiment, &[("stack_delay", stack_delay)])?;
        let one_way_us = idle_one_way_us(&experiment)?;
        for contender in CONTENDERS {
            all.push(measure(study, &contender, &experiment, stack_delay, one_way_us, &mut raw)?);
        }
    }
    let mut page = Page::new("Throughput and queues", study.command);
    describe(&mut page, study);
    page.table(&summary(&all));
    page.section("Trends").table(&trends(&all).0);
    let named = |measured: &Measured| format!("{}, {:.0} us", measured.name, measured.one_way_us);
    let boxes = Boxes {
        title: "packets".to_owned(),
        x_title: "scheme, idle one-way delay".to_owned(),
        boxes: all
            .iter()
            .map(|measured| (named(measured), FiveNumbers::of(&measured.queue).in_order()))
            .collect(),
    };
    let heading = Heading::new("Queue at the bottleneck: quartiles, min and max", "");
    save(study.plot, &figure::draw(&heading, &Legend::default(), ALONE, &[boxes])?)?;
    Ok(Outcome { page, table: raw })
}

fn measure(
    study: &Study<'_>,
    contender: &Contender,
    experiment: &Experiment,
    stack_delay: &str,
    one_way_us: f64,
    raw: &mut Table,
) -> anyhow::Result<Measured> {
    let runs = sweep(contender.name, &contender.of(experiment)?, &[("seed", study.seeds())], Keep::Queues)?;
    let mut all = Measured {
        name: contender.name,
        one_way_us,
        goodput_bps: Vec::new(),
        utilisation: Vec::new(),
        queue: Vec::new(),
    };
    for run in runs {
        let (results, summary) = (&run.results, &run.results.summary);
        let link = link_to(results, "h0");
        let (utilisation, dropped, marked) =
            link.map_or((0.0, 0, 0), |link| (link.utilisation, link.dropped_packets, link.marked_packets));
        let rows = results.queues.iter().filter(|row| row.time_ns >= results.warm_up_ns);
        let queue: Vec<f64> = rows.map(|row| f64::from(row.packets)).collect();
        row!(
            raw,
            contender.name,
            stack_delay,
            results.seed,
            format!("{:.0}", summary.goodput_bps),
            format!("{utilisation:.5}"),
            digits(quantile(&queue, 0.05)),
            digits(quantile(&queue, 0.5)),
            digits(quantile(&queue, 0.95)),
            digits(deviation(&queue)),
            dropped,
            marked,
            summary.flows.retransmissions,
            summary.flows.timeouts,
        );
        all.goodput_bps.push(summary.goodput_bps);
        all.utilisation.push(utilisation);
        all.queue.extend(queue);
    }
    Ok(all)
}

fn describe(page: &mut Page, study: &Study<'_>) {
    page.paragraph(format!(
                "Five endless flows to one receiver, links of 10 Gbit/s, one rack; {} seeds. DropTail of 1024 packets with CUBIC, \
                 RED (150, 300, 0.1, weight 5) with CUBIC, DCTCP with K = 65. The queue at the bottleneck is sampled every \
                 millisecond. The idle one-way delay is that of a full-size segment, kernel included; the paper's figure 3 has \
                 14.9 us on hardware and 33.8 us through Flexplane. Throughput is payload; a link of 10 Gbit/s carries at most \
                 9.41 Gbit/s (1448 of 1538 bytes).",
        study.seeds
    ));
}

fn summary(all: &[Measured]) -> Table {
    let mut table = Table::new([
        "scheme",
        "idle one-way delay, us",
        "throughput, Gbit/s",
        "link used",
        "queue mean",
        "p5",
        "median",
        "p95",
        "deviation",
    ]);
    for measured in all {
        let queue = |share| digits(quantile(&measured.queue, share));
        row!(
            table,
            measured.name,
            digits(measured.one_way_us),
            format!("{:.3}", mean(&measured.goodput_bps) / 1e9),
            format!("{:.2} %", 100.0 * mean(&measured.utilisation)),
            digits(mean(&measured.queue)),
            queue(0.05),
            queue(0.5),
            queue(0.95),
            digits(deviation(&measured.queue)),
        );
    }
    table
}

fn trends(all: &[Measured]) -> Trends {
    let mut trends = Trends::new();
    let listed = |of: &dyn Fn(&Measured) -> String| {
        let each: Vec<String> =
            all.iter().map(|measured| format!("{} {}", measured.name, of(measured))).collect();
        each.join(", ")
    };
    let median = |measured: &Measured| quantile(&measured.queue, 0.5);
    let (tails, others): (Vec<&Measured>, Vec<&Measured>) =
        all.iter().partition(|measured| measured.name == CONTENDERS[0].name);
    trends.check(
        "all three saturate the link: 9.4 Gbit/s on hardware, 9.2 to 9.3 through Flexplane",
        all.iter().all(|measured| mean(&measured.goodput_bps) >= 9.2e9),
        &listed(&|measured| format!("{:.2}", mean(&measured.goodput_bps) / 1e9)),
    );
    trends.check(
        "DropTail's queue is close to 1024: median above 80 % of it",
        tails.iter().all(|measured| median(measured) > 0.8 * BUFFER),
        &listed(&|measured| digits(median(measured))),
    );
    trends.check(
        "RED's and DCTCP's queues are shorter: median below 30 % of 1024",
        others.iter().all(|measured| median(measured) < 0.3 * BUFFER),
        "as above",
    );
    let least = tails.iter().map(|measured| measured.spread()).fold(f64::INFINITY, f64::min);
    trends.check(
        "and vary less than DropTail's, from the 5th to the 95th percentile",
        others.iter().all(|measured| measured.spread() < least),
        &listed(&|measured| digits(measured.spread())),
    );
    let by_delay: Vec<(f64, f64)> = CONTENDERS
        .iter()
        .filter_map(|contender| {
            let mut of_scheme = all.iter().filter(|measured| measured.name == contender.name);
            Some((mean(&of_scheme.next()?.queue), mean(&of_scheme.next()?.queue)))
        })
        .collect();
    trends.check(
        "Flexplane's longer round trip makes queues slightly shorter",
        by_delay.iter().all(|(short, long)| long < short),
        &listed(&|measured| digits(mean(&measured.queue))),
    );
    trends
}
