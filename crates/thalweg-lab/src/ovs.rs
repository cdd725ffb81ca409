//! Switches of Open vSwitch, in user space: a bridge for each, all of one process in the fabric's namespace.
//!
//! Its database, its sockets and its logs are in a folder of the lab, `/run/thalweg/PREFIXovs`; an Open vSwitch that the machine
//! may have besides is neither asked nor touched. Both daemons are processes of the fabric's namespace, and are ended
//! as all others in there.
//!
//! - **Bridges** have no controller that they look for: each listens at a port of its own of the namespace's loopback
//!   interface ([`OpenFlowSwitch::address`]). Whoever connects is obeyed; when nobody is connected, they go on as they
//!   were told. They begin without routes, and drop what they have none for (`fail-mode=secure`).
//! - **ARP requests** to all are answered by the first switch with the base address of the host asked for, as by the
//!   program of the other plane. That is done by entries of the lab's own, with [`COOKIE`], which are there from the
//!   beginning.
//! - **Copies** for the monitor port are made by whoever installs routes, as a second action of each
//!   ([`OpenFlowSwitch::monitor_port`]).
//! - **Shapers** in front of ports are the lab's, as ever: to Open vSwitch they are somebody else's (`linux-noop`).

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

/// Where Debian keeps daemons; not on every user's path.
const DAEMON_PATH: &str = "/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin";

/// The database's schema.
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// What is called, and what it is part of where that is packaged.
const PROGRAMS: [(&str, &str); 6] = [
    ("ovsdb-tool", PACKAGE),
    ("ovsdb-server", PACKAGE),
    ("ovs-vswitchd", PACKAGE),
    ("ovs-vsctl", PACKAGE),
    ("ovs-ofctl", PACKAGE),
    ("ethtool", "ethtool"),
];
const PACKAGE: &str = "openvswitch-switch";

/// Port of the first bridge: that of OpenFlow (IANA). The others follow.
const FIRST_PORT: u16 = 6_653;

/// Cookie of entries that answer ARP requests: `lab`.
const COOKIE: u64 = 0x6c_61_62;

/// Their priority: before all that routes.
const ARP_PRIORITY: u16 = 0xf000;

/// How a switch of Open vSwitch is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFlowSwitch {
    /// Which it is.
    pub router: RouterId,
    /// Where it listens, in the fabric's namespace.
    pub address: SocketAddr,
    /// Its number in OpenFlow.
    pub datapath_id: u64,
    /// OpenFlow's number of its monitor port. Port `p` of the topology has the number `p + 1`.
    pub monitor_port: u32,
}

/// Open vSwitch at work.
pub(crate) struct Ovs {
    folder: PathBuf,
    fabric: Namespace,
}

impl Ovs {
    /// Whether this machine has what is called.
    pub(crate) fn check() -> Result<(), LabError> {
        let is_there =
            |program: &str| DAEMON_PATH.split(':').any(|folder| Path::new(folder).join(program).exists());
        match PROGRAMS.iter().find(|(program, _)| !is_there(program)) {
            Some(&(program, package)) => Err(LabError::NoProgram { program, package }),
            None => Ok(()),
        }
    }

    /// Starts it, and makes a bridge of the ports of each switch. Links are there, and carry frames.
    pub(crate) fn start(
        prefix: &Prefix,
        fabric: &Namespace,
        layout: &Layout,
        topology: &Topology,
    ) -> Result<Ovs, LabError> {
        let ovs = Ovs { folder: folder(prefix), fabric: fabric.clone() };
        fs::create_dir_all(&ovs.folder)
            .map_err(|source| LabError::Record { path: ovs.folder.clone(), source })?;
        let database = ovs.path("conf.db");
        ovs.run("ovsdb-tool", &["create", &database, SCHEMA])?;
        ovs.daemon("ovsdb-server", &[&database, &format!("--remote=punix:{}", ovs.path("db.sock"))])?;
        ovs.vsctl(&["--no-wait".to_owned(), "init".to_owned()])?;
        ovs.daemon("ovs-vswitchd", &[&ovs.database(), "--disable-system"])?;
        ovs.vsctl(&bridges(layout, topology))?;
        for router in topology.router_ids().filter(|&router| topology.rack_size(router) > 0) {
            ovs.answer_arp(router, topology)?;
        }
        Ok(ovs)
    }

