//! Sorts groups: largest first, ties by key.

use std::cmp::Ordering;

use super::groups::{Groups, Row};
use super::key::{Position, Value};
use super::sums::Sums;
use super::{Group, Order};

impl Order {
    fn amount(self, sums: &Sums) -> i64 {
        match self {
            Order::Bytes => sums.bytes,
            Order::Packets => sums.packets,
            Order::Flows => sums.flows,
        }
    }
}

impl Value {
    /// Compares as engines do: text by bytes, numbers by value.
    fn order(self, other: Value) -> Ordering {
        match (self, other) {
            (Value::Address(one), Value::Address(other)) => one.to_string().cmp(&other.to_string()),
            (Value::Number(one), Value::Number(other)) => one.cmp(&other),
            (Value::Count(one), Value::Count(other)) => one.cmp(&other),
            (Value::Name(one), Value::Name(other)) => one.text().cmp(other.text()),
            (Value::Mac(one), Value::Mac(other)) => one.cmp(&other),
            (Value::Format(one), Value::Format(other)) => one.name().cmp(other.name()),
            _ => unreachable!("values of one column"),
        }
    }
}

/// Returns the first `limit` groups; `whole` are the sums over all records.
pub(super) fn ranking<const W: usize>(
    groups: &Groups<W>,
    whole: &Sums,
    key: &[Position],
    order: Order,
    limit: usize,
) -> Vec<Group> {
    let by_key = |one: &Row<W>, other: &Row<W>| {
        let mut orders = key.iter().map(|position| position.get(&one.key).order(position.get(&other.key)));
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    let compare = |one: &&Row<W>, other: &&Row<W>| {
        order.amount(&other.sums).cmp(&order.amount(&one.sums)).then_with(|| by_key(one, other))
    };
    let (mut first, mut min) = (Vec::<&Row<W>>::new(), 0);
    for part in groups.parts() {
        first.extend(part.iter().filter(|row| order.amount(&row.sums) >= min));
        if limit < first.len() {
            let (_, beyond, _) = first.select_nth_unstable_by(limit, compare);
            // Groups with less cannot be among the first.
            min = order.amount(&beyond.sums);
            first.truncate(limit);
        }
    }
    first.sort_unstable_by(compare);

    let whole = order.amount(whole);
    let group = |row: &Row<W>| Group {
        key: key.iter().map(|position| position.get(&row.key)).collect(),
        bytes: row.sums.bytes,
        packets: row.sums.packets,
        flows: row.sums.flows,
        share: (whole != 0).then(|| order.amount(&row.sums) as f64 / whole as f64),
        flow_start_us: row.sums.flow_start_us,
        flow_end_us: row.sums.flow_end_us,
    };
    first.into_iter().map(group).collect()
}
