//! Open vSwitch in user space: one bridge per switch, all in one process in the fabric's namespace.
//!
//! Its database, sockets and logs are in `/run/thalweg/PREFIXovs`; another Open vSwitch on the machine is not touched.
//! Both daemons are processes in the fabric's namespace and end with it.
//!
//! - **Bridges** do not connect to a controller: each listens on its own port of the namespace's loopback interface
//!   ([`OpenFlowSwitch::address`]). They accept any controller, and keep their rules when it disconnects. Initially
//!   they have no routes, and drop frames without a route (`fail-mode=secure`).
//! - **Broadcast ARP requests** are answered by the first switch with the host's base address, as with eBPF switches.
//!   Rules with [`COOKIE`] do this from the start.
//! - **Mirroring** is a second action of each installed route, to the monitor port ([`OpenFlowSwitch::monitor_port`]).
//! - **Shapers** in front of ports are the lab's; Open vSwitch leaves them alone (`linux-noop`).

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use thalweg_linux::Namespace;
use thalweg_network::topology::Endpoint;
use thalweg_network::{MacAddress, RouterId, Topology};

use crate::error::LabError;
use crate::layout::{self, HOST_INTERFACE, Layout};
use crate::plan::{Plan, Plane, Prefix};
use crate::record;

/// Search path with Debian's folders of daemons, which are not on every user's path.
pub(crate) const DAEMON_PATH: &str = "/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin";

/// The database's schema.
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// Required programs and their Debian packages.
const PROGRAMS: [(&str, &str); 6] = [
    ("ovsdb-tool", PACKAGE),
    ("ovsdb-server", PACKAGE),
    ("ovs-vswitchd", PACKAGE),
    ("ovs-vsctl", PACKAGE),
    ("ovs-ofctl", PACKAGE),
    ("ethtool", "ethtool"),
];
const PACKAGE: &str = "openvswitch-switch";

/// Port of the first bridge: OpenFlow's (IANA). Other bridges use the ports after it.
const FIRST_PORT: u16 = 6_653;

/// Cookie of the rules that answer ARP requests: `lab` in ASCII.
const COOKIE: u64 = 0x6c_61_62;

/// Priority of these rules: above all routes.
const ARP_PRIORITY: u16 = 0xf000;

/// The OpenFlow address and numbers of an Open vSwitch bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFlowSwitch {
    /// The router.
    pub router: RouterId,
    /// The address at which it listens, in the fabric's namespace.
    pub address: SocketAddr,
    /// Its datapath ID.
    pub datapath_id: u64,
    /// OpenFlow number of its monitor port. Port `p` of the topology has the number `p + 1`.
    pub monitor_port: u32,
}

/// A running Open vSwitch.
pub(crate) struct Ovs {
    folder: PathBuf,
    fabric: Namespace,
}

impl Ovs {
    /// Checks that the required programs are installed.
    pub(crate) fn check() -> Result<(), LabError> {
        check_programs(&PROGRAMS)
    }

    /// Starts Open vSwitch and creates a bridge with the ports of each switch. The links must be up.
    pub(crate) fn start(
        prefix: &Prefix,
        fabric: &Namespace,
        layout: &Layout,
        topology: &Topology,
    ) -> Result<Ovs, LabError> {
        let ovs = Ovs::launch(prefix, fabric)?;
        ovs.vsctl(&bridges(layout, topology))?;
        for router in topology.router_ids().filter(|&router| topology.rack_size(router) > 0) {
            ovs.answer_arp(router, topology)?;
        }
        Ok(ovs)
    }

    /// Starts Open vSwitch without bridges.
    pub(crate) fn launch(prefix: &Prefix, namespace: &Namespace) -> Result<Ovs, LabError> {
        let ovs = Ovs { folder: folder(prefix), fabric: namespace.clone() };
        fs::create_dir_all(&ovs.folder)
            .map_err(|source| LabError::Record { path: ovs.folder.clone(), source })?;
        let database = ovs.path("conf.db");
        ovs.run("ovsdb-tool", &["create", &database, SCHEMA])?;
        ovs.daemon("ovsdb-server", &[&database, &format!("--remote=punix:{}", ovs.path("db.sock"))])?;
        ovs.vsctl(&["--no-wait".to_owned(), "init".to_owned()])?;
        ovs.daemon("ovs-vswitchd", &[&ovs.database(), "--disable-system"])?;
        Ok(ovs)
    }

