//! Checks the table of terms, the filters and the errors in `docs/reference/flow-filter.md`.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use thalweg_measure::filter::{CHEETAHS, FlowFilter, METERED, RECORDS, SAMPLED, Term, View};

use crate::program::root;

const BEGIN: &str = "<!-- Generated table of terms. -->\n";
const END: &str = "<!-- End of the generated table. -->\n";

fn path() -> PathBuf {
    root().join("docs/reference/flow-filter.md")
}

fn page() -> String {
    fs::read_to_string(path()).unwrap()
}

fn table() -> String {
    let views: [(&str, &View); 4] = [
        ("`thalweg watch`: flows", &METERED),
        ("`thalweg watch`: cheetah flows", &CHEETAHS),
        ("HTTP API, `thalweg top`", &SAMPLED),
        ("`thalweg flows`", &RECORDS),
    ];
    let mut table = String::from("| term |");
    views.iter().for_each(|(name, _)| write!(table, " {name} |").unwrap());
    table.push_str("\n|---|---|---|---|---|\n");
    for term in Term::ALL {
        write!(table, "| `{}` |", term.name()).unwrap();
        views
            .iter()
            .for_each(|(_, view)| write!(table, " {} |", view.meaning(*term).unwrap_or("-")).unwrap());
        table.push('\n');
    }
    table
}

#[test]
fn the_table_of_terms_is_up_to_date() {
    let page = page();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{BEGIN}\n{}\n{END}{after}", table());
    if std::env::var_os("THALWEG_REFRESH_GOLDEN").is_some() {
        fs::write(path(), &expected).unwrap();
    }
    assert!(
        expected == self::page(),
        "docs/reference/flow-filter.md is out of date; to regenerate it: \
         THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it flow_filter"
    );
}

/// Returns the texts in single quotes on lines that start with `prefix`.
fn quoted<'a>(page: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    page.lines().filter_map(move |line| line.trim().strip_prefix(prefix)?.split('\'').nth(1))
}

#[test]
fn the_filters_on_the_page_compile() {
    let page = page();
    let mut seen = 0;
    for (prefix, view) in [("thalweg watch", METERED), ("thalweg top", SAMPLED), ("thalweg flows", RECORDS)] {
        for filter in quoted(&page, prefix) {
            FlowFilter::compile(filter, &view).unwrap_or_else(|error| panic!("{filter}: {error}"));
            seen += 1;
        }
    }
    assert_eq!(seen, 3);
    let terms = page.split_once("| term | selects flows |").unwrap().1.split_once("\n\n").unwrap().0;
    for line in terms.lines().skip(2) {
        for filter in line.split('|').nth(1).unwrap().split('`').skip(1).step_by(2) {
            let compiles = [RECORDS, METERED].iter().any(|view| FlowFilter::compile(filter, view).is_ok());
            assert!(compiles, "{filter}");
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn the_errors_on_the_page_are_real() {
    let page = page();
    let errors: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("    filter, ")).collect();
    for (filter, view, error) in [
        ("src port 443 or port https", RECORDS, errors[0]),
        ("proto 6 adn port 80", METERED, errors[1]),
        ("as 64500", SAMPLED, errors[2]),
    ] {
        let message = FlowFilter::compile(filter, &view).unwrap_err().message();
        assert!(message.starts_with(error.trim_end_matches("...")), "{message}");
    }
    assert_eq!(errors.len(), 3);
}
