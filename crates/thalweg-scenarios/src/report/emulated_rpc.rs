//! Results of `emulated-rpc`.

use std::fmt::Write as _;

use serde::Serialize;

use super::{HeadroomJson, line, nanoseconds, verdict};
use crate::scenarios::emulated_rpc::network::{CLIENTS, SERVERS};
use crate::scenarios::emulated_rpc::run::{Completions, Run};
use crate::scenarios::emulated_rpc::{OfNetwork, Results, WARM_UP, bounds};
use crate::scenarios::isolate::bounds::Check;

/// Returns the results of `emulated-rpc` as text.
pub fn emulated_rpc(results: &Results) -> String {
    let mut text = format!(
        "emulated-rpc: {CLIENTS} clients request from {SERVERS} servers, web search, links of {}, {} s after {} s, seed {}\n\n",
        results.rate,
        results.options.duration.as_secs(),
        WARM_UP.as_secs(),
        results.options.seed,
    );
    let _ = writeln!(
        text,
        "{:10}{:>5}{:>18}{:>9}{:>7}{:>18}{:>9}{:>7}{:>11}{:>10}{:>7}",
        "network",
        "load",
        "small: mean",
        "p99",
        "flows",
        "large: mean",
        "p99",
        "flows",
        "unfinished",
        "if idle",
        "CPU"
    );
    for run in &results.runs {
        row(&mut text, run, results.expected_when_idle(run));
    }
    let _ = writeln!(
        text,
        "completion time over that of the same size requested continuously on an idle network, with the standard error of the mean; small: less \
         than 100 kB, large: 10 MB or more; if idle: mean of small flows that meet no other flow, from the times below; CPU: idle share"
    );
    let _ = writeln!(
        text,
        "\na response of one packet on an otherwise idle network, by the pause before the request: mean (p50), us"
    );
    for it in &results.unloaded {
        pauses(&mut text, it);
    }
    let _ = writeln!(text, "\nruns of the arbiter");
    for run in &results.runs {
        emulation(&mut text, run);
    }
    let _ = writeln!(text, "\nclaims");
    for check in bounds::check(results) {
        let _ = writeln!(text, "{check}");
    }
    text + "\n" + &verdict(&results.headroom)
}

fn row(text: &mut String, run: &Run, if_idle: Option<f64>) {
    let number = |value: f64| if value.is_nan() { "-".to_owned() } else { format!("{value:.2}") };
    let mean = |it: &Completions| match it.flows {
        0 => number(it.mean),
        _ => format!("{:.2} +- {:.2}", it.mean, it.standard_error),
    };
    let _ = writeln!(
        text,
        "{:10}{:>5}{:>18}{:>9}{:>7}{:>18}{:>9}{:>7}{:>11}{:>10}{:>5.0} %",
        run.network.name(),
        run.load,
        mean(&run.small),
        number(run.small.p99),
        run.small.flows,
        mean(&run.large),
        number(run.large.p99),
        run.large.flows,
        run.unfinished,
        number(if_idle.unwrap_or(f64::NAN)),
        100.0 * run.idle_ratio,
    );
}

fn pauses(text: &mut String, of: &OfNetwork) {
    let _ = write!(text, "{:10}", of.network.name());
    for it in &of.unloaded.pauses {
        let (pause, mean, p50) = (it.pause_ns as f64 / 1e6, it.mean_ns / 1e3, it.times.p50_ns as f64 / 1e3);
        let _ = write!(text, "  {pause} ms: {mean:.0} ({p50:.0})");
    }
    text.push('\n');
}

fn emulation(text: &mut String, run: &Run) {
    let Some(it) = &run.emulation else { return };
    let _ = writeln!(
        text,
        "{:10}load {}: {}, {:.4} % of the slots late or skipped, worst delay {:.0} us; endpoints add {:.0} us",
        run.network.name(),
        run.load,
        if it.arbiter.valid { "valid" } else { "INVALID" },
        100.0 * it.arbiter.late_share,
        it.arbiter.worst_delay_ns as f64 / 1e3,
        it.overhead_ns as f64 / 1e3,
    );
}

/// Returns all flows of `emulated-rpc` as CSV.
///
/// # Errors
/// If a row cannot be written.
pub fn emulated_rpc_flows(results: &Results) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    results.flows().try_for_each(|flow| writer.serialize(flow))?;
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the results of `emulated-rpc` as a line of JSON.
pub fn emulated_rpc_json(results: &Results) -> String {
    #[derive(Serialize)]
    struct OfRun<'a> {
        #[serde(flatten)]
        run: &'a Run,
        expected_when_idle: Option<f64>,
    }
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'static str,
        clients: u16,
        servers: u16,
        rate_bps: u64,
        duration_ns: u64,
        seed: u64,
        unloaded: &'a [OfNetwork],
        runs: Vec<OfRun<'a>>,
        checks: Vec<Check>,
        headroom: HeadroomJson,
    }
    let of_run = |run| OfRun { run, expected_when_idle: results.expected_when_idle(run) };
    line(&Line {
        r#type: "emulated-rpc",
        clients: CLIENTS,
        servers: SERVERS,
        rate_bps: results.rate.0,
        duration_ns: nanoseconds(results.options.duration),
        seed: results.options.seed,
        unloaded: &results.unloaded,
        runs: results.runs.iter().map(of_run).collect(),
        checks: bounds::check(results),
        headroom: HeadroomJson::from(&results.headroom),
    })
}
