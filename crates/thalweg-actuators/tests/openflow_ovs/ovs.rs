//! Runs Open vSwitch in a temporary folder: a database and a userspace switch, without privileges or network devices.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Debian's folders of daemons, which are not on every user's path.
const DAEMON_PATH: &str = "/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin";
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
/// Maximum time of any step of Open vSwitch on a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The name of the bridge.
pub(crate) const BRIDGE: &str = "br0";

/// A running Open vSwitch; stopped on drop.
pub(crate) struct Ovs {
    folder: tempfile::TempDir,
    database: Option<Child>,
    switch: Option<Child>,
}

impl Ovs {
    /// Starts Open vSwitch with a bridge with ports 1 to 3 that supports `protocols` and forwards only by a
    /// controller's entries. Returns `None` if Open vSwitch is missing.
    pub(crate) fn start(protocols: &str) -> Option<Ovs> {
        let is_installed = |program: &str| {
            Command::new(program)
                .env("PATH", DAEMON_PATH)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        };
        if !Path::new(SCHEMA).exists()
            || !["ovs-vswitchd", "ovsdb-server", "ovs-vsctl"].into_iter().all(is_installed)
        {
            return None;
        }
        let mut ovs = Ovs { folder: tempfile::tempdir().unwrap(), database: None, switch: None };
        let (conf, socket) = (ovs.path("conf.db"), ovs.path("db.sock"));
        ovs.run("ovsdb-tool", &["create", conf.to_str().unwrap(), SCHEMA]);
        let remote = format!("--remote=punix:{}", socket.display());
        ovs.database = Some(ovs.daemon("ovsdb-server", &[conf.to_str().unwrap(), &remote]));
        // The file exists before the server listens.
        ovs.wait_for("its database", || UnixStream::connect(&socket).is_ok());
        ovs.vsctl(&["--no-wait", "init"]);
        ovs.start_switch();
        let protocols = format!("protocols={protocols}");
        let bridge = ["--", "set", "bridge", BRIDGE, "datapath_type=dummy", "fail-mode=secure", &protocols];
        ovs.vsctl(&[&["add-br", BRIDGE][..], &bridge].concat());
        for port in 1..=3 {
            ovs.add_port(port);
        }
        Some(ovs)
    }

    /// Starts or restarts the switch.
    pub(crate) fn start_switch(&mut self) {
        let database = self.database_address();
        // Ports of type dummy are unconnected and need no privileges.
        self.switch = Some(self.daemon("ovs-vswitchd", &[&database, "--enable-dummy", "--disable-system"]));
        self.wait_for("its switch", || self.path("ovs-vswitchd.ctl").exists());
    }

    /// Kills the switch, as a power failure would.
    pub(crate) fn kill_switch(&mut self) {
        stop(&mut self.switch);
        fs::remove_file(self.path("ovs-vswitchd.ctl")).unwrap();
    }

    pub(crate) fn add_port(&self, number: u32) {
        let (name, request) = (format!("p{number}"), format!("ofport_request={number}"));
        self.vsctl(&["add-port", BRIDGE, &name, "--", "set", "interface", &name, "type=dummy", &request]);
    }

    /// Adds a bridge with this datapath id and ports `NAMEp1`, `NAMEp2`, ..., connected to a controller.
    #[allow(dead_code, reason = "not all users of this file need it")]
    pub(crate) fn add_bridge(&self, name: &str, datapath: u64, ports: u32, controller: SocketAddr) {
        let id = format!("other-config:datapath-id={datapath:016x}");
        let settings = ["datapath_type=dummy", "fail-mode=secure", "protocols=OpenFlow13", &id];
        self.vsctl(&[&["add-br", name, "--", "set", "bridge", name][..], &settings].concat());
        for number in 1..=ports {
            let (port, request) = (format!("{name}p{number}"), format!("ofport_request={number}"));
            self.vsctl(&["add-port", name, &port, "--", "set", "interface", &port, "type=dummy", &request]);
        }
        self.set_controller_of(name, &format!("tcp:{controller}"));
    }

    /// Removes a port from a bridge.
    #[allow(dead_code, reason = "not all users of this file need it")]
    pub(crate) fn delete_port(&self, bridge: &str, port: &str) {
        self.vsctl(&["del-port", bridge, port]);
    }

    /// Removes a port and adds it again under another number.
    #[allow(dead_code, reason = "not all users of this file need it")]
    pub(crate) fn renumber_port(&self, bridge: &str, port: &str, number: u32) {
        self.delete_port(bridge, port);
        let request = format!("ofport_request={number}");
        self.vsctl(&["add-port", bridge, port, "--", "set", "interface", port, "type=dummy", &request]);
    }

