//! A switch that is connected, to speak to.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use thalweg_wire::openflow::multipart::{
    FlowFilter, FlowStats, GroupDescription, PortFilter, PortStats, Reply, Request,
};
use thalweg_wire::openflow::{Body, DatapathId, PortNumber, Xid};
use thalweg_wire::{Nanos, Timestamp};
use thiserror::Error;

use super::clock::Clock;
use super::connection::{Connection, Waiter};
use super::outcome::{Failure, Outcome, SendError};

/// One connection to a switch. Cheap to clone; stays when the connection ends, and then refuses everything.
#[derive(Clone)]
pub struct Switch {
    datapath: DatapathId,
    connection: Arc<Connection>,
}

/// Why a question has no answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskError {
    /// It was not sent.
    #[error(transparent)]
    NotSent(#[from] SendError),
    /// The switch did not answer it.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl Switch {
    pub(super) fn new(datapath: DatapathId, connection: Arc<Connection>) -> Switch {
        Switch { datapath, connection }
    }

    /// Which it is.
    pub fn datapath(&self) -> DatapathId {
        self.datapath
    }

    /// Where it is connected from, or to.
    pub fn peer(&self) -> SocketAddr {
        self.connection.peer
    }

    /// Whether both are the same connection.
    pub fn is_same_connection(&self, other: &Switch) -> bool {
        Arc::ptr_eq(&self.connection, &other.connection)
    }

    /// Sends these messages and a barrier behind them, all in one write. The switch may carry them out in any order, so
    /// what depends on something else goes into a later batch.
    ///
    /// # Errors
    /// When nothing was sent.
    pub fn send_batch(&self, messages: &[Body], within: Nanos) -> Result<Ticket, SendError> {
        let (outcomes, outcome) = crossbeam_channel::bounded(1);
        let clock = self.connection.context.clock;
        let sent = clock.now();
        let xid = self.send_batch_to(messages, within, outcomes)?;
        Ok(Ticket { xid, outcome, clock, sent, deadline: sent + within })
    }

    /// The same with the outcome to go to a channel, which may be shared by many batches; says under which xid it will
    /// come. The channel needs room: an outcome that finds none is dropped, and counted. A deadline is told some 50 ms
    /// late.
    ///
    /// # Errors
    /// When nothing was sent.
    pub fn send_batch_to(
        &self,
        messages: &[Body],
        within: Nanos,
        outcomes: Sender<Outcome>,
    ) -> Result<Xid, SendError> {
        self.connection.send_with_barrier(messages, (Waiter::Batch(outcomes), within))
    }

    /// Sends these in one write, with nobody waiting: packets, above all. What the switch refuses comes as
    /// [`Event::Error`](super::Event::Error).
    ///
    /// # Errors
    /// When nothing was sent.
    pub fn send(&self, messages: &[Body]) -> Result<(), SendError> {
        self.connection.send(messages, None).map(drop)
    }

    /// Asks a question, and waits for all parts of the answer.
    ///
    /// # Errors
    /// When it was not sent, not answered in time, or refused.
    pub fn ask(&self, request: Request, within: Nanos) -> Result<Vec<Reply>, AskError> {
        let (answers, answer) = crossbeam_channel::bounded(1);
        let question = [Body::MultipartRequest(request.into())];
        self.connection.send(&question, Some((Waiter::Question(answers, Vec::new()), within)))?;
        match answer.recv_timeout(within.into()) {
            Ok(answer) => Ok(answer?),
            Err(RecvTimeoutError::Timeout) => Err(Failure::Late.into()),
            Err(RecvTimeoutError::Disconnected) => Err(Failure::Down.into()),
        }
    }

    /// Flow entries that it has now.
    ///
    /// # Errors
    /// As of [`Switch::ask`].
    pub fn flows(&self, filter: FlowFilter, within: Nanos) -> Result<Vec<FlowStats>, AskError> {
        Ok(flows_of(self.ask(Request::Flow(filter), within)?))
    }

    /// Asks for flow entries, and does not wait for the answer.
    ///
    /// # Errors
    /// When it was not sent.
    pub fn ask_flows(&self, filter: FlowFilter, within: Nanos) -> Result<FlowsAnswer, SendError> {
        let (answers, answer) = crossbeam_channel::bounded(1);
        let question = [Body::MultipartRequest(Request::Flow(filter).into())];
        self.connection.send(&question, Some((Waiter::Question(answers, Vec::new()), within)))?;
        Ok(FlowsAnswer { answer })
    }

    /// Groups that it has now.
    ///
    /// # Errors
    /// As of [`Switch::ask`].
    pub fn groups(&self, within: Nanos) -> Result<Vec<GroupDescription>, AskError> {
        let parts = self.ask(Request::GroupDesc, within)?;
        Ok(parts
            .into_iter()
            .flat_map(|part| if let Reply::GroupDesc(groups) = part { groups } else { vec![] })
            .collect())
    }

    /// Counters of a port, or of all with [`PortNumber::ANY`].
    ///
    /// # Errors
    /// As of [`Switch::ask`].
    pub fn port_stats(&self, port_no: PortNumber, within: Nanos) -> Result<Vec<PortStats>, AskError> {
        let parts = self.ask(Request::PortStats(PortFilter { port_no }), within)?;
        Ok(parts
            .into_iter()
            .flat_map(|part| if let Reply::PortStats(ports) = part { ports } else { vec![] })
            .collect())
    }
}

fn flows_of(parts: Vec<Reply>) -> Vec<FlowStats> {
    parts.into_iter().flat_map(|part| if let Reply::Flow(flows) = part { flows } else { vec![] }).collect()
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Switch({} at {})", self.datapath, self.peer())
    }
}

/// Flow entries that were asked for.
#[derive(Debug)]
pub struct FlowsAnswer {
    answer: Receiver<Result<Vec<Reply>, Failure>>,
}

impl FlowsAnswer {
    /// The entries, or why there are none, once that is known. To be asked no more after that.
    pub fn take(&self) -> Option<Result<Vec<FlowStats>, Failure>> {
        match self.answer.try_recv() {
            Ok(answer) => Some(answer.map(flows_of)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(Failure::Down)),
        }
    }
}

/// What is known of a batch that was sent. Dropping it changes nothing for the batch.
#[derive(Debug)]
pub struct Ticket {
    xid: Xid,
    outcome: Receiver<Outcome>,
    clock: Clock,
    sent: Timestamp,
    deadline: Timestamp,
}

impl Ticket {
    /// The batch: the xid of its barrier.
    pub fn xid(&self) -> Xid {
        self.xid
    }

    /// Waits until it is known what became of the batch, until its deadline at most.
    pub fn wait(self) -> Outcome {
        let left = self.deadline - self.clock.now();
        match self.outcome.recv_timeout(Duration::from(left)) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => self.failed(Failure::Late),
            Err(RecvTimeoutError::Disconnected) => self.failed(Failure::Down),
        }
    }

    /// What became of it, if that is known. To be asked no more after that.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.outcome.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) if self.clock.now() < self.deadline => None,
            Err(TryRecvError::Empty) => Some(self.failed(Failure::Late)),
            Err(TryRecvError::Disconnected) => Some(self.failed(Failure::Down)),
        }
    }

    fn failed(&self, failure: Failure) -> Outcome {
        Outcome { xid: self.xid, result: Err(failure), took: self.clock.now() - self.sent }
    }
}
