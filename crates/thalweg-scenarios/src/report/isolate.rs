//! Results of `isolate`.

use std::fmt::Write as _;

use serde::Serialize;
use thalweg_wire::Nanos;

use super::{HeadroomJson, line, milliseconds, verdict};
use crate::quantiles::{Interval, Quantiles};
use crate::scenarios::isolate::bounds::{self, Check};
use crate::scenarios::isolate::ping::Period;
use crate::scenarios::isolate::run::{Latency, SUFFERS_ABOVE};
use crate::scenarios::isolate::saturation::Share;
use crate::scenarios::isolate::{Isolation, Results, Run, Trial};

/// Returns the results of `isolate` as text.
pub fn isolate(results: &Results) -> String {
    let parameters = &results.parameters;
    let mut text = format!(
        "isolate: link {}, threshold {} for {}, queues of {} B, {} trials of {} s, {}\n",
        parameters.link_rate,
        parameters.rate_threshold,
        parameters.flight_duration,
        parameters.queue.0,
        results.trials.len(),
        results.duration.as_secs(),
        results.congestion_control,
    );
    pings(&mut text, results);
    moves(&mut text, results);
    let _ = writeln!(text, "\n{:38}{:>12}{:>12}", "scavenger beside a full primary queue", "share", "bytes");
    for share in &results.saturation {
        let (name, percent) = (share.isolation.name(), 100.0 * share.scavenger_ratio);
        let _ = writeln!(text, "{name:38}{percent:>10.3} %{:>12}", share.scavenger_bytes);
    }
    let _ = writeln!(text, "\nclaims");
    for check in bounds::check(results) {
        let _ = writeln!(text, "{check}");
    }
    let lost: u64 = all(results).map(|run| run.lost_frames).sum();
    if lost > 0 {
        let _ = writeln!(text, "{lost} packets lost before collectors and records: counts are too low");
    }
    text + "\n" + &verdict(&results.headroom)
}

fn all(results: &Results) -> impl Iterator<Item = &Run> {
    results.trials.iter().flat_map(|trial| &trial.runs)
}