    /// Finds the Open vSwitch of a lab; `None` if one of its daemons is not running.
    pub(crate) fn find(prefix: &Prefix, fabric: &Namespace) -> Option<Ovs> {
        let ovs = Ovs { folder: folder(prefix), fabric: fabric.clone() };
        let is_running = |daemon: &str| -> Option<bool> {
            let text = fs::read_to_string(ovs.folder.join(format!("{daemon}.pid"))).ok()?;
            let number: u32 = text.trim().parse().ok()?;
            Some(fabric.processes().ok()?.contains(&number))
        };
        let daemons = ["ovsdb-server", "ovs-vswitchd"];
        daemons.into_iter().all(|daemon| is_running(daemon) == Some(true)).then_some(ovs)
    }

    /// Removes its files; its processes must have ended.
    pub(crate) fn remove(prefix: &Prefix) -> Result<(), LabError> {
        let path = folder(prefix);
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(LabError::Record { path, source }),
            _ => Ok(()),
        }
    }

    /// Returns the number of routes of a switch, without the rules for ARP.
    pub(crate) fn entries(&self, router: RouterId, topology: &Topology) -> Result<usize, LabError> {
        let reply = self.ofctl(&["dump-aggregate", &self.bridge(router)], None)?;
        let count = reply.split_whitespace().find_map(|word| word.strip_prefix("flow_count="));
        let count: usize = count.and_then(|count| count.parse().ok()).unwrap_or(0);
        let own = if topology.rack_size(router) > 0 { topology.endpoints().len() } else { 0 };
        Ok(count.saturating_sub(own))
    }

    /// Sends a frame out of a port of a bridge.
    pub(crate) fn send(&self, bridge: &str, port: u32, frame: &str) -> Result<(), LabError> {
        let packet = format!("packet={frame} actions=output:{port}");
        let arguments = ["packet-out", &self.socket(bridge), &format!("in_port=controller {packet}")];
        self.ofctl(&arguments, None).map(drop)
    }

    /// Installs rules that answer broadcast ARP requests: they swap addresses and roles, and return the frame to its
    /// port.
    fn answer_arp(&self, router: RouterId, topology: &Topology) -> Result<(), LabError> {
        let all = MacAddress([0xff; 6]);
        let entry = |host: &Endpoint| {
            let (mac, ip) = (host.mac, host.ip);
            format!(
                "cookie={COOKIE:#x},priority={ARP_PRIORITY},arp,arp_op=1,dl_dst={all},arp_tpa={ip} \
                 actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],set_field:{mac}->eth_src,set_field:2->arp_op,\
                 move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[],move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[],\
                 set_field:{mac}->arp_sha,set_field:{ip}->arp_spa,IN_PORT\n"
            )
        };
        let entries: String = topology.endpoints().iter().map(entry).collect();
        let file = self.folder.join("arp.flows");
        fs::write(&file, entries).map_err(|source| LabError::Record { path: file.clone(), source })?;
        self.ofctl(&["add-flows", &self.bridge(router)], Some(&file)).map(drop)
    }

    fn ofctl(&self, arguments: &[&str], file: Option<&Path>) -> Result<String, LabError> {
        let file = file.map(|file| file.display().to_string());
        let arguments = ["-O", "OpenFlow13"].into_iter().chain(arguments.iter().copied());
        self.run("ovs-ofctl", &arguments.chain(file.as_deref()).collect::<Vec<_>>())
    }

    pub(crate) fn vsctl(&self, arguments: &[String]) -> Result<String, LabError> {
        let database = format!("--db={}", self.database());
        let own = [database.as_str(), "--timeout=30"].into_iter();
        self.run("ovs-vsctl", &own.chain(arguments.iter().map(String::as_str)).collect::<Vec<_>>())
    }

    /// Starts a daemon in the background and waits until it is ready. It ends with the namespace.
    fn daemon(&self, name: &'static str, arguments: &[&str]) -> Result<(), LabError> {
        let path = |suffix: &str| self.path(&format!("{name}.{suffix}"));
        let own = [
            "--detach".to_owned(),
            "-vconsole:off".to_owned(),
            format!("--pidfile={}", path("pid")),
            format!("--log-file={}", path("log")),
            format!("--unixctl={}", path("ctl")),
        ];
        let all: Vec<&str> = arguments.iter().copied().chain(own.iter().map(String::as_str)).collect();
        self.run(name, &all).map(drop)
    }

    fn run(&self, program: &'static str, arguments: &[&str]) -> Result<String, LabError> {
        let mut command = Command::new(program);
        for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(variable, &self.folder);
        }
        command.env("PATH", DAEMON_PATH).args(arguments);
        run(&self.fabric, program, &mut command)
    }

    /// Returns the socket of a bridge for `ovs-ofctl`.
    fn bridge(&self, router: RouterId) -> String {
        self.socket(&router.to_string())
    }

    fn socket(&self, bridge: &str) -> String {
        format!("unix:{}", self.path(&format!("{bridge}.mgmt")))
    }

    fn database(&self) -> String {
        format!("unix:{}", self.path("db.sock"))
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

impl Plan {
    /// Returns the OpenFlow addresses of the switches, by router; empty with eBPF switches.
    pub fn openflow(&self) -> Vec<OpenFlowSwitch> {
        let switches = self.topology.router_ids().filter(|_| self.plane == Plane::Ovs);
        switches.map(|router| switch(&self.topology, router)).collect()
    }
}

/// Returns the OpenFlow address and numbers of a switch.
fn switch(topology: &Topology, router: RouterId) -> OpenFlowSwitch {
    OpenFlowSwitch {
        router,
        address: (Ipv4Addr::LOCALHOST, FIRST_PORT + router.0).into(),
        datapath_id: u64::from(router.0) + 1,
        monitor_port: topology.ports(router) as u32 + 1,
    }
}

/// Makes a host compute checksums itself. On veth pairs the kernel leaves them to the receiver, but frames that pass
/// through user space need them.
pub(crate) fn complete_checksums(host: &Namespace) -> Result<(), LabError> {
    let mut ethtool = Command::new("ethtool");
    ethtool.env("PATH", DAEMON_PATH).args(["-K", HOST_INTERFACE, "tx", "off"]);
    run(host, "ethtool", &mut ethtool).map(drop)
}

/// Returns the arguments of `ovs-vsctl` that create all bridges in one transaction.
fn bridges(layout: &Layout, topology: &Topology) -> Vec<String> {
    let mut words: Vec<String> = vec!["--id=@noop create qos type=linux-noop".to_owned()];
    for router in topology.router_ids() {
        let OpenFlowSwitch { address, datapath_id, monitor_port, .. } = switch(topology, router);
        words.push(format!("add-br {router}"));
        words.push(format!(
            "set bridge {router} datapath_type=netdev fail-mode=secure protocols=OpenFlow13 \
             other-config:datapath-id={datapath_id:016x}"
        ));
        words.push(format!("set-controller {router} ptcp:{}:{}", address.port(), address.ip()));
        words.push(format!("set controller {router} connection-mode=out-of-band"));
        let ports = layout.ports_of(router).iter();
        let ports = ports.map(|port| (layout::port_name(router, port.port), u32::from(port.port.0) + 1));
        for (name, number) in ports.chain([(layout::mirror_name(router), monitor_port)]) {
            words.push(format!("add-port {router} {name}"));
            words.push(format!("set interface {name} ofport_request={number}"));
            words.push(format!("set port {name} qos=@noop"));
        }
    }
    let commands = words.iter().map(|command| command.split_whitespace().map(str::to_owned));
    commands.flat_map(|words| std::iter::once("--".to_owned()).chain(words)).collect()
}

fn folder(prefix: &Prefix) -> PathBuf {
    record::folder().join(format!("{prefix}ovs"))
}

/// Checks that programs are installed; each has its Debian package beside it.
pub(crate) fn check_programs(programs: &[(&'static str, &'static str)]) -> Result<(), LabError> {
    let is_installed =
        |program: &str| DAEMON_PATH.split(':').any(|folder| Path::new(folder).join(program).exists());
    match programs.iter().find(|(program, _)| !is_installed(program)) {
        Some(&(program, package)) => Err(LabError::MissingProgram { program, package }),
        None => Ok(()),
    }
}

/// Runs a command and returns its output.
pub(crate) fn run(
    namespace: &Namespace,
    program: &'static str,
    command: &mut Command,
) -> Result<String, LabError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |reason: String| LabError::Program { program, reason };
    let output = namespace.spawn(command)?.wait_with_output().map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::DEFAULT_RATE;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        assert!(check_programs(&[("ls", "coreutils")]).is_ok());
        let error =
            check_programs(&[("ls", "coreutils"), ("no-such-switchd", "no-such-switch")]).unwrap_err();
        let expected =
            "a lab with these switches needs no-such-switchd: install the package no-such-switch".to_owned();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn bridges_have_the_plan_ports_in_order_then_the_monitor_port() {
        let plan = Plan::leaf_spine(DEFAULT_RATE).unwrap();
        let all = bridges(&Layout::new(&plan), &plan.topology).join(" ");
        let commands: Vec<&str> = all.split("-- ").map(str::trim).collect();
        for expected in [
            "set bridge r4 datapath_type=netdev fail-mode=secure protocols=OpenFlow13 other-config:datapath-id=0000000000000005",
            "set-controller r4 ptcp:6657:127.0.0.1",
            "add-port r0 r0p0",
            "set interface r0p0 ofport_request=1",
            "set interface r0p3 ofport_request=4",
            "set interface r0mirror ofport_request=5",
            "set interface r4mirror ofport_request=4",
        ] {
            assert!(commands.contains(&expected), "{expected} is not in {commands:#?}");
        }
        assert_eq!(switch(&plan.topology, RouterId(4)).address.port(), 6_657);
    }
}
