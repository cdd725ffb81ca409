//! What the view shows, and what it asks for.

use std::net::IpAddr;
use std::time::Duration;

use thalweg_api::client::{Loss, RequestError};
use thalweg_api::{Answered, BoundKind, Collector, Event, Flow, Flows, Health, Link, Rate};
use thalweg_measure::filter::{Field, FlowFields, FlowFilter, Totals, key_address, key_number};
use thalweg_wire::{Bytes, FlowKey, Timestamp};

/// Flows asked for on the chosen link.
pub const FLOWS: usize = 200;

/// What the view wants to know beside what it always gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The link whose flows it shows; that of the highest utilisation if there is none.
    pub link: Option<SeenLink>,
    /// Which flows of the link it shows.
    pub filter: FlowFilter,
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
    /// Which of them told of their links, and when by packet time.
    pub answered: Vec<Answered>,
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
    /// The filter that its flows match.
    pub filter: FlowFilter,
    /// The fastest of them, the fastest first.
    pub flows: Vec<FlowRow>,
    /// How many match.
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
                Err(RequestError::NotUnderstood { path: path.to_owned(), problem })
            }
        };
        flows.flows.into_iter().map(row).collect()
    }

    /// Bits per second; below zero before the first estimate.
    pub fn rate(&self) -> f64 {
        self.flow.rate_bps.as_ref().map_or(-1.0, |rate| rate.value)
    }

    /// Share of the sampled bytes that were seen before; zero of nothing.
    pub fn repeated(&self) -> f64 {
        match self.flow.sampled_bytes {
            0 => 0.0,
            bytes => self.flow.repeated_bytes as f64 / bytes as f64,
        }
    }
}

/// As [`thalweg_measure::filter::SAMPLED`] has them.
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
                let duration = Timestamp(self.flow.last.time_ns) - Timestamp(self.flow.first.time_ns);
                key_number(&self.key, field).or_else(|| Totals { bytes, packets, duration }.number(field))
            }
        }
    }

    fn address(&self, field: Field) -> Option<IpAddr> {
        key_address(&self.key, field)
    }
}

impl Snapshot {
    /// The latest packet time of any answer.
    pub fn now(&self) -> Option<Timestamp> {
        self.answered.iter().filter_map(|answered| Some(Timestamp(answered.at.as_ref()?.time_ns))).max()
    }

    /// The packet time at which a collector answered.
    pub fn answered_at(&self, collector: &str) -> Option<Timestamp> {
        let answered = self.answered.iter().find(|answered| answered.collector == collector)?;
        answered.at.as_ref().map(|at| Timestamp(at.time_ns))
    }
}

/// The link that carries most for what it can.
pub fn busiest(links: &[Link]) -> Option<&Link> {
    let by_utilisation = |a: &&Link, b: &&Link| {
        a.utilisation.total_cmp(&b.utilisation).then(b.link.cmp(&a.link)).then(b.collector.cmp(&a.collector))
    };
    links.iter().max_by(by_utilisation)
}

/// Whether a rate is no more than what is known for certain, so that the truth is at least that.
pub fn is_least(rate: &Rate) -> bool {
    rate.bound == BoundKind::LowerBound && rate.lower.is_some_and(|lower| lower >= rate.value)
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
        let rate = |rate: &Rate| rate.value;
        let order = match self {
            SortBy::Utilisation => b.utilisation.total_cmp(&a.utilisation),
            SortBy::Rate => rate(&b.rate_bps).total_cmp(&rate(&a.rate_bps)),
            SortBy::Flows => b.flows.cmp(&a.flows),
            SortBy::Changed => b.changed.time_ns.cmp(&a.changed.time_ns),
            SortBy::Name => std::cmp::Ordering::Equal,
        };
        order.then_with(|| {
            (&a.switch, a.port, a.way, &a.collector).cmp(&(&b.switch, b.port, b.way, &b.collector))
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
