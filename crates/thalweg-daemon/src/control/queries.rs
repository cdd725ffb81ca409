//! What the control loop wants of all collectors and has to wait for: a thread asks, so that the loop goes on meanwhile.
//! It may share its thread with the very collectors that are asked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use thalweg_control::Pair;
use thalweg_control::control_loop::Input;
use thalweg_control::decide::PairRate;
use thalweg_network::{NetworkState, Node, Topology};
use thalweg_wire::{BitRate, Nanos};

use super::ControlParts;
use super::remotes::Remotes;
use crate::collectors::CollectorList;
use crate::collectors::network::Network;

/// How long all flows are waited for when they are polled.
const POLL_TIMEOUT: Duration = Duration::from_millis(500);

/// What collectors are asked, or told.
pub(super) enum CollectorQuery {
    /// Routes that will hold from some time from now on.
    Announce(Arc<NetworkState>, Nanos),
    /// All flows between the hosts of this network.
    Flows(Arc<NetworkState>),
}

/// What came of it.
pub(super) struct Answer {
    /// For the loop.
    pub(super) input: Input,
    /// The version of the network that was announced.
    pub(super) version: Option<u64>,
}

/// Asks collectors; the thread ends when this is dropped. The loop asks one thing of a kind at a time.
pub(super) struct CollectorQueries {
    queries: Sender<CollectorQuery>,
    answers: Receiver<Answer>,
}

impl CollectorQueries {
    /// Asks the collectors here; routes are pushed to other daemons too.
    ///
    /// # Errors
    /// If the system has no more threads.
    pub(super) fn start(parts: ControlParts, remotes: Remotes) -> std::io::Result<CollectorQueries> {
        let (queries, pending) = unbounded();
        let (answer, answers) = unbounded();
        let run = move || {
            for query in pending {
                let answered = match query {
                    CollectorQuery::Announce(state, ahead) => {
                        announce(&parts.network, &remotes, &state, ahead)
                    }
                    CollectorQuery::Flows(state) => {
                        let input = Input::Flows(all_flows(&parts.collectors, state.topology()));
                        Answer { input, version: None }
                    }
                };
                if answer.send(answered).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("asks".to_owned()).spawn(run)?;
        Ok(CollectorQueries { queries, answers })
    }

    pub(super) fn send(&self, query: CollectorQuery) {
        // The thread is there as long as this is.
        let _ = self.queries.send(query);
    }

    /// Where answers come.
    pub(super) fn answers(&self) -> &Receiver<Answer> {
        &self.answers
    }
}

/// Tells collectors of routes.
fn announce(network: &Network, remotes: &Remotes, state: &Arc<NetworkState>, ahead: Nanos) -> Answer {
    match network.announce(Arc::clone(state), ahead) {
        Ok(change) => {
            for (collector, reason) in change.unconfirmed {
                tracing::warn!(collector, reason, "routes not confirmed");
            }
            remotes.push(state);
            Answer { input: Input::Announced(change.from), version: Some(change.version) }
        }
        Err(error) => {
            let input = Input::AnnounceFailed(format!("routes stay as they are: {error}"));
            Answer { input, version: None }
        }
    }
}

/// All traffic there is, as the switches see it where it begins, or wherever it is seen if nobody looks there. Collectors
/// that do not answer in time are left out.
fn all_flows(collectors: &CollectorList, topology: &Topology) -> Vec<PairRate> {
    // By pair: whether it was seen where it begins, and how.
    let mut found: BTreeMap<Pair, (bool, PairRate)> = BTreeMap::new();
    for collector in collectors.all() {
        let Some(Node::Router(router)) = topology.node_named(&collector.description().switch) else {
            continue;
        };
        let mut here: BTreeMap<Pair, PairRate> = BTreeMap::new();
        let answered = collector.flows(POLL_TIMEOUT, |report| {
            let Some(known) = report.rate.filter(|known| known.rate.value > 0.0) else { return };
            let Some((pair, address)) = Pair::of(topology, &known.ethernet) else { return };
            let seen = here.entry(pair).or_insert(PairRate { pair, address, rate: BitRate(0) });
            seen.rate.0 += known.rate.value as u64;
        });
        if let Err(error) = answered {
            tracing::warn!(collector = collector.name(), %error, "poll failed");
        }
        for (pair, observed) in here {
            let is_first = topology.router_of(pair.source) == router;
            let better = found.get(&pair).is_none_or(|(was_first, _)| is_first && !was_first);
            if better {
                found.insert(pair, (is_first, observed));
            }
        }
    }
    found.into_values().map(|(_, observed)| observed).collect()
}
