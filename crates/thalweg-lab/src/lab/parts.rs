//! The namespaces and switches of a lab.

use thalweg_linux::{Namespace, Netlink};
use thalweg_network::EndpointId;

use crate::ebpf::Maps;
use crate::layout::Layout;
use crate::ovs::Ovs;
use crate::plan::{FABRIC, Plan, Prefix};

/// The namespaces and switches of a lab.
pub(super) struct Parts {
    pub(super) layout: Layout,
    pub(super) fabric: Namespace,
    pub(super) netlink: Netlink,
    pub(super) switching: Switching,
}

/// The switches.
pub(super) enum Switching {
    Ebpf(Maps),
    Ovs(Ovs),
}

pub(super) fn fabric(prefix: &Prefix) -> Namespace {
    Namespace::named(prefix.name(FABRIC))
}

pub(super) fn host(plan: &Plan, endpoint: EndpointId) -> Namespace {
    Namespace::named(plan.prefix.name(&plan.topology.endpoints()[endpoint.index()].name))
}

/// Returns all namespaces of a lab.
pub(super) fn namespaces(plan: &Plan) -> impl Iterator<Item = Namespace> + '_ {
    let hosts = plan.topology.endpoint_ids().map(|endpoint| host(plan, endpoint));
    std::iter::once(fabric(&plan.prefix)).chain(hosts)
}
