//! The queues of an interface of this host, by netlink (tc(8)).
//!
//! The isolator of Thalweg sets HTB 7468: with the classes 7468:10 (primary) and 7468:20 (scavenger); other classes can be
//! named. An interface whose root queue has no classes has one queue.
//!
//! The kernel counts packets and drops in 32 bits, bytes in 64.

use thalweg_linux::Netlink;
use thalweg_linux::namespace::Namespace;
use thalweg_linux::netlink::Interface;
use thalweg_linux::tc::QueueCounters as KernelCounters;
use thalweg_linux::tc::queue::{Queue, handle};
use thalweg_wire::{BitRate, Nanos, Timestamp};

use crate::{Counter, CounterSource, InterfaceReading, PortCounters, QueueCounters, ReadError, Scope};

/// The classes of Thalweg's isolator (`thalweg-actuators`, `isolation::tc`).
pub const ISOLATOR_CLASSES: (u32, u32) = (handle(0x7468, 0x10), handle(0x7468, 0x20));

/// Kinds of queues that pass packets to other queues.
const CLASSFUL: [&str; 12] =
    ["htb", "hfsc", "prio", "drr", "qfq", "ets", "cbq", "mq", "mqprio", "taprio", "atm", "multiq"];

/// What to read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QdiscOptions {
    /// Name of the interface.
    pub interface: String,
    /// Classes of the primary and the scavenger queue; `None` for those of Thalweg's isolator.
    pub classes: Option<(u32, Option<u32>)>,
    /// Rate of the link, if known. It tells a wrap of a counter from a reset.
    pub speed: Option<BitRate>,
}

/// Reads the queues of an interface of this host.
pub struct Qdisc {
    options: QdiscOptions,
    netlink: Netlink,
}

impl Qdisc {
    /// Opens a netlink socket, in a network namespace if there is one. Needs no privileges except to enter the namespace. The
    /// interface may appear later.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or a socket not opened.
    pub fn open(options: QdiscOptions, namespace: Option<&Namespace>) -> Result<Qdisc, String> {
        let netlink = match namespace {
            Some(namespace) => Netlink::open_within(namespace).map_err(|error| error.to_string())?,
            None => Netlink::open().map_err(|error| format!("cannot open a netlink socket: {error}"))?,
        };
        Ok(Qdisc { options, netlink })
    }

    fn interface(&self) -> Result<Interface, ReadError> {
        let interfaces = self.netlink.interfaces()?;
        let name = &self.options.interface;
        let names: Vec<&str> = interfaces.iter().map(|interface| interface.name.as_str()).take(8).collect();
        let missing = ReadError::NoInterface {
            target: "this host".to_owned(),
            object: "name",
            value: name.clone(),
            known: names.join(", "),
        };
        interfaces.iter().find(|interface| interface.name == *name).cloned().ok_or(missing)
    }

    /// Returns the primary and the scavenger queue, and what the drops of the root queue count.
    fn queues(&self, index: u32, root: &Queue) -> Result<Found, ReadError> {
        let is_classful = CLASSFUL.contains(&root.kind.as_str());
        let (primary, scavenger) = match self.options.classes {
            Some(classes) => classes,
            None if root.handle == ISOLATOR_CLASSES.0 & 0xffff_0000 => {
                (ISOLATOR_CLASSES.0, Some(ISOLATOR_CLASSES.1))
            }
            None if is_classful => return Ok((None, None, Scope::AllQueues)),
            None => return Ok((None, None, Scope::OneQueue)),
        };
        let classes = self.netlink.classes(index)?;
        let class = |wanted: u32| {
            let class = classes.iter().find(|class| class.handle == wanted);
            class.map(|class| counters(&class.counters)).ok_or_else(|| ReadError::NoCounter {
                target: "this host".to_owned(),
                object: format!("class {:x}:{:x}", wanted >> 16, wanted & 0xffff),
                interface: self.options.interface.clone(),
            })
        };
        Ok((Some(class(primary)?), scavenger.map(class).transpose()?, Scope::PrimaryQueue))
    }
}

type Found = (Option<QueueCounters>, Option<QueueCounters>, Scope);

