//! Which network interfaces that the file names are not there.

use thalweg_config::{Document, Hint, Problem};
use thalweg_linux::Namespace;
use thalweg_linux::netdevice::interface_names;

use super::table::{Collector, Control};

/// A problem for each interface that is not there.
pub(super) fn missing(document: &Document) -> Vec<Problem> {
    let mut problems = Vec::new();
    for entry in document.sound::<Collector>() {
        let namespace = entry.namespace.as_deref();
        if let Some(reason) = entry.interface.as_deref().and_then(|name| absent(name, namespace)) {
            problems.push(entry.refuse(Collector::interface, reason));
        }
    }
    for entry in document.sound::<Control>() {
        let interfaces = entry.interfaces.iter().flatten();
        // `eth1`, or `h3 eth1` for one host.
        let names =
            interfaces.map(|text| text.split_once(' ').map_or(text.as_str(), |(_, name)| name.trim()));
        let namespace = entry.namespace.as_deref();
        for reason in names.filter_map(|name| absent(name, namespace)) {
            problems.push(entry.refuse(Control::interfaces, reason));
        }
    }
    problems
}

/// What is to be said of an interface that is not there.
fn absent(name: &str, namespace: Option<&str>) -> Option<String> {
    let known = match namespace {
        None => interface_names(),
        Some(namespace) => match Namespace::named(namespace).within(interface_names) {
            Ok(known) => known,
            Err(error) => return Some(error.to_string()),
        },
    };
    if known.iter().any(|other| other == name) {
        return None;
    }
    let hint = Hint::nearest(name, known.iter().map(String::as_str));
    let place = namespace.map_or_else(|| "here".to_owned(), |namespace| format!("in namespace {namespace}"));
    Some(format!("there is no interface {name} {place}{hint}"))
}
