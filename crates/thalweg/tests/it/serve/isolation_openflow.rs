//! Isolation of cheetah flows by Open vSwitch in user space.

#[path = "../../../../thalweg-actuators/tests/isolation_openflow/network.rs"]
#[allow(dead_code, reason = "not every user of this file needs all of it")]
mod network;

use std::fs;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use thalweg_linux::Namespace;

use super::Serve;
use crate::program::THALWEG;
use network::{Flow, LISTEN, Network, SCAVENGER};

/// Connects clients of this namespace to the switch in its own. Returns the address for them.
fn relay(switch: &Namespace) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, switch) = (listener.local_addr().unwrap(), switch.clone());
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(Ok(server)) = switch.within(|| TcpStream::connect(LISTEN)) else { continue };
            let copy = |mut from: TcpStream, mut to: TcpStream| {
                std::thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                    let _ = from.shutdown(Shutdown::Both);
                });
            };
            copy(client.try_clone().unwrap(), server.try_clone().unwrap());
            copy(server, client);
        }
    });
    address
}

/// A flow that sends about 20 Mbit/s until it is dropped.
struct Sending {
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sending {
    fn start(flow: Flow) -> Sending {
        let is_stopping = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&is_stopping);
        let thread = std::thread::spawn(move || {
            while !stopping.load(Ordering::Relaxed) {
                flow.send(3);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Sending { is_stopping, thread: Some(thread) }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Configures a daemon that reads the port of the first sender.
fn configure(network: &Network, lines: &str) -> Serve {
    let serve = Serve::new("");
    let (address, switch) = (relay(&network.switch), network.switch.name());
    let text = format!(
        "[api]\nlisten = \"{}\"\n[[collector]]\nname = \"lan\"\ninterface = \"lan0\"\nnamespace = \"{switch}\"\n\
         backend = \"af_packet\"\nring_size = \"4MiB\"\nkeep_samples = false\nflow_capacity = 4096\n\
         rate_threshold = \"5mbps\"\nflight_duration = \"50ms\"\n[isolation]\nactuator = \"openflow\"\nswitch = \"d1\"\n\
         openflow_connect = \"{address}\"\nport = \"wan0\"\nqueue = 1\nidle_timeout = \"3s\"\nquiet = \"2s\"\n{lines}",
        serve.address
    );
    fs::write(serve.path("thalweg.toml"), text).unwrap();
    serve
}

fn redirections(serve: &Serve) -> Value {
    serve.get("/v1/redirections").unwrap_or_default()
}

#[test]
fn a_cheetah_flow_passes_the_scavenger_queue_of_a_switch_until_it_ends() {
    let Some(network) = Network::start() else { return };
    let mut serve = configure(&network, "");
    let check =
        Command::new(THALWEG).args(["check", "thalweg.toml"]).current_dir(serve.folder.path()).output();
    let check = String::from_utf8(check.unwrap().stdout).unwrap();
    let line = "isolation: cheetah flows by openflow at switch 00000000000000d1, queue 1 of port wan0, by DSCP 1 and set_queue; \
                at most 1024";
    assert!(check.contains(line), "{check}");
    serve.start();
    let flow = network.flow(0, false, 5_001);
    let key = flow.key.to_string();
    let sending = Sending::start(flow);
    serve.wait("the flow is confirmed", |serve| redirections(serve)["active"][0]["phase"] == "confirmed");
    let redirection = redirections(&serve)["active"][0].clone();
    assert_eq!((&redirection["reason"], &redirection["key"]), (&json!("cheetah"), &json!(key)));
    assert!(network.sent(SCAVENGER) > 0 && network.rules().len() == 1);

    serve.signal("-KILL");
    assert_eq!(serve.ended(), None, "a signal ended it");
    let before = network.sent(SCAVENGER);
    serve.wait("the switch still redirects", |_| network.sent(SCAVENGER) > before + 50);
    serve.start();
    serve.wait("the rule is adopted", |serve| redirections(serve)["active"][0]["phase"] == "confirmed");

    drop(sending);
    serve.wait("the flow is released", |serve| {
        let now = redirections(serve);
        now["active"] == json!([]) && now["ended"][0]["phase"] == "released"
    });
    assert_eq!(network.rules(), Vec::<String>::new());
    let queues = redirections(&serve)["queues"].clone();
    assert_eq!(queues["scavenger"]["backlog_bytes"], Value::Null, "{queues}");
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
}

#[test]
fn a_switch_that_ignores_set_queue_is_reported() {
    let Some(network) = Network::start() else { return };
    let mut serve = configure(&network, "method = \"set_queue\"\nconfirm_timeout = \"2s\"\n");
    serve.start();
    let _sending = Sending::start(network.flow(0, false, 5_001));
    serve.wait("the redirection fails", |serve| {
        serve.metric("thalweg_redirection_changes_total{change=\"ineffective\"}").unwrap_or(0) > 0
    });
    let redirections = redirections(&serve);
    let failed = &redirections["ended"][0];
    assert_eq!((&failed["phase"], &failed["confirmed"]), (&json!("failed"), &Value::Null), "{failed}");
    let error = failed["error"].as_str().unwrap();
    assert!(error.starts_with("the scavenger queue 1 of port wan0 receives nothing: "), "{error}");
    assert!(error.contains("set method to dscp"), "{error}");
    assert!(redirections["counts"]["ineffective"].as_u64().unwrap() > 0);
    assert!(serve.log().contains("redirection failed"), "{}", serve.log());
}
