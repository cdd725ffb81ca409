//! Warnings about settings that are valid and probably not meant.

use thalweg_emulator::hosts::{Algorithm, Transport};
use thalweg_emulator::schemes::Scheme;
use thalweg_network::{Node, RouterId, Topology};
use thalweg_wire::{BitRate, Nanos};

use super::Plan;
use super::scheme::marks;
use crate::experiment::Experiment;
use crate::experiment::table::{Load, OpenLoop, Packets, Workload};

/// The warnings of a plan, each one sentence.
pub(super) fn of(plan: &Plan, experiment: &Experiment) -> Vec<String> {
    let transport = (!plan.flows.is_empty()).then(|| transport(plan)).flatten();
    let single = [transport, delay_target(plan), oversubscription(&plan.topology)];
    let series = flows_without_transport(plan).into_iter().chain(classes_of_one_queue(plan));
    single.into_iter().flatten().chain(overload(experiment)).chain(series).collect()
}

/// Classes to sample, and one queue per port.
fn classes_of_one_queue(plan: &Plan) -> Option<String> {
    let is_missing = plan.blueprint().counts_classes && !plan.scheme.has_classes();
    let scheme = plan.scheme.name();
    is_missing.then(|| {
        format!(
            "[queue_series] has classes = true, and scheme {scheme} has one queue per port: class_series stays empty"
        )
    })
}

/// Flows to sample, and only packets without transport.
fn flows_without_transport(plan: &Plan) -> Option<String> {
    let is_missing = plan.flow_series.is_some() && plan.flows.is_empty();
    is_missing.then(|| {
        "[flow_series] has no effect without a [[workload]]: packets without transport have no flows"
            .to_owned()
    })
}

/// Loads above 1, which the links of the endpoints cannot carry.
fn overload(experiment: &Experiment) -> impl Iterator<Item = String> {
    let of_workload = |workload: &Workload| match workload {
        Workload::AllToAll(_, Load { load, .. }, ..) | Workload::Rpc(_, Load { load, .. }, ..) => Some(*load),
        _ => None,
    };
    let flows =
        experiment.all::<Workload>().filter_map(move |entry| Some(("workload", of_workload(&entry)?)));
    let packets = experiment.all::<Packets>().map(|entry| ("packets", entry.keys::<OpenLoop>().load));
    flows.chain(packets).filter(|&(_, load)| load > 1.0).map(|(section, load)| {
        format!("[[{section}]] has load = {load}, and the links of its endpoints carry at most 1: queues keep growing")
    })
}

/// A transport without the scheme that it was designed for, or the reverse.
fn transport(plan: &Plan) -> Option<String> {
    let (scheme, transport) = (plan.scheme.name(), &plan.transport_name);
    let is_marking = marks(&plan.scheme);
    match (&plan.hosts.transport, &plan.scheme) {
        (Transport::PFabric(_), Scheme::PFabric(_)) => None,
        (Transport::PFabric(_), _) => Some(format!(
            "transport pfabric over scheme {scheme}: endpoints send at line rate and rely on the scheme \"pfabric\" for scheduling"
        )),
        (_, Scheme::PFabric(_)) => Some(format!(
            "scheme pfabric with transport {transport}: its small buffers and priorities are meant for the transport \"pfabric\""
        )),
        (Transport::Tcp(tcp), _) if tcp.algorithm == Algorithm::Dctcp && !is_marking => Some(format!(
            "transport dctcp over scheme {scheme}, which marks no packets: DCTCP falls back to loss. Use a scheme that marks, such as \"dctcp\""
        )),
        (Transport::Tcp(tcp), _) if tcp.algorithm != Algorithm::Dctcp && tcp.ecn && !is_marking => {
            Some(format!("transport {transport} has ecn = true, and scheme {scheme} marks no packets"))
        }
        (Transport::Tcp(tcp), Scheme::Dctcp(_) | Scheme::Hull(_))
            if tcp.algorithm != Algorithm::Dctcp && !tcp.ecn =>
        {
            Some(format!(
                "scheme {scheme} only marks, and transport {transport} has ecn = false: it acts as DropTail"
            ))
        }
        _ => None,
    }
}

/// A target delay that even a full queue does not reach.
fn delay_target(plan: &Plan) -> Option<String> {
    let (target, buffer) = match &plan.scheme {
        Scheme::Pie(pie) => (pie.target, pie.buffer),
        Scheme::FqCodel(codel) => (codel.target, codel.buffer),
        _ => return None,
    };
    let blueprint = plan.blueprint();
    let (rate, longest) = (blueprint.clock.rate, blueprint.longest);
    let drained = Nanos((f64::from(buffer) * f64::from(longest) * 8e9 / rate.0.max(1) as f64) as u64);
    (target > drained).then(|| {
        format!(
            "scheme {} never reaches its target of {target}: {buffer} packets at {rate} drain in {drained}",
            plan.scheme.name()
        )
    })
}

