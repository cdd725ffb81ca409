//! The handle of a connected switch.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use thalweg_wire::openflow::multipart::{
    FlowFilter, FlowStats, GroupDescription, PortFilter, PortStats, QueueFilter, QueueStats, Reply, Request,
};
use thalweg_wire::openflow::{Body, DatapathId, Port, PortNumber, RoleRequest, Xid};
use thalweg_wire::{Nanos, Timestamp};
use thiserror::Error;

use crate::clock::Clock;
use crate::connection::{Connection, Waiter};
use crate::outcome::{Failure, Outcome, SendError};

/// One connection to a switch. Cheap to clone; refuses everything after the connection has ended.
#[derive(Clone)]
pub struct Switch {
    datapath: DatapathId,
    connection: Arc<Connection>,
}

/// Why a request has no answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SwitchRequestError {
    /// It was not sent.
    #[error(transparent)]
    NotSent(#[from] SendError),
    /// The switch did not answer, or refused.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl Switch {
    pub(crate) fn new(datapath: DatapathId, connection: Arc<Connection>) -> Switch {
        Switch { datapath, connection }
    }

    /// Returns the datapath id of the switch.
    pub fn datapath(&self) -> DatapathId {
        self.datapath
    }

    /// Returns the address of the switch.
    pub fn peer(&self) -> SocketAddr {
        self.connection.peer
    }

    /// Returns whether both handles refer to the same connection.
    pub fn is_same_connection(&self, other: &Switch) -> bool {
        Arc::ptr_eq(&self.connection, &other.connection)
    }

    /// Sends messages and a barrier in one write. The switch may carry them out in any order, so put dependent
    /// messages into a later batch.
    ///
    /// # Errors
    /// If nothing was sent.
    pub fn send_batch(&self, messages: &[Body], within: Nanos) -> Result<PendingBatch, SendError> {
        let (outcomes, outcome) = crossbeam_channel::bounded(1);
        let clock = self.connection.context.clock;
        let sent = clock.now();
        let xid = self.send_batch_to(messages, within, outcomes)?;
        Ok(PendingBatch { xid, outcome, clock, sent, deadline: sent + within })
    }

    /// Like [`send_batch`](Self::send_batch), with the outcome sent to a channel that many batches may share. Returns
    /// the xid that the outcome will have. The channel needs room: otherwise the outcome is dropped and counted.
    /// Timeouts are reported about 50 ms late.
    ///
    /// # Errors
    /// If nothing was sent.
    pub fn send_batch_to(
        &self,
        messages: &[Body],
        within: Nanos,
        outcomes: Sender<Outcome>,
    ) -> Result<Xid, SendError> {
        self.connection.send_with_barrier(messages, (Waiter::Batch(outcomes), within))
    }

    /// Sends messages in one write without waiting for an outcome, for example packets. Refusals arrive as
    /// [`Event::Error`](crate::Event::Error).
    ///
    /// # Errors
    /// If nothing was sent.
    pub fn send(&self, messages: &[Body]) -> Result<(), SendError> {
        self.connection.send(messages, None).map(drop)
    }

    /// Requests a role, or only the present one. Returns the xid of the request: a refusal arrives as
    /// [`Event::Error`](crate::Event::Error) with it, an answer as [`Event::Role`](crate::Event::Role).
    ///
    /// # Errors
    /// If nothing was sent.
    pub fn request_role(&self, role: RoleRequest) -> Result<Xid, SendError> {
        self.connection.send(&[Body::RoleRequest(role)], None)
    }

    /// Sends a request and waits for all parts of the answer.
    ///
    /// # Errors
    /// If it was not sent, not answered in time, or refused.
    pub fn request(&self, request: Request, within: Nanos) -> Result<Vec<Reply>, SwitchRequestError> {
        let (answers, answer) = crossbeam_channel::bounded(1);
        let message = [Body::MultipartRequest(request.into())];
        self.connection.send(&message, Some((Waiter::Request(answers, Vec::new()), within)))?;
        match answer.recv_timeout(within.into()) {
            Ok(answer) => Ok(answer?),
            Err(RecvTimeoutError::Timeout) => Err(Failure::TimedOut.into()),
            Err(RecvTimeoutError::Disconnected) => Err(Failure::Down.into()),
        }
    }

    /// Requests the present flow entries.
    ///
    /// # Errors
    /// As for [`Switch::request`].
    pub fn flows(&self, filter: FlowFilter, within: Nanos) -> Result<Vec<FlowStats>, SwitchRequestError> {
        Ok(flows_of(self.request(Request::Flow(filter), within)?))
    }

    /// Requests flow entries without waiting for the answer.
    ///
    /// # Errors
    /// If it was not sent.
    pub fn request_flows(&self, filter: FlowFilter, within: Nanos) -> Result<PendingFlows, SendError> {
        self.begin(Request::Flow(filter), within, flows_of)
    }

    /// Requests the counters of queues without waiting for the answer.
    ///
    /// # Errors
    /// If it was not sent.
    pub fn request_queues(&self, filter: QueueFilter, within: Nanos) -> Result<PendingQueues, SendError> {
        self.begin(Request::Queue(filter), within, queues_of)
    }

    fn begin<T>(
        &self,
        request: Request,
        within: Nanos,
        contents: fn(Vec<Reply>) -> Vec<T>,
    ) -> Result<PendingAnswer<T>, SendError> {
        let (answers, answer) = crossbeam_channel::bounded(1);
        let message = [Body::MultipartRequest(request.into())];
        self.connection.send(&message, Some((Waiter::Request(answers, Vec::new()), within)))?;
        Ok(PendingAnswer { answer, contents })
    }

    /// Requests the present groups.
    ///
    /// # Errors
    /// As for [`Switch::request`].
    pub fn groups(&self, within: Nanos) -> Result<Vec<GroupDescription>, SwitchRequestError> {
        let parts = self.request(Request::GroupDesc, within)?;
        Ok(parts
            .into_iter()
            .flat_map(|part| if let Reply::GroupDesc(groups) = part { groups } else { vec![] })
            .collect())
    }

    /// Requests the present ports.
    ///
    /// # Errors
    /// As for [`Switch::request`].
    pub fn ports(&self, within: Nanos) -> Result<Vec<Port>, SwitchRequestError> {
        let parts = self.request(Request::PortDesc, within)?;
        Ok(parts
            .into_iter()
            .flat_map(|part| if let Reply::PortDesc(ports) = part { ports } else { vec![] })
            .collect())
    }

    /// Requests the counters of queues.
    ///
    /// # Errors
    /// As for [`Switch::request`].
    pub fn queue_stats(
        &self,
        filter: QueueFilter,
        within: Nanos,
    ) -> Result<Vec<QueueStats>, SwitchRequestError> {
        Ok(queues_of(self.request(Request::Queue(filter), within)?))
    }

    /// Requests the counters of a port, or of all with [`PortNumber::ANY`].
    ///
    /// # Errors
    /// As for [`Switch::request`].
    pub fn port_stats(
        &self,
        port_no: PortNumber,
        within: Nanos,
    ) -> Result<Vec<PortStats>, SwitchRequestError> {
        let parts = self.request(Request::PortStats(PortFilter { port_no }), within)?;
        Ok(parts
            .into_iter()
            .flat_map(|part| if let Reply::PortStats(ports) = part { ports } else { vec![] })
            .collect())
    }
}

