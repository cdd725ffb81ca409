//! Isolation of cheetah flows: with an emulated network, by a command, and with real queues.

use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::control::send;
use crate::live::{Link, RECEIVER};
use crate::program::{THALWEG, root};
use crate::serve::Serve;

/// Starts the daemon of [`configured`].
fn isolating(lines: &str) -> Serve {
    let mut serve = configured(lines);
    serve.start();
    serve
}

/// Creates the daemon of `examples/isolation`, with these lines in `[isolation]` instead of its actuator.
pub(super) fn configured(lines: &str) -> Serve {
    let serve = Serve::new("");
    let examples = root().join("examples/isolation");
    fs::copy(examples.join("link.toml"), serve.path("link.toml")).unwrap();
    let example = fs::read_to_string(examples.join("thalweg.toml")).unwrap();
    let example = example.replace("/tmp/thalweg-isolation", "state");
    let example = example.replace("actuator = \"emulated\"\n", lines);
    let text = format!("[api]\nlisten = \"{}\"\n{example}", serve.address);
    fs::write(serve.path("thalweg.toml"), text).unwrap();
    serve
}

fn count(serve: &Serve, name: &str) -> u64 {
    serve.get("/v1/redirections").unwrap()["counts"][name].as_u64().unwrap()
}

#[test]
fn cheetah_flows_of_an_emulated_network_are_redirected_and_released() {
    let mut serve =
        isolating("actuator = \"log\"\nquiet = \"100ms\"\nmax_time = \"300ms\"\nnever_ports = [\"7\"]\n");
    serve.wait("some were released", |serve| count(serve, "released") >= 2);
    let redirections = serve.get("/v1/redirections?limit=5").unwrap();
    assert_eq!((&redirections["actuator"], &redirections["queues"]), (&json!("log"), &Value::Null));
    let ended = redirections["ended"].as_array().unwrap();
    let first = &ended[0];
    assert_eq!((&first["phase"], &first["reason"]), (&json!("released"), &json!("cheetah")), "{first}");
    assert_eq!(first["found_by"], "tor0");
    assert!(first["rate_bps"].as_u64().unwrap() > 5_000_000, "{first}");
    assert!(serve.log().contains("flow redirected id="), "{}", serve.log());
    assert!(serve.metric("thalweg_redirection_changes_total{change=\"redirected\"}").unwrap() >= 2);

    let path = "/v1/redirections/udp%20192.0.2.1:9%20%3E%20192.0.2.2:10";
    let (status, pinned) = send(&serve, "PUT", path, &json!({}));
    assert_eq!((status, &pinned["reason"]), (200, &json!("pinned")), "{pinned}");
    serve.wait("it is redirected", |serve| {
        let active = serve.get("/v1/redirections").unwrap()["active"].clone();
        active.as_array().unwrap().iter().any(|it| it["reason"] == "pinned" && it["phase"] == "redirected")
    });
    assert_eq!(serve.get(path).unwrap()["id"], pinned["id"]);
    let (status, released) = send(&serve, "DELETE", path, &json!({}));
    assert_eq!((status, &released["cause"]), (200, &json!("user")), "{released}");
    serve.wait("it is released", |serve| send(serve, "DELETE", path, &json!({})).0 == 404);
    let ended = serve.get(path).unwrap();
    assert_eq!(ended["phase"], "released");
    // Emulated time, which begins in 1970.
    assert!(ended["requested"].as_str().unwrap().starts_with("1970-01-01T00:"), "{ended}");
    for _ in 0..5 {
        assert_eq!(serve.get(path).unwrap(), ended, "times do not change");
    }
    assert_eq!(send(&serve, "GET", &path.replace(":10", ":11"), &json!({})).0, 404);
    let (status, refused) = send(&serve, "PUT", &path.replace(":10", ":7"), &json!({}));
    assert_eq!(status, 409);
    assert!(refused["detail"].as_str().unwrap().contains("never_ports"), "{refused}");
    for (path, expected) in [
        (
            "/v1/redirections/tcp%2010.0.0.4:1%20%3E%2010.0.0.1",
            "10.0.0.1 has no port: expected e.g. tcp 10.0.0.1:443",
        ),
        ("/v1/redirections?after=abc", "after: expected a number from 0 to"),
    ] {
        let method = if path.contains('?') { "GET" } else { "PUT" };
        let (status, refused) = send(&serve, method, path, &json!({}));
        assert_eq!(status, 400, "{path}");
        assert!(refused["detail"].as_str().unwrap().contains(expected), "{refused}");
    }
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
}

