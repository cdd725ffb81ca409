//! Creates a lab: record, namespaces, links, shapers, switches, tables, in this order.

use std::fs::File;
use std::os::fd::AsFd as _;

use thalweg_linux::Namespace;
use thalweg_linux::netlink::{Netlink, VethEnd};
use thalweg_network::EndpointId;
use thalweg_network::topology::Node;
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::parts::{Parts, Switching, host};
use crate::carrier::wait_for_links;
use crate::ebpf::{self, Maps};
use crate::error::LabError;
use crate::layout::{self, HOST_INTERFACE, Layout, Peer};
use crate::ovs::{self, Ovs};
use crate::plan::{FABRIC, Plan, Plane};
use crate::record::Record;
use crate::routes::{DEFAULT_ADDRESSES, shortest_path_tables};
use crate::shaper;
use crate::sysctl::{self, SysctlChange, silence_ipv6};

/// Length of a host's queue: long enough that a UDP socket blocks instead of dropping.
const HOST_BUFFER: Nanos = Nanos::from_millis(20);

/// Data of a TCP connection in its host's queue, as time at the host's rate. A queued frame has its destination address
/// already, so the queue delays a reroute. By default the kernel queues 1.3 ms at 100 Mbit/s, with this limit 0.5 ms,
/// at the same throughput.
const TCP_QUEUE: Nanos = Nanos::from_micros(650);

/// Two full frames with the kernel's overhead: with less a connection cannot fill its link.
const MIN_TCP_QUEUE: Bytes = Bytes(4_608);

/// Creates a lab; none of this prefix may exist.
pub(super) fn make(plan: &Plan) -> Result<Parts, LabError> {
    let changes = plan.congestion_control.iter().map(|name| SysctlChange::to_allow(name));
    let changed = changes.collect::<Result<Vec<_>, _>>()?;
    Record::new(plan, changed.clone()).write()?;
    changed.iter().try_for_each(SysctlChange::apply)?;

    let layout = Layout::new(plan);
    let fabric = make_fabric(plan)?;
    let netlink = Netlink::open_within(&fabric)?;
    for endpoint in plan.topology.endpoint_ids() {
        make_host(plan, &layout, endpoint, &netlink)?;
    }
    make_links(plan, &layout, &netlink)?;
    make_monitors(plan, &layout, &netlink)?;
    let switching = match plan.plane {
        Plane::Ebpf => {
            ebpf::attach(&netlink, &layout, &plan.topology)?;
            let maps = Maps::find(&netlink, &layout)?;
            Switching::Ebpf(maps.ok_or_else(|| LabError::ebpf("find the switch program", "no port has it"))?)
        }
        Plane::Ovs => make_bridges(plan, &layout, &fabric, &netlink)?,
    };
    if let Switching::Ebpf(maps) = &switching {
        let forwarding = match &plan.forwarding {
            Some(forwarding) => forwarding.clone(),
            None => shortest_path_tables(&plan.topology, DEFAULT_ADDRESSES)?,
        };
        maps.tables(&layout, &plan.topology)?
            .install(&forwarding)
            .map_err(|error| LabError::ebpf("install the tables", error))?;
    }
    wait_for_links(one_end_per_link(&layout), &netlink)?;
    Ok(Parts { layout, fabric, netlink, switching })
}

fn make_bridges(
    plan: &Plan,
    layout: &Layout,
    fabric: &Namespace,
    netlink: &Netlink,
) -> Result<Switching, LabError> {
    // Controllers connect over the loopback interface.
    netlink.set_loopback_up()?;
    for endpoint in plan.topology.endpoint_ids() {
        ovs::complete_checksums(&host(plan, endpoint))?;
    }
    Ok(Switching::Ovs(Ovs::start(&plan.prefix, fabric, layout, &plan.topology)?))
}

fn make_fabric(plan: &Plan) -> Result<Namespace, LabError> {
    let fabric = Namespace::create(plan.prefix.name(FABRIC))?;
    silence_ipv6(&fabric)?;
    Ok(fabric)
}

