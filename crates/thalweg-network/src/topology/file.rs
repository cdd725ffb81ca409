//! Topologies as TOML text.
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
//! Routers, endpoints and links are numbered in the order of the file; ports as in every
//! [topology](crate::topology#order). A wrong file is read to its end, and everything that is wrong with it reported.

mod error;
mod print;
#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use error::{Excerpt, Hint, Problem, ProblemKind, TopologyFileError};

use super::{LinkSpec, Node, Topology, TopologyBuilder, TopologyError};
use crate::address::MacAddress;
use crate::identity::RouterId;

/// Most problems that are reported of one file.
const MAX_PROBLEMS: usize = 32;

/// Most names that are compared with one that is not known: a bound on the time that a wrong file takes.
const MAX_COMPARED: usize = 4_096;

/// Longest name for which a near one is looked for.
const MAX_GUESSED: usize = super::MAX_NAME;

/// Least similarity of a name to one that is suggested for it, 0 to 1 (Jaro and Winkler's).
const LEAST_SIMILARITY: f64 = 0.75;

/// A part of a file: its name, and its keys.
struct Section {
    name: &'static str,
    keys: &'static [&'static str],
}

const DEFAULTS: Section = Section { name: "defaults", keys: &["rate", "delay"] };
const ROUTER: Section = Section { name: "router", keys: &["name"] };
const ENDPOINT: Section =
    Section { name: "endpoint", keys: &["name", "router", "rate", "delay", "mac", "ip"] };
const LINK: Section = Section { name: "link", keys: &["between", "rate", "delay"] };
const SECTIONS: [&Section; 4] = [&DEFAULTS, &ROUTER, &ENDPOINT, &LINK];

impl Topology {
    /// Reads a topology; `file` is its name for messages.
    ///
    /// # Errors
    /// With everything that is wrong with the text; or with the first error of syntax.
    pub fn from_toml(text: &str, file: &str) -> Result<Topology, TopologyFileError> {
        let mut reader = Reader::new(text);
        let topology = reader.read();
        let mut problems = reader.problems;
        match topology {
            Some(topology) if problems.is_empty() => Ok(topology),
            _ => {
                problems.sort_by_key(|problem| problem.line);
                Err(TopologyFileError { file: file.to_owned(), problems, omitted: reader.omitted })
            }
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    builder: TopologyBuilder,
    defaults: LinkSpec,
    /// Names of endpoints, and where they are.
    endpoints: Vec<(String, Range<usize>)>,
    problems: Vec<Problem>,
    omitted: usize,
}

/// A table of the file.
struct Entry<'t> {
    section: &'static Section,
    table: &'t DeTable<'t>,
    span: Range<usize>,
}

impl<'t> Entry<'t> {
    fn get(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Reader {
            text,
            builder: TopologyBuilder::new(),
            defaults: LinkSpec::default(),
            endpoints: Vec::new(),
            problems: Vec::new(),
            omitted: 0,
        }
    }

    /// Reads all there is; `None` if no topology came of it, for which there is a problem then.
    fn read(&mut self) -> Option<Topology> {
        let document = match DeTable::parse(self.text) {
            Ok(document) => document,
            Err(error) => {
                let message = Excerpt(error.message().replace('\n', "; "));
                self.complain(&error.span().unwrap_or_default(), ProblemKind::Syntax { message });
                return None;
            }
        };
        let document = document.get_ref();
        self.check_sections(document);
        if let Some(entry) = self.single(document, &DEFAULTS) {
            self.defaults = self.link_spec(&entry);
        }
        for entry in self.list(document, &ROUTER) {
            self.read_router(&entry);
        }
        for entry in self.list(document, &ENDPOINT) {
            self.read_endpoint(&entry);
        }
        for entry in self.list(document, &LINK) {
            self.read_link(&entry);
        }
        // What is missing may be only what was refused.
        if !self.problems.is_empty() {
            return None;
        }
        let built = std::mem::take(&mut self.builder).build();
        built.map_err(|error| self.complain(&self.span_of(&error), ProblemKind::Refused(error))).ok()
    }

