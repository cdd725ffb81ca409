//! Plots of results as SVG.

use std::time::Duration;

use thalweg_plot::DrawError;
use thalweg_plot::boxes::Boxes;
use thalweg_plot::figure::{self, ALONE, Legend};
use thalweg_plot::lines::{LinePlot, side_by_side};
use thalweg_plot::page::Heading;
use thalweg_wire::Nanos;

use super::quantiles::cumulative;
use super::scenarios::isolate::{self, Isolation};
use super::scenarios::{
    HostPair, collide, emulated_latency, emulated_queues, emulated_rpc, reroute_latency, switch_buffer,
    workload,
};

/// Draws both flows over time in the median trial, and the distribution of the times of all trials (Planck, figures 15
/// and 16).
///
/// # Errors
/// If the plotting library cannot draw it.
pub fn collide(results: &collide::Results) -> Result<String, DrawError> {
    let empty = [Vec::new(), Vec::new()];
    let curves = results.typical().map_or(&empty, |trial| &trial.curves);
    let curve = |(name, points): (&HostPair, &Vec<(f64, f64)>)| {
        (name.to_string(), points.iter().map(|&(time, rate)| (time / 1e6, rate / 1e6)).collect())
    };
    let times = |name: &str, time: fn(&collide::LatencyBreakdown) -> Nanos| {
        let points = cumulative(results.latencies().map(time));
        (name.to_owned(), points.into_iter().map(|(ns, share)| (ns / 1e6, share)).collect())
    };
    let throughput = LinePlot {
        title: "Payload received (Mbit/s)".to_owned(),
        x_title: "time from the collision (ms)".to_owned(),
        lines: results.flows.iter().zip(curves).map(curve).collect(),
    };
    let latency = LinePlot {
        title: "Share of trials".to_owned(),
        x_title: "time (ms)".to_owned(),
        lines: vec![
            times("event to new path", collide::LatencyBreakdown::event_to_path),
            times("collision to new path", collide::LatencyBreakdown::total),
        ],
    };
    let title = format!("Two TCP flows collide, links of {}", results.rate);
    let verdict = if results.is_conclusive() { "" } else { "; INCONCLUSIVE: the machine was too busy" };
    let subtitle = format!(
        "{} of {} trials resolved; CPU {:.0} % idle{verdict}",
        results.latencies().count(),
        results.trials.len(),
        100.0 * results.headroom.idle
    );
    side_by_side(&title, &subtitle, &[throughput, latency])
}

/// Draws the distribution of the times from event to new path, by actuator (Planck, figure 16).
///
/// # Errors
/// If the plotting library cannot draw it.
pub fn reroute_latency(results: &reroute_latency::Results) -> Result<String, DrawError> {
    let lines = |time: fn(&collide::LatencyBreakdown) -> Nanos| {
        let line = |case: &reroute_latency::TestCase| {
            let points = cumulative(case.collisions.latencies().map(time));
            (case.name(), points.into_iter().map(|(ns, share)| (ns / 1e6, share)).collect())
        };
        results.cases.iter().map(line).collect()
    };
    let plots = [
        LinePlot {
            title: "Congestion event to first packet on the new path".to_owned(),
            x_title: "time (ms)".to_owned(),
            lines: lines(collide::LatencyBreakdown::event_to_path),
        },
        LinePlot {
            title: "Decision to first packet on the new path".to_owned(),
            x_title: "time (ms)".to_owned(),
            lines: lines(collide::LatencyBreakdown::decision_to_path),
        },
    ];
    let title = format!("Reroute latency, links of {}", results.rate);
    let idle = |case: &reroute_latency::TestCase| {
        let collisions = &case.collisions;
        let verdict = if collisions.is_conclusive() { "" } else { " (INCONCLUSIVE)" };
        format!("{}: {:.0} % idle{verdict}", case.name(), 100.0 * collisions.headroom.idle)
    };
    let subtitle: Vec<String> = results.cases.iter().map(idle).collect();
    side_by_side(&title, &format!("share of trials; {}", subtitle.join("; ")), &plots)
}

/// The period of the second plot of [`isolate()`], from the start of the flow, in nanoseconds.
const CLOSE_UP: std::ops::Range<f64> = -50e6..250e6;

