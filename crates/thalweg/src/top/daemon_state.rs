//! The known state of a daemon: its last response, its events, and the pinned flow.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use thalweg_api::client::Loss;
use thalweg_api::{CongestionChangeName, Event, EventBody};
use thalweg_wire::FlowKey;

use super::model::{Details, FlowRow, Snapshot, Update};

/// Maximum number of events kept.
const EVENTS: usize = 1_000;

/// Rates kept of the pinned flow: more than the columns of the widest terminal.
const HISTORY: usize = 512;

/// The known state of a daemon.
#[derive(Clone, Debug, Default)]
pub(super) struct DaemonState {
    /// The last response.
    pub(super) snapshot: Option<Arc<Snapshot>>,
    /// The error of the last poll, and the time until the next.
    pub(super) poll_error: Option<(String, Duration)>,
    /// Events, latest first, each with a sequence number.
    pub(super) events: VecDeque<(u64, Arc<EventLine>)>,
    pub(super) stream: Stream,
    /// Number of events received.
    pub(super) received: u64,
    /// Number of events known to be lost.
    pub(super) lost: u64,
    /// The pinned flow.
    pub(super) pinned: Option<PinnedFlow>,
    /// The latest answer to a query.
    pub(super) details: Details,
}

/// An entry of the list of events.
#[derive(Clone, Debug)]
pub(super) enum EventLine {
    Event(Box<Event>),
    Lost(Loss),
}

/// State of the event stream.
#[derive(Clone, Debug, Default)]
pub(super) enum Stream {
    #[default]
    Connecting,
    Open,
    Broken {
        error: String,
        retry_in: Duration,
    },
}

/// The pinned flow.
#[derive(Clone, Debug)]
pub(super) struct PinnedFlow {
    pub(super) key: FlowKey,
    /// Latest rows, one per collector that sees the flow.
    pub(super) rows: Vec<FlowRow>,
    /// Whether the last response contained the flow.
    pub(super) is_seen: bool,
    /// The highest rate of all collectors per response, newest first.
    pub(super) history: VecDeque<u64>,
}

impl DaemonState {
    /// Applies an update.
    pub(super) fn update(&mut self, update: Update) {
        match update {
            Update::Snapshot(snapshot) => {
                self.poll_error = None;
                self.set_details(snapshot.details.clone());
                self.snapshot = Some(Arc::new(*snapshot));
            }
            Update::Details(details) => self.set_details(*details),
            Update::PollFailed { error, retry_in } => self.poll_error = Some((error.to_string(), retry_in)),
            Update::Event(event) => {
                self.received += 1;
                if !is_repeated(&event) {
                    self.push_event(EventLine::Event(event));
                }
            }
            Update::Lost(loss) => {
                if let Loss::Overwritten(count) | Loss::Invalid(count) = loss {
                    self.lost += count;
                }
                self.push_event(EventLine::Lost(loss));
            }
            Update::Subscribed => self.stream = Stream::Open,
            Update::Unsubscribed { error, retry_in } => self.stream = Stream::Broken { error, retry_in },
        }
    }

    fn push_event(&mut self, line: EventLine) {
        let number = self.events.front().map_or(0, |(number, _)| number + 1);
        self.events.truncate(EVENTS - 1);
        self.events.push_front((number, Arc::new(line)));
    }

    fn set_details(&mut self, details: Details) {
        if let (Some(pinned), Some(rows)) = (&mut self.pinned, &details.flow) {
            pinned.update(rows);
        }
        self.details = details;
    }
}

/// Whether an event only repeats a state. Such events are not listed, so that new ones stay visible.
fn is_repeated(event: &Event) -> bool {
    matches!(event.body, EventBody::Congestion { change: CongestionChangeName::Repeated, .. })
}

impl PinnedFlow {
    /// Pins the flow of a row.
    pub(super) fn new(row: &FlowRow) -> PinnedFlow {
        PinnedFlow { key: row.key, rows: vec![row.clone()], is_seen: true, history: VecDeque::new() }
    }

    /// Applies a response. Ignores late responses about another flow.
    fn update(&mut self, rows: &[FlowRow]) {
        if rows.iter().any(|row| row.key != self.key) {
            return;
        }
        self.is_seen = !rows.is_empty();
        let rate = rows.iter().map(FlowRow::rate).fold(0.0, f64::max);
        self.history.truncate(HISTORY - 1);
        self.history.push_front(rate as u64);
        if self.is_seen {
            self.rows = rows.to_vec();
        }
    }
}
