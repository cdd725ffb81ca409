//! The connection to one switch of a fabric: batches on their way, and whether it is known what the switch has.

use std::collections::BTreeMap;

use crossbeam_channel::{Receiver, Sender, unbounded};
use thalweg_wire::openflow::multipart::FlowStats;
use thalweg_wire::openflow::{Body, Xid};
use thalweg_wire::{Nanos, Timestamp};

use super::entries;
use super::outcome::{Failure, Outcome, SendError};
use super::switch::{FlowsAnswer, Switch};
use crate::ActionId;
use thalweg_control::Pair;

/// A connection that is up.
pub(super) struct Link {
    switch: Switch,
    /// Batches without an answer are bounded, and so are outcomes.
    outcomes: (Sender<Outcome>, Receiver<Outcome>),
    /// Batches on their way, and the move that each is, if it is one.
    sent: BTreeMap<Xid, Option<Move>>,
    knowledge: Knowledge,
}

/// Whether it is known what the switch has.
enum Knowledge {
    /// It has what it was told.
    Known,
    /// It has refused something, or not answered, and is asked from then on.
    Doubtful(Option<Timestamp>),
    /// It has been asked.
    Asked(FlowsAnswer),
}

/// A pair on its way from one address to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) action: ActionId,
    pub(super) pair: Pair,
    pub(super) from: u8,
    pub(super) to: u8,
}

/// What came of a batch.
pub(super) struct Told {
    pub(super) of: Option<Move>,
    pub(super) outcome: Outcome,
}

/// What is known now of what the switch has.
pub(super) enum Stock {
    /// Nothing new.
    Waits,
    /// It has been asked just now.
    Asks,
    /// It has answered.
    Has(Result<Vec<FlowStats>, Failure>),
}

impl Link {
    pub(super) fn new(switch: Switch) -> Link {
        Link { switch, outcomes: unbounded(), sent: BTreeMap::new(), knowledge: Knowledge::Known }
    }

    /// Sends a batch, which is to be carried out within this time.
    pub(super) fn send(
        &mut self,
        messages: &[Body],
        of: Option<Move>,
        within: Nanos,
    ) -> Result<(), SendError> {
        let xid = self.switch.send_batch_to(messages, within, self.outcomes.0.clone())?;
        self.sent.insert(xid, of);
        Ok(())
    }

    /// What has come of batches.
    pub(super) fn told(&mut self) -> impl Iterator<Item = Told> + '_ {
        self.outcomes.1.try_iter().map(|outcome| {
            let of = self.sent.remove(&outcome.xid).flatten();
            Told { of, outcome }
        })
    }

    /// It may have something else than it was told; it is to be asked from then on, or at once.
    pub(super) fn doubt(&mut self, from: Option<Timestamp>) {
        self.knowledge = Knowledge::Doubtful(from);
    }

    /// Whether it is known what it has, or will have when it has done what it was told.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.knowledge, Knowledge::Known)
    }

    /// Whether it has that.
    pub(super) fn is_settled(&self) -> bool {
        self.is_known() && self.sent.is_empty()
    }

    /// Whether it has the routes that it is to have.
    pub(super) fn has_routes(&self) -> bool {
        self.is_known() && self.sent.values().all(Option::is_some)
    }

    /// Asks, if it is time to, and hears.
    pub(super) fn stock(&mut self, now: Timestamp, within: Nanos) -> Stock {
        match &self.knowledge {
            Knowledge::Doubtful(from) if from.is_none_or(|from| from <= now) => {
                match self.switch.ask_flows(entries::all(), within) {
                    Ok(answer) => {
                        self.knowledge = Knowledge::Asked(answer);
                        Stock::Asks
                    }
                    // It is not connected any more, or too busy: another time.
                    Err(_) => Stock::Waits,
                }
            }
            Knowledge::Asked(answer) => match answer.take() {
                None => Stock::Waits,
                Some(flows) => {
                    self.knowledge = Knowledge::Known;
                    Stock::Has(flows)
                }
            },
            _ => Stock::Waits,
        }
    }
}
