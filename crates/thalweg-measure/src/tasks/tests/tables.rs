//! The answers of each kind in the common format.

use std::collections::HashSet;

use super::*;
use crate::tasks::{Cell, Field, Headline, LAYOUTS, Table, Word};

const ALL: &str = "heavy:1%:src,heavy:1%:dst:bytes,change:10s>0.1%:src,distinct:src,entropy:dst,spread:dst>10,moments,hhh:1%";

fn tables() -> Vec<Table> {
    let mut packets = traffic(4_000, BEGIN * SECOND, 10 * SECOND, 3);
    packets.extend(traffic(8_000, (BEGIN + 10) * SECOND, 10 * SECOND, 4));
    let (reports, _) = run(&plan(ALL), &packets);
    reports.iter().flat_map(|report| &report.results).map(TaskResult::table).collect()
}

fn are_of(cells: &[Cell], fields: &[Field]) -> bool {
    cells.len() == fields.len() && cells.iter().zip(fields).all(|(cell, field)| cell.is_of(field.kind))
}

#[test]
fn table_cells_have_the_types_of_their_columns() {
    let tables = tables();
    for table in &tables {
        let (kind, keys) = (table.layout.kind, &table.layout.keys);
        assert!(are_of(&table.facts, table.layout.facts), "{kind}: {:?}", table.facts);
        assert_eq!(keys.is_some(), matches!(table.headline, Headline::Keys(_)), "{kind}");
        let Some(keys) = keys else {
            assert_eq!(table.rows, [], "{kind}");
            continue;
        };
        assert!(!table.rows.is_empty(), "{kind}: no rows to test");
        for row in &table.rows {
            assert!(are_of(&row.cells, keys.columns), "{kind}: {row:?}");
            assert_eq!(Cell::Estimate(table.listed_for(row)), row.cells[keys.listed_for], "{kind}");
            assert_eq!(table.aside(row).count() > 0, !table.aside_name().is_empty(), "{kind}");
        }
    }
    let kinds: HashSet<_> = tables.iter().map(|table| table.layout.kind).collect();
    assert_eq!(kinds, LAYOUTS.iter().map(|layout| layout.kind).collect(), "each kind has answered");
}

#[test]
fn kind_and_field_names_are_unique() {
    let kinds: HashSet<_> = LAYOUTS.iter().map(|layout| layout.kind).collect();
    assert_eq!(kinds.len(), LAYOUTS.len());
    for layout in LAYOUTS {
        let facts: HashSet<_> = layout.facts.iter().map(|field| field.name).collect();
        assert!(facts.len() == layout.facts.len() && !facts.contains("kind") && !facts.contains("keys"));
        let columns = layout.keys.map_or(&[][..], |keys| keys.columns);
        let names: HashSet<_> = columns.iter().map(|field| field.name).collect();
        assert!(names.len() == columns.len() && !names.contains("key") && !names.contains("flow"));
    }
}

#[test]
fn headlines_count_the_keys_and_say_if_more_may_be_missing() {
    let tables = tables();
    let heavy = tables.iter().find(|table| table.layout.kind == "heavy").unwrap();
    let Headline::Keys(words) = &heavy.headline else { panic!() };
    assert_eq!(words[..2], [Word::Count(heavy.rows.len() as u64), Word::Text(" keys")]);
    assert_eq!(words.last(), Some(&Word::Text("packets")));
    assert_eq!(heavy.figure(), heavy.rows.len() as f64);
    let missing = Word::Text(", more may be missing");
    let words = |count, room| crate::tasks::table::keys_in_words(count, room);
    assert!(words(5, Some(5)).contains(&missing) && !words(4, Some(5)).contains(&missing));
    assert!(!words(5, None).contains(&missing));
    assert_eq!(words(1, Some(1)), [Word::Count(1), Word::Text(" key")]);
}
