//! States from files and to them.

use std::collections::BTreeMap;
use std::ops::Range;

use super::forwarding::{Entry as TableEntry, Forwarding};
use super::{EntryError, NetworkState, StateError};
use crate::address::MacAddress;
use crate::identity::{PortIndex, RouterId};
use crate::link_state::LinkState;
use crate::routing::ForwardingTable;
use crate::topology::Topology;
use crate::topology::file::{
    self, Cell, Entry, Excerpt, Format, Hint, Kind, Part, ProblemKind, Reader, Row, Section, Table,
    TopologyFileError, Value, nearest, read_topology,
};

const LINK_STATE: Section = Section { name: "link_state", keys: &["down"] };
const FORWARDING: Section = Section { name: "forwarding", keys: &["kind", "seed", "write_back", "entries"] };
const ENTRIES: Section = Section { name: "entries", keys: &["router", "mac", "port"] };
const SECTIONS: [&Section; 6] = {
    let [defaults, router, endpoint, link] = file::SECTIONS;
    [defaults, router, endpoint, link, &LINK_STATE, &FORWARDING]
};

/// The two kinds of rules, as a file has them.
const ECMP: &str = "ecmp";
const TABLES: &str = "tables";

const A_PORT: &str = "ports of routers in quotes, as in [\"tor0:p3\"]";

impl NetworkState {
    /// Reads a state in TOML; `file` is its name for messages.
    ///
    /// # Errors
    /// With everything that is wrong with the text; or with the first error of syntax.
    pub fn from_toml(text: &str, file: &str) -> Result<NetworkState, TopologyFileError> {
        NetworkState::from_text(text, file, Format::Toml)
    }

    /// Reads a state in JSON; `file` is its name for messages.
    ///
    /// # Errors
    /// As of [`from_toml`](Self::from_toml).
    pub fn from_json(text: &str, file: &str) -> Result<NetworkState, TopologyFileError> {
        NetworkState::from_text(text, file, Format::Json)
    }

    /// As the text of a file that [`from_toml`](Self::from_toml) reads as the same state.
    pub fn to_toml(&self) -> String {
        file::toml_text(&self.parts())
    }

    /// As a text that [`from_json`](Self::from_json) reads as the same state.
    pub fn to_json(&self) -> String {
        file::json_text(&self.parts())
    }