/// Appends the delays of the ping by period, over all trials.
fn pings(text: &mut String, results: &Results) {
    let _ = writeln!(
        text,
        "\n{:14}{:18}{:>10}{:>10}{:>10}{:>10}{:>8}",
        "isolation", "ping", "p50", "p99", "max", "mean", "lost"
    );
    type Row = (&'static str, fn(&Run) -> &Period);
    let periods: [Row; 4] = [
        ("before the flow", |run| &run.before),
        ("first second", |run| &run.first_second),
        ("rest of the flow", |run| &run.settled),
        ("after the flow", |run| &run.after),
    ];
    for isolation in Isolation::ALL {
        for (name, period) in periods {
            // The median over trials of each quantile, and the greatest maximum.
            let median = |value: fn(&Period) -> u64| {
                let values = results.runs(isolation).map(|run| Nanos(value(period(run))));
                milliseconds(Quantiles::of(values).p50_ns)
            };
            let [p50, p99, mean] =
                [median(|it| it.delays.p50_ns), median(|it| it.delays.p99_ns), median(|it| it.mean_ns)];
            let max = results.runs(isolation).map(|run| period(run).delays.max_ns).max().unwrap_or(0);
            let lost: u64 = results.runs(isolation).map(|run| period(run).lost).sum();
            let (label, max) = (isolation.name(), milliseconds(max));
            let _ = writeln!(text, "{label:14}{name:18}{p50:>10}{p99:>10}{max:>10}{mean:>10}{lost:>8}");
        }
    }
    let _ = writeln!(text, "p50, p99 and mean: median of the trials; max: greatest; lost: sum");
}

/// Appends latencies, retransmissions and throughput.
fn moves(text: &mut String, results: &Results) {
    let _ = writeln!(
        text,
        "\n{:42}{:>10}{:>22}{:>10}{:>22}{:>10}",
        "", "p50", "95 % interval", "p99", "95 % interval", "max"
    );
    let mut row = |name: String, times: Vec<Nanos>| {
        let quantiles = Quantiles::of(times.iter().copied());
        let [p50, p99, max] = [quantiles.p50_ns, quantiles.p99_ns, quantiles.max_ns].map(milliseconds);
        let [around_p50, around_p99] = [0.5, 0.99].map(|share| Interval::of(&times, share).to_string());
        let _ = writeln!(text, "{name:42}{p50:>10}{around_p50:>22}{p99:>10}{around_p99:>22}{max:>10}");
    };
    type Row = (&'static str, fn(&Latency) -> u64);
    let steps: [Row; 4] = [
        ("threshold to decision", |it| it.detection_ns),
        ("decision to entry", |it| it.redirection_ns),
        ("entry to first packet", |it| it.packet_ns),
        ("threshold to scavenger queue", |it| it.total_ns),
    ];
    for isolation in [Isolation::Borrow, Isolation::Strict] {
        for (name, step) in steps {
            let times = results.runs(isolation).filter_map(|run| run.latency).map(|it| Nanos(step(&it)));
            row(format!("{}: {name}", isolation.name()), times.collect());
        }
    }
    for isolation in Isolation::ALL {
        let times = results.runs(isolation).map(|run| Nanos(run.first_second_suffering_ns));
        row(format!("{}: ping over {SUFFERS_ABOVE}, first second", isolation.name()), times.collect());
    }
    let _ = writeln!(
        text,
        "\n{:14}{:>14}{:>8}{:>10}{:>10}  50 ms after the move:{:>9}{:>10}{:>8}{:>6}{:>12}{:>11}{:>8}",
        "isolation",
        "flow",
        "lost",
        "retrans.",
        "spurious",
        "retrans.",
        "spurious",
        "probes",
        "lost",
        "overtaking",
        "overtaken",
        "DSACKs"
    );
    for isolation in Isolation::ALL {
        let runs = || results.runs(isolation);
        let rate = super::mean(runs().map(|run| run.flow_rate_bps)) / 1e6;
        let sum = |value: fn(&Run) -> u64| runs().map(value).sum::<u64>();
        let moved = |value: fn(&crate::scenarios::isolate::flow::Transmissions) -> u64| {
            runs().filter_map(|run| run.moved).map(|it| value(&it)).sum::<u64>()
        };
        let (lost, repeated) = (sum(|it| it.transmissions.lost), sum(|it| it.transmissions.retransmitted));
        let spurious = sum(|it| it.transmissions.spurious);
        let _ = writeln!(
            text,
            "{:14}{rate:>7.1} Mbit/s{lost:>8}{repeated:>10}{spurious:>10}{:>32}{:>10}{:>8}{:>6}{:>12}{:>11}{:>8}",
            isolation.name(),
            moved(|it| it.retransmitted),
            moved(|it| it.spurious),
            moved(|it| it.spurious_probes),
            moved(|it| it.lost),
            moved(|it| it.overtaking),
            runs().map(|run| run.overtaken_by_move).sum::<u64>(),
            moved(|it| it.dsacks)
        );
    }
    let rate = super::mean(all(results).map(|run| run.background_rate_bps)) / 1e6;
    let others: u64 = all(results).map(|run| run.other_redirections).sum();
    let _ = writeln!(text, "background {rate:.1} Mbit/s; redirections of other flows: {others}");
}

/// Returns the results of `isolate` as a line of JSON.
pub fn isolate_json(results: &Results) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'static str,
        rate_bps: u64,
        flight_duration_ns: u64,
        rate_threshold_bps: u64,
        queue_bytes: u64,
        /// A ping suffers if it takes longer than this.
        suffers_above_ns: u64,
        actuator: crate::scenarios::isolate::Actuator,
        duration_ns: u64,
        congestion_control: &'a str,
        latencies: Vec<LatencyJson>,
        saturation: &'a [Share],
        checks: Vec<Check>,
        headroom: HeadroomJson,
        trials: &'a [Trial],
    }
    #[derive(Serialize)]
    struct LatencyJson {
        isolation: Isolation,
        #[serde(flatten)]
        quantiles: Quantiles,
        /// 95 % intervals of both quantiles.
        p50_interval: Interval,
        p99_interval: Interval,
    }
    let parameters = &results.parameters;
    let latencies = [Isolation::Borrow, Isolation::Strict].map(|isolation| {
        let times = results.total_latencies(isolation);
        let [p50_interval, p99_interval] = [0.5, 0.99].map(|share| Interval::of(&times, share));
        LatencyJson { isolation, quantiles: Quantiles::of(times), p50_interval, p99_interval }
    });
    line(&Line {
        r#type: "isolate",
        rate_bps: parameters.link_rate.0,
        flight_duration_ns: parameters.flight_duration.0,
        rate_threshold_bps: parameters.rate_threshold.0,
        queue_bytes: parameters.queue.0,
        suffers_above_ns: SUFFERS_ABOVE.0,
        actuator: parameters.actuator,
        duration_ns: super::nanoseconds(results.duration),
        congestion_control: &results.congestion_control,
        latencies: latencies.into(),
        saturation: &results.saturation,
        checks: bounds::check(results),
        headroom: HeadroomJson::from(&results.headroom),
        trials: &results.trials,
    })
}
