//! Finds network interfaces and namespaces of the file that do not exist.

use thalweg_config::{Document, Hint, Problem};
use thalweg_linux::netdevice::interface_names;
use thalweg_linux::{Namespace, NamespaceError};

use super::names::PollSourceName;
use super::table::{Collector, Control, Isolation, Poll};

/// Returns a problem for each missing interface and each network namespace that cannot be entered.
pub(crate) fn missing(document: &Document) -> Vec<Problem> {
    let mut problems = Vec::new();
    for entry in document.valid::<Collector>() {
        match absent(entry.namespace.as_deref(), entry.interface.as_deref()) {
            Ok(reasons) => {
                problems.extend(reasons.into_iter().map(|why| entry.refuse(Collector::interface, why)));
            }
            Err(why) => problems.push(entry.refuse(Collector::namespace, why)),
        }
    }
    for entry in document.valid::<Control>() {
        let interfaces = entry.interfaces.iter().flatten();
        // `eth1`, or `h3 eth1` for one host.
        let names =
            interfaces.map(|text| text.split_once(' ').map_or(text.as_str(), |(_, name)| name.trim()));
        match absent(entry.namespace.as_deref(), names) {
            Ok(reasons) => {
                problems.extend(reasons.into_iter().map(|why| entry.refuse(Control::interfaces, why)));
            }
            Err(why) => problems.push(entry.refuse(Control::namespace, why)),
        }
    }
    for entry in document.valid::<Isolation>() {
        match absent(entry.namespace.as_deref(), entry.interface.as_deref()) {
            Ok(reasons) => {
                problems.extend(reasons.into_iter().map(|why| entry.refuse(Isolation::interface, why)));
            }
            Err(why) => problems.push(entry.refuse(Isolation::namespace, why)),
        }
    }
    for entry in document.valid::<Poll>().filter(|entry| entry.source != PollSourceName::Snmp) {
        // The port of a switch is no interface of this host.
        let interface = (entry.source == PollSourceName::Qdisc).then_some(entry.interface.as_str());
        match absent(entry.namespace.as_deref(), interface) {
            Ok(reasons) => problems.extend(reasons.into_iter().map(|why| entry.refuse(Poll::interface, why))),
            Err(why) => problems.push(entry.refuse(Poll::namespace, why)),
        }
    }
    problems
}

/// Returns the names of the interfaces of a network namespace; `None` for that of this process.
///
/// # Errors
/// If the namespace cannot be entered.
pub(crate) fn interfaces_in(namespace: Option<&Namespace>) -> Result<Vec<String>, NamespaceError> {
    namespace.map_or_else(|| Ok(interface_names()), |namespace| namespace.within(interface_names))
}

/// Returns a message for each of `names` that is no interface of a network namespace; `None` for that of this process.
///
/// # Errors
/// If the namespace cannot be entered, as a message.
fn absent<'a>(
    namespace: Option<&str>,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<String>, String> {
    let known = interfaces_in(namespace.map(Namespace::named).as_ref()).map_err(|error| error.to_string())?;
    let place = namespace.map_or_else(String::new, |name| format!(" in namespace {name}"));
    let absent = names.into_iter().filter(|name| !known.iter().any(|other| other == name));
    let message = |name: &str| {
        let hint = Hint::nearest(name, known.iter().map(String::as_str));
        format!("\"{name}\" does not exist{place}{hint}")
    };
    Ok(absent.map(message).collect())
}