impl CounterSource for Qdisc {
    fn description(&self) -> String {
        format!("queues of interface {} of this host", self.options.interface)
    }

    fn read(&mut self, clock: &dyn Fn() -> Timestamp) -> Result<InterfaceReading, ReadError> {
        let interface = self.interface()?;
        let queues = self.netlink.queues(interface.index)?;
        let missing = || ReadError::NoCounter {
            target: "this host".to_owned(),
            object: "a root queue".to_owned(),
            interface: interface.name.clone(),
        };
        let root = queues.iter().find(|queue| queue.parent.is_none()).ok_or_else(missing)?;
        let (primary, scavenger, scope) = self.queues(interface.index, root)?;
        Ok(InterfaceReading {
            time: clock(),
            agent: None,
            time_error: Nanos::ZERO,
            name: interface.name.clone(),
            description: None,
            is_up: interface.is_operational,
            index: interface.index,
            speed: self.options.speed,
            uptime_ticks: None,
            discontinuity_ticks: None,
            input: PortCounters {
                packets: Counter::bits64(interface.traffic.received_packets),
                bytes: Counter::bits64(interface.traffic.received_bytes),
                errors: Some(Counter::bits64(interface.traffic.received_errors)),
                discards: Some(Counter::bits64(interface.traffic.received_dropped)),
            },
            output: output(&interface, root),
            primary,
            scavenger,
            scope,
        })
    }
}

/// Returns the output of the port. Its packets include those that the root queue dropped, as in IF-MIB.
fn output(interface: &Interface, root: &Queue) -> PortCounters {
    let discards = Counter::bits32(root.counters.dropped_packets as u32);
    PortCounters {
        packets: Counter::bits32(root.counters.sent_packets as u32).plus(discards),
        bytes: Counter::bits64(root.counters.sent_bytes),
        errors: Some(Counter::bits64(interface.traffic.sent_errors)),
        discards: Some(discards),
    }
}

fn counters(kernel: &KernelCounters) -> QueueCounters {
    QueueCounters {
        sent_packets: Counter::bits32(kernel.sent_packets as u32),
        sent_bytes: Some(Counter::bits64(kernel.sent_bytes)),
        dropped_packets: Counter::bits32(kernel.dropped_packets as u32),
        age: None,
    }
}

/// Parses a class as tc(8) prints it: `1:10`, both numbers hexadecimal.
///
/// # Errors
/// A message that says what is expected.
pub fn parse_class(text: &str) -> Result<u32, String> {
    let number = |text: &str| u16::from_str_radix(text, 16).ok();
    let class = text.split_once(':').and_then(|(major, minor)| Some(handle(number(major)?, number(minor)?)));
    class.ok_or_else(|| {
        format!("invalid class {text:?}: expected MAJOR:MINOR, two hexadecimal numbers as tc prints them, such as 1:10")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_parsed_as_tc_prints_them() {
        assert_eq!(parse_class("7468:10"), Ok(ISOLATOR_CLASSES.0));
        assert_eq!(parse_class("1:"), Err("invalid class \"1:\": expected MAJOR:MINOR, two hexadecimal numbers as tc prints them, such as 1:10".to_owned()));
        assert!(parse_class("1:12345").is_err() && parse_class("10").is_err());
    }

    #[test]
    fn the_loopback_interface_has_one_queue() {
        let options = QdiscOptions { interface: "lo".to_owned(), ..QdiscOptions::default() };
        let mut source = Qdisc::open(options, None).unwrap();
        let reading = source.read(&|| Timestamp(1)).unwrap();
        assert_eq!((reading.index, reading.scope), (1, Scope::OneQueue));
    }

    #[test]
    fn a_missing_interface_is_named_with_those_that_exist() {
        let options = QdiscOptions { interface: "no-such-one".to_owned(), ..QdiscOptions::default() };
        let error = Qdisc::open(options, None).unwrap().read(&|| Timestamp(1)).unwrap_err();
        assert!(
            error.to_string().starts_with("this host has no interface whose name is \"no-such-one\""),
            "{error}"
        );
        assert!(error.to_string().contains("lo"), "{error}");
    }
}
