//! Named topology shapes.
//!
//! Endpoints are named `h0`, `h1`, ..., rack by rack. The ports of a router to its endpoints come first; each shape
//! documents the order of the others.

use super::{LinkSpec, Topology, TopologyBuilder, TopologyError};
use crate::identity::RouterId;

/// The link specifications of the two tiers of most shapes. Both default to 10 Gbit/s and 1 us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tiers {
    /// Between an endpoint and its router.
    pub access: LinkSpec,
    /// Between routers.
    pub uplink: LinkSpec,
}

/// A named shape with size parameters.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The name.
    pub name: &'static str,
    /// A summary in one line.
    pub summary: &'static str,
    /// The names of the size parameters, in order.
    pub sizes: &'static [&'static str],
    build: fn(&[u32], Tiers) -> Result<Topology, TopologyError>,
}

/// All shapes.
pub const SHAPES: [Shape; 6] = [
    Shape {
        name: "rack",
        summary: "endpoints at one router (a star)",
        sizes: &["endpoints"],
        build: |sizes, tiers| rack(sizes[0], tiers.access),
    },
    Shape {
        name: "racks",
        summary: "racks of endpoints, each with one uplink to one aggregation router",
        sizes: &["racks", "endpoints"],
        build: |sizes, tiers| racks(sizes[0], sizes[1], tiers),
    },
    Shape {
        name: "isolated_racks",
        summary: "racks of endpoints without links between them",
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
        summary: "racks of endpoints, each with an uplink to every spine router",
        sizes: &["leaves", "spines", "endpoints"],
        build: |sizes, tiers| leaf_spine(sizes[0], sizes[1], sizes[2], tiers),
    },
    Shape {
        name: "fat_tree",
        summary: "three tiers of k-port routers, k^3/4 endpoints, full bisection",
        sizes: &["k"],
        build: |sizes, tiers| fat_tree(sizes[0], tiers),
    },
];

impl Shape {
    /// Returns the shape of this name.
    pub fn named(name: &str) -> Option<&'static Shape> {
        const { &SHAPES }.iter().find(|shape| shape.name == name)
    }

    /// Builds a topology; `sizes` are in the order of [`Shape::sizes`].
    ///
    /// # Errors
    /// If the number of sizes is wrong, a size is too large, or the topology has no endpoints.
    pub fn build(&self, sizes: &[u32], tiers: Tiers) -> Result<Topology, TopologyError> {
        let (expected, found) = (self.sizes.len(), sizes.len());
        if expected != found {
            return Err(TopologyError::Sizes { shape: self.name, expected, found });
        }
        (self.build)(sizes, tiers)
    }
}

/// Builds a rack: `endpoints` at one router, `tor0`.
///
/// # Errors
/// If there are no endpoints, or more than [`MAX_PORTS`](super::MAX_PORTS).
pub fn rack(endpoints: u32, access: LinkSpec) -> Result<Topology, TopologyError> {
    isolated_racks(1, endpoints, access)
}

/// Builds racks `tor0`, `tor1`, ... of `endpoints` each, all connected to the aggregation switch `agg0`, the last
/// router. Port `i` of `agg0` leads to rack `i`.
///
/// # Errors
/// If there are no endpoints, or too many endpoints, routers or ports.
pub fn racks(racks: u32, endpoints: u32, tiers: Tiers) -> Result<Topology, TopologyError> {
    let mut builder = TopologyBuilder::new();
    let tors = add_racks(&mut builder, "tor", racks, endpoints, tiers.access)?;
    let aggregation = builder.add_router("agg0")?;
    for tor in tors {
        builder.connect(tor, aggregation, tiers.uplink)?;
    }
    builder.build()
}

/// Builds racks `tor0`, `tor1`, ... of `endpoints` each, without links between them, to measure the cost of a network
/// without its upper tiers (Ousterhout et al., "Flexplane", NSDI 2017, figure 8).
///
/// # Errors
/// If there are no endpoints, or too many endpoints, routers or ports.
pub fn isolated_racks(racks: u32, endpoints: u32, access: LinkSpec) -> Result<Topology, TopologyError> {
    let mut builder = TopologyBuilder::new();
    add_racks(&mut builder, "tor", racks, endpoints, access)?;
    builder.build()
}

/// Builds two racks `tor0` and `tor1` of `endpoints` each, with a bottleneck link between them, `tiers.uplink`.
///
/// # Errors
/// If there are no endpoints, or too many for the ports of a router.
pub fn dumbbell(endpoints: u32, tiers: Tiers) -> Result<Topology, TopologyError> {
    let mut builder = TopologyBuilder::new();
    let tors = add_racks(&mut builder, "tor", 2, endpoints, tiers.access)?;
    builder.connect(tors[0], tors[1], tiers.uplink)?;
    builder.build()
}

/// Builds racks `leaf0`, `leaf1`, ... of `endpoints` each, and spines `spine0`, `spine1`, ... above them. Port
/// `endpoints + j` of a leaf leads to spine `j`; port `i` of a spine leads to leaf `i`.
///
/// # Errors
/// If there are no endpoints, or too many endpoints, routers or ports.
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

/// Builds a k-ary fat tree (Al-Fares, Loukissas, Vahdat, "A Scalable, Commodity Data Center Network Architecture",
/// SIGCOMM 2008, section 3): `k` pods of `k/2` edge and `k/2` aggregation switches, `(k/2)^2` core switches, `k/2`
/// endpoints per edge switch. So it has `k^3/4` endpoints and `5 k^2/4` switches of `k` ports each.
///
/// With `m = k/2`, edge switches are numbered first, pod by pod (`edge0` is the first of pod 0, `edge{m}` of pod 1),
/// then aggregation switches (`agg0`, ...) in the same order, then core switches (`core0`, ...):
///
/// | switch | ports 0 to m-1 | ports m to k-1 |
/// |---|---|---|
/// | edge | its endpoints | aggregation switches of its pod, in order |
/// | aggregation, the `a`th of its pod | edge switches of its pod, in order | core switches `a m` to `a m + m - 1` |
/// | core | pods 0 to m-1 | pods m to k-1 |
///
/// All links between switches are `tiers.uplink`.
///
/// # Errors
/// If `k` is odd, zero, or above 62, which would give too many endpoints.
pub fn fat_tree(k: u32, tiers: Tiers) -> Result<Topology, TopologyError> {
    if k == 0 || !k.is_multiple_of(2) {
        return Err(TopologyError::FatTreeArity { k });
    }
    let half = k / 2;
    let switches_per_tier = half.saturating_mul(k);
    let mut builder = TopologyBuilder::new();
    let edges = add_racks(&mut builder, "edge", switches_per_tier, half, tiers.access)?;
    let aggregations = add_routers(&mut builder, "agg", switches_per_tier)?;
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

/// Adds `racks` routers, then `endpoints` endpoints to each.
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

/// Adds routers named `name` and a number. Stops with an error at the first router above the maximum.
fn add_routers(
    builder: &mut TopologyBuilder,
    name: &str,
    count: u32,
) -> Result<Vec<RouterId>, TopologyError> {
    (0..count).map(|number| builder.add_router(format!("{name}{number}"))).collect()
}
