//! Topologies that have a name.
//!
//! Names of endpoints are `h0`, `h1`, ..., counted rack after rack. A router's ports to its endpoints come first, as
//! everywhere; how the others are ordered is said with each shape.

use super::{LinkSpec, Topology, TopologyBuilder, TopologyError};
use crate::identity::RouterId;

/// Links of the two tiers that most shapes have. Both default to 10 Gbit/s and 1 us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tiers {
    /// Between an endpoint and its router.
    pub access: LinkSpec,
    /// Between routers.
    pub uplink: LinkSpec,
}

/// A shape of topology, as users ask for it.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// What the numbers are called that say how large it is, in order.
    pub sizes: &'static [&'static str],
    build: fn(&[u32], Tiers) -> Result<Topology, TopologyError>,
}

/// All shapes that there are.
pub const SHAPES: [Shape; 6] = [
    Shape {
        name: "rack",
        summary: "endpoints at one router (a star)",
        sizes: &["endpoints"],
        build: |sizes, tiers| rack(sizes[0], tiers.access),
    },
    Shape {
        name: "racks",
        summary: "racks of endpoints, each with one uplink to one aggregation switch",
        sizes: &["racks", "endpoints"],
        build: |sizes, tiers| racks(sizes[0], sizes[1], tiers),
    },
    Shape {
        name: "isolated_racks",
        summary: "racks of endpoints that nothing connects",
        sizes: &["racks", "endpoints"],
        build: |sizes, tiers| isolated_racks(sizes[0], sizes[1], tiers.access),
    },
    Shape {
        name: "dumbbell",
        summary: "two racks of endpoints with one link between them, the bottleneck",
        sizes: &["endpoints"],
        build: |sizes, tiers| dumbbell(sizes[0], tiers),
    },
    Shape {
        name: "leaf_spine",
        summary: "racks of endpoints, each with an uplink to every spine switch",
        sizes: &["leaves", "spines", "endpoints"],
        build: |sizes, tiers| leaf_spine(sizes[0], sizes[1], sizes[2], tiers),
    },
    Shape {
        name: "fat_tree",
        summary: "three tiers of k-port switches, k^3/4 endpoints, full bisection",
        sizes: &["k"],
        build: |sizes, tiers| fat_tree(sizes[0], tiers),
    },
];

impl Shape {
    /// The shape of this name.
    pub fn named(name: &str) -> Option<&'static Shape> {
        const { &SHAPES }.iter().find(|shape| shape.name == name)
    }

    /// A topology of this shape; `sizes` are in the order of [`Shape::sizes`].
    ///
    /// # Errors
    /// If there are too many or too few sizes, or they are too large, or zero where nothing would be left.
    pub fn build(&self, sizes: &[u32], tiers: Tiers) -> Result<Topology, TopologyError> {
        let (expected, found) = (self.sizes.len(), sizes.len());
        if expected != found {
            return Err(TopologyError::Sizes { shape: self.name, expected, found });
        }
        (self.build)(sizes, tiers)
    }
}

/// Endpoints at one router, `tor0`.
///
/// # Errors
/// If there are none, or more than a router has ports.
pub fn rack(endpoints: u32, access: LinkSpec) -> Result<Topology, TopologyError> {
    isolated_racks(1, endpoints, access)
}

/// Racks `tor0`, `tor1`, ... of `endpoints` each, all connected with the aggregation switch `agg0`, the last router.
/// Its port `i` leads to rack `i`.
///
/// # Errors
/// If there are no endpoints, or too many parts.
pub fn racks(racks: u32, endpoints: u32, tiers: Tiers) -> Result<Topology, TopologyError> {
    let mut builder = TopologyBuilder::new();
    let tors = add_racks(&mut builder, "tor", racks, endpoints, tiers.access)?;
    let aggregation = builder.add_router("agg0")?;
    for tor in tors {
        builder.connect(tor, aggregation, tiers.uplink)?;
    }
    builder.build()
}

/// Racks `tor0`, `tor1`, ... of `endpoints` each, and nothing between them: what a network's cost is without its
/// upper tiers (Ousterhout et al., "Flexplane", NSDI 2017, figure 8).
///
/// # Errors
/// If there are no endpoints, or too many parts.
pub fn isolated_racks(racks: u32, endpoints: u32, access: LinkSpec) -> Result<Topology, TopologyError> {
    let mut builder = TopologyBuilder::new();
    add_racks(&mut builder, "tor", racks, endpoints, access)?;
    builder.build()
}

