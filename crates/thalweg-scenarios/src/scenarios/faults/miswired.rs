//! A network with two swapped cables that its topology file does not show.

use thalweg_network::{LinkSpec, Node, RouterId, Topology, TopologyBuilder};

/// Returns the leaf-spine with the cables from a spine to two leaves swapped at the spine. All ports keep their
/// numbers.
pub(super) fn miswired(topology: &Topology, at: RouterId, [one, other]: [RouterId; 2]) -> Topology {
    let mut builder = TopologyBuilder::new();
    let sound = "names and links of a valid topology";
    for router in topology.routers() {
        builder.add_router(router.name.clone()).expect(sound);
    }
    for (endpoint, host) in topology.endpoint_ids().zip(topology.endpoints()) {
        let link = &topology.links()[topology.endpoint_link(endpoint).index()];
        builder.add_endpoint(host.name.clone(), topology.router_of(endpoint), link.spec()).expect(sound);
        builder.set_mac(endpoint, host.mac).expect(sound);
        builder.set_ip(endpoint, host.ip).expect(sound);
    }
    let mut trunks: Vec<([RouterId; 2], LinkSpec)> = Vec::new();
    for link in topology.links() {
        if let [Node::Router(a), Node::Router(b)] = link.ends.map(|end| end.node) {
            trunks.push(([a, b], link.spec()));
        }
    }
    // Ports are numbered in the order of cables. With all cables of a spine adjacent, swapping two changes only the
    // spine's ports: each leaf keeps the order of its cables.
    trunks.sort_by_key(|(ends, _)| ends.iter().copied().max());
    let place = |leaf| trunks.iter().position(|(ends, _)| ends.contains(&at) && ends.contains(&leaf));
    if let (Some(first), Some(second)) = (place(one), place(other)) {
        trunks.swap(first, second);
    }
    for ([a, b], spec) in trunks {
        builder.connect(a, b, spec).expect(sound);
    }
    builder.build().expect(sound)
}

#[cfg(test)]
mod tests {
    use thalweg_lab::Plan;
    use thalweg_network::PortIndex;

    use super::*;

    #[test]
    fn only_the_two_swapped_cables_change_their_ends() {
        let file = Plan::leaf_spine(thalweg_lab::DEFAULT_RATE).unwrap().topology;
        let spine = RouterId(4);
        let real = miswired(&file, spine, [RouterId(0), RouterId(2)]);
        for router in file.router_ids() {
            for port in (0..file.ports(router) as u16).map(PortIndex) {
                let [before, after] = [&*file, &real].map(|topology| topology.peer(router, port).node);
                let swapped = match (router.0, port.0) {
                    (4, 0) => Node::Router(RouterId(2)),
                    (4, 2) => Node::Router(RouterId(0)),
                    _ => before,
                };
                assert_eq!(after, swapped, "{router}{port}");
            }
        }
        let hosts = |topology: &Topology| topology.endpoints().to_vec();
        assert_eq!(hosts(&real), hosts(&file));
    }
}