    /// What is at work in this lab; `None` if it is not.
    pub(crate) fn find(prefix: &Prefix, fabric: &Namespace) -> Option<Ovs> {
        let ovs = Ovs { folder: folder(prefix), fabric: fabric.clone() };
        let is_at_work = |daemon: &str| -> Option<bool> {
            let text = fs::read_to_string(ovs.folder.join(format!("{daemon}.pid"))).ok()?;
            let number: u32 = text.trim().parse().ok()?;
            Some(fabric.processes().ok()?.contains(&number))
        };
        let daemons = ["ovsdb-server", "ovs-vswitchd"];
        daemons.into_iter().all(|daemon| is_at_work(daemon) == Some(true)).then_some(ovs)
    }

    /// Removes what it has left in files; its processes have been ended.
    pub(crate) fn remove(prefix: &Prefix) -> Result<(), LabError> {
        let path = folder(prefix);
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(LabError::Record { path, source }),
            _ => Ok(()),
        }
    }

    /// Routes of a switch, whoever has installed them.
    pub(crate) fn entries(&self, router: RouterId, topology: &Topology) -> Result<usize, LabError> {
        let told = self.ofctl(&["dump-aggregate", &self.bridge(router)], None)?;
        let count = told.split_whitespace().find_map(|word| word.strip_prefix("flow_count="));
        let count: usize = count.and_then(|count| count.parse().ok()).unwrap_or(0);
        let own = if topology.rack_size(router) > 0 { topology.endpoints().len() } else { 0 };
        Ok(count.saturating_sub(own))
    }

    /// Has a switch answer ARP requests to all: addresses and roles change places, and the frame goes back by the port by
    /// which it came.
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

    fn vsctl(&self, arguments: &[String]) -> Result<String, LabError> {
        let database = format!("--db={}", self.database());
        let own = [database.as_str(), "--timeout=30"].into_iter();
        self.run("ovs-vsctl", &own.chain(arguments.iter().map(String::as_str)).collect::<Vec<_>>())
    }

    /// Starts a daemon, and waits until it is ready. It belongs to nobody, and ends with the namespace.
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

    /// The socket at which a bridge takes what `ovs-ofctl` says.
    fn bridge(&self, router: RouterId) -> String {
        format!("unix:{}", self.path(&format!("{router}.mgmt")))
    }

    fn database(&self) -> String {
        format!("unix:{}", self.path("db.sock"))
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

impl Plan {
    /// How switches are spoken to by OpenFlow, by router; none if they are eBPF programs.
    pub fn openflow(&self) -> Vec<OpenFlowSwitch> {
        let switches = self.topology.router_ids().filter(|_| self.plane == Plane::Ovs);
        switches.map(|router| switch(&self.topology, router)).collect()
    }
}

/// How switch number `router` is spoken to.
fn switch(topology: &Topology, router: RouterId) -> OpenFlowSwitch {
    OpenFlowSwitch {
        router,
        address: (Ipv4Addr::LOCALHOST, FIRST_PORT + router.0).into(),
        datapath_id: u64::from(router.0) + 1,
        monitor_port: topology.ports(router) as u32 + 1,
    }
}

/// Has a host work out checksums itself: frames on veth pairs have none unless somebody asks, and what passes through user space
/// is not asked about.
pub(crate) fn complete_checksums(host: &Namespace) -> Result<(), LabError> {
    let mut ethtool = Command::new("ethtool");
    ethtool.env("PATH", DAEMON_PATH).args(["-K", HOST_INTERFACE, "tx", "off"]);
    run(host, "ethtool", &mut ethtool).map(drop)
}

/// What makes the bridges, in one transaction.
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

/// Runs a command to its end, and gives what it printed.
fn run(namespace: &Namespace, program: &'static str, command: &mut Command) -> Result<String, LabError> {
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
    fn bridges_have_the_ports_of_the_plan_in_its_order_and_the_monitor_port_last() {
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
