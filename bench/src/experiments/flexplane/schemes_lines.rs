//! Table 3 and "Ease of use": lines of code per scheme.
//!
//! Empty lines, comments, attributes and tests do not count. The first line of a top-level item determines its
//! category: `use` lines are imports, items of a `...Config` are settings with defaults and checks, items of a store
//! are queueing, everything else is the scheme.

use thalweg_plot::bars::{Arrangement, Bars};
use thalweg_plot::figure::{self, ALONE, Legend};
use thalweg_plot::page::Heading;

use super::Study;
use crate::experiments::Outcome;
use crate::results::{Page, Table, save};
use crate::row;

/// A scheme's files, and the paper's statement on its lines.
struct Scheme {
    name: &'static str,
    sources: &'static [&'static str],
    /// Types that hold packets.
    stores: &'static [&'static str],
    paper: &'static str,
}

macro_rules! source {
    ($file:literal) => {
        include_str!(concat!("../../../../crates/thalweg-emulator/src/schemes/", $file))
    };
}

const SCHEMES: [Scheme; 9] = [
    scheme("DropTail", &[source!("drop_tail.rs")], &[], FEW_DOZEN),
    scheme("RED", &[source!("red.rs")], &[], FEW_DOZEN),
    scheme("DCTCP", &[source!("dctcp.rs")], &[], FEW_DOZEN),
    scheme("priority", &[source!("priority.rs")], &[], FEW_DOZEN),
    scheme("DRR", &[source!("drr.rs"), source!("flow_hash.rs")], &[], FEW_DOZEN),
    scheme("HULL", &[source!("hull.rs")], &[], FEW_DOZEN),
    scheme(
        "pFabric",
        &[source!("p_fabric.rs")],
        &["Level", "SmallBuffers", "first_least"],
        "251, queueing 170",
    ),
    scheme(
        "PIE",
        &[source!("pie.rs"), source!("fifos_with.rs"), source!("stamped.rs")],
        &["FifosWith", "Stamped"],
        "none",
    ),
    scheme(
        "FQ-CoDel",
        &[
            source!("fq_codel/mod.rs"),
            source!("fq_codel/codel.rs"),
            source!("fq_codel/flow_queues.rs"),
            source!("stamped.rs"),
            source!("flow_hash.rs"),
        ],
        &["FlowQueues", "Place", "List", "Pool", "Flow ", "Stamped"],
        "none",
    ),
];

const FEW_DOZEN: &str = "a few dozen (most schemes)";

const fn scheme(
    name: &'static str,
    sources: &'static [&'static str],
    stores: &'static [&'static str],
    paper: &'static str,
) -> Scheme {
    Scheme { name, sources, stores, paper }
}

/// Lines of code by category.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    imports: usize,
    settings: usize,
    queueing: usize,
    scheme: usize,
}

impl Lines {
    fn of(sources: &[&str], stores: &[&str]) -> Lines {
        let mut lines = Lines::default();
        for source in sources {
            lines.add(source, stores);
        }
        lines
    }

    fn add(&mut self, source: &str, stores: &[&str]) {
        let mut head = "";
        for line in source.lines().take_while(|line| *line != "#[cfg(test)]").filter(|line| is_code(line)) {
            let begins = !line.starts_with([' ', '}', ')', ']']);
            if begins && !line.starts_with("where") {
                head = line;
            }
            *self.about(head, stores) += 1;
        }
    }

    /// Returns the counter for an item that starts with `head`.
    fn about(&mut self, head: &str, stores: &[&str]) -> &mut usize {
        let is_part = head.contains("Enqueue") || head.contains("Schedule");
        match head {
            _ if head.starts_with("use ") || head.starts_with("pub mod ") => &mut self.imports,
            _ if head.contains("Config {") => &mut self.settings,
            _ if !is_part && stores.iter().any(|name| head.contains(name)) => &mut self.queueing,
            _ => &mut self.scheme,
        }
    }

    fn all(&self) -> usize {
        self.imports + self.settings + self.queueing + self.scheme
    }
}

fn is_code(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with("//") && !line.starts_with("#[")
}

pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let counted = SCHEMES.map(|scheme| (Lines::of(scheme.sources, scheme.stores), scheme));
    let mut table = Table::new([
        "scheme",
        "lines",
        "the scheme itself",
        "queueing",
        "settings",
        "imports",
        "paper (C++)",
    ]);
    for (lines, scheme) in &counted {
        let Lines { imports, settings, queueing, scheme: itself } = *lines;
        row!(table, scheme.name, lines.all(), itself, queueing, settings, imports, scheme.paper);
    }
    let mut page = Page::new("Lines of code per scheme", study.command);
    page.paragraph(
                "Lines of code in `crates/thalweg-emulator/src/schemes/` without comments, attributes, empty lines and tests, \
                 formatted by `rustfmt` to 110 characters. Settings are the configuration with its defaults and checks; queueing is \
                 the scheme's own packet store. DRR and FQ-CoDel share the hash of flows, PIE and FQ-CoDel the packets with a time: \
                 these count for both. RED shares a store with PIE, counted there; DCTCP and HULL use parts of DropTail, DRR one of \
                 priority queues.",
    );
    page.table(&table);
    let series: [(&str, Vec<f64>); 3] = [
        ("the scheme itself", counted.iter().map(|(lines, _)| lines.scheme as f64).collect()),
        ("queueing", counted.iter().map(|(lines, _)| lines.queueing as f64).collect()),
        (
            "settings and imports",
            counted.iter().map(|(lines, _)| (lines.settings + lines.imports) as f64).collect(),
        ),
    ];
    let legend = Legend::of(&series.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    let bars = Bars {
        title: String::new(),
        x_title: "lines".to_owned(),
        names: SCHEMES.iter().map(|scheme| scheme.name.to_owned()).collect(),
        series: series.into_iter().map(|(_, values)| values).collect(),
        intervals: Vec::new(),
        arrangement: Arrangement::Stacked,
    };
    save(study.plot, &figure::draw(&Heading::new("Lines of code per scheme", ""), &legend, ALONE, &[bars])?)?;
    Ok(Outcome { page, table })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_classified_by_their_top_level_item() {
        let source = "//! Doc.\n\nuse a::b;\nuse c::{\n    d,\n};\n\n/// Doc.\n#[derive(Debug)]\npub struct XConfig {\n    pub a: u8, // why\n}\n\
                      \nstruct Ring {\n    // Nothing.\n    b: u8,\n}\n\nfn f() {\n    g();\n}\n\n#[cfg(test)]\nmod tests;\nfn h() {}\n";
        let lines = Lines::of(&[source], &["Ring"]);
        assert_eq!(lines, Lines { imports: 4, settings: 3, queueing: 3, scheme: 3 });
        assert_eq!(lines.all(), 13);
    }

    #[test]
    fn only_schemes_with_their_own_store_have_queueing() {
        for scheme in SCHEMES {
            let lines = Lines::of(scheme.sources, scheme.stores);
            assert_eq!(lines.queueing > 0, !scheme.stores.is_empty(), "{}: {lines:?}", scheme.name);
            assert!(lines.scheme > 10 && lines.settings > 10, "{}: {lines:?}", scheme.name);
        }
    }
}
