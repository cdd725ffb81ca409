//! Creates an emulated lab: record, namespaces, bridge, links, addresses, arbiters, endpoints, in this order.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_linux::netlink::{Netlink, VethEnd};
use thalweg_linux::process::{ProcessIdentity, boot_id};
use thalweg_linux::{KernelVersion, Namespace};
use thalweg_network::{EndpointId, Topology};

use super::plan::{EmulatedPlan, HostAddresses};
use crate::carrier::wait_for_links;
use crate::emulation::default_folder;
use crate::emulation::log::{self, ArbiterContact};
use crate::emulation::record::{EmulationRecord, ProcessRecord, Role};
use crate::error::LabError;
use crate::layout::HOST_INTERFACE;
use crate::plan::FABRIC;
use crate::sysctl::{self, SysctlChange, silence_ipv6};
use crate::tcp::ProvidedTcp;

/// The first kernel with TCX, by which endpoints intercept packets.
const MIN_KERNEL: KernelVersion = KernelVersion { major: 6, minor: 6 };

/// The device of TAP interfaces.
const TAP: &str = "/dev/net/tun";

/// The name of the bridge.
const BRIDGE: &str = "bridge";

/// How long the arbiter and the endpoints may take until all have heard from each other.
const JOIN: Duration = Duration::from_secs(60);

/// The pause between two looks whether they have.
const PAUSE: Duration = Duration::from_millis(20);

/// The interval of an endpoint's status lines. Its log stays short, and has all events and the summary.
const STATUS_INTERVAL: &str = "1h";

/// Checks that the kernel has what endpoints need.
///
/// # Errors
/// If it is too old, or has no TAP interfaces.
pub(super) fn check_kernel() -> Result<(), LabError> {
    match KernelVersion::running() {
        Some(version) if version < MIN_KERNEL => Err(LabError::OldKernel { version }),
        _ if !Path::new(TAP).exists() => Err(LabError::NoTap),
        _ => Ok(()),
    }
}

/// Creates a lab; none of this prefix may exist.
pub(super) fn make(plan: &EmulatedPlan) -> Result<EmulationRecord, LabError> {
    let folder = plan.output.clone().unwrap_or_else(|| default_folder(&plan.prefix));
    let boot = boot_id().map_err(|source| LabError::Record { path: "boot_id".into(), source })?;
    let (prefix, experiment) = (plan.prefix.clone(), plan.experiment.clone());
    // The namespaces of the hosts keep what is registered here.
    let tcp = plan.tcp.provide()?;
    let mut record = EmulationRecord::new(prefix, boot, experiment, &plan.topology, plan.mtu, folder.clone());
    record.set_tcp(&tcp);
    if let Some(processor) = plan.processor {
        record.set_processor(processor, SysctlChange::to_unlimited_real_time()?);
    }
    record.write()?;
    record.changed.iter().try_for_each(SysctlChange::apply)?;
    fs::create_dir_all(&folder).map_err(|source| LabError::File { path: folder, source })?;
    let fabric = make_network(plan, &tcp)?;
    start_processes(plan, &fabric, &mut record)?;
    Ok(record)
}

/// Creates the namespaces, the bridge and the links.
fn make_network(plan: &EmulatedPlan, tcp: &ProvidedTcp) -> Result<Namespace, LabError> {
    let fabric = Namespace::create(plan.prefix.name(FABRIC))?;
    silence_ipv6(&fabric)?;
    sysctl::keep_flows_in_order(&fabric, plan.processor)?;
    let netlink = Netlink::open_within(&fabric)?;
    netlink.set_loopback_up()?;
    netlink.add_bridge(BRIDGE)?;
    sysctl::keep_filters_out(&fabric)?;
    let bridge = netlink.interface(BRIDGE)?;
    netlink.set_up(bridge, true)?;
    let hosts = plan.topology.endpoint_ids();
    let hosts = hosts.map(|endpoint| make_host(plan, tcp, endpoint, &netlink, bridge));
    let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
    wait_for_links(hosts.iter().map(|host| host.port), &netlink)?;
    for (endpoint, host) in plan.topology.endpoint_ids().zip(&hosts) {
        let HostAddresses { ip, ipv6 } = HostAddresses::of(&plan.topology, endpoint, plan.mtu);
        host.netlink.add_address_and_default_route(host.interface, ip)?;
        if let Some(ipv6) = ipv6 {
            host.netlink.add_ipv6_address_and_default_route(host.interface, ipv6)?;
        }
    }
    Ok(fabric)
}

