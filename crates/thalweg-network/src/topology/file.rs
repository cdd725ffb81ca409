//! Topology files in TOML and JSON.
//!
//! ```toml
//! [defaults]               # optional: defaults of links, otherwise 10 Gbit/s and 1 us
//! rate = "10gbit/s"
//! delay = "1us"
//! loss = "0%"              # random loss and jitter, in emulated networks
//! jitter = "0us"
//!
//! [[router]]
//! name = "tor0"
//!
//! [[router]]
//! name = "agg0"
//!
//! [[endpoint]]
//! name = "h0"
//! router = "tor0"          # the other end of its link
//! rate = "1gbit/s"         # optional, as all keys below
//! delay = "500ns"
//! mac = "00:25:90:00:00:01"
//! ip = "192.168.0.1"
//! ipv6 = "2001:db8::1"
//! port = "Ethernet1"       # the router's name of its port
//!
//! [[link]]                 # between routers
//! between = ["tor0", "agg0"]
//! ports = ["Ethernet49", "Ethernet1"]
//! rate = "40gbit/s"
//! ```
//!
//! In JSON the same sections are members of an object, `{"router": [{"name": "tor0"}, ...], ...}`. A file with
//! forwarding state too is read by [`state`](crate::state#files).
//!
//! Routers, endpoints and links are numbered in file order, ports as in every [topology](crate::topology#order). All
//! problems of a file are reported at once.

mod loss;
mod print;
pub mod sections;
#[cfg(test)]
mod tests;

pub use thalweg_config::Problems as TopologyFileError;
use thalweg_config::{Document, Format, Hint, Name, Place, Problem, ProblemKind, SafeText, Typed};
use thalweg_wire::{BitRate, Nanos};

pub use loss::LossRates;
pub(crate) use print::{Cell, Part, Row, json_text, toml_text};
pub use sections::reference;

use super::{LinkSpec, LossRate, Node, Topology, TopologyBuilder, TopologyError};
use crate::identity::RouterId;
use sections::{Defaults, Endpoint, Link, Router};

/// The number of problems after which hints are no longer computed: they would not be shown, and take time.
pub(crate) const MAX_HINTED: usize = 32;

impl Topology {
    /// Parses a topology in TOML; `file` is the name of the file for messages.
    ///
    /// # Errors
    /// Lists all problems, or the first syntax error.
    pub fn from_toml(text: &str, file: &str) -> Result<Topology, TopologyFileError> {
        Topology::from_text(text, file, Format::Toml)
    }

    /// Parses a topology in JSON: an object with one member per section, and the same keys and values as in TOML.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml).
    pub fn from_json(text: &str, file: &str) -> Result<Topology, TopologyFileError> {
        Topology::from_text(text, file, Format::Json)
    }

    /// Parses a topology in this format; `file` is the name of the file for messages.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml).
    pub fn from_text(text: &str, file: &str, format: Format) -> Result<Topology, TopologyFileError> {
        let (document, mut problems) = Document::read(&sections::TOPOLOGY, text, file, format)?;
        let topology = read_topology(&document, &mut problems);
        finish(topology, &document, problems)
    }
}

/// Returns the value if there are no problems, and all problems otherwise.
pub(crate) fn finish<T>(
    read: Option<T>,
    document: &Document,
    problems: Vec<Problem>,
) -> Result<T, TopologyFileError> {
    match read {
        Some(read) if problems.is_empty() => Ok(read),
        _ => Err(document.problems(problems)),
    }
}

/// Reads the sections of a topology; `None` if there are problems.
pub(crate) fn read_topology(document: &Document, problems: &mut Vec<Problem>) -> Option<Topology> {
    let builder = TopologyBuilder::new();
    let mut topology =
        TopologyReader { problems, builder, defaults: LinkSpec::default(), endpoints: Vec::new() };
    topology.read(document);
    topology.build()
}

/// Returns a problem with its own message.
pub(crate) fn problem_at(place: Place, reason: impl Into<String>) -> Problem {
    Problem { place, kind: ProblemKind::Refused { key: "", reason: SafeText(reason.into()) } }
}

/// Returns the message for an unknown router.
pub(crate) fn no_router(name: &str, hint: &impl std::fmt::Display) -> String {
    format!("unknown router \"{}\"{hint}", Name(name.to_owned()))
}

/// The keys of a link that an entry has.
struct LinkKeys {
    rate: Option<BitRate>,
    delay: Option<Nanos>,
    loss: Option<[LossRate; 2]>,
    jitter: Option<Nanos>,
}

/// The keys of a link in an entry of any section that has them.
macro_rules! link_keys {
    ($entry:expr) => {
        LinkKeys { rate: $entry.rate, delay: $entry.delay, loss: $entry.loss, jitter: $entry.jitter }
    };
}

struct TopologyReader<'p> {
    problems: &'p mut Vec<Problem>,
    builder: TopologyBuilder,
    defaults: LinkSpec,
    /// The names of endpoints with their places.
    endpoints: Vec<(String, Place)>,
}

