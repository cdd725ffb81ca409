//! Requests and their answers.
//!
//! The request itself is not sent: a flow is an answer, from a server to its client, and begins when the request is
//! made. All clients' requests are one Poisson process whose clients are drawn evenly, which is the same as one at
//! each.

use std::collections::BTreeSet;

use thalweg_network::EndpointId;
use thalweg_wire::{BitRate, Timestamp};

use super::distinct;
use crate::workloads::arrivals::{Arrivals, Spacing, gap_for_load};
use crate::workloads::random::Random;
use crate::workloads::sizes::FlowSizes;
use crate::workloads::{FlowStart, Workload, WorkloadError};

/// How requests are made.
#[derive(Clone, Debug)]
pub struct RpcOptions {
    /// What clients receive, as a share of their access links: payload alone, without headers.
    pub load: f64,
    /// Rate of a client's access link.
    pub rate: BitRate,
    /// Sizes of the answers.
    pub sizes: FlowSizes,
    /// Servers that each request asks at once, all different. Each answers with a flow of its own.
    pub fan_in: usize,
    /// How requests are spaced, over all clients together.
    pub spacing: Spacing,
    /// When requests begin.
    pub from: Timestamp,
    /// Seed of the experiment.
    pub seed: u64,
    /// Number of this pattern among others of its kind in the experiment, so that they differ.
    pub index: u64,
}

/// Clients that ask servers (Flexplane, section 5.1: four clients, 32 servers, web search). Without end.
#[derive(Clone, Debug)]
pub struct Rpc {
    clients: Box<[EndpointId]>,
    /// In whatever order the last draw left them.
    servers: Box<[EndpointId]>,
    sizes: FlowSizes,
    fan_in: usize,
    arrivals: Arrivals,
    /// The request under way: its client, servers that have been asked, and servers tried for it.
    asking: Option<Request>,
    size_draws: Random,
    pair_draws: Random,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    at: Timestamp,
    client: EndpointId,
    /// Servers that are still to be asked.
    left: usize,
    /// Servers at the front of the list that have been drawn for this request.
    drawn: usize,
}

impl Rpc {
    /// `clients` ask `servers`. An endpoint may be both; it does not ask itself.
    ///
    /// # Errors
    /// A load, rate or size that makes no sense; endpoints named twice; a fan-in of 0 or of more than the servers
    /// that a client can ask.
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

    /// Everybody sends to everybody: flows between pairs drawn evenly, that load each access link by `load` in either
    /// direction.
    ///
    /// # Errors
    /// As [`new`](Rpc::new).
    pub fn all_to_all(hosts: &[EndpointId], options: RpcOptions) -> Result<Rpc, WorkloadError> {
        distinct("hosts", hosts, 2)?;
        Rpc::new(hosts, hosts, options)
    }

    /// The request under way, or the next one.
    fn request(&mut self) -> Request {
        self.asking.take().unwrap_or_else(|| Request {
            at: self.arrivals.take(),
            client: self.clients[self.pair_draws.index(self.clients.len())],
            left: self.fan_in,
            drawn: 0,
        })
    }

    /// A server that this request has not asked, not the client itself: the next of a random order of all, which is
    /// made only as far as it is needed (Fisher and Yates).
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
