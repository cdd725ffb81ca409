//! An Open vSwitch in user space between senders and a receiver, each in a network namespace. The port to the receiver has the
//! queues of `linux-htb`, and a filter that puts packets with DSCP 1 into the second.

use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use thalweg_linux::tc::queue::handle;
use thalweg_linux::{Namespace, Netlink};
use thalweg_wire::FlowKey;

/// Debian's folders of daemons, which are not on every user's path.
const DAEMON_PATH: &str = "/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin";
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// The port to the receiver, number 3.
pub(crate) const PORT: &str = "wan0";

/// The port of the switch's controller.
pub(crate) const LISTEN: &str = "127.0.0.1:6653";

/// Classes of queue 0 and queue 1.
pub(crate) const PRIMARY: u32 = handle(1, 1);
pub(crate) const SCAVENGER: u32 = handle(1, 2);

/// Maximum time of any step on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Everything is removed on drop.
pub(crate) struct Network {
    pub(crate) switch: Namespace,
    senders: [Namespace; 2],
    receiver: Namespace,
    folder: tempfile::TempDir,
    daemons: [Option<Child>; 2],
}

/// A sender and its receiver.
pub(crate) struct Flow {
    socket: UdpSocket,
    _receiver: UdpSocket,
    pub(crate) key: FlowKey,
}

fn skip(reason: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = std::io::stderr().write_all(format!("skipped: {name}: {reason}\n").as_bytes());
}

