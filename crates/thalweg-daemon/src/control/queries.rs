//! Blocking requests to all collectors. A thread of their own sends them, because the control loop may share its thread with the
//! collectors.

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

/// Timeout of a poll of all flows.
const POLL_TIMEOUT: Duration = Duration::from_millis(500);

/// A request to all collectors.
pub(super) enum CollectorQuery {
    /// Announces routes that apply after this time.
    Announce(Arc<NetworkState>, Nanos),
    /// Reads all flows between the hosts of this network.
    Flows(Arc<NetworkState>),
}

/// The result of a query.
pub(super) struct Answer {
    /// Input for the control loop.
    pub(super) input: Input,
    /// The announced network version.
    pub(super) version: Option<u64>,
}

/// The query thread. It ends when this is dropped. The loop has at most one query of a kind pending.
pub(super) struct CollectorQueries {
    queries: Sender<CollectorQuery>,
    answers: Receiver<Answer>,
}

impl CollectorQueries {
    /// Starts the thread. It queries local collectors, and sends routes to other daemons too.
    ///
    /// # Errors
    /// If the thread cannot be started.
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
        std::thread::Builder::new().name("queries".to_owned()).spawn(run)?;
        Ok(CollectorQueries { queries, answers })
    }

    pub(super) fn send(&self, query: CollectorQuery) {
        // The thread lives as long as `self`.
        let _ = self.queries.send(query);
    }

    /// Returns the channel of answers.
    pub(super) fn answers(&self) -> &Receiver<Answer> {
        &self.answers
    }
}

/// Announces routes to collectors.
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
            let input = Input::AnnounceFailed(format!("routes not changed: {error}"));
            Answer { input, version: None }
        }
    }
}

/// Returns the rates of all pairs, as seen at their first switch, or at another if that is not monitored. Collectors that do not
/// reply in time are skipped.
fn all_flows(collectors: &CollectorList, topology: &Topology) -> Vec<PairRate> {
    // By pair: whether it was seen at its first switch, and its rate.
    let mut found: BTreeMap<Pair, (bool, PairRate)> = BTreeMap::new();
    for collector in collectors.all() {
        let Some(Node::Router(router)) = topology.node_named(&collector.description().switch) else {
            continue;
        };
        let mut here: BTreeMap<Pair, PairRate> = BTreeMap::new();
        let answered = collector.flows(POLL_TIMEOUT, |report| {
            let Some(known) = report.rate.filter(|known| known.rate.value > 0.0) else { return };
            let Some((pair, address)) = Pair::of(topology, &known.ethernet) else { return };
            let measured = known.span.1;
            let seen = here.entry(pair).or_insert_with(|| {
                let flows = Vec::new();
                PairRate { pair, address, rate: BitRate(0), measured, flows }
            });
            seen.rate.0 += known.rate.value as u64;
            seen.measured = measured.max(seen.measured);
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