/// A host's end of its link, and the port of the bridge.
struct Host {
    netlink: Netlink,
    interface: u32,
    port: u32,
}

/// Creates a host, and connects it to the bridge.
fn make_host(
    plan: &EmulatedPlan,
    tcp: &ProvidedTcp,
    endpoint: EndpointId,
    fabric: &Netlink,
    bridge: u32,
) -> Result<Host, LabError> {
    let known = &plan.topology.endpoints()[endpoint.index()];
    let namespace = Namespace::create(plan.prefix.name(&known.name))?;
    set_parameters(plan, tcp, &namespace)?;
    let file = File::open(namespace.path()).map_err(|source| LabError::Namespace {
        name: namespace.name().to_owned(),
        what: "open it",
        source,
    })?;
    let (port_name, mtu) = (format!("p{}", endpoint.0), plan.mtu.into());
    let end = VethEnd { name: port_name.clone(), alias: Some(known.name.clone()), mtu, ..VethEnd::default() };
    let peer = VethEnd {
        name: HOST_INTERFACE.to_owned(),
        mac: Some(known.mac),
        mtu,
        namespace: Some(file.as_fd()),
        ..VethEnd::default()
    };
    fabric.add_veth(&end, &peer)?;
    let port = fabric.interface(&port_name)?;
    fabric.add_to_bridge(port, bridge)?;
    fabric.set_up(port, true)?;

    let netlink = Netlink::open_within(&namespace)?;
    netlink.set_loopback_up()?;
    let interface = netlink.interface(HOST_INTERFACE)?;
    netlink.set_up(interface, true)?;
    Ok(Host { netlink, interface, port })
}

/// Sets the parameters of a host's network stack, before it has interfaces.
fn set_parameters(plan: &EmulatedPlan, tcp: &ProvidedTcp, namespace: &Namespace) -> Result<(), LabError> {
    sysctl::keep_flows_in_order(namespace, plan.processor)?;
    let mut parameters = vec![
        // Connections do not inherit metrics from earlier ones.
        ("net/ipv4/tcp_no_metrics_save", "1"),
        // Root may send pings by a socket without headers.
        ("net/ipv4/ping_group_range", "0 0"),
        ("net/ipv4/tcp_congestion_control", tcp.name.as_str()),
    ];
    if tcp.ecn {
        parameters.push(("net/ipv4/tcp_ecn", "1"));
    }
    if sysctl::has_ipv6() {
        parameters.extend([
            ("net/ipv6/conf/all/disable_ipv6", "0"),
            ("net/ipv6/conf/default/disable_ipv6", "0"),
            // There is no router, so hosts look for none.
            ("net/ipv6/conf/default/accept_ra", "0"),
            // Link-local addresses follow from MAC addresses, as in the host table.
            ("net/ipv6/conf/default/addr_gen_mode", "0"),
        ]);
    }
    sysctl::set_within(namespace, &parameters)?;
    sysctl::raise_tcp_buffers(namespace, plan.tcp_buffer)
}

/// Starts the arbiters and the endpoints, and waits until all endpoints hear from the arbiter.
fn start_processes(
    plan: &EmulatedPlan,
    fabric: &Namespace,
    record: &mut EmulationRecord,
) -> Result<(), LabError> {
    remove_old_logs(record, &plan.topology)?;
    let hosts = record.folder.join("hosts.txt");
    fs::write(&hosts, plan.host_table()).map_err(|source| LabError::File { path: hosts.clone(), source })?;
    let mut started = Vec::new();
    let standby = plan.has_standby.then_some(Role::Standby);
    for role in [Role::Arbiter].into_iter().chain(standby) {
        let processor = plan.processor.filter(|_| role == Role::Arbiter);
        let mut command = arbiter(plan, record, role, processor)?;
        started.push(start(fabric, &mut command, record, role, "")?);
    }
    let fabric = &fabric.clone().avoiding(plan.processor);
    for endpoint in plan.topology.endpoint_ids() {
        let name = &plan.topology.endpoints()[endpoint.index()].name;
        let mut command = endpoint_command(plan, endpoint, name, &hosts);
        started.push(start(fabric, &mut command, record, Role::Endpoint(endpoint.0), name)?);
    }
    wait_for_contact(&mut started)
}