/// Creates a host and its link.
fn make_host(plan: &Plan, layout: &Layout, endpoint: EndpointId, fabric: &Netlink) -> Result<(), LabError> {
    let known = &plan.topology.endpoints()[endpoint.index()];
    let namespace = Namespace::create(host(plan, endpoint).name().to_owned())?;
    silence_ipv6(&namespace)?;
    let path = namespace.path();
    let file = File::open(&path).map_err(|source| LabError::Namespace {
        name: namespace.name().to_owned(),
        what: "open it",
        source,
    })?;
    let port =
        layout.ports_of(plan.topology.router_of(endpoint))[plan.topology.port_of(endpoint).index()].clone();
    let end = port_end(plan, &port);
    let peer = VethEnd {
        name: HOST_INTERFACE.to_owned(),
        mac: Some(known.mac),
        mtu: plan.mtu,
        one_segment: true,
        namespace: Some(file.as_fd()),
        ..VethEnd::default()
    };
    fabric.add_veth(&end, &peer)?;
    fabric.set_up(port.interface, true)?;

    let netlink = Netlink::open_within(&namespace)?;
    netlink.set_loopback_up()?;
    let interface = netlink.interface(HOST_INTERFACE)?;
    let rate = layout.host_rates[endpoint.index()];
    netlink.set_token_bucket(interface, &shaper::shaper(rate, HOST_BUFFER, plan.mtu))?;
    set_parameters(plan, &namespace, rate)?;
    netlink.set_up(interface, true)?;
    Ok(netlink.add_address_and_default_route(interface, known.ip)?)
}

/// Sets the parameters of a host's network stack.
fn set_parameters(plan: &Plan, namespace: &Namespace, rate: BitRate) -> Result<(), LabError> {
    let queued = rate.amount_in(TCP_QUEUE).max(MIN_TCP_QUEUE).0.to_string();
    let mut parameters = vec![
        // Connections do not inherit metrics from earlier ones.
        ("net/ipv4/tcp_no_metrics_save", "1"),
        ("net/ipv4/tcp_limit_output_bytes", &queued),
    ];
    parameters.extend(
        plan.congestion_control.iter().map(|name| ("net/ipv4/tcp_congestion_control", name.as_str())),
    );
    sysctl::set_within(namespace, &parameters)
}

/// Creates the links between switches, and the shapers of all ports.
fn make_links(plan: &Plan, layout: &Layout, fabric: &Netlink) -> Result<(), LabError> {
    for (place, port) in layout.ports.iter().enumerate() {
        if let Peer::Port(other) = port.peer
            && place < other
        {
            let other = &layout.ports[other];
            fabric.add_veth(&port_end(plan, port), &port_end(plan, other))?;
            [port, other].iter().try_for_each(|port| fabric.set_up(port.interface, true))?;
        }
    }
    for port in &layout.ports {
        let bucket = shaper::shaper(port.rate, plan.port_buffer, plan.mtu);
        fabric.set_token_bucket(port.interface, &bucket)?;
    }
    Ok(())
}

/// Creates the monitor ports.
fn make_monitors(plan: &Plan, layout: &Layout, fabric: &Netlink) -> Result<(), LabError> {
    for monitor in &layout.monitors {
        let name = plan.topology.name(Node::Router(monitor.router));
        let end = |interface, port: String, role: &str| VethEnd {
            name: port,
            interface,
            alias: Some(format!("{name}:{role}")),
            mtu: plan.mtu,
            ..VethEnd::default()
        };
        let mirror = end(monitor.mirror, layout::mirror_name(monitor.router), "mirror");
        let collector = end(monitor.monitor, layout::monitor_name(monitor.router), "monitor");
        fabric.add_veth(&mirror, &collector)?;
        let bucket = shaper::shaper(monitor.rate, plan.monitor_buffer, plan.mtu);
        fabric.set_token_bucket(monitor.mirror, &bucket)?;
        [monitor.mirror, monitor.monitor].iter().try_for_each(|&end| fabric.set_up(end, true))?;
    }
    Ok(())
}

/// Returns one end of every link. The end that was set up last carries frames at once; the other, which is always in
/// the fabric, only after the kernel has processed the change.
fn one_end_per_link(layout: &Layout) -> impl Iterator<Item = u32> + '_ {
    let ports = layout.ports.iter().enumerate().filter(|&(place, port)| match port.peer {
        Peer::Host(_) => true,
        Peer::Port(other) => place < other,
    });
    let mirrors = layout.monitors.iter().map(|monitor| monitor.mirror);
    ports.map(|(_, port)| port.interface).chain(mirrors)
}

fn port_end(plan: &Plan, port: &layout::Port) -> VethEnd<'static> {
    let router = plan.topology.name(Node::Router(port.router));
    VethEnd {
        name: layout::port_name(port.router, port.port),
        interface: port.interface,
        alias: Some(format!("{router}:{}", port.port)),
        mtu: plan.mtu,
        ..VethEnd::default()
    }
}