impl Network {
    /// Starts everything, or reports why the test is skipped.
    pub(crate) fn start() -> Option<Network> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let is_installed =
            |program: &&str| DAEMON_PATH.split(':').any(|folder| Path::new(folder).join(program).exists());
        let programs = ["ovs-vswitchd", "ovsdb-server", "ovs-vsctl", "ovs-ofctl", "ethtool", "tc"];
        if let Some(missing) = programs.iter().find(|program| !is_installed(program)) {
            skip(&format!("needs {missing} (apt-get install openvswitch-switch ethtool iproute2)"));
            return None;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |end: &str| format!("tof-{}-{number}{end}", std::process::id());
        let switch = match Namespace::create(name("s")) {
            Ok(switch) => switch,
            Err(error) => {
                skip(&format!("needs root: {error}"));
                return None;
            }
        };
        let [first, second, receiver] = ["a", "c", "b"].map(|end| Namespace::create(name(end)).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let senders = [first, second];
        let mut it = Network { switch, senders, receiver, folder, daemons: [None, None] };
        it.set_up_links();
        it.run("ovsdb-tool", &["create", &it.path("conf.db"), SCHEMA]);
        let remote = format!("--remote=punix:{}", it.path("db.sock"));
        it.daemons[0] = Some(it.daemon("ovsdb-server", &[&it.path("conf.db"), &remote]));
        // The file exists before the server listens.
        wait("the database starts", || UnixStream::connect(it.path("db.sock")).is_ok());
        it.vsctl("--no-wait init");
        it.start_switch();
        it.vsctl(
            "add-br br0 -- set bridge br0 datapath_type=netdev protocols=OpenFlow13 other-config:datapath-id=00000000000000d1 \
             -- add-port br0 lan0 -- set interface lan0 ofport_request=1 \
             -- add-port br0 lan1 -- set interface lan1 ofport_request=2 \
             -- add-port br0 wan0 -- set interface wan0 ofport_request=3 \
             -- set-controller br0 ptcp:6653:127.0.0.1 \
             -- set port wan0 qos=@qos -- --id=@qos create qos type=linux-htb other-config:max-rate=50000000 queues:0=@q0 queues:1=@q1 \
             -- --id=@q0 create queue other-config:min-rate=45000000 other-config:max-rate=50000000 \
             -- --id=@q1 create queue other-config:min-rate=5000000 other-config:max-rate=50000000",
        );
        wait("the port has classes", || it.classes().len() == 3);
        it.in_switch(
            "tc filter add dev wan0 parent 1: protocol ip prio 1 u32 match ip tos 0x04 0xfc flowid 1:2",
        );
        it.in_switch(
            "tc filter add dev wan0 parent 1: protocol ipv6 prio 2 u32 match u16 0x0040 0x0fc0 at 0 flowid 1:2",
        );
        Some(it)
    }

    fn set_up_links(&self) {
        self.in_switch("ip link set lo up");
        let hosts = [(&self.senders[0], "lan0", 1), (&self.senders[1], "lan1", 2), (&self.receiver, PORT, 3)];
        for (host, port, number) in hosts {
            let peer = host.name();
            self.in_switch(&format!("ip link add {port} type veth peer name eth0 netns {peer}"));
            self.in_switch(&format!("ip link set {port} up"));
            let run = |words: &str| run(host, self.folder.path(), &words.split(' ').collect::<Vec<_>>());
            run("ip link set lo up");
            run(&format!("ip addr add 10.77.0.{number}/24 dev eth0"));
            run(&format!("ip addr add fd77::{number}/64 dev eth0 nodad"));
            run("ip link set eth0 up");
            // Packets through user space need complete checksums.
            run("ethtool -K eth0 tx off");
        }
    }

    /// Starts or restarts the switch.
    pub(crate) fn start_switch(&mut self) {
        let database = format!("unix:{}", self.path("db.sock"));
        self.daemons[1] = Some(self.daemon("ovs-vswitchd", &[&database, "--disable-system"]));
        wait("the switch starts", || fs::exists(self.path("ovs-vswitchd.ctl")).unwrap());
    }

    /// Kills the switch, as a power failure would.
    pub(crate) fn kill_switch(&mut self) {
        stop(&mut self.daemons[1]);
        fs::remove_file(self.path("ovs-vswitchd.ctl")).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn daemon(&self, name: &str, arguments: &[&str]) -> Child {
        let mut command = command(self.folder.path(), name);
        command.args(arguments).args(["--no-chdir", "-vconsole:off", "-vfile:info"]);
        command.arg(format!("--log-file={}", self.path(&format!("{name}.log"))));
        command.arg(format!("--unixctl={}", self.path(&format!("{name}.ctl"))));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.switch.spawn(&mut command).unwrap()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> String {
        run(&self.switch, self.folder.path(), &[&[program], arguments].concat())
    }

    pub(crate) fn vsctl(&self, words: &str) {
        let database = format!("--db=unix:{}", self.path("db.sock"));
        let words: Vec<&str> = words.split_whitespace().collect();
        self.run("ovs-vsctl", &[&[&*database, "--timeout=30"], &words[..]].concat());
    }

    /// Runs a command in the namespace of the switch.
    pub(crate) fn in_switch(&self, words: &str) -> String {
        run(&self.switch, self.folder.path(), &words.split(' ').collect::<Vec<_>>())
    }

    /// Runs `ovs-ofctl COMMAND BRIDGE ARGUMENT`.
    pub(crate) fn ofctl(&self, command: &str, argument: Option<&str>) -> String {
        let bridge = format!("unix:{}", self.path("br0.mgmt"));
        let words = ["-O", "OpenFlow13", "--no-names", command, &bridge].into_iter().chain(argument);
        self.run("ovs-ofctl", &words.collect::<Vec<_>>())
    }

    /// Returns the entries of redirected flows.
    pub(crate) fn rules(&self) -> Vec<String> {
        let shown = self.ofctl("dump-flows", None);
        shown
            .lines()
            .filter(|line| line.contains("cookie=0x7469"))
            .map(|line| line.trim().to_owned())
            .collect()
    }

    fn classes(&self) -> Vec<(u32, u64)> {
        let netlink = Netlink::open_within(&self.switch).unwrap();
        let classes = netlink.classes(netlink.interface(PORT).unwrap()).unwrap();
        classes.into_iter().map(|class| (class.handle, class.counters.sent_packets)).collect()
    }

    /// Packets that a class of the port has sent.
    pub(crate) fn sent(&self, class: u32) -> u64 {
        self.classes().into_iter().find(|(handle, _)| *handle == class).map_or(0, |(_, packets)| packets)
    }

    /// Opens a flow from the first or the second sender.
    pub(crate) fn flow(&self, sender: usize, is_v6: bool, port: u16) -> Flow {
        let address = |number: u8| -> IpAddr {
            let text = if is_v6 { format!("fd77::{number}") } else { format!("10.77.0.{number}") };
            text.parse().unwrap()
        };
        let own = SocketAddr::new(address(sender as u8 + 1), port);
        let peer = SocketAddr::new(address(3), 9_000 + port % 1_000);
        let receiver = self.receiver.within(|| UdpSocket::bind(peer).unwrap()).unwrap();
        let socket = self.senders[sender].within(|| UdpSocket::bind(own).unwrap()).unwrap();
        socket.connect(peer).unwrap();
        Flow { socket, _receiver: receiver, key: format!("udp {own} > {peer}").parse().unwrap() }
    }
}

impl Flow {
    /// Sends packets of 900 bytes.
    pub(crate) fn send(&self, count: usize) {
        for _ in 0..count {
            // A full buffer or a port that is gone for a moment loses packets, as networks do.
            let _ = self.socket.send(&[0; 900]);
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.daemons.iter_mut().rev().for_each(stop);
        for namespace in self.senders.iter().chain([&self.receiver, &self.switch]) {
            let _ = namespace.delete();
        }
    }
}

fn stop(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn command(folder: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("PATH", DAEMON_PATH).stdin(Stdio::null());
    for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
        command.env(variable, folder);
    }
    command
}

fn run(namespace: &Namespace, folder: &Path, words: &[&str]) -> String {
    let mut command = command(folder, words[0]);
    command.args(&words[1..]);
    let output = namespace.within(move || command.output()).unwrap().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Waits until `is_so`; panics if it takes too long even for a busy machine.
pub(crate) fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
