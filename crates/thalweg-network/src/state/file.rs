//! Reads and prints topology files with forwarding.

use std::collections::BTreeMap;

use thalweg_config::{Document, Format, Hint, Place, Problem, Typed};

use super::forwarding::{Entry as TableEntry, Forwarding};
use super::{NetworkState, StateError};
use crate::identity::{PortIndex, RouterId};
use crate::link_state::LinkState;
use crate::routing::ForwardingTable;
use crate::topology::file::sections::{
    self, EXPECTED_PORTS, FORWARDING, LINK_STATE, LinkStates, Rules, RulesKind, STATE,
};
use crate::topology::file::{
    self, Cell, MAX_HINTED, Part, Row, TopologyFileError, no_router, problem_at, read_topology,
};
use crate::topology::{Node, Topology, UnknownPort};

// Values of `kind`.
const ECMP: &str = "ecmp";
const TABLES: &str = "tables";

impl NetworkState {
    /// Parses a state in TOML; `file` is the name of the file for messages.
    ///
    /// # Errors
    /// Lists all problems, or the first syntax error.
    pub fn from_toml(text: &str, file: &str) -> Result<NetworkState, TopologyFileError> {
        NetworkState::from_text(text, file, Format::Toml)
    }

    /// Parses a state in JSON; `file` is the name of the file for messages.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml).
    pub fn from_json(text: &str, file: &str) -> Result<NetworkState, TopologyFileError> {
        NetworkState::from_text(text, file, Format::Json)
    }

    /// Prints the state in TOML, which [`from_toml`](Self::from_toml) parses to the same state.
    pub fn to_toml(&self) -> String {
        file::toml_text(&self.parts())
    }

    /// Prints the state in JSON, which [`from_json`](Self::from_json) parses to the same state.
    pub fn to_json(&self) -> String {
        file::json_text(&self.parts())
    }

    /// Parses a state in this format; `file` is the name of the file for messages.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml).
    pub fn from_text(text: &str, file: &str, format: Format) -> Result<NetworkState, TopologyFileError> {
        let (document, mut problems) = Document::read(&STATE, text, file, format)?;
        let state = read_state(&document, &mut problems);
        file::finish(state, &document, problems)
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts = self.topology().parts();
        if !self.links().all_up() {
            let down = self.links().failed().map(|link| self.link_name(link)).collect();
            parts.push(part(LINK_STATE.name, vec![("down", Cell::Texts(down))]));
        }
        let forwarding = self.forwarding();
        let kind = if forwarding.seed().is_some() { ECMP } else { TABLES };
        let mut row = vec![("kind", Cell::Text(kind.to_owned()))];
        row.extend(forwarding.seed().map(|seed| ("seed", Cell::Integer(seed))));
        row.extend((!forwarding.writes_back()).then_some(("write_back", Cell::Boolean(false))));
        let entries: Vec<Row> =
            forwarding.entries(self.topology()).map(|entry| self.entry_row(&entry)).collect();
        row.extend((!entries.is_empty()).then_some(("entries", Cell::Rows(entries))));
        parts.push(part(FORWARDING.name, row));
        parts
    }

    fn entry_row(&self, entry: &TableEntry) -> Row {
        let router = self.topology().routers()[entry.router.index()].name.clone();
        Row(vec![
            ("router", Cell::Text(router)),
            ("mac", Cell::Text(entry.mac.to_string())),
            ("port", Cell::Integer(u64::from(entry.port.0))),
        ])
    }
}

fn part(name: &'static str, row: Vec<(&'static str, Cell)>) -> Part {
    Part { name, is_list: false, rows: vec![Row(row)] }
}

fn read_state(document: &Document, problems: &mut Vec<Problem>) -> Option<NetworkState> {
    if !document.has(&FORWARDING) {
        let reason = "no section forwarding: add it with kind = \"ecmp\" or kind = \"tables\"";
        problems.insert(0, problem_at(Place::Line(1), reason));
    }
    // Without a valid topology, every reference to it would be a further problem.
    let topology = read_topology(document, problems)?;
    let routers = topology.routers().iter().map(|router| router.name.as_str()).zip(topology.router_ids());
    let mut resolver = Resolver { problems, topology: &topology, routers: routers.collect() };
    let links = resolver.links(document.valid().next().as_ref());
    let section = document.valid::<Rules>().next()?;
    let rules = resolver.forwarding(&section);
    let state = NetworkState::new(topology, links, rules?);
    let report = |error: StateError| problems.push(section.entry.refuse_value("", 0, error.to_string()));
    state.map_err(report).ok()
}

/// Resolves references to parts of a topology by name.
struct Resolver<'p, 't> {
    problems: &'p mut Vec<Problem>,
    topology: &'t Topology,
    routers: BTreeMap<&'t str, RouterId>,
}

