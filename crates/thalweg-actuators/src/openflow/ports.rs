//! The OpenFlow numbers of a switch's ports.
//!
//! **A port that the topology names has the number that the switch reports for this name** (OFPMP_PORT_DESC, section
//! 7.3.5.7, and port status, section 7.4.3). Switches report at most 15 bytes of a name. **Port `p` without a name is
//! OpenFlow port `p + 1`**, because OpenFlow counts from 1, unless a named port has this number.
//!
//! A port without a number is missing: no entry uses it, and its link is down.

use std::collections::BTreeMap;
use std::fmt;

use thalweg_network::{PortIndex, RouterId, Topology};
use thalweg_wire::openflow::{Port, PortNumber};

/// A port of a switch in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortReference {
    /// Its OpenFlow number.
    Number(PortNumber),
    /// The name that the switch reports.
    Name(String),
}

/// The name, or the number.
impl fmt::Display for PortReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortReference::Number(number) => write!(f, "{}", number.0),
            PortReference::Name(name) => f.write_str(name),
        }
    }
}

impl From<PortNumber> for PortReference {
    fn from(number: PortNumber) -> PortReference {
        PortReference::Number(number)
    }
}

/// The ports of one switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SwitchPorts {
    /// The names that the topology gives, by port.
    names: Vec<Option<String>>,
    monitor: Option<PortReference>,
    /// What the switch reports.
    reported: BTreeMap<PortNumber, String>,
    /// By port, its number.
    numbers: Vec<Option<PortNumber>>,
    ports: BTreeMap<PortNumber, PortIndex>,
}

impl SwitchPorts {
    /// Creates the ports of a switch that has not reported any. Named ports have no number until then.
    pub(super) fn new(topology: &Topology, router: RouterId, monitor: Option<PortReference>) -> SwitchPorts {
        let ports = (0..topology.ports(router) as u16).map(PortIndex);
        let names = ports.map(|port| topology.port_name(router, port).map(str::to_owned)).collect();
        let mut ports = SwitchPorts { names, monitor, ..SwitchPorts::default() };
        ports.assign();
        ports
    }

    /// Replaces what the switch reports. Returns whether the number of a port has changed.
    pub(super) fn report_all(&mut self, ports: &[Port]) -> bool {
        self.change(|reported| {
            *reported = ports.iter().map(|port| (port.port_no, port.name.to_string())).collect();
        })
    }

    /// Adds, renames or, without a name, removes a port. Returns whether the number of a port has changed.
    pub(super) fn report(&mut self, number: PortNumber, name: Option<&str>) -> bool {
        self.change(|reported| match name {
            Some(name) => drop(reported.insert(number, name.to_owned())),
            None => drop(reported.remove(&number)),
        })
    }

    /// Returns the number of a port; `None` if it is missing.
    pub(super) fn number(&self, port: PortIndex) -> Option<PortNumber> {
        self.numbers.get(port.index()).copied().flatten()
    }

    /// Returns the port with this number; `None` if the topology does not have it.
    pub(super) fn index(&self, number: PortNumber) -> Option<PortIndex> {
        self.ports.get(&number).copied()
    }

    /// Returns the number of the monitor port, if it is configured and not missing.
    pub(super) fn monitor(&self) -> Option<PortNumber> {
        match self.monitor.as_ref()? {
            PortReference::Number(number) => Some(*number),
            PortReference::Name(name) => self.number_of(name),
        }
    }