#[test]
fn cheetah_flows_move_to_the_scavenger_queue_of_an_emulated_link() {
    let mut serve = configured("actuator = \"emulated\"\nquiet = \"300ms\"\n");
    let link = fs::read_to_string(serve.path("link.toml")).unwrap();
    // Large flows that are shorter, and start more often.
    let often = link.replace("\"0.095 200kB\", \"0.005 10MB\"", "\"0.07 200kB\", \"0.03 2MB\"");
    assert_ne!(often, link);
    fs::write(serve.path("link.toml"), often).unwrap();
    serve.start();
    // Its host does not exist; the second never sends.
    let unknown = "/v1/redirections/tcp%20192.0.2.1:32768%20%3E%2010.0.0.1:16384";
    let silent = "/v1/redirections/tcp%2010.0.0.2:65535%20%3E%2010.0.0.1:32767";
    assert_eq!(send(&serve, "PUT", unknown, &json!({})).0, 200);
    assert_eq!(send(&serve, "PUT", silent, &json!({})).0, 200);
    serve.wait("some were released", |serve| count(serve, "released") >= 2);
    let error = serve.get(unknown).unwrap()["error"].clone();
    assert_eq!(error, "no host of the emulated network has the address 192.0.2.1");
    let silent = serve.get(silent).unwrap();
    assert_eq!((&silent["phase"], &silent["packets"]), (&json!("redirected"), &json!(0)), "{silent}");

    let redirections = serve.get("/v1/redirections?limit=100").unwrap();
    assert_eq!((&redirections["actuator"], &redirections["error"]), (&json!("emulated"), &Value::Null));
    let mut packets = 0;
    for ended in redirections["ended"].as_array().unwrap() {
        assert_eq!((&ended["phase"], &ended["forced"]), (&json!("released"), &json!(false)), "{ended}");
        assert!(ended["confirmed"].is_string() && ended["first_packet"].is_string(), "{ended}");
        assert!(ended["primary_backlog_after"].is_u64(), "{ended}");
        // The rest had left before the flow was found.
        assert!(ended["bytes"].as_u64().unwrap() > 500_000, "{ended}");
        packets += ended["packets"].as_u64().unwrap();
    }
    let [scavenger, primary] = ["scavenger", "primary"].map(|queue| redirections["queues"][queue].clone());
    let received =
        scavenger["sent_packets"].as_u64().unwrap() + scavenger["dropped_packets"].as_u64().unwrap();
    assert!(received >= packets, "{redirections}");
    assert!(primary["sent_packets"].as_u64().unwrap() > 0, "{redirections}");
    assert!(serve.metric("thalweg_redirected_packets_total{result=\"redirected\"}").unwrap() >= packets);
    assert_eq!((count(&serve, "forced"), count(&serve, "restored"), count(&serve, "ineffective")), (0, 0, 0));
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
    let log = serve.log();
    assert!(log.contains("isolation stopped") && log.contains(" failed=0"), "{log}");
}

#[test]
fn a_command_redirects_and_releases() {
    let folder = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(folder.path(), open).unwrap();
    let script = folder.path().join("command");
    fs::write(&script, "echo \"$@\" >> \"$(dirname \"$0\")/commands\"; cat > /dev/null\n").unwrap();
    let mut serve = isolating(&format!(
        "actuator = \"exec\"\ncommand = [\"/bin/sh\", {script:?}]\nquiet = \"100ms\"\nmax_time = \"300ms\"\n"
    ));
    serve.wait("some were released", |serve| count(serve, "released") >= 2);
    assert_eq!(count(&serve, "errors"), 0, "{}", serve.log());
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
    let commands = fs::read_to_string(folder.path().join("commands")).unwrap();
    let lines: Vec<&str> = commands.lines().collect();
    assert_eq!((lines[0], *lines.last().unwrap()), ("reset", "reset"));
    let redirected = lines.iter().find_map(|line| line.strip_prefix("redirect tcp ")).unwrap();
    assert!(lines.contains(&&*format!("release tcp {redirected}")), "{commands}");
}

