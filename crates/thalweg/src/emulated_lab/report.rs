//! Reports on a lab over an emulated network: text for people, lines of JSON for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};
use thalweg_lab::{
    ArbiterContact, ArbiterStatus, EmulatedHost, EmulatedStatus, EndedProcesses, ProcessStatus, Removed,
};
use thalweg_realtime::arbiter::LiveStatus;
use thalweg_wire::Nanos;

use super::paths::{PathSummary, Paths};
use super::{LabStatus, Verdict};
use crate::figures::grouped;

/// The state of an endpoint, as reports name it.
fn endpoint_state(host: &EmulatedHost) -> &'static str {
    match () {
        () if !host.process.is_running => "dead",
        () if host.process.is_stopped => "stopped",
        () if !host.news.is_interface_up => "interface_down",
        () if host.news.contact == ArbiterContact::Answers => "running",
        () => "silent",
    }
}

/// The states of the arbiters, as reports name them. A secondary that decides replaces an arbiter that was stopped or restarted for too long.
fn arbiter_states(status: &LabStatus) -> Vec<&'static str> {
    let arbiters = || status.lab.arbiters.iter().zip(&status.arbiters);
    let is_active = |live: &Option<LiveStatus>| live.is_some_and(|live| live.is_active);
    let is_replaced = arbiters().any(|(arbiter, live)| arbiter.is_standby && is_active(live));
    let state = |(arbiter, live): (&ArbiterStatus, &Option<LiveStatus>)| match live {
        _ if !arbiter.process.is_running => "dead",
        _ if arbiter.process.is_stopped => "stopped",
        None => "silent",
        Some(live) if !live.is_active => "waiting",
        Some(live) if is_replaced && !arbiter.is_standby && live.endpoints == 0 => "replaced",
        Some(_) => "running",
    };
    arbiters().map(state).collect()
}

/// The name of an arbiter.
fn role(arbiter: &ArbiterStatus) -> &'static str {
    if arbiter.is_standby { "standby" } else { "arbiter" }
}

/// The paths from a host to all others; `None` if there are none.
fn paths_of(status: &EmulatedStatus) -> impl Fn(&EmulatedHost) -> Option<PathSummary> {
    let paths = Paths::new(&status.topology).ok();
    move |host| paths.as_ref()?.from(host.endpoint)
}

/// Formats one delay, or the shortest and the longest.
fn delays(path: &PathSummary) -> String {
    match path.min_delay == path.max_delay {
        true => path.min_delay.to_string(),
        false => format!("{} to {}", path.min_delay, path.max_delay),
    }
}