/// Racks whose endpoints can send more than their uplinks carry, if there are several uplinks. A single bottleneck is
/// usually meant.
fn oversubscription(topology: &Topology) -> Option<String> {
    let of = |router: RouterId| {
        let mut sums = [0, 0];
        for (port, peer) in topology.peers(router).iter().enumerate() {
            let link = topology.link_at(router, thalweg_network::PortIndex(port as u16));
            let is_uplink = matches!(peer.node, Node::Router(_));
            sums[usize::from(is_uplink)] += topology.links()[link.index()].rate.0;
        }
        sums
    };
    let is_leaf = |&router: &RouterId| {
        let uplinks = topology.peers(router).iter().filter(|peer| matches!(peer.node, Node::Router(_)));
        topology.rack_size(router) > 0 && uplinks.count() > 1
    };
    let ratio = |router: RouterId| {
        let [access, uplinks] = of(router);
        access as f64 / uplinks.max(1) as f64
    };
    let (router, worst) = topology
        .router_ids()
        .filter(is_leaf)
        .map(|router| (router, ratio(router)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let [access, uplinks] = of(router).map(BitRate);
    // Less than a hundredth above 1.0 is rounding.
    (worst > 1.01).then(|| {
        format!(
            "{} is {worst:.1} times oversubscribed: its endpoints send up to {access}, its uplinks carry {uplinks}, and loads \
             are shares of the endpoints' links",
            topology.name(Node::Router(router))
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(text: &str) -> Vec<String> {
        let flows = "[[workload]]\npattern = \"all_to_all\"\nsizes = \"web_search\"\nload = 0.5\n";
        let experiment = Experiment::parse(&format!("duration = \"1ms\"\n{text}\n{flows}"), "test").unwrap();
        Plan::new(&experiment).unwrap().warnings
    }

    #[test]
    fn mismatches_of_scheme_and_transport_are_reported() {
        for (scheme, transport, expected) in [
            ("droptail", "name = \"dctcp\"", "DCTCP falls back to loss"),
            ("droptail", "name = \"cubic\"\necn = true", "marks no packets"),
            ("dctcp", "name = \"cubic\"\necn = false", "acts as DropTail"),
            ("droptail", "name = \"pfabric\"", "rely on the scheme"),
            ("pfabric", "name = \"cubic\"", "meant for the transport"),
        ] {
            let text = format!("[scheme]\nname = \"{scheme}\"\n[transport]\n{transport}");
            let warnings = warnings(&text);
            assert!(warnings.len() == 1 && warnings[0].contains(expected), "{text}: {warnings:?}");
        }
    }

    #[test]
    fn defaults_give_no_warning() {
        for scheme in thalweg_emulator::schemes::SCHEMES {
            let text = format!("[scheme]\nname = \"{}\"", scheme.name);
            assert_eq!(warnings(&text), [""; 0], "{}", scheme.name);
        }
    }

    #[test]
    fn loads_above_one_are_reported() {
        let text =
            "[[packets]]\nsender = \"poisson\"\nload = 1.5\n[[packets]]\nsender = \"poisson\"\nload = 1";
        let expected =
            "[[packets]] has load = 1.5, and the links of its endpoints carry at most 1: queues keep growing";
        assert_eq!(warnings(text), [expected]);
    }

    #[test]
    fn an_unreachable_delay_target_is_reported() {
        let warnings = warnings("[scheme]\nname = \"pie\"\ntarget = \"15ms\"");
        assert_eq!(
            warnings,
            ["scheme pie never reaches its target of 15.0 ms: 1024 packets at 10.0 Gbit/s drain in 1.26 ms"]
        );
    }

    #[test]
    fn oversubscribed_uplinks_are_reported() {
        let text = |endpoints| {
            format!(
                "[topology]\nshape = \"leaf_spine\"\nendpoints = {endpoints}\nuplink_rate = \"10Gbit/s\"\nspines = 2"
            )
        };
        assert_eq!(warnings(&text(2)), [""; 0]);
        let warnings = warnings(&text(6));
        assert!(warnings[0].contains("is 3.0 times oversubscribed"), "{warnings:?}");
    }

    #[test]
    fn a_network_for_remote_endpoints_needs_no_traffic_and_names_what_has_no_effect() {
        let plan = |text: &str| {
            let experiment = Experiment::parse(text, "test").unwrap();
            Plan::for_real_time(&experiment).unwrap()
        };
        let empty = "duration = \"1ms\"\n";
        assert_eq!(plan(empty).warnings, [""; 0]);
        let packets = plan(&format!("{empty}[[packets]]\nsender = \"poisson\"\nload = 0.5\n"));
        assert!(packets.packets.is_empty());
        assert_eq!(
            packets.warnings,
            ["[[packets]] has no effect in real time: the packets come from endpoints"]
        );
    }
}