/// A router that no longer answers: releases are repeated, the API and the log say why, and the stop has failed.
#[test]
fn a_command_that_cannot_release_is_called_again_and_fails_the_stop() {
    let folder = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(folder.path(), open).unwrap();
    let script = folder.path().join("command");
    let lines = "cd \"$(dirname \"$0\")\"; echo \"$@\" >> commands; cat > /dev/null
                 [ $1 = redirect ] || [ ! -e broken ] || { echo no router >&2; exit 1; }\n";
    fs::write(&script, lines).unwrap();
    let mut serve =
        isolating(&format!("actuator = \"exec\"\ncommand = [\"/bin/sh\", {script:?}]\nquiet = \"100ms\"\n"));
    let path = "/v1/redirections/udp%20192.0.2.1:9%20%3E%20192.0.2.2:10";
    assert_eq!(send(&serve, "PUT", path, &json!({})).0, 200);
    serve.wait("it is redirected", |serve| serve.get(path).unwrap()["phase"] == "redirected");
    assert_eq!(serve.get("/v1/redirections").unwrap()["error"], Value::Null);
    fs::write(folder.path().join("broken"), "").unwrap();
    assert_eq!(send(&serve, "DELETE", path, &json!({})).0, 200);
    let commands = || fs::read_to_string(folder.path().join("commands")).unwrap();
    serve.wait("it is released twice", |_| commands().matches("release udp 192.0.2.1 9").count() >= 2);
    let redirection = serve.get(path).unwrap();
    assert_eq!(redirection["phase"], "releasing", "{redirection}");
    assert_eq!(redirection["error"], "cannot release the flow: exit status: 1: no router", "{redirection}");
    // Flows of the emulated network are redirected meanwhile, and clear it for a moment.
    serve.wait("it says what is wrong", |serve| {
        serve.get("/v1/redirections").unwrap()["error"] == "release: exit status: 1: no router"
    });
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(1), "{}", serve.log());
    let log = serve.log();
    for expected in [
        "release failed, trying again",
        "isolation does not work",
        "isolation not removed: flows may still be redirected",
        "thalweg: isolation not removed, flows may still be redirected",
    ] {
        assert!(log.contains(expected), "{expected}: {log}");
    }
    assert!(!log.contains("redirection failed"), "{log}");
    assert!(commands().ends_with("reset\n"), "{}", commands());
}

#[test]
fn a_dry_run_redirects_nothing() {
    // The command would fail at the start.
    let serve = isolating("actuator = \"exec\"\ncommand = [\"/bin/false\"]\ndry_run = true\n");
    serve.wait("some were withheld", |serve| count(serve, "withheld") >= 2);
    let redirections = serve.get("/v1/redirections").unwrap();
    assert_eq!((count(&serve, "redirected"), &redirections["active"]), (0, &json!([])));
    assert_eq!(redirections["ended"][0]["phase"], "withheld");
}

/// A running program, killed on drop.
struct Running(Child);

