//! Which network interfaces that the file names are not there.

use thalweg_config::{Document, Hint, Problem};
use thalweg_linux::netdevice::interface_names;
use thalweg_linux::{Namespace, NamespaceError};

use super::table::{Collector, Control};

/// A problem for each interface that is not there, and for each network namespace.
pub(super) fn missing(document: &Document) -> Vec<Problem> {
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
    problems
}

/// The interfaces of a network namespace; `None` is that of this process.
///
/// # Errors
/// If it cannot be entered.
pub(crate) fn interfaces_in(namespace: Option<&Namespace>) -> Result<Vec<String>, NamespaceError> {
    namespace.map_or_else(|| Ok(interface_names()), |namespace| namespace.within(interface_names))
}

/// What is to be said of those of some interfaces that are not in a network namespace; `None` is that of this process.
///
/// # Errors
/// If the namespace cannot be entered, in words.
fn absent<'a>(
    namespace: Option<&str>,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<String>, String> {
    let known = interfaces_in(namespace.map(Namespace::named).as_ref()).map_err(|error| error.to_string())?;
    let place = namespace.map_or_else(|| "here".to_owned(), |name| format!("in namespace {name}"));
    let absent = names.into_iter().filter(|name| !known.iter().any(|other| other == name));
    let in_words = |name: &str| {
        let hint = Hint::nearest(name, known.iter().map(String::as_str));
        format!("there is no interface {name} {place}{hint}")
    };
    Ok(absent.map(in_words).collect())
}