fn flows_of(parts: Vec<Reply>) -> Vec<FlowStats> {
    parts.into_iter().flat_map(|part| if let Reply::Flow(flows) = part { flows } else { vec![] }).collect()
}

fn queues_of(parts: Vec<Reply>) -> Vec<QueueStats> {
    parts.into_iter().flat_map(|part| if let Reply::Queue(queues) = part { queues } else { vec![] }).collect()
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Switch({} at {})", self.datapath, self.peer())
    }
}

/// Requested flow entries.
pub type PendingFlows = PendingAnswer<FlowStats>;

/// Requested counters of queues.
pub type PendingQueues = PendingAnswer<QueueStats>;

/// The answer to a request, once it has arrived.
#[derive(Debug)]
pub struct PendingAnswer<T> {
    answer: Receiver<Result<Vec<Reply>, Failure>>,
    contents: fn(Vec<Reply>) -> Vec<T>,
}

impl<T> PendingAnswer<T> {
    /// Returns the contents or the error once known. Do not call it again after that.
    pub fn take(&self) -> Option<Result<Vec<T>, Failure>> {
        match self.answer.try_recv() {
            Ok(answer) => Some(answer.map(self.contents)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(Failure::Down)),
        }
    }
}

/// A batch that was sent. Dropping it does not affect the batch.
#[derive(Debug)]
pub struct PendingBatch {
    xid: Xid,
    outcome: Receiver<Outcome>,
    clock: Clock,
    sent: Timestamp,
    deadline: Timestamp,
}

impl PendingBatch {
    /// Returns the xid of the batch's barrier.
    pub fn xid(&self) -> Xid {
        self.xid
    }

    /// Waits for the outcome, until the deadline at most.
    pub fn wait(self) -> Outcome {
        let left = self.deadline - self.clock.now();
        match self.outcome.recv_timeout(Duration::from(left)) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => self.failed(Failure::TimedOut),
            Err(RecvTimeoutError::Disconnected) => self.failed(Failure::Down),
        }
    }

    /// Returns the outcome if known. Do not call it again after that.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.outcome.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) if self.clock.now() < self.deadline => None,
            Err(TryRecvError::Empty) => Some(self.failed(Failure::TimedOut)),
            Err(TryRecvError::Disconnected) => Some(self.failed(Failure::Down)),
        }
    }

    fn failed(&self, failure: Failure) -> Outcome {
        Outcome { xid: self.xid, result: Err(failure), took: self.clock.now() - self.sent }
    }
}
