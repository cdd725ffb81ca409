//! `thalweg endpoint` as a program. The packets are tested in `thalweg-realtime`.

use std::process::{Command, Stdio};

use serde_json::Value;

#[test]
fn an_endpoint_without_an_arbiter_reports_and_ends() {
    let namespace = format!("twe-{}-p", std::process::id());
    let ip = |arguments: &[&str]| {
        let output = Command::new("ip").args(arguments).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !ip(&["netns", "add", &namespace]) {
        eprintln!("skipped: an_endpoint_without_an_arbiter: needs root and ip(8) to make network namespaces");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let hosts = folder.path().join("hosts");
    std::fs::write(&hosts, "1 10.98.0.1\n2 10.98.0.2\n").unwrap();
    assert!(ip(&["-n", &namespace, "link", "add", "eth0", "type", "veth", "peer", "name", "eth1"]));
    for end in ["eth0", "eth1"] {
        assert!(ip(&["-n", &namespace, "link", "set", end, "up"]));
    }
    let run = |interface: &str, number: &str, extra: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
        command.args([
            "endpoint",
            "-i",
            interface,
            "-n",
            number,
            "-a",
            "127.0.0.1:9",
            "--namespace",
            &namespace,
        ]);
        command.arg("--hosts").arg(&hosts).args(extra).stdin(Stdio::null());
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let json = run("eth0", "1", &["--json", "--duration", "250ms", "--interval", "100ms"]);
    let text = run("eth0", "1", &["--duration", "250ms", "--overhead", "300us"]);
    let unlisted = run("eth0", "7", &[]);
    let absent = run("eth9", "1", &[]);
    ip(&["netns", "delete", &namespace]);

    let (code, lines, messages) = json;
    assert_eq!((code, messages.as_str()), (Some(0), ""));
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"status") && kinds.last() == Some(&"summary"), "{kinds:?}");
    let silent = lines.iter().find(|line| line["event"] == "arbiter_silent");
    assert!(silent.is_some_and(|line| line["address"] == "127.0.0.1:9"), "{lines:?}");
    let summary = lines.last().unwrap();
    assert!(summary["datagrams"]["unreachable"].as_u64() > Some(0), "{summary}");
    assert_eq!(summary["overhead"]["p99_ns"], Value::Null);
    assert_eq!((&summary["hold_time"]["count"], &summary["decisions"]["sent"]), (&0.into(), &0.into()));

    let (code, summary, messages) = text;
    assert_eq!(code, Some(0));
    assert!(messages.contains("warning: arbiter_silent address=127.0.0.1:9 silence="), "{messages}");
    assert!(summary.contains("The arbiter has never answered."), "{summary}");
    assert!(summary.contains("Overhead at the release: min -, p50 -, p99 -, max -"), "{summary}");

    let expected = "thalweg: the host table has no entry for endpoint 7: the others could not reach it\n";
    assert_eq!((unlisted.0, unlisted.2.as_str()), (Some(2), expected));
    assert_eq!(absent.0, Some(1));
    assert!(absent.2.starts_with("thalweg: no interface \"eth9\", did you mean "), "{}", absent.2);
}
