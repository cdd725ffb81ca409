//! Topologies as TOML and JSON text.
//!
//! ```toml
//! [defaults]               # of links that say nothing else; without it 10 Gbit/s and 1 us
//! rate = "10gbit/s"
//! delay = "1us"
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
//! rate = "1gbit/s"         # optional, as are all below
//! delay = "500ns"
//! mac = "00:25:90:00:00:01"
//! ip = "192.168.0.1"
//!
//! [[link]]                 # between routers
//! between = ["tor0", "agg0"]
//! rate = "40gbit/s"
//! ```
//!
//! In JSON the same sections are members of an object, `{"router": [{"name": "tor0"}, ...], ...}`. A file that also says
//! how packets are forwarded is that of a [state](crate::state#files).
//!
//! Routers, endpoints and links are numbered in the order of the file; ports as in every
//! [topology](crate::topology#order). A wrong file is read to its end, and everything that is wrong with it reported.

mod document;
mod error;
mod print;
mod reader;
#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;
use std::ops::Range;

pub use error::{Excerpt, Hint, Problem, ProblemKind, TopologyFileError};

pub(crate) use document::{Format, Kind, Table, Value};
pub(crate) use print::{Cell, Part, Row, json_text, toml_text};
pub(crate) use reader::{Entry, Reader, Section, nearest};

use super::{LinkSpec, Node, Topology, TopologyBuilder, TopologyError};
use crate::address::MacAddress;
use crate::identity::RouterId;

const DEFAULTS: Section = Section { name: "defaults", keys: &["rate", "delay"] };
const ROUTER: Section = Section { name: "router", keys: &["name"] };
const ENDPOINT: Section =
    Section { name: "endpoint", keys: &["name", "router", "rate", "delay", "mac", "ip"] };
const LINK: Section = Section { name: "link", keys: &["between", "rate", "delay"] };

/// The sections that a topology has.
pub(crate) const SECTIONS: [&Section; 4] = [&DEFAULTS, &ROUTER, &ENDPOINT, &LINK];

impl Topology {
    /// Reads a topology; `file` is its name for messages.
    ///
    /// # Errors
    /// With everything that is wrong with the text; or with the first error of syntax.
    pub fn from_toml(text: &str, file: &str) -> Result<Topology, TopologyFileError> {
        Topology::from_text(text, file, Format::Toml)
    }

    /// Reads a topology in JSON: an object with a member for each section, of the same keys and values.
    ///
    /// # Errors
    /// As of [`from_toml`](Self::from_toml).
    pub fn from_json(text: &str, file: &str) -> Result<Topology, TopologyFileError> {
        Topology::from_text(text, file, Format::Json)
    }

    fn from_text(text: &str, file: &str, format: Format) -> Result<Topology, TopologyFileError> {
        let mut reader = Reader::new(text, format);
        let document = reader.parse(&SECTIONS);
        let topology = document.and_then(|document| read_topology(&mut reader, &document));
        reader.finish(topology, file)
    }
}

/// Reads the topology's sections; `None` if no topology came of them, for which there is a problem then.
pub(crate) fn read_topology(reader: &mut Reader<'_>, document: &Table) -> Option<Topology> {
    let mut topology = TopologyReader {
        reader,
        builder: TopologyBuilder::new(),
        defaults: LinkSpec::default(),
        endpoints: Vec::new(),
    };
    topology.read(document);
    topology.build()
}

struct TopologyReader<'r, 'a> {
    reader: &'r mut Reader<'a>,
    builder: TopologyBuilder,
    defaults: LinkSpec,
    /// Names of endpoints, and where they are.
    endpoints: Vec<(String, Range<usize>)>,
}

impl TopologyReader<'_, '_> {
    fn read(&mut self, document: &Table) {
        if let Some(entry) = self.reader.single(document, &DEFAULTS) {
            self.defaults = self.link_spec(&entry);
        }
        for entry in self.reader.list(document, &ROUTER) {
            self.read_router(&entry);
        }
        for entry in self.reader.list(document, &ENDPOINT) {
            self.read_endpoint(&entry);
        }
        for entry in self.reader.list(document, &LINK) {
            self.read_link(&entry);
        }
    }

    fn build(mut self) -> Option<Topology> {
        // What is missing may be only what was refused.
        if !self.reader.is_content() {
            return None;
        }
        let built = std::mem::take(&mut self.builder).build();
        let refused =
            |error| self.reader.complain(&span_of(&self.endpoints, &error), ProblemKind::Refused(error));
        built.map_err(refused).ok()
    }

    fn read_router(&mut self, entry: &Entry<'_>) {
        let Some((name, span)) = self.name(entry, "name") else { return };
        if let Err(error) = self.builder.add_router(name) {
            self.reader.complain(&span, ProblemKind::Refused(error));
        }
    }