    /// Returns the entries that `ovs-ofctl dump-flows` shows, one per line.
    #[allow(dead_code, reason = "not all users of this file need it")]
    pub(crate) fn flows(&self, bridge: &str) -> Vec<String> {
        let socket = format!("unix:{}", self.path(&format!("{bridge}.mgmt")).display());
        let shown = self.run("ovs-ofctl", &["--no-names", "-O", "OpenFlow13", "dump-flows", &socket]);
        shown.lines().filter(|line| line.contains("cookie=")).map(str::to_owned).collect()
    }

    /// Returns the datapath actions of a bridge for a packet.
    #[allow(dead_code, reason = "not all users of this file need it")]
    pub(crate) fn trace(&self, bridge: &str, packet: &str) -> String {
        let socket = self.path("ovs-vswitchd.ctl").display().to_string();
        let shown = self.run("ovs-appctl", &["-t", &socket, "ofproto/trace", bridge, packet]);
        let actions = shown.lines().find_map(|line| line.strip_prefix("Datapath actions: "));
        actions.unwrap_or_else(|| panic!("{shown}")).to_owned()
    }

    /// Returns the OpenFlow number of the bridge's port with this datapath number.
    #[allow(dead_code, reason = "not all users of this file need it")]
    pub(crate) fn of_port(&self, bridge: &str, number: u32) -> u32 {
        let socket = self.path("ovs-vswitchd.ctl").display().to_string();
        // `		sw0p1 1/7: (dummy)`
        let shown = self.run("ovs-appctl", &["-t", &socket, "dpif/show"]);
        let ports = shown.lines().filter_map(|line| line.trim().strip_prefix(bridge)?.strip_prefix('p'));
        let numbers = ports.filter_map(|port| port.split_once(' ')?.1.split_once(':')?.0.split_once('/'));
        let mut found =
            numbers.filter(|(_, datapath)| *datapath == number.to_string()).map(|(port, _)| port.parse());
        found.next_back().unwrap_or_else(|| panic!("{shown}")).unwrap()
    }

    /// Has the bridge connect to a controller (`tcp:127.0.0.1:6653`) or listen for one (`ptcp:6653`).
    pub(crate) fn set_controller(&self, target: &str) {
        self.set_controller_of(BRIDGE, target);
    }

    /// Like [`set_controller`](Self::set_controller), for any bridge.
    pub(crate) fn set_controller_of(&self, bridge: &str, target: &str) {
        // Reconnects quickly: the default back-off is up to 8 s.
        let options = ["max_backoff=1000", "connection-mode=out-of-band", "inactivity_probe=2000"];
        let command = ["set-controller", bridge, target, "--", "set", "controller", bridge];
        self.vsctl(&[&command[..], &options].concat());
    }

    /// Connects the bridge to a controller that listens here.
    #[allow(dead_code, reason = "not all users of this file need it")]
    pub(crate) fn connect_to(&self, address: SocketAddr) {
        self.set_controller(&format!("tcp:{address}"));
    }

    pub(crate) fn vsctl(&self, arguments: &[&str]) -> String {
        let database = format!("--db={}", self.database_address());
        self.run("ovs-vsctl", &[&[&database[..], "--timeout=20"][..], arguments].concat())
    }

    /// Returns the output of `ovs-ofctl COMMAND` for the bridge.
    pub(crate) fn ofctl(&self, command: &str) -> String {
        let bridge = format!("unix:{}", self.path(&format!("{BRIDGE}.mgmt")).display());
        self.run("ovs-ofctl", &["--no-names", "-O", "OpenFlow13", command, &bridge])
    }

    /// Returns the warnings and errors of the switch's log.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = fs::read_to_string(self.path("ovs-vswitchd.log")).unwrap();
        let is_complaint =
            |line: &&str| ["|WARN|", "|ERR|", "|EMER|"].iter().any(|level| line.contains(level));
        log.lines().filter(is_complaint).map(str::to_owned).collect()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn database_address(&self) -> String {
        format!("unix:{}", self.path("db.sock").display())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("PATH", DAEMON_PATH).stdin(Stdio::null());
        for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(variable, self.folder.path());
        }
        command
    }

    /// Starts a daemon with its log and control socket in the folder.
    fn daemon(&self, name: &str, arguments: &[&str]) -> Child {
        let path = |suffix| self.path(&format!("{name}.{suffix}"));
        self.command(name)
            .args(arguments)
            .args(["--no-chdir", "-vconsole:off", "-vfile:info"])
            .arg(format!("--log-file={}", path("log").display()))
            .arg(format!("--unixctl={}", path("ctl").display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.command(program).args(arguments).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn wait_for(&self, what: &str, condition: impl Fn() -> bool) {
        let start = Instant::now();
        while !condition() {
            assert!(start.elapsed() < TEST_TIMEOUT, "Open vSwitch did not start {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn stop(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Ovs {
    fn drop(&mut self) {
        stop(&mut self.switch);
        stop(&mut self.database);
    }
}