/// Draws the delay of the ping over time, and the moments of the moves, in the first trial: the whole run, and the start of
/// the flow (heavy-hitter dissertation, figure 3.8).
///
/// # Errors
/// If the plotting library cannot draw it.
pub fn isolate(results: &isolate::Results) -> Result<String, DrawError> {
    let runs = || results.plotted().into_iter().flat_map(|trial| &trial.runs);
    let plot = |title: &str, unit: f64, x_title: &str, shows: &dyn Fn(f64) -> bool| {
        let scaled = |points: Vec<(f64, f64)>| points.into_iter().map(|(at, delay)| (at / unit, delay / 1e6));
        let delays = runs().map(|run| {
            let points = run.curve.iter().copied().filter(|point| shows(point.0)).collect();
            (run.isolation.name().to_owned(), scaled(points).collect())
        });
        let shown = runs().flat_map(|run| &run.curve).filter(|point| shows(point.0));
        let highest = shown.map(|point| point.1).fold(0.0, f64::max);
        let moves = runs().filter_map(|run| {
            let at = run.moved_at_ns.map(|at| at as f64).filter(|at| shows(*at))?;
            let name = format!("move, {}", run.isolation.name());
            Some((name, scaled(vec![(at, 0.0), (at, highest)]).collect()))
        });
        let lines = delays.chain(moves).collect();
        LinePlot { title: title.to_owned(), x_title: x_title.to_owned(), lines }
    };
    let plots = [
        plot("Delay of the ping (ms)", 1e9, "time from the start of the flow (s)", &|_| true),
        plot("Start of the flow: delay (ms)", 1e6, "time from the start of the flow (ms)", &|at| {
            CLOSE_UP.contains(&at)
        }),
    ];
    let isolate::Parameters { link_rate, rate_threshold, flight_duration, .. } = results.parameters;
    let title = format!("A ping beside a large TCP flow, link of {link_rate}");
    let count = |isolation| results.runs(isolation).filter(|run| run.latency.is_some()).count();
    let [borrow, strict] = [Isolation::Borrow, Isolation::Strict].map(count);
    let is_conclusive = results.headroom.verdict() == thalweg_lab::Verdict::Conclusive;
    let verdict = if is_conclusive { "" } else { "; INCONCLUSIVE: the machine was too busy" };
    let subtitle = format!(
        "first trial; threshold {rate_threshold} for {flight_duration}; isolated in {borrow} and {strict} of {} trials; CPU {:.0} % \
         idle{verdict}",
        results.trials.len(),
        100.0 * results.headroom.idle
    );
    side_by_side(&title, &subtitle, &plots)
}

/// Draws the latency of packets past the emulation and through it, by their rate (Flexplane, figure 3).
///
/// # Errors
/// If the plotting library cannot draw it.
pub fn emulated_latency(results: &emulated_latency::Results) -> Result<String, DrawError> {
    let plot = |title: &str, value: fn(&emulated_latency::Measurement) -> u64| {
        let line = |path: emulated_latency::Path| {
            let of_path = results.measurements.iter().filter(|it| it.path == path);
            let points = of_path.map(|it| (f64::from(it.packets_per_second), value(it) as f64 / 1e3));
            (path.name().to_owned(), points.collect())
        };
        LinePlot {
            title: title.to_owned(),
            x_title: "packets per second".to_owned(),
            lines: [emulated_latency::Path::Bare, emulated_latency::Path::Emulated].map(line).into(),
        }
    };
    let plots = [
        plot("Median latency (us)", |it| it.latency.p50_ns),
        plot("99th percentile of latency (us)", |it| it.latency.p99_ns),
    ];
    let invalid =
        results.arbiters.iter().filter(|it| !it.run.valid).map(|it| it.packets_per_second.to_string());
    let invalid: Vec<String> = invalid.collect();
    let validity = match invalid.is_empty() {
        true => "all rates valid".to_owned(),
        false => format!("INVALID at {}", invalid.join(", ")),
    };
    let subtitle = format!(
        "{} trials of {} s; {validity}",
        results.options.trials,
        results.options.duration.as_secs_f64()
    );
    side_by_side("Latency of packets through the real-time emulation", &subtitle, &plots)
}

/// Draws the queue of each scheme as boxes, with real TCP and with emulated hosts (Flexplane, table 2).
///
/// # Errors
/// If the plotting library cannot draw it.
pub fn emulated_queues(results: &emulated_queues::Results) -> Result<String, DrawError> {
    let of_scheme = |it: emulated_queues::OfScheme| {
        let named = |hosts: &str, measured: &emulated_queues::Measured| {
            let emulated_queues::QueueLengths { min, p25, median, p75, max, .. } = measured.queue;
            (format!("{}, {hosts}", it.scheme.name()), [min, p25, median, p75, max].map(f64::from))
        };
        [named("real", &it.real), named("emulated", &it.hosts)]
    };
    let boxes = Boxes {
        title: "packets".to_owned(),
        x_title: "scheme, hosts".to_owned(),
        boxes: results.schemes().into_iter().flat_map(of_scheme).collect(),
    };
    let invalid = results.runs.iter().filter(|run| !run.arbiter.valid).count();
    let subtitle = format!(
        "{} senders, links of {}, {} trials of {} s; {invalid} of {} runs INVALID",
        emulated_queues::experiment::SENDERS,
        results.rate,
        results.options.trials,
        results.options.duration.as_secs(),
        results.runs.len(),
    );
    let heading = Heading::new("Queue at the receiver's port: quartiles, least and greatest", &subtitle);
    figure::draw(&heading, &Legend::default(), ALONE, &[boxes])
}

