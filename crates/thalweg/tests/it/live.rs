//! Two network namespaces with a veth pair, and `thalweg watch` at one end.

#![allow(dead_code, reason = "each test uses a part")]

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) const SENDER: &str = "192.0.2.1";
pub(crate) const RECEIVER: &str = "192.0.2.2";

/// Maximum time of operations that are normally instant.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Serialises tests that load the machine, because exporters and captures miss packets on a busy machine.
pub(crate) static SERIAL: Mutex<()> = Mutex::new(());

/// Two namespaces and the veth pair between them, removed when dropped.
pub(crate) struct Link {
    /// Namespace of the sender.
    pub(crate) sender: String,
    receiver: String,
    /// Interface at the sender's end.
    pub(crate) interface: String,
}

impl Link {
    /// Creates the link, or reports why `test` is skipped. Requires `programs`, given with their version flags.
    pub(crate) fn set_up(test: &str, programs: &[(&str, &str)]) -> Option<Link> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        for (program, version_flag) in [&[("ip", "-V")], programs].concat() {
            let version = Command::new(program).arg(version_flag).output();
            if !version.is_ok_and(|version| version.status.success()) {
                return skip(test, &format!("needs {program}"));
            }
        }
        let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        // Interface names have at most 15 bytes.
        let name = |end: &str| format!("tw{process}n{number}{end}");
        let (sender, receiver) = (format!("{}-sender", name("")), format!("{}-receiver", name("")));
        let link = Link { sender, receiver, interface: name("s") };
        let peer = name("r");
        let (sender, receiver, interface) = (&link.sender, &link.receiver, &link.interface);
        for namespace in [sender, receiver] {
            if !ip(&format!("netns add {namespace}")) {
                return skip(test, "needs root and the right to make network namespaces");
            }
        }
        let pair = format!("link add {interface} netns {sender} type veth peer name {peer} netns {receiver}");
        assert!(ip(&pair), "{pair}");
        for (namespace, interface, address) in [(sender, interface, SENDER), (receiver, &peer, RECEIVER)] {
            assert!(ip(&format!("-n {namespace} address add {address}/24 dev {interface}")));
            assert!(ip(&format!("-n {namespace} link set {interface} up")));
            // Packets of the MTU rather than of 64 KiB, so that headers weigh enough for a wrong count of them to
            // show. It is no matter if there is no ethtool.
            let _ = within(namespace, "ethtool")
                .args(["-K", interface, "tso", "off", "gso", "off", "gro", "off"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
        Some(link)
    }

    pub(crate) fn at_sender(&self, program: &str) -> Command {
        within(&self.sender, program)
    }

    pub(crate) fn at_receiver(&self, program: &str) -> Command {
        within(&self.receiver, program)
    }

    /// `ip link ARGUMENTS` at the sender's end.
    pub(crate) fn ip_link(&self, arguments: &str) {
        assert!(ip(&format!("-n {} link {arguments}", self.sender)), "ip link {arguments}");
    }

    /// Pings the receiver until it has answered once.
    pub(crate) fn ping_until_answered(&self) {
        let deadline = Instant::now() + TIMEOUT;
        let ping = || self.at_sender("ping").args(["-c", "1", "-W", "1", RECEIVER]).output().unwrap();
        while !ping().status.success() {
            assert!(Instant::now() < deadline, "no answer from the other end");
            sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for namespace in [&self.sender, &self.receiver] {
            ip(&format!("netns delete {namespace}"));
        }
    }
}

/// Reports a skipped test directly to standard error, because the test runner captures the output of passing tests.
pub(crate) fn skip<T>(test: &str, reason: &str) -> Option<T> {
    std::io::stderr().write_all(format!("skipped: {test}: {reason}\n").as_bytes()).unwrap();
    None
}

/// Returns a command that runs `program` in `namespace`. The process id is that of the program.
fn within(namespace: &str, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, program]);
    command
}

fn ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split(' ')).stderr(Stdio::null()).status().unwrap().success()
}

/// A process that is killed when dropped.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process `thalweg watch --json --flows` at the sender's end of the link.
pub(crate) struct Watch {
    process: Running,
    scratch: TempDir,
}

/// Exit code and output.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) lines: Vec<Value>,
    pub(crate) stderr: String,
}

impl Watch {
    /// Starts the process. Returns when it captures.
    pub(crate) fn start(link: &Link, arguments: &[&str]) -> Watch {
        let scratch = tempfile::tempdir().unwrap();
        let file = |name| File::create(scratch.path().join(name)).unwrap();
        let child = link
            .at_sender(env!("CARGO_BIN_EXE_thalweg"))
            .args(["watch", "--json", "--flows"])
            .args(arguments)
            .arg(&link.interface)
            .stdin(Stdio::null())
            .stdout(file("output"))
            .stderr(file("errors"))
            .spawn()
            .unwrap();
        let mut watch = Watch { process: Running(child), scratch };
        watch.wait_until("it listens", |watch| {
            assert!(watch.exit_status().is_none(), "{}", watch.stderr());
            // A heading, then one line per packet socket of the namespace.
            let sockets = link.at_sender("cat").arg("/proc/net/packet").output().unwrap();
            String::from_utf8_lossy(&sockets.stdout).lines().count() > 1
        });
        watch.wait_until("its threads run without privileges", |watch| watch.is_confined());
        sleep(Duration::from_millis(300)); // until it reads its sockets
        watch
    }

    /// Whether its workers have started and no thread can gain privileges.
    fn is_confined(&self) -> bool {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.id())) else { return false };
        let status =
            |thread: std::io::Result<fs::DirEntry>| fs::read_to_string(thread?.path().join("status"));
        let all: Vec<_> = threads.map(status).collect();
        all.len() >= 2
            && all.iter().flatten().filter(|status| status.contains("NoNewPrivs:\t1")).count() == all.len()
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.0.id()
    }

    /// Stops it as Ctrl-C does.
    pub(crate) fn interrupt(self) -> Ended {
        let interrupt = format!("kill -INT {}", self.id());
        assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
        self.end()
    }

    /// Waits until it ends.
    pub(crate) fn end(mut self) -> Ended {
        self.wait_until("it ends", |watch| watch.exit_status().is_some());
        let output = fs::read_to_string(self.path("output")).unwrap();
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
        Ended {
            code: self.exit_status().unwrap().code(),
            lines: output.lines().map(parse).collect(),
            stderr: self.stderr(),
        }
    }

    fn exit_status(&mut self) -> Option<ExitStatus> {
        self.process.0.try_wait().unwrap()
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.path("errors")).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn wait_until(&mut self, what: &str, mut holds: impl FnMut(&mut Watch) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !holds(self) {
            assert!(Instant::now() < deadline, "waited {TIMEOUT:?} until {what}: {}", self.stderr());
            sleep(Duration::from_millis(20));
        }
    }
}

impl Ended {
    /// Returns the JSON lines of a type.
    pub(crate) fn of_type(&self, name: &'static str) -> impl Iterator<Item = &Value> {
        self.lines.iter().filter(move |line| line["type"] == name)
    }

    /// Returns the last JSON line.
    pub(crate) fn summary(&self) -> &Value {
        let last = self.lines.last().unwrap_or_else(|| panic!("nothing was written: {}", self.stderr));
        assert_eq!(last["type"], "summary");
        last
    }
}