    fn from_text(text: &str, file: &str, format: Format) -> Result<NetworkState, TopologyFileError> {
        let mut reader = Reader::new(text, format);
        let document = reader.parse(&SECTIONS);
        let state = document.and_then(|document| read_state(&mut reader, &document));
        reader.finish(state, file)
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts = self.topology().parts();
        if !self.links().all_up() {
            let down = self.links().failed().map(|link| self.link_name(link)).collect();
            parts.push(part(&LINK_STATE, vec![("down", Cell::Texts(down))]));
        }
        let forwarding = self.forwarding();
        let kind = if forwarding.seed().is_some() { ECMP } else { TABLES };
        let mut row = vec![("kind", Cell::Text(kind.to_owned()))];
        row.extend(forwarding.seed().map(|seed| ("seed", Cell::Integer(seed))));
        row.extend((!forwarding.writes_back()).then_some(("write_back", Cell::Boolean(false))));
        let entries: Vec<Row> =
            forwarding.entries(self.topology()).map(|entry| self.entry_row(&entry)).collect();
        row.extend((!entries.is_empty()).then_some(("entries", Cell::Rows(entries))));
        parts.push(part(&FORWARDING, row));
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

fn part(section: &Section, row: Vec<(&'static str, Cell)>) -> Part {
    Part { name: section.name, is_list: false, rows: vec![Row(row)] }
}

fn read_state(reader: &mut Reader<'_>, document: &Table) -> Option<NetworkState> {
    let link_state = reader.single(document, &LINK_STATE);
    let forwarding = reader.single(document, &FORWARDING);
    if forwarding.is_none() && document.entry(FORWARDING.name).is_none() {
        let purpose = "it says which way packets go, with kind = \"ecmp\" or kind = \"tables\"";
        reader.complain(&Range::default(), ProblemKind::MissingSection { section: FORWARDING.name, purpose });
    }
    // Whatever is wrong with the topology would be wrong again with what refers to it.
    let topology = read_topology(reader, document)?;
    let routers = topology.routers().iter().map(|router| router.name.as_str()).zip(topology.router_ids());
    let mut names = Names { reader, topology: &topology, routers: routers.collect() };
    let links = names.links(link_state.as_ref());
    let rules = names.forwarding(&forwarding?);
    let place = document.entry(FORWARDING.name).map(|(name, _)| name.span.clone()).unwrap_or_default();
    let state = NetworkState::new(topology, links, rules?);
    state.map_err(|error: StateError| reader.complain(&place, ProblemKind::RefusedState(error))).ok()
}

/// What refers to the parts of a topology by their names.
struct Names<'r, 'a, 't> {
    reader: &'r mut Reader<'a>,
    topology: &'t Topology,
    routers: BTreeMap<&'t str, RouterId>,
}

impl Names<'_, '_, '_> {
    fn links(&mut self, section: Option<&Entry<'_>>) -> LinkState {
        let mut links = LinkState::new(self.topology);
        let Some(down) = section.and_then(|section| section.get("down")) else { return links };
        let Some(ports) = file::texts(down) else {
            self.reader.complain_of_value("down", A_PORT, &down.span);
            return links;
        };
        for (port, span) in ports {
            if let Some((router, port)) = self.port(&port, &span) {
                links.fail(self.topology.link_at(router, port)).expect("the link is one of the topology's");
            }
        }
        links
    }

    /// A port that is written as `ROUTER:pN`.
    fn port(&mut self, text: &str, span: &Range<usize>) -> Option<(RouterId, PortIndex)> {
        let parsed = text.rsplit_once(":p").and_then(|(router, port)| Some((router, whole_number(port)?)));
        let Some((name, port)) = parsed else {
            self.reader.complain_of_value("down", A_PORT, span);
            return None;
        };
        let router = self.router(name, span)?;
        let ports = self.topology.ports(router);
        if usize::from(port) >= ports {
            let refused = EntryError::Port { router: name.to_owned(), port, ports };
            self.reader.complain(span, ProblemKind::RefusedEntry(refused));
            return None;
        }
        Some((router, PortIndex(port)))
    }

    fn forwarding(&mut self, section: &Entry<'_>) -> Option<Forwarding> {
        let expected = "\"ecmp\" or \"tables\"";
        let (kind, span) = self.reader.needed::<String>(section, "kind", expected)?;
        let seed = self.reader.integer(section, "seed", "a whole number");
        let rules = match (kind.as_str(), seed) {
            (ECMP, Some((seed, _))) => Some(Forwarding::ecmp(seed)),
            (ECMP, None) => {
                if section.get("seed").is_none() {
                    self.reader.complain_missing(section, "seed");
                }
                None
            }
            (TABLES, None) => Some(Forwarding::tables(Vec::new())),
            (TABLES, Some((_, span))) => {
                self.reader.complain_of_value("seed", "none, as tables have no hash", &span);
                None
            }
            _ => {
                self.reader.complain_of_value("kind", expected, &span);
                None
            }
        };
        let writes_back = match section.get("write_back") {
            None => true,
            Some(Value { kind: Kind::Boolean(writes_back), .. }) => *writes_back,
            Some(Value { span, .. }) => {
                self.reader.complain_of_value("write_back", "true or false", span);
                true
            }
        };
        let tables = self.tables(section);
        Some(rules?.with_tables(tables).with_write_back(writes_back))
    }

    fn tables(&mut self, section: &Entry<'_>) -> Vec<ForwardingTable> {
        let Some(list) = section.get(ENTRIES.name) else { return Vec::new() };
        let is_table = |element: &Value| matches!(element.kind, Kind::Table(_));
        if !matches!(&list.kind, Kind::List(elements) if elements.iter().all(is_table)) {
            let expected = "a list of entries, each with router, mac and port";
            self.reader.complain_of_value(ENTRIES.name, expected, &list.span);
            return Vec::new();
        }
        let entries = self.reader.list(section.table, &ENTRIES);
        let read: Vec<_> = entries.iter().filter_map(|entry| self.entry(entry)).collect();
        if read.is_empty() || read.len() < entries.len() {
            return Vec::new();
        }
        Forwarding::table_list(self.topology, &read).unwrap_or_else(|(index, error)| {
            self.reader.complain(&entries[index].span, ProblemKind::RefusedEntry(error));
            Vec::new()
        })
    }

    fn entry(&mut self, entry: &Entry<'_>) -> Option<TableEntry> {
        let router = self.reader.needed::<String>(entry, "router", "a name in quotes");
        let router = router.and_then(|(router, span)| self.router(&router, &span));
        let mac = "an address such as \"02:54:57:01:00:00\"";
        let mac = self.reader.needed::<MacAddress>(entry, "mac", mac);
        let port = "the number of a port, from 0";
        if entry.get("port").is_none() {
            self.reader.complain_missing(entry, "port");
        }
        let (port, span) = self.reader.integer(entry, "port", port)?;
        let Ok(port) = u16::try_from(port) else {
            self.reader.complain_of_value("port", "the number of a port, from 0", &span);
            return None;
        };
        Some(TableEntry { router: router?, mac: mac?.0, port: PortIndex(port) })
    }

    fn router(&mut self, name: &str, span: &Range<usize>) -> Option<RouterId> {
        if let Some(&router) = self.routers.get(name) {
            return Some(router);
        }
        let hint = match self.reader.is_full() {
            true => Hint::Nothing,
            false => nearest(name, self.routers.keys().copied()),
        };
        self.reader.complain(span, ProblemKind::UnknownRouter { name: Excerpt(name.to_owned()), hint });
        None
    }
}

/// A number as it is printed: no sign, no zero before it.
fn whole_number(text: &str) -> Option<u16> {
    text.parse().ok().filter(|number: &u16| number.to_string() == text)
}
