//! Which network interfaces that the file names are not there.

use thalweg_config::{Document, Hint, Problem};
use thalweg_linux::Namespace;
use thalweg_linux::netdevice::interface_names;

use super::table::{Collector, Control};

/// A problem for each interface that is not there, and for each network namespace.
pub(super) fn missing(document: &Document) -> Vec<Problem> {
    let mut problems = Vec::new();
    for entry in document.sound::<Collector>() {
        let namespace = entry.namespace.as_deref();
        let known = match known(namespace) {
            Ok(known) => known,
            Err(reason) => {
                problems.push(entry.refuse(Collector::namespace, reason));
                continue;
            }
        };
        let absent = |name: &str| absent(name, namespace, &known);
        problems.extend(
            entry.interface.as_deref().and_then(absent).map(|why| entry.refuse(Collector::interface, why)),
        );
    }
    for entry in document.sound::<Control>() {
        let namespace = entry.namespace.as_deref();
        let known = match known(namespace) {
            Ok(known) => known,
            Err(reason) => {
                problems.push(entry.refuse(Control::namespace, reason));
                continue;
            }
        };
        let interfaces = entry.interfaces.iter().flatten();
        // `eth1`, or `h3 eth1` for one host.
        let names =
            interfaces.map(|text| text.split_once(' ').map_or(text.as_str(), |(_, name)| name.trim()));
        let absent = names.filter_map(|name| absent(name, namespace, &known));
        problems.extend(absent.map(|why| entry.refuse(Control::interfaces, why)));
    }
    problems
}

/// The interfaces of a network namespace; `None` for that of this process.
fn known(namespace: Option<&str>) -> Result<Vec<String>, String> {
    match namespace {
        None => Ok(interface_names()),
        Some(name) => Namespace::named(name).within(interface_names).map_err(|error| error.to_string()),
    }
}

/// What is to be said of an interface that is not there.
fn absent(name: &str, namespace: Option<&str>, known: &[String]) -> Option<String> {
    if known.iter().any(|other| other == name) {
        return None;
    }
    let hint = Hint::nearest(name, known.iter().map(String::as_str));
    let place = namespace.map_or_else(|| "here".to_owned(), |namespace| format!("in namespace {namespace}"));
    Some(format!("there is no interface {name} {place}{hint}"))
}