    fn check_sections(&mut self, document: &DeTable<'_>) {
        for (name, _) in document {
            if !SECTIONS.iter().any(|section| section.name == name.get_ref()) {
                let hint = nearest(name.get_ref(), SECTIONS.iter().map(|section| section.name));
                let name_of = Excerpt(name.get_ref().to_string());
                self.complain(&name.span(), ProblemKind::UnknownSection { name: name_of, hint });
            }
        }
    }

    /// The section of which there is one, if it is there.
    fn single<'t>(&mut self, document: &'t DeTable<'t>, section: &'static Section) -> Option<Entry<'t>> {
        let (name, value) = document.iter().find(|(name, _)| name.get_ref() == section.name)?;
        let DeValue::Table(table) = value.get_ref() else {
            self.complain(&name.span(), ProblemKind::NotASection { section: section.name });
            return None;
        };
        let entry = Entry { section, table, span: name.span() };
        self.check_keys(&entry);
        Some(entry)
    }

    /// The sections of which there may be several.
    fn list<'t>(&mut self, document: &'t DeTable<'t>, section: &'static Section) -> Vec<Entry<'t>> {
        let Some((name, value)) = document.iter().find(|(name, _)| name.get_ref() == section.name) else {
            return Vec::new();
        };
        let DeValue::Array(elements) = value.get_ref() else {
            self.complain(&name.span(), ProblemKind::NotAList { section: section.name });
            return Vec::new();
        };
        let mut entries = Vec::with_capacity(elements.len());
        for element in elements {
            match element.get_ref() {
                DeValue::Table(table) => entries.push(Entry { section, table, span: element.span() }),
                _ => self.complain(&element.span(), ProblemKind::NotAList { section: section.name }),
            }
        }
        entries.iter().for_each(|entry| self.check_keys(entry));
        entries
    }

    fn check_keys(&mut self, entry: &Entry<'_>) {
        for name in entry.table.keys().filter(|name| !entry.section.keys.contains(&name.get_ref().as_ref())) {
            let hint = nearest(name.get_ref(), entry.section.keys.iter().copied());
            let key = Excerpt(name.get_ref().to_string());
            let kind = ProblemKind::UnknownKey { section: entry.section.name, key, hint };
            self.complain(&name.span(), kind);
        }
    }

    fn read_router(&mut self, entry: &Entry<'_>) {
        let Some((name, span)) = self.needed(entry, "name") else { return };
        if let Err(error) = self.builder.add_router(name) {
            self.complain(&span, ProblemKind::Refused(error));
        }
    }

    fn read_endpoint(&mut self, entry: &Entry<'_>) {
        let (name, router) = (self.needed(entry, "name"), self.needed(entry, "router"));
        let router = router.and_then(|(router, span)| self.router(&router, &span));
        let link = self.link_spec(entry);
        let mac = self.optional::<MacAddress>(entry, "mac", "an address such as \"02:00:00:00:00:01\"");
        let ip = self.optional::<Ipv4Addr>(entry, "ip", "an IPv4 address such as \"192.168.0.1\"");
        let (Some((name, span)), Some(router)) = (name, router) else { return };
        let endpoint = match self.builder.add_endpoint(name.clone(), router, link) {
            Ok(endpoint) => endpoint,
            Err(error) => return self.complain(&span, ProblemKind::Refused(error)),
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
                self.complain(&span, ProblemKind::Refused(error));
            }
        }
    }

    fn read_link(&mut self, entry: &Entry<'_>) {
        let link = self.link_spec(entry);
        let Some(value) = entry.get("between") else {
            return self.complain_missing(entry, "between");
        };
        let names = match value.get_ref() {
            DeValue::Array(elements) => elements
                .iter()
                .map(|element| Some((element.get_ref().as_str()?.to_owned(), element.span())))
                .collect::<Option<Vec<_>>>(),
            _ => None,
        };
        let Some([(a, a_span), (b, b_span)]) = names.as_deref() else {
            return self.complain_of_value(
                "between",
                "two names of routers, as in [\"tor0\", \"agg0\"]",
                &value.span(),
            );
        };
        let (a, b) = (self.router(a, a_span), self.router(b, b_span));
        let (Some(a), Some(b)) = (a, b) else { return };
        if let Err(error) = self.builder.connect(a, b, link) {
            self.complain(&value.span(), ProblemKind::Refused(error));
        }
    }

    /// Rate and delay of an entry, which default to those of the file.
    fn link_spec(&mut self, entry: &Entry<'_>) -> LinkSpec {
        let mut link = self.defaults;
        if let Some((rate, span)) = self.optional(entry, "rate", "a rate such as \"10gbit/s\"") {
            link = self.sound(LinkSpec { rate, ..link }, &span);
        }
        if let Some((delay, span)) = self.optional(entry, "delay", "a length of time such as \"1us\"") {
            link = self.sound(LinkSpec { delay, ..link }, &span);
        }
        link
    }

    /// The link, or if there can be no such link, the default one.
    fn sound(&mut self, link: LinkSpec, span: &Range<usize>) -> LinkSpec {
        match link.check() {
            Ok(()) => link,
            Err(error) => {
                self.complain(span, ProblemKind::Refused(error));
                self.defaults
            }
        }
    }

    /// A value that may be left out, and where it is.
    fn optional<T: std::str::FromStr>(
        &mut self,
        entry: &Entry<'_>,
        key: &'static str,
        expected: &'static str,
    ) -> Option<(T, Range<usize>)> {
        let value = entry.get(key)?;
        match value.get_ref().as_str().map(str::parse) {
            Some(Ok(parsed)) => Some((parsed, value.span())),
            _ => {
                self.complain_of_value(key, expected, &value.span());
                None
            }
        }
    }

    /// A text that may not be left out, and where it is.
    fn needed(&mut self, entry: &Entry<'_>, key: &'static str) -> Option<(String, Range<usize>)> {
        if entry.get(key).is_none() {
            self.complain_missing(entry, key);
        }
        self.optional(entry, key, "a name in quotes")
    }

    fn router(&mut self, name: &str, span: &Range<usize>) -> Option<RouterId> {
        let hint = match self.builder.node_named(name) {
            Some(Node::Router(router)) => return Some(router),
            Some(Node::Endpoint(_)) => Hint::IsEndpoint,
            // Nobody will see it, and looking for near names takes time.
            None if self.problems.len() == MAX_PROBLEMS => Hint::Nothing,
            None => {
                let routers = self.builder.names().filter(|(_, node)| matches!(node, Node::Router(_)));
                nearest(name, routers.map(|(name, _)| name))
            }
        };
        self.complain(span, ProblemKind::UnknownRouter { name: Excerpt(name.to_owned()), hint });
        None
    }

    /// Where the fault of a topology is that could not be built of sound parts.
    fn span_of(&self, error: &TopologyError) -> Range<usize> {
        let (TopologyError::DuplicateMac { second, .. } | TopologyError::DuplicateIp { second, .. }) = error
        else {
            return Range::default();
        };
        let place = self.endpoints.iter().find(|(name, _)| name == second);
        place.map(|(_, span)| span.clone()).unwrap_or_default()
    }

    fn complain_of_value(&mut self, key: &'static str, expected: &'static str, span: &Range<usize>) {
        let found = Excerpt(self.text.get(span.clone()).unwrap_or_default().to_owned());
        self.complain(span, ProblemKind::WrongValue { key, found, expected });
    }

    fn complain_missing(&mut self, entry: &Entry<'_>, key: &'static str) {
        self.complain(&entry.span, ProblemKind::MissingKey { section: entry.section.name, key });
    }

    fn complain(&mut self, span: &Range<usize>, kind: ProblemKind) {
        if self.problems.len() == MAX_PROBLEMS {
            self.omitted += 1;
            return;
        }
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        self.problems.push(Problem { line, kind });
    }
}

fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Hint {
    if name.len() > MAX_GUESSED {
        return Hint::Nothing;
    }
    let name = name.to_lowercase();
    known
        .take(MAX_COMPARED)
        .map(|known| (known, strsim::jaro_winkler(&name, known)))
        .filter(|&(_, similarity)| similarity >= LEAST_SIMILARITY)
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map_or(Hint::Nothing, |(known, _)| Hint::Nearest(known.to_owned()))
}