impl Resolver<'_, '_> {
    fn links(&mut self, section: Option<&Typed<'_, LinkStates>>) -> LinkState {
        let mut links = LinkState::new(self.topology);
        let Some(section) = section else { return links };
        for (element, port) in section.down.iter().flatten().enumerate() {
            if let Some((router, port)) = self.port(section, element, port) {
                links.fail(self.topology.link_at(router, port)).expect("the link belongs to the topology");
            }
        }
        links
    }

    /// Parses a port written as `ROUTER:pN`, or as `ROUTER:NAME`.
    fn port(
        &mut self,
        section: &Typed<'_, LinkStates>,
        element: usize,
        text: &str,
    ) -> Option<(RouterId, PortIndex)> {
        let node = |name: &str| self.routers.get(name).map(|&router| Node::Router(router));
        match self.topology.find_port_by(text, node) {
            Ok(port) => return Some(port),
            Err(UnknownPort::Node { name }) => {
                // Reports the nearest name.
                self.router(section, LinkStates::down, element, &name);
            }
            Err(error @ UnknownPort::Port { .. }) => {
                self.problems.push(section.entry.refuse_value(LinkStates::down, element, error.to_string()));
            }
            Err(_) => {
                self.problems.push(section.entry.unexpected(LinkStates::down, Some(element), EXPECTED_PORTS))
            }
        }
        None
    }

    fn forwarding(&mut self, section: &Typed<'_, Rules>) -> Option<Forwarding> {
        let rules = match (section.kind, section.seed) {
            (Some(RulesKind::Ecmp), Some(seed)) => Some(Forwarding::ecmp(seed)),
            (Some(RulesKind::Ecmp), None) => {
                self.problems.push(section.entry.missing(Rules::seed));
                None
            }
            (Some(RulesKind::Tables), None) => Some(Forwarding::tables(Vec::new())),
            (Some(RulesKind::Tables), Some(_)) => {
                let expected = "no seed, because tables have no hash";
                self.problems.push(section.entry.unexpected(Rules::seed, None, expected));
                None
            }
            (None, _) => {
                self.problems.push(section.entry.missing(Rules::kind));
                None
            }
        };
        let tables = self.tables(section);
        Some(rules?.with_tables(tables).with_write_back(section.write_back))
    }

    fn tables(&mut self, section: &Typed<'_, Rules>) -> Vec<ForwardingTable> {
        let entries: Vec<_> = section.entry.list::<sections::TableEntry>().collect();
        let read: Vec<_> = entries.iter().filter_map(|entry| self.entry(entry)).collect();
        if read.is_empty() || read.len() < section.entry.table_count() {
            return Vec::new();
        }
        Forwarding::table_list(self.topology, &read).unwrap_or_else(|(index, error)| {
            self.problems.push(entries[index].entry.refuse_value("", 0, error.to_string()));
            Vec::new()
        })
    }

    fn entry(&mut self, entry: &Typed<'_, sections::TableEntry>) -> Option<TableEntry> {
        let router = self.router(entry, sections::TableEntry::router, 0, &entry.router)?;
        let port = self.entry_port(entry, router)?;
        Some(TableEntry { router, mac: entry.mac, port })
    }

    /// Returns the output port of an entry, which has its number or its name.
    fn entry_port(&mut self, entry: &Typed<'_, sections::TableEntry>, router: RouterId) -> Option<PortIndex> {
        let problem = match (entry.port, entry.port_name.as_deref()) {
            (Some(port), None) => return Some(PortIndex(port)),
            (None, None) => entry.entry.missing(sections::TableEntry::port),
            (Some(_), Some(_)) => {
                let reason = "not allowed with port, which is the number of the same port";
                entry.entry.refuse_value(sections::TableEntry::port_name, 0, reason.to_owned())
            }
            (None, Some(name)) => match self.topology.port_named(router, name) {
                Some(port) => return Some(port),
                None => {
                    let known = self.topology.describe_ports(router);
                    let reason = format!("router {} has no port of this name: {known}", entry.router);
                    entry.entry.refuse_value(sections::TableEntry::port_name, 0, reason)
                }
            },
        };
        self.problems.push(problem);
        None
    }

    fn router<T>(
        &mut self,
        entry: &Typed<'_, T>,
        key: &'static str,
        element: usize,
        name: &str,
    ) -> Option<RouterId> {
        if let Some(&router) = self.routers.get(name) {
            return Some(router);
        }
        let hint = match self.problems.len() >= MAX_HINTED {
            true => Hint::None,
            false => Hint::nearest(name, self.routers.keys().copied()),
        };
        self.problems.push(entry.entry.refuse_value(key, element, no_router(name, &hint)));
        None
    }
}
