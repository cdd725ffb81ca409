//! The hosts that report to a daemon, as a table or JSON.

use std::fmt::Write as _;

use anyhow::Context as _;
use thalweg_api::TransferHosts;
use thalweg_api::client::{Client, ClientOptions};

/// The path of the request.
const PATH: &str = "/v1/transfers/hosts";

/// Difference of clocks from which the table points at it, in seconds: longer than a report takes.
const CLOCK_DIFFERENCE: f64 = 5.0;

/// Returns the hosts as a table, or as JSON.
///
/// # Errors
/// If the daemon cannot be reached, or refuses.
pub fn text(options: &ClientOptions, json: bool) -> anyhow::Result<String> {
    let client = Client::new(options)?;
    let hosts: TransferHosts = client.get(PATH).with_context(|| client.base().to_owned())?;
    match json {
        true => Ok(serde_json::to_string(&hosts)? + "\n"),
        false => Ok(table(&hosts)),
    }
}

fn table(hosts: &TransferHosts) -> String {
    if hosts.hosts.is_empty() {
        return "no host has reported yet: run `thalweg transfers agent` on transfer hosts\n".to_owned();
    }
    let width = hosts.hosts.iter().map(|host| host.host.len()).max().unwrap_or(0).max(4);
    let mut text = format!(
        "{:width$}  {:>20}  {:>10}  {:>12}  {:>10}  {:>8}  {:>8}  clock\n",
        "host", "latest report (UTC)", "reports", "rows", "duplicate", "missing", "refused"
    );
    for host in &hosts.hosts {
        let counts = host.counts;
        let received = host.received.to_string();
        let _ = writeln!(
            text,
            "{:width$}  {:>20}  {:>10}  {:>12}  {:>10}  {:>8}  {:>8}  {}",
            host.host,
            received.get(..19).unwrap_or(&received).replace('T', " "),
            counts.reports,
            counts.rows,
            counts.duplicates,
            counts.missing,
            counts.refused,
            clock(host.clock_difference_us)
        );
    }
    text
}

/// Describes the difference of clocks.
fn clock(difference_us: Option<i64>) -> String {
    let Some(seconds) = difference_us.map(|difference| difference as f64 / 1e6) else {
        return "-".to_owned();
    };
    match seconds {
        _ if seconds.abs() < CLOCK_DIFFERENCE => "ok".to_owned(),
        _ if seconds > 0.0 => format!("{seconds:.0} s behind"),
        _ => format!("{:.0} s ahead", -seconds),
    }
}

#[cfg(test)]
mod tests {
    use thalweg_api::{TransferHost, TransferHostCounts, UtcTime};
    use thalweg_wire::Timestamp;

    use super::*;

    #[test]
    fn a_clock_that_is_wrong_is_named() {
        let host = |name: &str, clock_difference_us| TransferHost {
            host: name.to_owned(),
            received: UtcTime(Timestamp(1_795_352_700_000_000_000)),
            queue: "q".to_owned(),
            number: 7,
            clock_difference_us,
            counts: TransferHostCounts { reports: 2, rows: 30, ..TransferHostCounts::default() },
        };
        let hosts = TransferHosts {
            hosts: vec![host("dtn1", Some(12_000)), host("dtn2", Some(-7_200_000_000)), host("dtn3", None)],
        };
        let lines: Vec<String> = table(&hosts).lines().map(str::to_owned).collect();
        assert!(lines[1].starts_with("dtn1   2026-11-22 13:05:00           2"), "{}", lines[1]);
        assert!(lines[1].ends_with("ok") && lines[2].ends_with("7200 s ahead") && lines[3].ends_with('-'));
    }
}
