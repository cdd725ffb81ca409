//! What the view shows, and what it asks for.

use std::time::Duration;

use thalweg_api::client::{Loss, RequestError};
use thalweg_api::{BoundKind, Collector, CollectorResponse, Event, Flow, Flows, Health, Link, Rate};
use thalweg_wire::{FlowKey, Timestamp};

/// Flows asked for on the chosen link.
pub const FLOWS: usize = 200;

/// What the view wants to know beside what it always gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The link whose flows it shows; that of the highest utilisation if there is none.
    pub link: Option<SeenLink>,
    /// A flow to stay on.
    pub flow: Option<FlowKey>,
}

/// A link as one collector sees it: several may watch the same switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenLink {
    /// Name of the link.
    pub link: String,
    /// Name of the collector.
    pub collector: String,
}

impl From<&Link> for SeenLink {
    fn from(link: &Link) -> SeenLink {
        SeenLink { link: link.link.clone(), collector: link.collector.clone() }
    }
}

/// What the view is told.
#[derive(Clone, Debug)]
pub enum News {
    /// The daemon answered.
    Asked(Box<Snapshot>),
    /// It answered what the user just chose.
    Chosen(Box<Details>),
    /// It did not.
    Trouble {
        /// Why.
        error: RequestError,
        /// How long until it is asked again.
        retry_in: Duration,
    },
    /// Something happened.
    Event(Box<Event>),
    /// Events were lost on the way.
    Lost(Loss),
    /// Events come from now on.
    Subscribed,
    /// No events come.
    Unsubscribed {
        /// Why.
        error: String,
        /// How long until it is tried again.
        retry_in: Duration,
    },
}

/// What a daemon says, as of one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Who it is.
    pub health: Health,
    /// Its collectors.
    pub collectors: Vec<Collector>,
    /// Which collectors responded with their links, and when in packet time.
    pub responses: Vec<CollectorResponse>,
    /// All links.
    pub links: Vec<Link>,
    /// What was asked for beside that.
    pub details: Details,
}

/// What was asked for beside what is always asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// Flows on a link.
    pub on_link: Option<OnLink>,
    /// The flow to stay on, once for each collector that sees it; `None` if none was asked for.
    pub flow: Option<Vec<FlowRow>>,
}

/// Flows on a link.
#[derive(Clone, Debug, PartialEq)]
pub struct OnLink {
    /// The link.
    pub link: SeenLink,
    /// The fastest of them, the fastest first.
    pub flows: Vec<FlowRow>,
    /// How many there are.
    pub total: u64,
}

/// One direction of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRow {
    /// Its name.
    pub key: FlowKey,
    /// What the daemon says of it.
    pub flow: Flow,
}

impl FlowRow {
    /// All flows of an answer to `path`.
    ///
    /// # Errors
    /// If the key of one is none.
    pub fn all(flows: Flows, path: &str) -> Result<Vec<FlowRow>, RequestError> {
        let row = |flow: Flow| match flow.key.parse() {
            Ok(key) => Ok(FlowRow { key, flow }),
            Err(error) => {
                let problem = format!("{:?}: {error}", flow.key);
                Err(RequestError::InvalidResponse { path: path.to_owned(), problem })
            }
        };
        flows.flows.into_iter().map(row).collect()
    }

    /// Returns the rate in bits per second; below zero before the first estimate.
    pub fn rate(&self) -> f64 {
        self.flow.rate.rate_bps.unwrap_or(-1.0)
    }

    /// Share of the sampled bytes that were seen before; zero of nothing.
    pub fn repeated(&self) -> f64 {
        match self.flow.sampled_bytes {
            0 => 0.0,
            bytes => self.flow.repeated_bytes as f64 / bytes as f64,
        }
    }
}

impl Snapshot {
    /// The latest packet time of any answer.
    pub fn now(&self) -> Option<Timestamp> {
        self.responses.iter().filter_map(|response| Some(response.time?.0)).max()
    }

    /// Returns the packet time at which a collector responded.
    pub fn responded_at(&self, collector: &str) -> Option<Timestamp> {
        let response = self.responses.iter().find(|response| response.collector == collector)?;
        response.time.map(|time| time.0)
    }
}

/// The link that carries most for what it can.
pub fn busiest(links: &[Link]) -> Option<&Link> {
    let by_utilisation = |a: &&Link, b: &&Link| {
        a.utilisation.total_cmp(&b.utilisation).then(b.link.cmp(&a.link)).then(b.collector.cmp(&a.collector))
    };
    links.iter().max_by(by_utilisation)
}

/// Whether a rate is only a lower bound.
pub fn is_lower_bound(rate: &Rate) -> bool {
    rate.bounds == BoundKind::LowerBound && rate.rate_lower_bps >= rate.rate_bps
}

/// What the links can be sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// Share of the capacity.
    #[default]
    Utilisation,
    /// Rate.
    Rate,
    /// Flows.
    Flows,
    /// When it last changed.
    Changed,
    /// Name.
    Name,
}

impl SortBy {
    /// In the order in which the sort key cycles through them.
    pub const ALL: [SortBy; 5] =
        [SortBy::Utilisation, SortBy::Rate, SortBy::Flows, SortBy::Changed, SortBy::Name];

    /// The one after this, the first after the last.
    #[must_use]
    pub fn next(self) -> SortBy {
        SortBy::ALL[(self as usize + 1) % SortBy::ALL.len()]
    }

    /// As the table's title has it.
    pub fn label(self) -> &'static str {
        match self {
            SortBy::Utilisation => "utilisation",
            SortBy::Rate => "rate",
            SortBy::Flows => "flows",
            SortBy::Changed => "last change",
            SortBy::Name => "name",
        }
    }

    /// What comes first: the most, the latest, the first of the alphabet; among equals by switch and port.
    pub fn compare(self, a: &Link, b: &Link) -> std::cmp::Ordering {
        let rate = |link: &Link| link.rate.rate_bps.unwrap_or(-1.0);
        let order = match self {
            SortBy::Utilisation => b.utilisation.total_cmp(&a.utilisation),
            SortBy::Rate => rate(b).total_cmp(&rate(a)),
            SortBy::Flows => b.flows.cmp(&a.flows),
            SortBy::Changed => b.changed.cmp(&a.changed),
            SortBy::Name => std::cmp::Ordering::Equal,
        };
        order.then_with(|| {
            (&a.switch, a.port, a.direction, &a.collector).cmp(&(
                &b.switch,
                b.port,
                b.direction,
                &b.collector,
            ))
        })
    }
}

/// Which links a person wants to see: words that are all in the name of the link, of its other end or of its collector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkFilter(String);

impl LinkFilter {
    /// The words, with blanks between.
    pub fn new(text: &str) -> LinkFilter {
        LinkFilter(text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase())
    }

    /// The words.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether a link is to be seen.
    pub fn matches(&self, link: &Link) -> bool {
        let peer = link.peer.as_deref().unwrap_or_default();
        let names = format!("{} {peer} {}", link.link, link.collector).to_lowercase();
        self.0.split(' ').all(|word| names.contains(word))
    }
}