/// Two racks `tor0` and `tor1` of `endpoints` each, with one link between them: the bottleneck, `tiers.uplink`.
///
/// # Errors
/// If there are no endpoints, or more than a router has ports.
pub fn dumbbell(endpoints: u32, tiers: Tiers) -> Result<Topology, TopologyError> {
    let mut builder = TopologyBuilder::new();
    let tors = add_racks(&mut builder, "tor", 2, endpoints, tiers.access)?;
    builder.connect(tors[0], tors[1], tiers.uplink)?;
    builder.build()
}

/// Racks `leaf0`, `leaf1`, ... of `endpoints` each, and above them `spine0`, `spine1`, ... Port `endpoints + j` of a
/// leaf leads to spine `j`; port `i` of a spine to leaf `i`.
///
/// # Errors
/// If there are no endpoints, or too many parts.
pub fn leaf_spine(leaves: u32, spines: u32, endpoints: u32, tiers: Tiers) -> Result<Topology, TopologyError> {
    let mut builder = TopologyBuilder::new();
    let leaves = add_racks(&mut builder, "leaf", leaves, endpoints, tiers.access)?;
    let spines = add_routers(&mut builder, "spine", spines)?;
    for &leaf in &leaves {
        for &spine in &spines {
            builder.connect(leaf, spine, tiers.uplink)?;
        }
    }
    builder.build()
}

/// A k-ary fat tree (Al-Fares, Loukissas, Vahdat, "A Scalable, Commodity Data Center Network Architecture", SIGCOMM
/// 2008, section 3): `k` pods of `k/2` edge and `k/2` aggregation switches, `(k/2)^2` core switches, `k/2`
/// endpoints an edge switch. So there are `k^3/4` endpoints and `5 k^2/4` switches of `k` ports each.
///
/// With `m = k/2`, routers are numbered edge switches first, pod after pod (`edge0` is the first of pod 0, `edge{m}`
/// of pod 1), then aggregation switches (`agg0`, ...) in the same order, then core switches (`core0`, ...):
///
/// | switch | ports 0 to m-1 | ports m to k-1 |
/// |---|---|---|
/// | edge | its endpoints | aggregation switches of its pod, in order |
/// | aggregation, the `a`th of its pod | edge switches of its pod, in order | core switches `a m` to `a m + m - 1` |
/// | core | pods 0 to m-1 | pods m to k-1 |
///
/// `tiers.uplink` is every link between switches.
///
/// # Errors
/// If `k` is odd or zero, or above 62: one more and there are too many endpoints.
pub fn fat_tree(k: u32, tiers: Tiers) -> Result<Topology, TopologyError> {
    if k == 0 || !k.is_multiple_of(2) {
        return Err(TopologyError::FatTreeArity { k });
    }
    let half = k / 2;
    let switches_a_tier = half.saturating_mul(k);
    let mut builder = TopologyBuilder::new();
    let edges = add_racks(&mut builder, "edge", switches_a_tier, half, tiers.access)?;
    let aggregations = add_routers(&mut builder, "agg", switches_a_tier)?;
    let cores = add_routers(&mut builder, "core", half * half)?;
    let half = half as usize;
    for (edges, aggregations) in edges.chunks(half).zip(aggregations.chunks(half)) {
        for &edge in edges {
            for &aggregation in aggregations {
                builder.connect(edge, aggregation, tiers.uplink)?;
            }
        }
        for (&aggregation, cores) in aggregations.iter().zip(cores.chunks(half)) {
            for &core in cores {
                builder.connect(aggregation, core, tiers.uplink)?;
            }
        }
    }
    builder.build()
}

/// Adds as many routers, and then as many endpoints to each.
fn add_racks(
    builder: &mut TopologyBuilder,
    name: &str,
    racks: u32,
    endpoints: u32,
    access: LinkSpec,
) -> Result<Vec<RouterId>, TopologyError> {
    let routers = add_routers(builder, name, racks)?;
    let mut number = 0;
    for &router in &routers {
        for _ in 0..endpoints {
            builder.add_endpoint(format!("h{number}"), router, access)?;
            number += 1;
        }
    }
    Ok(routers)
}

/// Adds routers of a name and a number each. Ends with an error once there are too many, however many are asked.
fn add_routers(
    builder: &mut TopologyBuilder,
    name: &str,
    count: u32,
) -> Result<Vec<RouterId>, TopologyError> {
    (0..count).map(|number| builder.add_router(format!("{name}{number}"))).collect()
}
