//! Requests and responses.
//!
//! Requests are not sent: a flow is a response from a server to its client, and starts when the request is made. The
//! requests of all clients are one Poisson process with uniformly drawn clients, which is equivalent to one process per
//! client.

use std::collections::BTreeSet;

use thalweg_network::EndpointId;
use thalweg_wire::{BitRate, Timestamp};

use super::distinct;
use crate::workloads::arrivals::{Arrivals, Spacing, gap_for_load};
use crate::workloads::random::Random;
use crate::workloads::sizes::FlowSizes;
use crate::workloads::{FlowStart, Workload, WorkloadError};

/// Options of requests.
#[derive(Clone, Debug)]
pub struct RpcOptions {
    /// Traffic that clients receive, as a share of their access links, counting payload alone.
    pub load: f64,
    /// The rate of a client's access link.
    pub rate: BitRate,
    /// The sizes of responses.
    pub sizes: FlowSizes,
    /// Servers per request, all different. Each responds with a flow of its own.
    pub fan_in: usize,
    /// The spacing of requests, over all clients.
    pub spacing: Spacing,
    /// The time of the first request.
    pub from: Timestamp,
    /// The seed of the experiment.
    pub seed: u64,
    /// The index of this pattern among others of its kind in the experiment, so that they differ.
    pub index: u64,
}

/// Clients that ask servers (Flexplane, section 5.1: four clients, 32 servers, web search), forever.
#[derive(Clone, Debug)]
pub struct Rpc {
    clients: Box<[EndpointId]>,
    /// In the order that the last draw left.
    servers: Box<[EndpointId]>,
    sizes: FlowSizes,
    fan_in: usize,
    arrivals: Arrivals,
    /// The current request: its client, servers asked, and servers drawn.
    asking: Option<Request>,
    size_draws: Random,
    pair_draws: Random,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    at: Timestamp,
    client: EndpointId,
    /// Servers still to be asked.
    left: usize,
    /// Servers at the front of the list that were drawn for this request.
    drawn: usize,
}

impl Rpc {
    /// `clients` ask `servers`. An endpoint may be both, but does not ask itself.
    ///
    /// # Errors
    /// If a load, rate or size is invalid, an endpoint is listed twice, or the fan-in is 0 or exceeds the servers of a
    /// client.
    pub fn new(
        clients: &[EndpointId],
        servers: &[EndpointId],
        options: RpcOptions,
    ) -> Result<Rpc, WorkloadError> {
        let RpcOptions { load, rate, sizes, fan_in, spacing, from, seed, index } = options;
        distinct("clients", clients, 1)?;
        distinct("servers", servers, 1)?;
        let asked: BTreeSet<EndpointId> = servers.iter().copied().collect();
        let others = servers.len() - usize::from(clients.iter().any(|client| asked.contains(client)));
        if fan_in == 0 || fan_in > others {
            return Err(WorkloadError::FanIn { fan_in, servers: others });
        }
        let gap = gap_for_load(load, rate, clients.len(), sizes.mean() * fan_in as f64)?;
        Ok(Rpc {
            clients: clients.into(),
            servers: servers.into(),
            sizes,
            fan_in,
            arrivals: Arrivals::new(spacing, gap, from, Random::new(seed, "rpc arrivals", index)),
            asking: None,
            size_draws: Random::new(seed, "rpc sizes", index),
            pair_draws: Random::new(seed, "rpc pairs", index),
        })
    }

    /// Everybody sends to everybody: flows between uniformly drawn pairs, which load each access link by `load` in both
    /// directions.
    ///
    /// # Errors
    /// As [`new`](Rpc::new).
    pub fn all_to_all(endpoints: &[EndpointId], options: RpcOptions) -> Result<Rpc, WorkloadError> {
        distinct("endpoints", endpoints, 2)?;
        Rpc::new(endpoints, endpoints, options)
    }

    /// The current request, or the next one.
    fn request(&mut self) -> Request {
        self.asking.take().unwrap_or_else(|| Request {
            at: self.arrivals.take(),
            client: self.clients[self.pair_draws.index(self.clients.len())],
            left: self.fan_in,
            drawn: 0,
        })
    }

    /// A server that this request has not asked and that is not the client: the next in a random order of all, which is
    /// generated only as far as needed (Fisher and Yates).
    fn draw_server(&mut self, request: &mut Request) -> EndpointId {
        loop {
            let from = request.drawn;
            let chosen = from + self.pair_draws.index(self.servers.len() - from);
            self.servers.swap(from, chosen);
            request.drawn += 1;
            if self.servers[from] != request.client {
                return self.servers[from];
            }
        }
    }
}

impl Workload for Rpc {
    fn next_start(&self) -> Option<Timestamp> {
        Some(self.asking.map_or(self.arrivals.peek(), |request| request.at))
    }

    fn start(&mut self) -> Option<FlowStart> {
        let mut request = self.request();
        let source = self.draw_server(&mut request);
        let (bytes, dscp) = self.sizes.draw(&mut self.size_draws);
        request.left -= 1;
        self.asking = Some(request).filter(|request| request.left > 0);
        Some(FlowStart { at: request.at, source, destination: request.client, bytes, dscp })
    }

    fn completed(&mut self, _flow: u32, _at: Timestamp) {}
}
