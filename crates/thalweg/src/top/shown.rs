//! What is known of a daemon: its last answer, its events, and the flow that the view stays on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use thalweg_api::client::Loss;
use thalweg_api::{CrossingName, Event, EventBody};
use thalweg_wire::FlowKey;

use super::model::{Details, FlowRow, News, Snapshot};

/// Events kept, the latest.
const EVENTS: usize = 1_000;

/// Rates kept of the flow it stays on: more than the widest terminal has columns.
const HISTORY: usize = 512;

/// What is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    /// The last answer.
    pub(super) snapshot: Option<Arc<Snapshot>>,
    /// Why there is none any more, and how long until it is tried again.
    pub(super) trouble: Option<(String, Duration)>,
    /// Events, the latest first, each with the number in which it came.
    pub(super) events: VecDeque<(u64, Arc<EventLine>)>,
    pub(super) stream: Stream,
    /// Events that came.
    pub(super) came: u64,
    /// Events that are known not to have come.
    pub(super) lost: u64,
    /// The flow it stays on.
    pub(super) frozen: Option<Frozen>,
    /// The latest answer on the flows of a link, and on the flow it stays on.
    pub(super) details: Details,
}

/// A line of the list of events.
#[derive(Clone, Debug)]
pub(super) enum EventLine {
    Event(Box<Event>),
    Lost(Loss),
}

/// Whether events come.
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

/// A flow frozen on.
#[derive(Clone, Debug)]
pub(super) struct Frozen {
    pub(super) key: FlowKey,
    /// As last seen, once for each collector that sees it.
    pub(super) rows: Vec<FlowRow>,
    /// Whether the last answer had it.
    pub(super) is_seen: bool,
    /// The highest of its collectors' rates, one an answer, newest first.
    pub(super) history: VecDeque<u64>,
}

impl Shown {
    /// Takes news.
    pub(super) fn take(&mut self, news: News) {
        match news {
            News::Asked(snapshot) => {
                self.trouble = None;
                self.take_details(snapshot.details.clone());
                self.snapshot = Some(Arc::new(*snapshot));
            }
            News::Chosen(details) => self.take_details(*details),
            News::Trouble { error, retry_in } => self.trouble = Some((error.to_string(), retry_in)),
            News::Event(event) => {
                self.came += 1;
                if !is_told_again(&event) {
                    self.happen(EventLine::Event(event));
                }
            }
            News::Lost(loss) => {
                if let Loss::Overwritten(count) | Loss::Invalid(count) = loss {
                    self.lost += count;
                }
                self.happen(EventLine::Lost(loss));
            }
            News::Subscribed => self.stream = Stream::Open,
            News::Unsubscribed { error, retry_in } => self.stream = Stream::Broken { error, retry_in },
        }
    }

    fn happen(&mut self, happening: EventLine) {
        let number = self.events.front().map_or(0, |(number, _)| number + 1);
        self.events.truncate(EVENTS - 1);
        self.events.push_front((number, Arc::new(happening)));
    }

    fn take_details(&mut self, details: Details) {
        if let (Some(frozen), Some(rows)) = (&mut self.frozen, &details.flow) {
            frozen.take(rows);
        }
        self.details = details;
    }
}

/// Whether it is only told again, for those who forget, and would push what is new out of sight.
fn is_told_again(event: &Event) -> bool {
    matches!(event.body, EventBody::Link { crossing: CrossingName::Repeated, .. })
}

impl Frozen {
    /// Begins with a row of the list that it was chosen from.
    pub(super) fn new(row: &FlowRow) -> Frozen {
        Frozen { key: row.key, rows: vec![row.clone()], is_seen: true, history: VecDeque::new() }
    }

    /// Takes an answer; one that was under way when another flow was chosen is not about this one.
    fn take(&mut self, rows: &[FlowRow]) {
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
