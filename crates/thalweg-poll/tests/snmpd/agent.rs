//! An snmpd in a network namespace of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use thalweg_linux::clock::monotonic;
use thalweg_linux::{Namespace, Netlink};
use thalweg_poll::snmp::{Credentials, NameObject, OidTemplate, QueueObjects, Snmp, SnmpOptions};
use thalweg_poll::{CounterSource, InterfaceReading, ReadError};

/// The script that users install.
pub(crate) const SCRIPT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/snmp/thalweg-qdisc-discards");

pub(crate) const TARGET: &str = "127.0.0.1:16161";

/// Attempts until an agent that starts must answer.
const START_ATTEMPTS: usize = 100;

/// A subtree in which `set_value` sets values.
const OWN_SUBTREES: [&str; 3] =
    [".1.3.6.1.2.1.2.2.1.19", ".1.3.6.1.2.1.31.1.1.1.19", ".1.3.6.1.4.1.8072.9999.9999.7"];

/// Answers requests of pass_persist from a file with lines `OID TYPE VALUE`.
const VALUES_SCRIPT: &str = r#"#!/bin/sh
while read -r request; do
  case $request in
    PING) echo PONG ;;
    get) read -r oid
      line=$(grep "^$oid " "$1")
      if [ -n "$line" ]; then set -- "$1" $line; printf '%s\n%s\n%s\n' "$2" "$3" "$4"; else echo NONE; fi ;;
    getnext) read -r oid; echo NONE ;;
    '') exit ;;
  esac
done
"#;

pub(crate) struct Agent {
    namespace: Namespace,
    folder: TempDir,
    child: Option<Child>,
    configuration: String,
}

/// Returns why agents cannot run here, if they cannot.
pub(crate) fn unavailable() -> Option<&'static str> {
    let has = |program: &str| {
        let folders = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
        folders.split(':').any(|folder| Path::new(folder).join(program).exists())
    };
    match () {
        () if !nix_is_root() => Some("not root"),
        () if !has("snmpd") => Some("no snmpd"),
        () if !has("ip") || !has("tc") => Some("no iproute2"),
        () => None,
    }
}

fn nix_is_root() -> bool {
    fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| status.lines().any(|line| line.starts_with("Uid:\t0\t0")))
}

impl Agent {
    /// Starts an agent with interfaces wan0 and lan0, which are connected to each other. `lines` are added to its configuration.
    pub(crate) fn start(lines: &str) -> Agent {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let namespace = Namespace::create(format!("thalweg-poll-{}-{number}", std::process::id())).unwrap();
        Netlink::open_within(&namespace).unwrap().set_loopback_up().unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("values.sh"), VALUES_SCRIPT).unwrap();
        fs::write(folder.path().join("values"), "").unwrap();
        let configuration = format!("sysServices 72\n{lines}\n");
        let mut agent = Agent { namespace, folder, child: None, configuration };
        agent.ip("link add wan0 index 101 type veth peer name lan0 index 102");
        agent.ip("link set wan0 up");
        agent.ip("link set lan0 up");
        agent.launch();
        agent
    }

    /// Returns a configuration in which the values of [`set_value`](Self::set_value) replace those of the agent.
    pub(crate) fn own_values() -> String {
        let line = |subtree| format!("pass_persist {subtree} /bin/sh FOLDER/values.sh FOLDER/values\n");
        OWN_SUBTREES.map(line).concat()
    }

    /// Starts the process, after [`kill`](Self::kill).
    pub(crate) fn launch(&mut self) {
        let folder = self.folder.path().display().to_string();
        let file = self.folder.path().join("agent.conf");
        fs::write(&file, self.configuration.replace("FOLDER", &folder)).unwrap();
        let mut command = Command::new("snmpd");
        command.env("PATH", std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin");
        command.env("SNMP_PERSISTENT_DIR", &folder).env("MIBS", "");
        command.args(["-f", "-Lf"]).arg(self.folder.path().join("log")).args(["-C", "-c"]).arg(&file);
        command.arg(format!("udp:{TARGET}")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(self.namespace.spawn(&mut command).unwrap());
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn ip(&self, arguments: &str) {
        self.run("ip", arguments);
    }

    pub(crate) fn run(&self, program: &str, arguments: &str) {
        let mut command = Command::new(program);
        command.env("PATH", std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin");
        command.args(arguments.split_whitespace()).stdout(Stdio::null()).stdin(Stdio::null());
        let status = self.namespace.spawn(&mut command).unwrap().wait().unwrap();
        assert!(status.success(), "{program} {arguments}");
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Sets the values that own_values() answers: lines of OID, type and value.
    pub(crate) fn set_values(&self, lines: &str) {
        let new = self.folder.path().join("values.new");
        fs::write(&new, lines).unwrap();
        fs::rename(new, self.values_file()).unwrap();
    }

    fn values_file(&self) -> PathBuf {
        self.folder.path().join("values")
    }

    /// Sends `count` packets of a UDP flow through wan0. Each packet has about 1,000 bytes.
    pub(crate) fn send(&self, count: usize) {
        self.namespace
            .within(|| {
                let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
                for _ in 0..count {
                    // A full queue may refuse packets.
                    let _ = socket.send_to(&[0; 1_000], "192.0.2.2:9");
                }
            })
            .unwrap();
    }

    /// Gives wan0 an address, and a neighbor that never answers.
    pub(crate) fn connect(&self) {
        self.ip("addr add 192.0.2.1/24 dev wan0");
        self.ip("neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev wan0");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = self.namespace.kill_processes();
        let _ = self.namespace.delete();
    }
}

/// Returns options for wan0 without a cache.
pub(crate) fn options(credentials: Credentials) -> SnmpOptions {
    SnmpOptions {
        target: TARGET.to_owned(),
        interface: "wan0".to_owned(),
        name_object: NameObject::Name,
        credentials,
        timeout: Duration::from_secs(2),
        retries: 1,
        cache_time: Duration::ZERO,
        primary: None,
        scavenger: None,
        has_one_queue: true,
    }
}

/// Returns objects of a queue in own values.
pub(crate) fn queue(sent: &str, dropped: &str) -> QueueObjects {
    let template = |column: &str| OidTemplate::parse(column).unwrap();
    QueueObjects { sent_packets: template(sent), dropped_packets: template(dropped) }
}

/// Reads until the agent has started.
pub(crate) fn first(source: &mut Snmp) -> InterfaceReading {
    let mut last = None;
    for _ in 0..START_ATTEMPTS {
        match source.read(&monotonic) {
            Ok(reading) => return reading,
            Err(ReadError::Timeout { .. }) => {}
            // An agent that starts knows no interfaces yet.
            Err(error @ (ReadError::NoInterface { .. } | ReadError::NoCounter { .. })) => last = Some(error),
            Err(error) => panic!("{error}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the agent does not answer: {last:?}");
}

/// Repeats something until it returns a value.
pub(crate) fn until<T>(mut work: impl FnMut() -> Option<T>) -> T {
    for _ in 0..START_ATTEMPTS {
        match work() {
            Some(value) => return value,
            None => std::thread::sleep(Duration::from_millis(200)),
        }
    }
    panic!("nothing changed");
}