/// Starts the arbiters and endpoints of a lab again that have ended. Returns their names.
///
/// While the secondary arbiter decides, the other one waits for it to fall silent: if both decided, each would emulate a network of its own for some of
/// the hosts.
pub(super) fn restart(record: &mut EmulationRecord, topology: &Topology) -> Result<Vec<String>, LabError> {
    let fabric = Namespace::named(record.prefix.name(FABRIC));
    let (mut started, processor) = (Vec::new(), record.processor);
    let standby = record.identities(|role| *role == Role::Standby);
    let has_standby = standby.into_iter().any(ProcessIdentity::is_running);
    for process in record.processes.clone() {
        if process.identity().is_running() {
            continue;
        }
        let (host, fabric) = match process.role {
            Role::Endpoint(number) => {
                let host = &topology.endpoints()[usize::from(number)].name;
                (host.as_str(), fabric.clone().avoiding(processor))
            }
            // An arbiter chooses its processor.
            Role::Arbiter | Role::Standby => ("", fabric.clone()),
        };
        let waits_for = (process.role == Role::Arbiter && has_standby).then(|| Role::Standby.address());
        started.push(start(&fabric, &mut process.command(waits_for), record, process.role, host)?);
        // As it was started first.
        record.set_command(process.role, process.command);
        record.write()?;
    }
    wait_for_contact(&mut started)?;
    Ok(started.iter().map(Started::name).collect())
}

/// Removes the logs that an earlier lab has left in a folder of the user.
fn remove_old_logs(record: &EmulationRecord, topology: &Topology) -> Result<(), LabError> {
    let endpoints = topology.endpoint_ids();
    let endpoints =
        endpoints.map(|it| record.log(Role::Endpoint(it.0), &topology.endpoints()[it.index()].name));
    let arbiters = [Role::Arbiter, Role::Standby].map(|role| record.log(role, ""));
    for path in arbiters.into_iter().chain(endpoints) {
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(LabError::File { path, source });
            }
            _ => {}
        }
    }
    Ok(())
}

/// A process that was started.
struct Started {
    child: Child,
    role: Role,
    /// The host of an endpoint.
    host: String,
    log: PathBuf,
    /// The length of its log before.
    log_start: u64,
}

impl Started {
    fn name(&self) -> String {
        match self.role {
            Role::Arbiter => "the arbiter".to_owned(),
            Role::Standby => "the secondary arbiter".to_owned(),
            Role::Endpoint(_) => format!("the endpoint of {}", self.host),
        }
    }

    fn message(&self) -> String {
        log::last_message(&self.log).unwrap_or_else(|| "its log has no message".to_owned())
    }
}

/// Returns the command of an arbiter, which has `processor` for itself. An old report in its folder is removed: what is there at the end is that of this lab.
fn arbiter(
    plan: &EmulatedPlan,
    record: &EmulationRecord,
    role: Role,
    processor: Option<usize>,
) -> Result<Command, LabError> {
    let report = record.report(role);
    match fs::remove_file(&report) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            return Err(LabError::File { path: report, source });
        }
        _ => {}
    }
    let folder = record.report_folder(role);
    let mut command = Command::new(&plan.program);
    // One bridge connects all hosts.
    command.args(["emulate", "--real-time", "--equal-paths"]).args(&plan.arbiter_arguments);
    if let Some(processor) = processor {
        command.arg("--processor").arg(processor.to_string());
    }
    command.arg("--listen").arg(role.address().to_string()).arg("--output").arg(folder);
    if role == Role::Standby {
        command.arg("--standby-of").arg(Role::Arbiter.address().to_string());
    }
    command.arg("--").arg(&plan.experiment);
    Ok(command)
}

/// Returns the command of the endpoint of a host.
fn endpoint_command(plan: &EmulatedPlan, endpoint: EndpointId, name: &str, hosts: &Path) -> Command {
    let mut command = Command::new(&plan.program);
    let number = endpoint.0.to_string();
    let rate = plan.topology.links()[plan.topology.endpoint_link(endpoint).index()].rate;
    let arbiter = Role::Arbiter.address().to_string();
    command.args(["endpoint", "--interface", HOST_INTERFACE, "--number", &number, "--arbiter", &arbiter]);
    if plan.has_standby {
        command.arg("--standby").arg(Role::Standby.address().to_string());
    }
    command.arg("--namespace").arg(plan.prefix.name(name)).arg("--hosts").arg(hosts);
    command.arg("--link-rate").arg(format!("{}bps", rate.0));
    command.args(["--json", "--interval", STATUS_INTERVAL]).args(&plan.endpoint_arguments);
    command
}

