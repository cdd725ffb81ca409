//! Redirection in all routers of a network, on one core or several.

use thalweg_network::{PortIndex, RouterId};

use super::shard::Shard;
use crate::redirection::{FlowDirection, QueueTallies, RedirectError, Redirected, Redirector, Release};
use crate::router::Router;

/// See [`Network::redirect`](crate::Network::redirect).
pub(super) fn redirect<R: Router>(shards: &mut [Shard<R>], flow: FlowDirection) -> Result<(), RedirectError> {
    // All routers redirect the same flows, so the first one refuses or none.
    redirectors(shards).try_for_each(|router| router.ok_or(RedirectError::NoScavengerQueue)?.redirect(flow))
}

/// See [`Network::release`](crate::Network::release). `first` is the router of the flow's source, in the shard with this index.
pub(super) fn release<R: Router>(
    shards: &mut [Shard<R>],
    first: (usize, RouterId),
    flow: FlowDirection,
    if_packets: Option<u64>,
) -> Release {
    let Some(redirected) = redirected(&mut shards[first.0], first.1, flow) else {
        return Release::NotRedirected;
    };
    if let Some(packets) = if_packets
        && (redirected.traffic.packets != packets
            || redirectors(shards).flatten().any(|router| router.has_queued(flow)))
    {
        return Release::StillSending;
    }
    redirectors(shards).flatten().for_each(|router| router.release(flow));
    Release::Released(redirected)
}

/// See [`Network::redirected`](crate::Network::redirected). `router` is that of the flow's source.
pub(super) fn redirected<R: Router>(
    shard: &mut Shard<R>,
    router: RouterId,
    flow: FlowDirection,
) -> Option<Redirected> {
    shard.router_mut(router).scheme.redirector()?.redirected(flow)
}

/// See [`Network::queue_tallies`](crate::Network::queue_tallies).
pub(super) fn queue_tallies<R: Router>(
    shard: &mut Shard<R>,
    router: RouterId,
    port: PortIndex,
) -> Option<QueueTallies> {
    let tally = shard.port_tally(router, port);
    Some(shard.router_mut(router).scheme.redirector()?.queues(port, &tally))
}

fn redirectors<R: Router>(shards: &mut [Shard<R>]) -> impl Iterator<Item = Option<&mut dyn Redirector>> {
    let routers = shards.iter_mut().flat_map(|shard| &mut shard.routers);
    routers.map(|router| router.scheme.redirector())
}
