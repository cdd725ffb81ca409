//! Results of measurement tasks. The JSON lines of `watch` and the API have the same fields.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use thalweg_api::{FlowName as FlowJson, Period as PeriodJson};
use thalweg_measure::tasks::{Cell, Field, FieldKind, FlowName, KeyLayout, Period, Row, Table};

use super::FlatEstimate;

/// A result: its type, its facts and its keys.
#[derive(Debug)]
pub struct TaskResultJson(Table);

impl From<Table> for TaskResultJson {
    fn from(table: Table) -> TaskResultJson {
        TaskResultJson(table)
    }
}

impl TaskResultJson {
    /// Whether only one of these fields is an estimate.
    pub fn has_one_estimate(fields: &[Field]) -> bool {
        fields.iter().filter(|field| field.kind == FieldKind::Estimate).count() == 1
    }
}

impl Serialize for TaskResultJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let TaskResultJson(table) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", table.layout.kind)?;
        let is_only = TaskResultJson::has_one_estimate(table.layout.facts);
        for (field, cell) in table.facts() {
            add(&mut map, field, cell, is_only)?;
        }
        if let Some(layout) = &table.layout.keys {
            map.serialize_entry("keys", &Rows { layout, rows: &table.rows })?;
        }
        map.end()
    }
}

fn add<M: SerializeMap>(map: &mut M, field: &Field, cell: Cell, is_only: bool) -> Result<(), M::Error> {
    match cell {
        Cell::Count(count) => map.serialize_entry(field.name, &count),
        Cell::Share(share) => map.serialize_entry(field.name, &share),
        Cell::Estimate(estimate) if is_only => FlatEstimate::only(field.name, estimate).add_to(map),
        Cell::Estimate(estimate) => FlatEstimate::one_of_several(field.name, estimate).add_to(map),
        Cell::Period(Period { start, end, total, is_partial }) => {
            let period = PeriodJson { start: start.into(), end: end.into(), total, partial: is_partial };
            map.serialize_entry(field.name, &period)
        }
        _ => Ok(()),
    }
}

struct Rows<'a> {
    layout: &'a KeyLayout,
    rows: &'a [Row],
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(self.rows.len()))?;
        for row in self.rows {
            sequence.serialize_element(&RowJson { layout: self.layout, row })?;
        }
        sequence.end()
    }
}

struct RowJson<'a> {
    layout: &'a KeyLayout,
    row: &'a Row,
}

impl Serialize for RowJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("key", &self.row.name.to_string())?;
        match &self.row.name {
            FlowName::Flow(key) => map.serialize_entry("flow", &FlowJson::from(key))?,
            _ if self.layout.may_be_flows => map.serialize_entry("flow", &())?,
            _ => {}
        }
        let is_only = TaskResultJson::has_one_estimate(self.layout.columns);
        for (field, cell) in self.layout.columns.iter().zip(&self.row.cells) {
            add(&mut map, field, *cell, is_only)?;
        }
        map.end()
    }
}