impl Running {
    fn start(mut command: Command) -> Running {
        Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether the iperf3 server listens.
fn listens(link: &Link) -> bool {
    let mut ss = link.at_receiver("ss");
    ss.args(["-Hltn", "sport = :5201"]);
    !output(ss).is_empty()
}

/// Starts a UDP flow of this rate from the sender to the receiver.
fn client(link: &Link, rate: &str) -> Running {
    let mut client = link.at_sender("iperf3");
    client.args(["-c", RECEIVER, "-u", "-b", rate, "-t", "1000"]);
    Running::start(client)
}

fn output(mut command: Command) -> String {
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// Packets that the class has sent, by `tc -s class show`.
fn sent(link: &Link, class: &str) -> u64 {
    let mut tc = link.at_sender("tc");
    tc.args(["-s", "class", "show", "dev", &link.interface]);
    let text = output(tc);
    let mut lines = text.lines().skip_while(|line| !line.starts_with(&format!("class htb {class} ")));
    let counters = lines.nth(1).unwrap_or_default().trim().to_owned();
    counters.split(' ').nth(3).and_then(|packets| packets.parse().ok()).unwrap_or(0)
}

#[test]
fn a_cheetah_flow_goes_to_the_scavenger_class_until_it_ends() {
    const NAME: &str = "a_cheetah_flow_goes_to_the_scavenger_class_until_it_ends";
    let programs = [("tc", "-V"), ("ss", "-V"), ("iperf3", "--version")];
    let Some(link) = Link::set_up(NAME, &programs) else { return };
    let mut serve = Serve::new("");
    let (interface, namespace) = (&link.interface, &link.sender);
    let isolation = "actuator = \"tc\"\nlink_rate = \"100mbps\"\nexpiry = \"3s\"\nnever_ports = [\"22\"]\n";
    let text = format!(
        "[api]\nlisten = \"{}\"\n[[collector]]\nname = \"wan\"\ninterface = \"{interface}\"\nnamespace = \"{namespace}\"\n\
         backend = \"af_packet\"\nring_size = \"4MiB\"\nsample_ring = \"1MiB\"\nflow_capacity = 4096\n\
         rate_threshold = \"10mbps\"\nflight_duration = \"50ms\"\n\
         [isolation]\n{isolation}interface = \"{interface}\"\nnamespace = \"{namespace}\"\n",
        serve.address
    );
    fs::write(serve.path("thalweg.toml"), text).unwrap();
    let check =
        Command::new(THALWEG).args(["check", "thalweg.toml"]).current_dir(serve.folder.path()).output();
    let check = String::from_utf8(check.unwrap().stdout).unwrap();
    assert!(check.contains("isolation: cheetah flows by tc at"), "{check}");

    serve.start();
    let pid = serve.child.as_ref().unwrap().id();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(!status.lines().any(|line| line.starts_with("Uid:\t0")), "{status}");
    let mut server = link.at_receiver("iperf3");
    server.arg("-s");
    let _server = Running::start(server);
    let active = |serve: &Serve| serve.get("/v1/redirections").unwrap_or_default()["active"][0].clone();
    serve.wait("the server listens", |_| listens(&link));
    let cheetah = client(&link, "30M");
    serve.wait("the flow is redirected", |serve| active(serve)["phase"] == "confirmed");
    let redirection = active(&serve);
    assert_eq!((&redirection["reason"], &redirection["found_by"]), (&json!("cheetah"), &json!("wan")));
    assert!(redirection["key"].as_str().unwrap().ends_with(":5201"), "{redirection}");
    assert!(sent(&link, "7468:20") > 0);
    assert!(sent(&link, "7468:10") > 0, "iperf3's control connection is in the primary class");

    // A second daemon at the same interface.
    let mut second = Serve::new("");
    let config = fs::read_to_string(serve.path("thalweg.toml")).unwrap();
    let config = config.replace(&serve.address.to_string(), &second.address.to_string());
    fs::write(second.path("thalweg.toml"), config).unwrap();
    second.launch(Command::new(THALWEG));
    assert_eq!(second.ended(), Some(1), "{}", second.log());
    let expected = format!("another daemon already isolates flows at interface {interface} (process {pid})");
    assert!(second.log().contains(&expected), "{}", second.log());
    assert_eq!(active(&serve)["id"], redirection["id"], "the first one keeps its redirection");

    serve.signal("-KILL");
    assert_eq!(serve.ended(), None, "a signal ended it");
    let before = sent(&link, "7468:20") + sent(&link, "7468:10");
    serve.wait("packets are still forwarded", |_| {
        sent(&link, "7468:20") + sent(&link, "7468:10") > before + 100
    });
    serve.start();
    serve.wait("it is redirected again", |serve| active(serve)["phase"] == "confirmed");
    // The next start does not wait for the end of the killed process.
    serve.signal("-KILL");
    let mut killed = serve.child.take().unwrap();
    serve.start();
    killed.wait().unwrap();
    serve.wait("it is adopted at once", |serve| active(serve)["phase"] == "confirmed");
    assert_eq!(active(&serve)["reason"], "adopted");
    // Someone else removes the queues.
    let mut tc = link.at_sender("tc");
    assert!(tc.args(["qdisc", "del", "dev", interface, "root"]).status().unwrap().success());
    serve.wait("they are repaired", |serve| count(serve, "repairs") > 0 && sent(&link, "7468:20") > 0);

    drop(cheetah);
    serve.wait("the flow is released", |serve| {
        let redirections = serve.get("/v1/redirections").unwrap();
        redirections["active"] == json!([]) && redirections["ended"][0]["phase"] == "released"
    });
    let ended = serve.get("/v1/redirections").unwrap()["ended"][0].clone();
    assert_eq!((&ended["forced"], &ended["phase"]), (&json!(false), &json!("released")), "{ended}");
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
    let queues = || {
        let mut tc = link.at_sender("tc");
        tc.args(["qdisc", "show", "dev", interface]);
        output(tc)
    };
    let restored = queues();
    assert!(!restored.contains("htb") && !restored.contains("clsact"), "{restored}");

    // A start that fails for another reason.
    let _occupied = std::net::TcpListener::bind(serve.address).unwrap();
    serve.launch(Command::new(THALWEG));
    assert_eq!(serve.ended(), Some(1), "{}", serve.log());
    assert!(serve.log().contains("(api.listen)"), "{}", serve.log());
    assert_eq!(queues(), restored);
}

#[test]
fn a_daemon_killed_at_any_time_leaves_a_link_that_forwards() {
    const NAME: &str = "a_daemon_killed_at_any_time_leaves_a_link_that_forwards";
    let programs = [("tc", "-V"), ("ss", "-V"), ("iperf3", "--version")];
    let Some(link) = Link::set_up(NAME, &programs) else { return };
    let mut server = link.at_receiver("iperf3");
    server.arg("-s");
    let _server = Running::start(server);
    let mut serve = Serve::new("");
    let (interface, namespace) = (&link.interface, &link.sender);
    let text = format!(
        "[api]\nlisten = \"{}\"\n[[collector]]\nname = \"wan\"\ninterface = \"{interface}\"\nnamespace = \"{namespace}\"\n\
         backend = \"af_packet\"\nring_size = \"4MiB\"\nkeep_samples = false\nflow_capacity = 4096\n\
         [isolation]\nactuator = \"tc\"\nlink_rate = \"100mbps\"\ninterface = \"{interface}\"\nnamespace = \"{namespace}\"\n",
        serve.address
    );
    fs::write(serve.path("thalweg.toml"), text).unwrap();
    serve.wait("the server listens", |_| listens(&link));
    let _client = client(&link, "8M");
    let received = || {
        let mut cat = link.at_receiver("sh");
        cat.args(["-c", "cat /sys/class/net/tw*/statistics/rx_packets"]);
        output(cat).trim().parse::<u64>().unwrap_or(0)
    };
    // The start takes tens of milliseconds: the seeded points are before, during and after the setup, and the last ones meet
    // what the first ones have left.
    let mut seed = 7_u64;
    for _ in 0..12 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        serve.launch(Command::new(THALWEG));
        std::thread::sleep(std::time::Duration::from_micros((seed >> 33) % 120_000));
        serve.signal("-KILL");
        serve.ended();
        let before = received();
        serve.wait("packets are forwarded", |_| received() > before + 20);
    }
    serve.start();
    assert_eq!(serve.get("/v1/redirections").unwrap()["error"], Value::Null, "{}", serve.log());
    serve.wait("the queues are read", |serve| {
        serve.get("/v1/redirections").unwrap()["queues"]["primary"]["sent_packets"].is_u64()
    });
    serve.wait("packets are in our classes", |_| sent(&link, "7468:10") + sent(&link, "7468:20") > 0);
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
}