/// Formats rows in columns, two spaces apart. Those named in `right` are aligned at their ends.
fn columns<const N: usize>(rows: &[[String; N]], right: usize) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column == right {
            true => format!("{cell:>width$}"),
            false => format!("{cell:width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// Returns the state of a lab as text.
pub fn text(status: &LabStatus) -> String {
    let lab = &status.lab;
    let path_of = paths_of(lab);
    let head = ["host", "namespace", "IPv4", "IPv6", "link rate", "one-way delay", "endpoint"];
    let rows = lab.hosts.iter().map(|host| {
        [
            host.name.clone(),
            host.namespace.clone(),
            host.addresses.ip.to_string(),
            host.addresses.ipv6.map_or_else(|| "none".to_owned(), |ip| ip.to_string()),
            host.rate.to_string(),
            path_of(host).as_ref().map_or_else(|| "no path".to_owned(), delays),
            endpoint_state(host).replace('_', " "),
        ]
    });
    let rows: Vec<_> = [head.map(str::to_owned)].into_iter().chain(rows).collect();
    let mut text = columns(&rows, 4);
    text.push('\n');
    for ((arbiter, live), state) in lab.arbiters.iter().zip(&status.arbiters).zip(arbiter_states(status)) {
        let pid = arbiter.process.pid;
        let counts = live.as_ref().filter(|live| live.is_active).map_or_else(String::new, |live| {
            format!(
                ", {}, {} endpoints, {} packets",
                lateness(live.is_valid, live.late_share()),
                live.endpoints,
                grouped(live.requests)
            )
        });
        let _ = writeln!(text, "{:10}{state}, PID {pid} in {}{counts}", role(arbiter), lab.fabric);
    }
    let ecn = if lab.ecn { ", with ECN" } else { "" };
    let _ = writeln!(text, "{:10}{}{ecn}", "TCP", lab.congestion_control);
    let _ = writeln!(text, "{:10}{}", "network", lab.experiment.display());
    let _ = writeln!(text, "{:10}{}", "logs", lab.folder.display());
    let problems = problems(status);
    if !problems.is_empty() {
        text.push('\n');
    }
    problems.iter().for_each(|problem| {
        let _ = writeln!(text, "{problem}");
    });
    text
}

/// Whether few enough timeslots were late.
fn lateness(is_valid: bool, late_share: f64) -> String {
    format!("{}: {:.4} % of timeslots late", if is_valid { "valid" } else { "INVALID" }, 100.0 * late_share)
}

/// Names what does not work.
fn problems(status: &LabStatus) -> Vec<String> {
    let mut problems = Vec::new();
    let message = |process: &ProcessStatus| {
        let log = process.log.display();
        match &process.message {
            Some(message) => format!("last message in {log}: {message}"),
            None => format!("{log} has no message"),
        }
    };
    const RESTART: &str = "`thalweg lab restart` starts it again";
    for (arbiter, state) in status.lab.arbiters.iter().zip(arbiter_states(status)) {
        let name = if arbiter.is_standby { "secondary arbiter" } else { "arbiter" };
        let (pid, message) = (arbiter.process.pid, message(&arbiter.process));
        match state {
            "dead" => problems.push(format!("the {name} is dead, {RESTART}; {message}")),
            "stopped" => problems.push(format!("the {name} is stopped; kill -CONT {pid} continues it")),
            "silent" => problems.push(format!("the {name} does not answer; {message}")),
            "replaced" => {
                problems.push(format!("the {name} is not asked: the secondary arbiter has taken over"))
            }
            _ => {}
        }
    }
    for host in &status.lab.hosts {
        let (name, pid) = (&host.name, host.process.pid);
        let problem = match endpoint_state(host) {
            "dead" => {
                format!("is dead, {RESTART}: its packets are not emulated; {}", message(&host.process))
            }
            "stopped" => format!("is stopped: the host sends nothing; kill -CONT {pid} continues it"),
            "interface_down" => "cannot send: the interface eth0 of the host is down".to_owned(),
            "silent" => "has no arbiter: its packets wait, and are dropped".to_owned(),
            _ => continue,
        };
        problems.push(format!("the endpoint of {name} {problem}"));
    }
    problems
        .extend(lost_packets(&status.lab).map(|lost| format!("lost before the emulated network: {lost}")));
    problems
}

/// The packets that were lost in endpoints; `None` if there are none.
fn lost_packets(lab: &EmulatedStatus) -> Option<String> {
    let of_host = |host: &EmulatedHost| {
        let reasons =
            host.news.lost.iter().map(|(reason, packets)| format!("{} {reason}", grouped(*packets)));
        let reasons: Vec<_> = reasons.collect();
        (!reasons.is_empty()).then(|| format!("{} of {}", reasons.join(", "), host.name))
    };
    let hosts: Vec<_> = lab.hosts.iter().filter_map(of_host).collect();
    let total = lab.hosts.iter().map(lost_by).sum();
    (!hosts.is_empty()).then(|| format!("{} packets ({})", grouped(total), hosts.join("; ")))
}

/// The number of packets that the endpoint of a host has lost.
fn lost_by(host: &EmulatedHost) -> u64 {
    host.news.lost.values().sum()
}

/// Says how to use a lab that has just been created.
pub fn usage(status: &LabStatus) -> String {
    let lab = &status.lab;
    let (Some(first), Ok(paths)) = (lab.hosts.first(), Paths::new(&lab.topology)) else {
        return String::new();
    };
    // The host that is farthest away, so that the delays show.
    let path_to = |host: &EmulatedHost| paths.between(first.endpoint, host.endpoint);
    let others = lab.hosts.iter().filter_map(|host| Some((host, path_to(host)?)));
    let Some((second, path)) = others.rev().max_by_key(|(_, path)| path.max_delay) else {
        return String::new();
    };
    let prefix = match lab.prefix.as_str() {
        "tw-" => String::new(),
        prefix => format!(" --prefix {prefix}"),
    };
    let mut text = String::new();
    let round_trip = PathSummary {
        min_delay: Nanos(path.min_delay.0.saturating_mul(2)),
        max_delay: Nanos(path.max_delay.0.saturating_mul(2)),
        ..path
    };
    let _ = writeln!(
        text,
        "\nFrom {} to {}: {} one way, {} round trip, up to {}.",
        first.name,
        second.name,
        delays(&path),
        delays(&round_trip),
        path.rate
    );
    let address = second.addresses.ip;
    let exec = |host: &EmulatedHost| format!("  sudo thalweg lab exec {}{prefix} --", host.name);
    let _ = writeln!(text, "{} ping -c 3 {address}", exec(first));
    let _ = writeln!(text, "{} iperf3 --server --daemon", exec(second));
    let _ = writeln!(text, "{} iperf3 --client {address}", exec(first));
    let _ = writeln!(text, "  sudo thalweg lab down{prefix}");
    text
}

/// Returns what `thalweg lab down` ended and removed, and whether the runs of the arbiters were valid, as text.
pub fn removed(
    lab: &EmulatedStatus,
    ended: EndedProcesses,
    removed: Removed,
    verdicts: &[Option<Verdict>],
) -> String {
    let mut text = String::new();
    for (arbiter, verdict) in lab.arbiters.iter().zip(verdicts) {
        let what = match verdict {
            None => "no report".to_owned(),
            Some(verdict) => format!(
                "{}, {} packets, {} dropped",
                lateness(verdict.is_valid, verdict.late_share),
                grouped(verdict.requests),
                grouped(verdict.dropped)
            ),
        };
        let _ = write!(text, "{:10}{what}", role(arbiter));
        let is_kept = arbiter.report.exists();
        let _ = match is_kept {
            true => writeln!(text, "; {}", arbiter.report.display()),
            false => writeln!(text),
        };
    }
    if let Some(lost) = lost_packets(lab) {
        let _ = writeln!(text, "endpoints INVALID: lost before the emulated network: {lost}");
    }
    let killed = ended.killed + removed.processes;
    let _ = writeln!(
        text,
        "ended {} processes, killed {killed}, removed {} namespaces",
        ended.ended, removed.namespaces
    );
    text
}

/// Returns the state of a lab as a line of JSON.
pub fn json(status: &LabStatus) -> String {
    let lab = &status.lab;
    let path_of = paths_of(lab);
    let process = |process: &ProcessStatus, state: &str| json!({ "state": state, "pid": process.pid, "log": process.log.display().to_string(), "message": process.message });
    let hosts = lab.hosts.iter().map(|host| {
        let path = path_of(host);
        json!({
            "name": host.name,
            "namespace": host.namespace,
            "ip": host.addresses.ip,
            "ipv6": host.addresses.ipv6,
            "mac": host.mac.to_string(),
            "rate_bps": host.rate.0,
            "min_delay_ns": path.map(|path| path.min_delay.0),
            "max_delay_ns": path.map(|path| path.max_delay.0),
            "pids": host.processes,
            "lost_packets": lost_by(host),
            "endpoint": process(&host.process, endpoint_state(host)),
        })
    });
    let arbiters = lab.arbiters.iter().zip(&status.arbiters).zip(arbiter_states(status));
    let arbiters = arbiters.map(|((arbiter, live), state)| {
        let mut object = process(&arbiter.process, state);
        object["role"] = role(arbiter).into();
        object["address"] = arbiter.address.to_string().into();
        object["report"] = arbiter.report.display().to_string().into();
        object["live"] = live.map_or(Value::Null, |live| live_json(&live));
        object
    });
    let line = json!({
        "type": "emulated_lab",
        "prefix": lab.prefix.as_str(),
        "experiment": lab.experiment.display().to_string(),
        "mtu": lab.mtu,
        "congestion_control": lab.congestion_control,
        "ecn": lab.ecn,
        "fabric_namespace": lab.fabric,
        "folder": lab.folder.display().to_string(),
        "hosts": hosts.collect::<Vec<_>>(),
        "arbiters": arbiters.collect::<Vec<_>>(),
        "problems": problems(status),
    });
    line.to_string() + "\n"
}

fn live_json(live: &LiveStatus) -> Value {
    json!({
        "valid": live.is_valid,
        "slots": live.slots,
        "late_slots": live.late_slots,
        "skipped_slots": live.skipped_slots,
        "late_share": live.late_share(),
        "worst_delay_ns": live.worst.0,
        "requests": live.requests,
        "answers": live.answers,
        "endpoints": live.endpoints,
    })
}

#[cfg(test)]
mod tests {
    use thalweg_lab::{EndpointNews, HostAddresses};
    use thalweg_network::topology::shapes::rack;
    use thalweg_network::{EndpointId, LinkSpec};
    use thalweg_wire::BitRate;

    use super::*;

    fn process(is_running: bool, message: Option<&str>) -> ProcessStatus {
        let (log, message) = ("/log".into(), message.map(str::to_owned));
        ProcessStatus { pid: 7, is_running, is_stopped: false, log, message }
    }

    fn status(endpoint: (bool, ArbiterContact), arbiter: (bool, Option<LiveStatus>)) -> LabStatus {
        let (rate, delay) = (BitRate(100_000_000), Nanos::from_millis(25));
        let link = LinkSpec { rate, delay, ..LinkSpec::default() };
        let host = |number: u16| EmulatedHost {
            endpoint: EndpointId(number),
            name: format!("h{number}"),
            namespace: format!("wan-h{number}"),
            mac: "02:54:57:00:00:00".parse().unwrap(),
            addresses: HostAddresses { ip: [10, 0, 0, number as u8 + 1].into(), ipv6: None },
            rate: link.rate,
            processes: Vec::new(),
            process: process(number == 0 || endpoint.0, None),
            news: EndpointNews {
                contact: if number == 0 { ArbiterContact::Answers } else { endpoint.1 },
                ..EndpointNews::default()
            },
        };
        let lab = EmulatedStatus {
            prefix: "wan-".parse().unwrap(),
            experiment: "/wan.toml".into(),
            topology: rack(2, link).unwrap(),
            mtu: 1_500,
            congestion_control: "thalweg_dctcp".to_owned(),
            ecn: true,
            fabric: "wan-fabric".to_owned(),
            folder: "/folder".into(),
            hosts: vec![host(0), host(1)],
            arbiters: vec![ArbiterStatus {
                is_standby: false,
                address: ([127, 0, 0, 1], 6_589).into(),
                process: process(arbiter.0, Some("out of memory")),
                report: "/none/real-time.json".into(),
            }],
        };
        LabStatus { lab, arbiters: vec![arbiter.1] }
    }

    #[test]
    fn a_lab_that_works_has_no_problems_and_a_usage() {
        let live = LiveStatus {
            is_active: true,
            is_valid: true,
            slots: 200,
            late_slots: 1,
            requests: 5_000,
            endpoints: 2,
            ..LiveStatus::default()
        };
        let status = status((true, ArbiterContact::Answers), (true, Some(live)));
        assert_eq!(problems(&status), Vec::<String>::new());
        let text = text(&status);
        let arbiter = "arbiter   running, PID 7 in wan-fabric, valid: 0.5000 % of timeslots late, 2 endpoints, 5,000 packets\n";
        assert!(text.contains(arbiter) && text.contains("  50.0 ms        running\n"), "{text}");
        assert!(text.contains("TCP       thalweg_dctcp, with ECN\n"), "{text}");
        let usage = usage(&status);
        assert!(
            usage.contains("From h0 to h1: 50.0 ms one way, 100 ms round trip, up to 100 Mbit/s."),
            "{usage}"
        );
        assert!(usage.contains("sudo thalweg lab exec h0 --prefix wan- -- ping -c 3 10.0.0.2\n"), "{usage}");
    }

    #[test]
    fn whatever_is_dead_or_silent_is_named() {
        let dead = status((false, ArbiterContact::Answers), (false, None));
        assert_eq!(
            problems(&dead),
            [
                "the arbiter is dead, `thalweg lab restart` starts it again; last message in /log: out of memory",
                "the endpoint of h1 is dead, `thalweg lab restart` starts it again: its packets are not emulated; /log has no message",
            ]
        );
        let silent = status((true, ArbiterContact::Silent), (true, None));
        assert_eq!(
            problems(&silent),
            [
                "the arbiter does not answer; last message in /log: out of memory",
                "the endpoint of h1 has no arbiter: its packets wait, and are dropped",
            ]
        );
        assert!(text(&silent).ends_with(&format!("\n{}\n", problems(&silent).join("\n"))));
    }

    #[test]
    fn what_was_stopped_replaced_or_lost_is_named() {
        let live = LiveStatus { is_active: true, is_valid: true, ..LiveStatus::default() };
        let mut status = status((true, ArbiterContact::Answers), (true, Some(live)));
        let [first, second] = &mut status.lab.hosts[..] else { unreachable!("two hosts") };
        first.process.is_stopped = true;
        second.news.is_interface_up = false;
        second.news.lost = [("expired".to_owned(), 2_000), ("overflow".to_owned(), 1)].into();
        let standby = ArbiterStatus { is_standby: true, ..status.lab.arbiters[0].clone() };
        status.lab.arbiters.push(standby);
        status.arbiters.push(Some(LiveStatus { endpoints: 2, ..live }));
        assert_eq!(arbiter_states(&status), ["replaced", "running"]);
        let lost = "lost before the emulated network: 2,001 packets (2,000 expired, 1 overflow of h1)";
        assert_eq!(
            problems(&status),
            [
                "the arbiter is not asked: the secondary arbiter has taken over",
                "the endpoint of h0 is stopped: the host sends nothing; kill -CONT 7 continues it",
                "the endpoint of h1 cannot send: the interface eth0 of the host is down",
                lost,
            ]
        );
        let (ended, removed_parts) = (EndedProcesses::default(), Removed::default());
        let text = removed(&status.lab, ended, removed_parts, &[None, None]);
        assert!(text.contains(&format!("endpoints INVALID: {lost}\n")), "{text}");
        status.arbiters[0] = Some(LiveStatus { endpoints: 1, ..live });
        assert_eq!(arbiter_states(&status), ["running", "running"], "an endpoint still asks it");
    }

    #[test]
    fn long_names_do_not_run_together() {
        let mut status = status((true, ArbiterContact::Answers), (false, None));
        status.lab.hosts[0].name = "storage-node-17".to_owned();
        status.lab.hosts[0].namespace = "wan-storage-node-17".to_owned();
        let text = text(&status);
        let expected =
            "storage-node-17  wan-storage-node-17  10.0.0.1  none  100 Mbit/s  50.0 ms        running\n";
        assert!(text.contains(expected) && !text.lines().any(|line| line.ends_with(' ')), "{text}");
    }

    #[test]
    fn the_verdict_of_each_arbiter_is_reported_at_the_end() {
        let lab = status((true, ArbiterContact::Answers), (true, None)).lab;
        let verdict = Verdict { is_valid: false, late_share: 0.02, requests: 1_000, dropped: 3 };
        let removed_parts = Removed { namespaces: 3, processes: 1 };
        let ended = EndedProcesses { ended: 2, killed: 1 };
        assert_eq!(
            removed(&lab, ended, removed_parts, &[Some(verdict)]),
            "arbiter   INVALID: 2.0000 % of timeslots late, 1,000 packets, 3 dropped\n\
             ended 2 processes, killed 2, removed 3 namespaces\n"
        );
        assert!(removed(&lab, ended, removed_parts, &[None]).starts_with("arbiter   no report\n"));
    }
}