    /// Returns the missing ports.
    pub(super) fn missing(&self) -> impl Iterator<Item = PortIndex> + '_ {
        let all = (0..).zip(&self.numbers);
        all.filter(|(_, number)| number.is_none()).map(|(port, _)| PortIndex(port))
    }

    /// Describes the missing ports, the monitor port included; `None` if there are none.
    pub(super) fn describe_missing(&self) -> Option<String> {
        let described = |port: PortIndex| match &self.names[port.index()] {
            Some(name) => format!("{port} (\"{name}\")"),
            None => format!("{port} (without a name; OpenFlow port {} has another)", port.0 + 1),
        };
        let monitor = match &self.monitor {
            Some(PortReference::Name(name)) if self.monitor().is_none() => {
                Some(format!("monitor port \"{name}\""))
            }
            _ => None,
        };
        let missing: Vec<String> = self.missing().map(described).chain(monitor).collect();
        (!missing.is_empty()).then(|| missing.join(", "))
    }

    /// Returns the names that the switch reports, in the order of their numbers.
    pub(super) fn reported_names(&self) -> impl Iterator<Item = &str> {
        self.reported.values().map(String::as_str)
    }

    fn number_of(&self, name: &str) -> Option<PortNumber> {
        self.reported.iter().find(|(_, reported)| *reported == name).map(|(&number, _)| number)
    }

    /// Changes what the switch reports. Returns whether a number has changed.
    fn change(&mut self, change: impl FnOnce(&mut BTreeMap<PortNumber, String>)) -> bool {
        let before = (self.numbers.clone(), self.monitor());
        change(&mut self.reported);
        self.assign();
        before != (self.numbers.clone(), self.monitor())
    }

    /// Assigns numbers to names, then the other numbers to ports without names.
    fn assign(&mut self) {
        let named = |name: &Option<String>| self.number_of(name.as_deref()?);
        let mut numbers: Vec<Option<PortNumber>> = self.names.iter().map(named).collect();
        for (port, name) in self.names.iter().enumerate() {
            let number = PortNumber(port as u32 + 1);
            if name.is_none() && !numbers.contains(&Some(number)) {
                numbers[port] = Some(number);
            }
        }
        self.ports = (0..).zip(&numbers).filter_map(|(p, number)| Some(((*number)?, PortIndex(p)))).collect();
        self.numbers = numbers;
    }
}

#[cfg(test)]
mod tests {
    use thalweg_network::{LinkSpec, TopologyBuilder};

    use super::*;

    /// A switch with three hosts at ports of these names.
    fn ports(names: [Option<&str>; 3], monitor: Option<PortReference>) -> SwitchPorts {
        let mut builder = TopologyBuilder::new();
        let router = builder.add_router("tor0").unwrap();
        for (index, name) in names.iter().enumerate() {
            let host = builder.add_endpoint(format!("h{index}"), router, LinkSpec::default()).unwrap();
            name.map_or(Ok(()), |name| builder.set_port_name(host, name)).unwrap();
        }
        SwitchPorts::new(&builder.build().unwrap(), router, monitor)
    }

    fn numbers(ports: &SwitchPorts) -> [Option<u32>; 3] {
        let numbers = [0, 1, 2].map(|port| ports.number(PortIndex(port)));
        for (number, port) in numbers.iter().zip(0..) {
            assert!(number.is_none_or(|number| ports.index(number) == Some(PortIndex(port))));
        }
        numbers.map(|number| number.map(|number| number.0))
    }

    #[test]
    fn ports_without_names_count_from_one() {
        let mut ports = ports([None; 3], Some(PortNumber(9).into()));
        assert_eq!(numbers(&ports), [Some(1), Some(2), Some(3)]);
        assert!(!ports.report(PortNumber(7), Some("eth7")), "not a port of the topology");
        assert_eq!((numbers(&ports), ports.describe_missing()), ([Some(1), Some(2), Some(3)], None));
        assert_eq!((ports.index(PortNumber(9)), ports.monitor()), (None, Some(PortNumber(9))));
    }

    #[test]
    fn named_ports_have_the_number_that_the_switch_reports() {
        let monitor = Some(PortReference::Name("mirror".into()));
        let mut ports = ports([Some("c"), None, Some("a")], monitor);
        assert_eq!(numbers(&ports), [None, Some(2), None], "before the switch reports any");
        assert!(ports.report(PortNumber(1), Some("a")));
        assert!(ports.report(PortNumber(7), Some("c")));
        assert!(ports.report(PortNumber(8), Some("mirror")));
        assert_eq!(numbers(&ports), [Some(7), Some(2), Some(1)]);
        assert_eq!((ports.monitor(), ports.describe_missing()), (Some(PortNumber(8)), None));
        assert!(ports.report(PortNumber(7), None), "removed");
        assert_eq!(numbers(&ports), [None, Some(2), Some(1)]);
        assert!(ports.report(PortNumber(4), Some("c")), "added again under another number");
        assert_eq!(numbers(&ports), [Some(4), Some(2), Some(1)]);
        assert!(!ports.report(PortNumber(4), Some("c")), "nothing new");
    }

    #[test]
    fn ports_that_the_switch_does_not_have_are_named() {
        let mut ports = ports([Some("x"), None, Some("a")], Some(PortReference::Name("mirror".into())));
        ports.report(PortNumber(2), Some("a"));
        assert_eq!(numbers(&ports), [None, None, Some(2)], "number 2 is that of another port");
        assert_eq!(
            ports.describe_missing().unwrap(),
            "p0 (\"x\"), p1 (without a name; OpenFlow port 2 has another), monitor port \"mirror\""
        );
        assert_eq!(ports.reported_names().collect::<Vec<_>>(), ["a"]);
    }
}