impl TopologyReader<'_> {
    fn read(&mut self, document: &Document) {
        for entry in document.valid::<Defaults>() {
            self.defaults = self.link_spec(&entry, link_keys!(entry));
        }
        for entry in document.valid::<Router>() {
            if let Err(error) = self.builder.add_router(entry.name.clone()) {
                self.refuse(&entry, Router::name, error);
            }
        }
        for entry in document.valid::<Endpoint>() {
            self.read_endpoint(&entry);
        }
        for entry in document.valid::<Link>() {
            self.read_link(&entry);
        }
    }

    fn build(mut self) -> Option<Topology> {
        // A missing part may be one that was rejected.
        if !self.problems.is_empty() {
            return None;
        }
        let built = std::mem::take(&mut self.builder).build();
        let report = |error: TopologyError| {
            self.problems.push(problem_at(place_of(&self.endpoints, &error), error.to_string()));
        };
        built.map_err(report).ok()
    }

    fn read_endpoint(&mut self, entry: &Typed<'_, Endpoint>) {
        let router = self.router(entry, Endpoint::router, 0, &entry.router);
        let link = self.link_spec(entry, link_keys!(entry));
        let Some(router) = router else { return };
        let endpoint = match self.builder.add_endpoint(entry.name.clone(), router, link) {
            Ok(endpoint) => endpoint,
            Err(error) => return self.refuse(entry, Endpoint::name, error),
        };
        let place = entry.entry.place_of(Endpoint::name).cloned();
        self.endpoints.push((entry.name.clone(), place.unwrap_or(Place::Line(1))));
        if let Some(Err(error)) = entry.mac.map(|mac| self.builder.set_mac(endpoint, mac)) {
            self.refuse(entry, Endpoint::mac, error);
        }
        if let Some(Err(error)) = entry.ip.map(|ip| self.builder.set_ip(endpoint, ip)) {
            self.refuse(entry, Endpoint::ip, error);
        }
        if let Some(Err(error)) = entry.ipv6.map(|ip| self.builder.set_ipv6(endpoint, ip)) {
            self.refuse(entry, Endpoint::ipv6, error);
        }
        let port = entry.port.as_deref();
        if let Some(Err(error)) = port.map(|port| self.builder.set_port_name(endpoint, port)) {
            self.refuse(entry, Endpoint::port, error);
        }
    }

    fn read_link(&mut self, entry: &Typed<'_, Link>) {
        let link = self.link_spec(entry, link_keys!(entry));
        let ends: Vec<Option<RouterId>> = (entry.between.iter().enumerate())
            .map(|(end, name)| self.router(entry, Link::between, end, name))
            .collect();
        let &[Some(a), Some(b)] = ends.as_slice() else { return };
        if let Err(error) = self.builder.connect(a, b, link) {
            return self.refuse(entry, Link::between, error);
        }
        let Some([a, b]) = entry.ports.as_deref() else { return };
        if let Err(error) = self.builder.set_last_link_port_names([a, b]) {
            self.refuse(entry, Link::ports, error);
        }
    }

    /// Returns the link of an entry with the defaults of the file, or reports the problem and returns the default link.
    fn link_spec<T>(&mut self, entry: &Typed<'_, T>, keys: LinkKeys) -> LinkSpec {
        let LinkKeys { rate, delay, loss, jitter } = keys;
        let default = self.defaults;
        let link = LinkSpec {
            rate: rate.unwrap_or(default.rate),
            delay: delay.unwrap_or(default.delay),
            loss: loss.unwrap_or(default.loss),
            jitter: jitter.unwrap_or(default.jitter),
        };
        let Err(error) = link.check() else { return link };
        let key = match error {
            TopologyError::Rate { .. } => Link::rate,
            // A default jitter may be too large for the delay of this link.
            TopologyError::Jitter { .. } if jitter.is_some() => Link::jitter,
            _ => Link::delay,
        };
        self.refuse(entry, key, error);
        default
    }

    fn router<T>(
        &mut self,
        entry: &Typed<'_, T>,
        key: &'static str,
        element: usize,
        name: &str,
    ) -> Option<RouterId> {
        let hint = match self.builder.node_named(name) {
            Some(Node::Router(router)) => return Some(router),
            Some(Node::Endpoint(_)) => {
                ": it is an endpoint, whose link is set by its key \"router\"".to_owned()
            }
            None if self.problems.len() >= MAX_HINTED => String::new(),
            None => {
                let routers = self.builder.names().filter(|(_, node)| matches!(node, Node::Router(_)));
                Hint::nearest(name, routers.map(|(name, _)| name)).to_string()
            }
        };
        self.problems.push(entry.entry.refuse_value(key, element, no_router(name, &hint)));
        None
    }

    /// Reports a value that is valid on its own, but not in this topology.
    fn refuse<T>(&mut self, entry: &Typed<'_, T>, key: &'static str, error: TopologyError) {
        self.problems.push(entry.entry.refuse_value(key, usize::MAX, error.to_string()));
    }
}

/// Returns the place of the error of a topology whose parts are valid.
fn place_of(endpoints: &[(String, Place)], error: &TopologyError) -> Place {
    let (TopologyError::DuplicateMac { second, .. } | TopologyError::DuplicateIp { second, .. }) = error
    else {
        return Place::Line(1);
    };
    let place = endpoints.iter().find(|(name, _)| name == second);
    place.map_or(Place::Line(1), |(_, place)| place.clone())
}
