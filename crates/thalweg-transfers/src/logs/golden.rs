//! Logs of real programs, and the transfers in them. `golden/README.md` says how each log was made.
//!
//! `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg-transfers golden` writes the expected transfers anew.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::mapping::Mapping;
use super::*;

/// A time after all logs, for those that write no year.
const NOW_US: i64 = 1_796_083_200_000_000; // 2026-12-01

/// A log and the options of its parser.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) format: Format,
    pub(super) options: ParserOptions,
}

/// All logs in `golden`.
pub(super) fn cases() -> Vec<Case> {
    let utc = || ParserOptions { time_zone: "UTC".to_owned(), ..ParserOptions::default() };
    let case = |name, format, options| Case { name, format, options };
    let mapping = |name: &str| {
        let text = std::fs::read_to_string(path(name, "mapping.json")).unwrap();
        ParserOptions { mapping: Some(serde_json::from_str::<Mapping>(&text).unwrap()), ..utc() }
    };
    vec![
        case("gridftp", Format::Gridftp, utc()),
        case("gridftp-main", Format::Gridftp, utc()),
        case("xrootd", Format::Xrootd, utc()),
        case("rsync-daemon", Format::Rsync, utc()),
        case("rsync-client", Format::Rsync, utc()),
        case("rsync-client-default", Format::Rsync, utc()),
        case("rsync-syslog", Format::Rsync, utc()),
        case("xferlog-vsftpd", Format::Xferlog, ParserOptions { application: "vsftpd".to_owned(), ..utc() }),
        case(
            "xferlog-proftpd",
            Format::Xferlog,
            ParserOptions { application: "proftpd".to_owned(), ..utc() },
        ),
        case("vsftpd", Format::Vsftpd, utc()),
        case("nginx", Format::Nginx, utc()),
        case("nginx-combined", Format::Nginx, ParserOptions { log_format: "combined".to_owned(), ..utc() }),
        case("rclone", Format::Rclone, utc()),
        case("sftp-server", Format::Openssh, utc()),
        case("sftp-server-iso", Format::Openssh, utc()),
        case("scp", Format::Openssh, utc()),
        case("iperf3-client", Format::Iperf3, utc()),
        case("iperf3-server", Format::Iperf3, utc()),
        case("mapping-nginx-json", Format::Mapping, mapping("mapping-nginx-json")),
        case("mapping-curl-csv", Format::Mapping, mapping("mapping-curl-csv")),
    ]
}

fn path(name: &str, extension: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/logs/golden").join(format!("{name}.{extension}"))
}

/// Returns the log of a case.
pub(super) fn log(case: &Case) -> String {
    std::fs::read_to_string(path(case.name, "log")).unwrap()
}

/// Returns the parser of a case.
pub(super) fn parser_of(case: &Case) -> Box<dyn LogParser> {
    let mut parser = parser(case.format, &case.options).unwrap();
    parser.set_now(NOW_US);
    parser
}

/// Parses a log and describes what was found.
fn describe(case: &Case) -> Value {
    let mut parser = parser_of(case);
    let (mut transfers, mut bad_lines, mut offset) = (Vec::new(), Vec::new(), 0);
    for line in log(case).split_terminator('\n') {
        let mut found = Vec::new();
        let text = line.strip_suffix('\r').unwrap_or(line);
        if (offset > 0 || !parser.header(text))
            && let Err(error) = parser.line(text, offset, &mut found)
        {
            bad_lines.push(format!("offset {offset}: {error}"));
        }
        offset += line.len() as u64 + 1;
        transfers.extend(found.iter().map(transfer_json));
    }
    json!({"transfers": transfers, "bad_lines": bad_lines, "needs_from": parser.needs_from()})
}

fn transfer_json(transfer: &LoggedTransfer) -> Value {
    let remote = transfer.remote.as_ref().map(|remote| match remote {
        Peer::Address(address) => address.to_string(),
        Peer::Name(name) => name.clone(),
    });
    json!({
        "application": transfer.application,
        "direction": transfer.direction,
        "user": transfer.user,
        "file": transfer.file,
        "local": transfer.local,
        "remote": remote,
        "local_port": transfer.local_port,
        "remote_port": transfer.remote_port,
        "start_us": transfer.start_us,
        "end_us": transfer.end_us,
        "bytes": transfer.bytes,
        "streams": transfer.streams,
        "send_buffer_bytes": transfer.send_buffer_bytes,
        "receive_buffer_bytes": transfer.receive_buffer_bytes,
        "congestion_control": transfer.congestion_control,
        "error": transfer.error,
    })
}

#[test]
fn logs_of_real_programs_have_the_expected_transfers() {
    let refresh = std::env::var_os("THALWEG_REFRESH_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for case in cases() {
        let found = describe(&case);
        let file = path(case.name, "json");
        if refresh {
            std::fs::write(&file, format!("{}\n", serde_json::to_string_pretty(&found).unwrap())).unwrap();
            continue;
        }
        let expected: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        if found != expected {
            wrong.push(format!("{}:\nexpected {expected:#}\nfound {found:#}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_line_of_a_real_log_is_understood() {
    for case in cases() {
        let found = describe(&case);
        assert_eq!(found["bad_lines"], json!([]), "{}", case.name);
        assert_ne!(found["transfers"], json!([]), "{}", case.name);
    }
}

#[test]
fn transfers_of_real_logs_are_plausible() {
    for case in cases() {
        for transfer in describe(&case)["transfers"].as_array().unwrap() {
            let number = |name: &str| transfer[name].as_i64().unwrap();
            let duration_us = number("end_us") - number("start_us");
            // All logs were made on the same days, and no transfer took more than a minute.
            assert!(
                (1_795_800_000_000_000..NOW_US).contains(&number("start_us")),
                "{}: {transfer}",
                case.name
            );
            assert!((0..60_000_000).contains(&duration_us), "{}: {transfer}", case.name);
            assert!(number("bytes") < 1 << 32, "{}: {transfer}", case.name);
        }
    }
}
