//! Which network interfaces that the file names are not there.

use std::path::Path;

use thalweg_config::{Document, Hint, Problem};

use super::table::{Collector, Control};

/// Where the kernel lists the interfaces of this network namespace.
const INTERFACES: &str = "/sys/class/net";

/// A problem for each interface that is not there.
pub(super) fn missing(document: &Document) -> Vec<Problem> {
    let mut problems = Vec::new();
    for entry in document.sound::<Collector>() {
        if let Some(reason) = entry.interface.as_deref().and_then(absent) {
            problems.push(entry.refuse(Collector::interface, reason));
        }
    }
    for entry in document.sound::<Control>() {
        let interfaces = entry.interfaces.iter().flatten();
        // `eth1`, or `h3 eth1` for one host.
        let names =
            interfaces.map(|text| text.split_once(' ').map_or(text.as_str(), |(_, name)| name.trim()));
        for reason in names.filter_map(absent) {
            problems.push(entry.refuse(Control::interfaces, reason));
        }
    }
    problems
}

/// What is to be said of an interface that is not there.
fn absent(name: &str) -> Option<String> {
    if Path::new(INTERFACES).join(name).exists() {
        return None;
    }
    let known = std::fs::read_dir(INTERFACES).into_iter().flatten().flatten();
    let known: Vec<String> = known.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let hint = Hint::nearest(name, known.iter().map(String::as_str));
    Some(format!("there is no interface {name} here{hint}"))
}
