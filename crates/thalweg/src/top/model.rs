//! Updates and queries of the view.

use std::net::IpAddr;
use std::time::Duration;

use thalweg_api::client::{Loss, RequestError};
use thalweg_api::{BoundKind, Collector, CollectorResponse, Event, Flow, Flows, Health, Link, Rate};
use thalweg_measure::filter::{Field, FlowFields, FlowFilter, Totals, key_address, key_number};
use thalweg_wire::{Bytes, FlowKey, Timestamp};

/// Maximum number of flows to request for a link.
pub const FLOWS: usize = 200;

/// What the view requests in addition to the links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The link whose flows to return; `None` for the link of the highest utilisation.
    pub link: Option<ObservedLink>,
    /// Filter of the flows on the link.
    pub filter: FlowFilter,
    /// The pinned flow.
    pub flow: Option<FlowKey>,
}

/// A link as observed by one collector. Several collectors may observe the same switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedLink {
    /// Name of the link.
    pub link: String,
    /// Name of the collector.
    pub collector: String,
}

impl From<&Link> for ObservedLink {
    fn from(link: &Link) -> ObservedLink {
        ObservedLink { link: link.link.clone(), collector: link.collector.clone() }
    }
}

/// An update of the view.
#[derive(Clone, Debug)]
pub enum Update {
    /// A response of the daemon to a poll.
    Snapshot(Box<Snapshot>),
    /// A response to the latest query.
    Details(Box<Details>),
    /// The daemon did not respond.
    PollFailed {
        /// The error.
        error: RequestError,
        /// Time until the next poll.
        retry_in: Duration,
    },
    /// An event.
    Event(Box<Event>),
    /// Events were lost.
    Lost(Loss),
    /// The event stream is connected.
    Subscribed,
    /// The event stream is disconnected.
    Unsubscribed {
        /// The error.
        error: String,
        /// Time until the next attempt.
        retry_in: Duration,
    },
}

/// The state of a daemon at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Name, version and start time.
    pub health: Health,
    /// The collectors.
    pub collectors: Vec<Collector>,
    /// Which collectors responded with their links, and when in packet time.
    pub responses: Vec<CollectorResponse>,
    /// All links.
    pub links: Vec<Link>,
    /// The answer to the query.
    pub details: Details,
}

/// The answer to a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// Flows on a link.
    pub on_link: Option<OnLink>,
    /// The pinned flow, one row per collector that sees it; `None` if the query has none.
    pub flow: Option<Vec<FlowRow>>,
}

/// Flows on a link.
#[derive(Clone, Debug, PartialEq)]
pub struct OnLink {
    /// The link.
    pub link: ObservedLink,
    /// The filter that the flows match.
    pub filter: FlowFilter,
    /// The fastest flows, fastest first.
    pub flows: Vec<FlowRow>,
    /// Total number of flows on the link that match the filter.
    pub total: u64,
}

/// One direction of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRow {
    /// Key of the flow.
    pub key: FlowKey,
    /// The flow as the API returned it.
    pub flow: Flow,
}

impl FlowRow {
    /// Converts the flows of a response to `path`.
    ///
    /// # Errors
    /// If the key of a flow is invalid.
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

    /// Returns the rate in bits per second, or its lower bound if only the bounds are known; below zero before the first
    /// estimate.
    pub fn rate(&self) -> f64 {
        let rate = &self.flow.rate;
        rate.rate_bps.or(rate.rate_lower_bps).unwrap_or(-1.0)
    }

    /// Returns the share of sampled bytes that were seen before; 0 without samples.
    pub fn repeated(&self) -> f64 {
        match self.flow.sampled_bytes {
            0 => 0.0,
            bytes => self.flow.repeated_bytes as f64 / bytes as f64,
        }
    }
}

/// Values of the fields of [`thalweg_measure::filter::SAMPLED`].
impl FlowFields for FlowRow {
    fn number(&self, field: Field) -> Option<u64> {
        let (bytes, packets) = (Bytes(self.flow.sampled_bytes), self.flow.samples);
        match field {
            Field::BitRate => Some(self.rate() as u64),
            Field::PacketRate => None,
            Field::InBytes => Some(bytes.0),
            Field::InPackets => Some(packets),
            Field::Flows => Some(1),
            Field::Cheetah => Some(self.flow.cheetah.into()),
            _ => {
                let duration = self.flow.flow_end.0 - self.flow.flow_start.0;
                key_number(&self.key, field).or_else(|| Totals { bytes, packets, duration }.number(field))
            }
        }
    }

    fn address(&self, field: Field) -> Option<IpAddr> {
        key_address(&self.key, field)
    }
}

impl Snapshot {
    /// Returns the latest packet time of all collectors.
    pub fn now(&self) -> Option<Timestamp> {
        self.responses.iter().filter_map(|response| Some(response.time?.0)).max()
    }

    /// Returns the packet time at which a collector responded.
    pub fn responded_at(&self, collector: &str) -> Option<Timestamp> {
        let response = self.responses.iter().find(|response| response.collector == collector)?;
        response.time.map(|time| time.0)
    }
}

/// Returns the link with the highest utilisation.
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

/// Sort key of the links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// Utilisation.
    #[default]
    Utilisation,
    /// Rate.
    Rate,
    /// Number of flows.
    Flows,
    /// Time of the last change.
    Changed,
    /// Name.
    Name,
}

impl SortBy {
    /// All sort keys, in the order in which the `s` key cycles through them.
    pub const ALL: [SortBy; 5] =
        [SortBy::Utilisation, SortBy::Rate, SortBy::Flows, SortBy::Changed, SortBy::Name];

    /// Returns the next sort key; the first after the last.
    #[must_use]
    pub fn next(self) -> SortBy {
        SortBy::ALL[(self as usize + 1) % SortBy::ALL.len()]
    }

    /// Returns the name in the title of the table.
    pub fn label(self) -> &'static str {
        match self {
            SortBy::Utilisation => "utilisation",
            SortBy::Rate => "rate",
            SortBy::Flows => "flows",
            SortBy::Changed => "last change",
            SortBy::Name => "name",
        }
    }

    /// Compares links, largest or latest first. Equal links are ordered by switch and port.
    pub fn compare(self, a: &Link, b: &Link) -> std::cmp::Ordering {
        let order = match self {
            SortBy::Utilisation => b.utilisation.total_cmp(&a.utilisation),
            SortBy::Rate => b.smoothed_bps.total_cmp(&a.smoothed_bps),
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

/// A filter of links: words that must all occur in the names of the link, its peer or its collector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkFilter(String);

impl LinkFilter {
    /// Creates a filter from words separated by blanks.
    pub fn new(text: &str) -> LinkFilter {
        LinkFilter(text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase())
    }

    /// Returns the words.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether a link matches.
    pub fn matches(&self, link: &Link) -> bool {
        let peer = link.peer.as_deref().unwrap_or_default();
        let port = link.port_name.as_deref().unwrap_or_default();
        let names = format!("{} {peer} {port} {}", link.link, link.collector).to_lowercase();
        self.0.split(' ').all(|word| names.contains(word))
    }
}