/// Draws normalised completion times by load, for small and large flows (Flexplane, figures 4 and 7).
///
/// # Errors
/// If the plotting library cannot draw it.
pub fn emulated_rpc(results: &emulated_rpc::Results) -> Result<String, DrawError> {
    let plot = |title: &str, value: fn(&emulated_rpc::run::Run) -> f64| {
        let line = |&network: &emulated_rpc::network::Network| {
            let of_network = results.runs.iter().filter(|run| run.network == network);
            let points = of_network.map(|run| (100.0 * run.load, value(run)));
            let points = points.filter(|(_, value)| !value.is_nan());
            (network.name().to_owned(), points.collect())
        };
        LinePlot {
            title: title.to_owned(),
            x_title: "load (%)".to_owned(),
            lines: results.options.networks.iter().map(line).collect(),
        }
    };
    let plots = [
        plot("Small flows, mean", |run| run.small.mean),
        plot("Small flows, 99th percentile", |run| run.small.p99),
        plot("Large flows, mean", |run| run.large.mean),
    ];
    let invalid = results.runs.iter().filter(|run| !run.is_valid()).count();
    let subtitle = format!(
        "relative to the same size alone; links of {}, {} s; {invalid} of {} runs INVALID",
        results.rate,
        results.options.duration.as_secs(),
        results.runs.len(),
    );
    side_by_side("Flow completion times of a web search workload with real TCP", &subtitle, &plots)
}

/// Draws congestion window, throughput and retransmissions by the second of each case, in the first trial (heavy-hitter
/// dissertation, figures 3.9 to 3.12).
///
/// # Errors
/// If the plotting library cannot draw it.
pub fn switch_buffer(results: &switch_buffer::Results) -> Result<String, DrawError> {
    let runs = || results.plotted().into_iter().flat_map(|trial| &trial.runs);
    let plot = |title: &str, value: fn(&switch_buffer::Second) -> f64| LinePlot {
        title: title.to_owned(),
        x_title: "time from the start of the flow (s)".to_owned(),
        lines: runs()
            .map(|run| {
                let points = (1..).map(f64::from).zip(run.seconds.iter().map(value)).collect();
                (format!("case {}", run.case.number), points)
            })
            .collect(),
    };
    let plots = [
        plot("Congestion window (kB)", |second| second.cwnd_bytes as f64 / 1e3),
        plot("Payload received (Mbit/s)", |second| second.rate_bps / 1e6),
        plot("Retransmitted segments per second", |second| second.retransmitted as f64),
    ];
    let switch_buffer::Parameters { link_rate, buffer, background, .. } = results.parameters;
    let title = format!("A TCP flow and background traffic, link of {link_rate}");
    let is_conclusive = results.headroom.verdict() == thalweg_lab::Verdict::Conclusive;
    let verdict = if is_conclusive { "" } else { "; INCONCLUSIVE: the machine was too busy" };
    let subtitle = format!(
        "first trial; buffer of {} kB, background {background}; CPU {:.0} % idle{verdict}",
        buffer.0 / 1_000,
        100.0 * results.headroom.idle
    );
    side_by_side(&title, &subtitle, &plots)
}

/// Draws the distributions of flow throughput and host completion times for each method (Planck, figure 18).
///
/// # Errors
/// If the plotting library cannot draw it.
pub fn workload(results: &workload::Results) -> Result<String, DrawError> {
    let lines = |values: fn(&workload::Outcome) -> Vec<f64>| {
        let line = |outcome: &workload::Outcome| {
            let scaled = values(outcome).into_iter().map(|value| Nanos((value * 1e3) as u64));
            let points = cumulative(scaled).into_iter().map(|(value, share)| (value / 1e3, share));
            (outcome.method.name(), points.collect())
        };
        results.outcomes.iter().map(line).collect()
    };
    let throughput = LinePlot {
        title: "Share of flows".to_owned(),
        x_title: "throughput (Mbit/s)".to_owned(),
        lines: lines(|outcome| outcome.flow_rates.iter().map(|rate| rate / 1e6).collect()),
    };
    let completion = LinePlot {
        title: "Share of hosts".to_owned(),
        x_title: "time (s)".to_owned(),
        lines: lines(|outcome| outcome.host_times.iter().map(Duration::as_secs_f64).collect()),
    };
    let workload::Results { pattern, rate, host_share, seed, time, outcomes } = results;
    let title = format!("{} on a fat tree of 16 hosts, links of {rate}", pattern.name());
    let busy =
        outcomes.iter().filter(|outcome| !outcome.row().conclusive).map(|outcome| outcome.method.name());
    let busy: Vec<String> = busy.collect();
    let verdict = match busy.as_slice() {
        [] => String::new(),
        names => format!("; INCONCLUSIVE, the machine was too busy: {}", names.join(", ")),
    };
    let subtitle =
        format!("each host sends at {host_share} of its link for {} s; seed {seed}{verdict}", time.as_secs());
    side_by_side(&title, &subtitle, &[throughput, completion])
}