    fn read_endpoint(&mut self, entry: &Entry<'_>) {
        let (name, router) = (self.name(entry, "name"), self.name(entry, "router"));
        let router = router.and_then(|(router, span)| self.router(&router, &span));
        let link = self.link_spec(entry);
        let mac =
            self.reader.optional::<MacAddress>(entry, "mac", "an address such as \"02:00:00:00:00:01\"");
        let ip = self.reader.optional::<Ipv4Addr>(entry, "ip", "an IPv4 address such as \"192.168.0.1\"");
        let (Some((name, span)), Some(router)) = (name, router) else { return };
        let endpoint = match self.builder.add_endpoint(name.clone(), router, link) {
            Ok(endpoint) => endpoint,
            Err(error) => return self.reader.complain(&span, ProblemKind::Refused(error)),
        };
        self.endpoints.push((name, span));
        for (result, span) in [
            mac.map(|(mac, span)| (self.builder.set_mac(endpoint, mac), span)),
            ip.map(|(ip, span)| (self.builder.set_ip(endpoint, ip), span)),
        ]
        .into_iter()
        .flatten()
        {
            if let Err(error) = result {
                self.reader.complain(&span, ProblemKind::Refused(error));
            }
        }
    }

    fn read_link(&mut self, entry: &Entry<'_>) {
        let link = self.link_spec(entry);
        let Some(value) = entry.get("between") else {
            return self.reader.complain_missing(entry, "between");
        };
        let names = texts(value);
        let Some([(a, a_span), (b, b_span)]) = names.as_deref() else {
            return self.reader.complain_of_value(
                "between",
                "two names of routers, as in [\"tor0\", \"agg0\"]",
                &value.span,
            );
        };
        let (a, b) = (self.router(a, a_span), self.router(b, b_span));
        let (Some(a), Some(b)) = (a, b) else { return };
        if let Err(error) = self.builder.connect(a, b, link) {
            self.reader.complain(&value.span, ProblemKind::Refused(error));
        }
    }

    /// Rate and delay of an entry, which default to those of the file.
    fn link_spec(&mut self, entry: &Entry<'_>) -> LinkSpec {
        let mut link = self.defaults;
        if let Some((rate, span)) = self.reader.optional(entry, "rate", "a rate such as \"10gbit/s\"") {
            link = self.sound(LinkSpec { rate, ..link }, &span);
        }
        if let Some((delay, span)) = self.reader.optional(entry, "delay", "a length of time such as \"1us\"")
        {
            link = self.sound(LinkSpec { delay, ..link }, &span);
        }
        link
    }

    /// The link, or if there can be no such link, the default one.
    fn sound(&mut self, link: LinkSpec, span: &Range<usize>) -> LinkSpec {
        match link.check() {
            Ok(()) => link,
            Err(error) => {
                self.reader.complain(span, ProblemKind::Refused(error));
                self.defaults
            }
        }
    }

    /// A name that may not be left out, and where it is.
    fn name(&mut self, entry: &Entry<'_>, key: &'static str) -> Option<(String, Range<usize>)> {
        self.reader.needed(entry, key, "a name in quotes")
    }

    fn router(&mut self, name: &str, span: &Range<usize>) -> Option<RouterId> {
        let hint = match self.builder.node_named(name) {
            Some(Node::Router(router)) => return Some(router),
            Some(Node::Endpoint(_)) => Hint::IsEndpoint,
            None if self.reader.is_full() => Hint::Nothing,
            None => {
                let routers = self.builder.names().filter(|(_, node)| matches!(node, Node::Router(_)));
                nearest(name, routers.map(|(name, _)| name))
            }
        };
        self.reader.complain(span, ProblemKind::UnknownRouter { name: Excerpt(name.to_owned()), hint });
        None
    }
}

/// Where the fault of a topology is that could not be built of sound parts.
fn span_of(endpoints: &[(String, Range<usize>)], error: &TopologyError) -> Range<usize> {
    let (TopologyError::DuplicateMac { second, .. } | TopologyError::DuplicateIp { second, .. }) = error
    else {
        return Range::default();
    };
    let place = endpoints.iter().find(|(name, _)| name == second);
    place.map(|(_, span)| span.clone()).unwrap_or_default()
}

/// The texts of a list of nothing else, and where they are.
pub(crate) fn texts(list: &Value) -> Option<Vec<(String, Range<usize>)>> {
    let Kind::List(elements) = &list.kind else { return None };
    let text = |element: &Value| match &element.kind {
        Kind::Text(text) => Some((text.clone(), element.span.clone())),
        _ => None,
    };
    elements.iter().map(text).collect()
}
