//! Answers of tasks as JSON. The lines of `watch` and the API have the same fields, and differ in how they write
//! times, flows and estimates.

use std::fmt::Debug;
use std::marker::PhantomData;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use thalweg_measure::tasks::{Cell, Field, FlowName, KeyLayout, Period, Row, Table};
use thalweg_sketch::Estimate;
use thalweg_wire::{FlowKey, Timestamp};

/// How a medium writes what JSON has no type for.
pub trait Style {
    /// Names of the first moment of a period and of the first after it.
    const SPAN: [&'static str; 2];

    /// Whether a key that is no flow has `null` for one, where other keys of its kind of task may be.
    const HAS_NULL_FLOWS: bool;

    /// A moment.
    fn moment(time: Timestamp) -> impl Serialize;

    /// One direction of a flow.
    fn flow(key: &FlowKey) -> impl Serialize;

    /// An estimate.
    fn estimate(estimate: &Estimate) -> impl Serialize;
}

/// An answer: its kind, its facts, its keys.
pub struct TableJson<S> {
    table: Table,
    style: PhantomData<S>,
}

impl<S> Debug for TableJson<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.table.fmt(f)
    }
}

impl<S> From<Table> for TableJson<S> {
    fn from(table: Table) -> TableJson<S> {
        TableJson { table, style: PhantomData }
    }
}

impl<S: Style> Serialize for TableJson<S> {
    fn serialize<O: Serializer>(&self, out: O) -> Result<O::Ok, O::Error> {
        let table = &self.table;
        let mut map = out.serialize_map(None)?;
        map.serialize_entry("kind", table.layout.kind)?;
        for (field, cell) in table.facts() {
            entry::<S, _>(&mut map, field, cell)?;
        }
        if let Some(layout) = &table.layout.keys {
            map.serialize_entry("keys", &Rows::<S> { layout, rows: &table.rows, style: PhantomData })?;
        }
        map.end()
    }
}

fn entry<S: Style, M: SerializeMap>(map: &mut M, field: &Field, cell: Cell) -> Result<(), M::Error> {
    match cell {
        Cell::Count(count) => map.serialize_entry(field.name, &count),
        Cell::Share(share) => map.serialize_entry(field.name, &share),
        Cell::Estimate(estimate) => map.serialize_entry(field.name, &S::estimate(&estimate)),
        Cell::Period(period) => {
            map.serialize_entry(field.name, &PeriodJson::<S> { period, style: PhantomData })
        }
        _ => Ok(()),
    }
}

struct Rows<'a, S> {
    layout: &'a KeyLayout,
    rows: &'a [Row],
    style: PhantomData<S>,
}

impl<S: Style> Serialize for Rows<'_, S> {
    fn serialize<O: Serializer>(&self, out: O) -> Result<O::Ok, O::Error> {
        let mut sequence = out.serialize_seq(Some(self.rows.len()))?;
        for row in self.rows {
            sequence.serialize_element(&RowJson::<S> { layout: self.layout, row, style: PhantomData })?;
        }
        sequence.end()
    }
}

struct RowJson<'a, S> {
    layout: &'a KeyLayout,
    row: &'a Row,
    style: PhantomData<S>,
}

impl<S: Style> Serialize for RowJson<'_, S> {
    fn serialize<O: Serializer>(&self, out: O) -> Result<O::Ok, O::Error> {
        let mut map = out.serialize_map(None)?;
        map.serialize_entry("key", &self.row.name.to_string())?;
        match &self.row.name {
            FlowName::Flow(key) => map.serialize_entry("flow", &S::flow(key))?,
            _ if S::HAS_NULL_FLOWS && self.layout.may_be_flows => map.serialize_entry("flow", &())?,
            _ => {}
        }
        for (field, cell) in self.layout.columns.iter().zip(&self.row.cells) {
            entry::<S, _>(&mut map, field, *cell)?;
        }
        map.end()
    }
}

struct PeriodJson<S> {
    period: Period,
    style: PhantomData<S>,
}

impl<S: Style> Serialize for PeriodJson<S> {
    fn serialize<O: Serializer>(&self, out: O) -> Result<O::Ok, O::Error> {
        let Period { start, end, total, is_partial } = self.period;
        let [start_name, end_name] = S::SPAN;
        let mut map = out.serialize_map(Some(4))?;
        map.serialize_entry(start_name, &S::moment(start))?;
        map.serialize_entry(end_name, &S::moment(end))?;
        map.serialize_entry("total", &total)?;
        map.serialize_entry("partial", &is_partial)?;
        map.end()
    }
}