/// Starts a process in the background, and records it.
fn start(
    fabric: &Namespace,
    command: &mut Command,
    record: &mut EmulationRecord,
    role: Role,
    host: &str,
) -> Result<Started, LabError> {
    let path = record.log(role, host);
    let open = || -> io::Result<(File, File, u64)> {
        let log = log::open(&path)?;
        let length = log.metadata()?.len();
        Ok((log.try_clone()?, log, length))
    };
    let (output, errors, log_start) =
        open().map_err(|source| LabError::File { path: path.clone(), source })?;
    // Its own group: Ctrl-C in the terminal is for others.
    command.stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0);
    let child = fabric.spawn(command)?;
    let started = Started { child, role, host: host.to_owned(), log: path, log_start };
    // One that has ended already is found when it is waited for.
    if let Some(identity) = ProcessIdentity::of(started.child.id()) {
        record.set_process(ProcessRecord::new(role, identity, command));
        record.write()?;
    }
    Ok(started)
}

/// Waits until all endpoints hear from the arbiter.
///
/// # Errors
/// If a process ends, or an endpoint hears nothing in time.
fn wait_for_contact(started: &mut [Started]) -> Result<(), LabError> {
    let end = Instant::now() + JOIN;
    loop {
        for process in started.iter_mut() {
            if !matches!(process.child.try_wait(), Ok(None)) {
                return Err(LabError::ProcessEnded { process: process.name(), message: process.message() });
            }
        }
        let is_waiting = |process: &&Started| {
            matches!(process.role, Role::Endpoint(_))
                && log::endpoint_news(&process.log, process.log_start).contact != ArbiterContact::Answers
        };
        match started.iter().find(is_waiting) {
            None => return Ok(()),
            Some(waiting) if Instant::now() >= end => {
                let arbiter = started.iter().find(|process| process.role == Role::Arbiter);
                let message = arbiter.map_or_else(String::new, Started::message);
                return Err(LabError::NotJoined { host: waiting.host.clone(), message });
            }
            Some(_) => thread::sleep(PAUSE),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::sync::Arc;

    use thalweg_network::topology::shapes::{Tiers, leaf_spine};
    use thalweg_wire::Bytes;

    use super::*;
    use crate::tcp::HostTcp;

    #[test]
    fn commands_have_the_addresses_and_the_arguments_of_the_plan() {
        let plan = EmulatedPlan {
            prefix: "wan-".parse().unwrap(),
            topology: Arc::new(leaf_spine(1, 1, 2, Tiers::default()).unwrap()),
            mtu: 1_500,
            program: "/bin/thalweg".into(),
            experiment: "/a/-wan.toml".into(),
            arbiter_arguments: ["--seed", "7"].map(Into::into).to_vec(),
            endpoint_arguments: ["--deadline", "9s"].map(Into::into).to_vec(),
            has_standby: true,
            processor: Some(3),
            tcp_buffer: Bytes(0),
            tcp: HostTcp::default(),
            output: None,
        };
        let (boot, folder) = ("boot".to_owned(), PathBuf::from("/none"));
        let (prefix, experiment) = (plan.prefix.clone(), plan.experiment.clone());
        let record = EmulationRecord::new(prefix, boot, experiment, &plan.topology, plan.mtu, folder);
        assert_eq!(
            words(&arbiter(&plan, &record, Role::Arbiter, Some(3)).unwrap()),
            "/bin/thalweg emulate --real-time --equal-paths --seed 7 --processor 3 --listen 127.0.0.1:6589 --output /none -- /a/-wan.toml"
        );
        assert_eq!(
            words(&arbiter(&plan, &record, Role::Standby, None).unwrap()),
            "/bin/thalweg emulate --real-time --equal-paths --seed 7 --listen 127.0.0.1:6590 --output /none/standby \
             --standby-of 127.0.0.1:6589 -- /a/-wan.toml"
        );
        assert_eq!(
            words(&endpoint_command(&plan, EndpointId(1), "h1", Path::new("/none/hosts.txt"))),
            "/bin/thalweg endpoint --interface eth0 --number 1 --arbiter 127.0.0.1:6589 --standby 127.0.0.1:6590 \
             --namespace wan-h1 --hosts /none/hosts.txt --link-rate 10000000000bps --json --interval 1h --deadline 9s"
        );
    }

    fn words(command: &Command) -> String {
        let words = [command.get_program()].into_iter().chain(command.get_args());
        words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
    }
}
