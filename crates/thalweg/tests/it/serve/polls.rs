//! Polls of interface counters: of this host, and of an SNMP agent that stops and starts.

use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::*;

/// Writes a credentials file that only its owner can read.
pub(super) fn credentials(serve: &Serve, text: &str) {
    fs::write(serve.path("snmp"), text).unwrap();
    fs::set_permissions(serve.path("snmp"), fs::Permissions::from_mode(0o600)).unwrap();
}

/// Returns an SNMP target at this port.
fn agent(port: u16) -> String {
    format!(
        "[[poll]]\nname = \"r1\"\ninterface = \"lo\"\ntarget = \"127.0.0.1:{port}\"\ncredentials_file = \"snmp\"\n\
         interval = \"200ms\"\ncache_time = \"0s\"\ntimeout = \"500ms\"\nretries = 0\nhas_scavenger = false\n"
    )
}

/// A UDP port that was free a moment ago.
pub(super) fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub(super) fn poll(serve: &Serve, number: usize) -> Value {
    serve.get("/v1/interfaces").unwrap()["interfaces"][number].clone()
}

#[test]
fn queues_of_this_host_are_read_and_stored() {
    let here = "[[poll]]\nname = \"here\"\nsource = \"qdisc\"\ninterface = \"lo\"\ninterval = \"100ms\"\n";
    let mut serve = Serve::new(&[CAPTURE, here, "[records]\nfolder = \"records\"\n"].concat());
    let check = thalweg_in(serve.folder.path(), &["check", "thalweg.toml"]).ended_with(0);
    let line =
        "poll here: queues of interface lo, every 100 ms, average over 6; drops of the queues of [isolation]";
    assert!(check.stdout.contains(line), "{}", check.stdout);
    assert!(check.stdout.contains("interface counters: stored in"), "{}", check.stdout);
    serve.start();
    serve.wait("there are intervals", |serve| poll(serve, 0)["average"]["intervals"] == 6);
    let here = poll(&serve, 0);
    assert_eq!((&here["counters"]["scope"], &here["error"]), (&json!("one_queue"), &Value::Null), "{here}");
    assert!(here["counters"]["input"]["packets"].as_u64().unwrap() > 0, "{here}");
    assert_eq!(serve.metric("thalweg_poll_up{poll=\"here\"}"), Some(1));
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
    assert!(serve.log().contains("interface counters stored"), "{}", serve.log());
    let dataset = serve.path("records/interface-counters");
    assert!(dataset.is_dir(), "{:?}", fs::read_dir(serve.path("records")).map(Iterator::collect::<Vec<_>>));
}

#[test]
fn an_agent_that_does_not_answer_is_reported_and_blocks_nothing() {
    let here = "[[poll]]\nname = \"here\"\nsource = \"qdisc\"\ninterface = \"lo\"\ninterval = \"100ms\"\n";
    let mut serve = Serve::new(&[CAPTURE, &agent(free_port()), here].concat());
    credentials(&serve, "user thalweg\nauth sha256 authentication-key\npriv aes128 privacy-key-1\n");
    serve.start();
    serve.wait("two polls failed", |serve| poll(serve, 0)["counts"]["failed"].as_u64() >= Some(2));
    serve.wait("the other goes on", |serve| poll(serve, 1)["counts"]["succeeded"].as_u64() >= Some(3));
    let r1 = poll(&serve, 0);
    assert!(r1["error"].as_str().unwrap().starts_with("no answer from 127.0.0.1:"), "{r1}");
    assert_eq!((&r1["counters"], &r1["average"]), (&Value::Null, &Value::Null));
    assert_eq!(serve.metric("thalweg_poll_up{poll=\"r1\"}"), Some(0));
    assert!(serve.metric("thalweg_polls_failed_total{poll=\"r1\",reason=\"timeout\"}") >= Some(2));
    let log = serve.log();
    assert_eq!(log.matches("interface counters unavailable poll=\"r1\"").count(), 1, "{log}");
    let page = serve.text("/v1/interfaces").unwrap() + &log + &serve.text("/metrics").unwrap();
    assert!(!page.contains("authentication-key") && !page.contains("privacy-key"), "{page}");
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
}

#[test]
fn credentials_that_others_can_read_are_refused() {
    let serve = Serve::new(&[CAPTURE, &agent(free_port())].concat());
    credentials(&serve, "community geheim99");
    fs::set_permissions(serve.path("snmp"), fs::Permissions::from_mode(0o644)).unwrap();
    for command in [&["check", "thalweg.toml"][..], &["serve", "-c", "thalweg.toml"]] {
        let refused = thalweg_in(serve.folder.path(), command);
        let output = format!("{}{}", refused.stdout, refused.stderr);
        assert!(
            output.contains("thalweg.toml:13: credentials_file: other users can access the credentials file"),
            "{output}"
        );
        assert!(!output.contains("geheim99"), "{output}");
    }
}

#[test]
fn an_agent_is_polled_again_after_its_restart() {
    if !folders().split(':').any(|folder| Path::new(folder).join("snmpd").exists()) {
        let _ = writeln!(std::io::stderr(), "skipped: an_agent_is_polled_again_after_its_restart: no snmpd");
        return;
    }
    let port = free_port();
    let mut serve = Serve::new(&[CAPTURE, &agent(port)].concat());
    credentials(&serve, "community geheim99\n");
    fs::write(serve.path("agent.conf"), "rocommunity geheim99\n").unwrap();
    let first = Agent::start(&serve, port);
    serve.launch(Command::new(THALWEG));
    serve.wait("there are intervals", |serve| {
        serve.get("/v1/interfaces").is_some_and(|answer| answer["interfaces"][0]["average"]["intervals"] == 6)
    });
    drop(first);
    serve.wait("polls fail", |serve| poll(serve, 0)["error"].is_string());
    let _second = Agent::start(&serve, port);
    serve.wait("polls succeed", |serve| poll(serve, 0)["error"].is_null());
    let log = serve.log();
    assert!(log.contains("interface counters unavailable poll=\"r1\""), "{log}");
    assert!(log.contains("interface counters available again poll=\"r1\""), "{log}");
    assert!(!log.contains("async_snmp") && !log.contains("geheim99"), "{log}");
    serve.wait("an interval follows", |serve| poll(serve, 0)["interval"]["unusable"].is_null());
}

/// A running agent, killed on drop.
pub(super) struct Agent(Child);

impl Agent {
    pub(super) fn start(serve: &Serve, port: u16) -> Agent {
        let mut command = Command::new("snmpd");
        command.env("PATH", folders()).env("SNMP_PERSISTENT_DIR", serve.folder.path()).env("MIBS", "");
        command.arg("-f").arg("-Lf").arg(serve.path("snmpd.log"));
        command.args(["-C", "-c"]).arg(serve.path("agent.conf")).arg(format!("udp:127.0.0.1:{port}"));
        Agent(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

/// Where programs are; snmpd is not on every user's path.
pub(super) fn folders() -> String {
    std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin"
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
