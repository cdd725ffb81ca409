//! Parses a task: its name, its required parameters, and then optional fields in any order.

use thalweg_wire::nearest::nearest;

use crate::tasks::fields::{Fields, ParseTaskError};
use crate::tasks::key::KeyDefinition;
use crate::tasks::kinds::{LAYOUTS, PARSE, TaskSpec};
use crate::tasks::weight::Weight;

/// Returns the names of all kinds.
fn names() -> impl Iterator<Item = &'static str> {
    LAYOUTS.iter().map(|layout| layout.kind)
}

pub(super) fn task(text: &str) -> Result<TaskSpec, ParseTaskError> {
    let mut rest = text.trim().split(':');
    let name = rest.next().unwrap_or_default().trim();
    let known = names().zip(PARSE).find(|(known, _)| *known == name);
    let Some((task, parse)) = known else {
        let (name, nearest) = (name.to_owned(), nearest(name, names()));
        return Err(ParseTaskError::UnknownTask { name, nearest, known: names().collect() });
    };
    let mut fields = Fields::new(task, rest);
    let mut spec = parse(&mut fields)?;
    let mut seen = SeenFields::default();
    while let Some(field) = fields.next() {
        refine(&mut spec, field, &mut seen)?;
    }
    Ok(spec)
}

/// The optional fields seen so far.
#[derive(Default)]
struct SeenFields {
    key: bool,
    weight: bool,
}

/// Parses a key or a weight.
fn refine(spec: &mut TaskSpec, field: &str, seen: &mut SeenFields) -> Result<(), ParseTaskError> {
    let task = spec.name();
    let useless = |expected| ParseTaskError::Useless { task, found: field.to_owned(), expected };
    let once = |seen: &mut bool| match std::mem::replace(seen, true) {
        true => Err(ParseTaskError::Twice { task, found: field.to_owned() }),
        false => Ok(()),
    };
    if let Some(given) = weight(field) {
        once(&mut seen.weight)?;
        return spec.set_weight(given).map_err(useless);
    }
    let given: KeyDefinition = field.parse().map_err(|error| ParseTaskError::Key { task, error })?;
    once(&mut seen.key)?;
    spec.set_key(given).map_err(useless)
}

fn weight(text: &str) -> Option<Weight> {
    [Weight::Packets, Weight::Bytes].into_iter().find(|weight| weight.to_string() == text)
}
