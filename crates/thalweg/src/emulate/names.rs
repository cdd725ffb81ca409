//! What there is to choose from: `thalweg emulate --list`.

use std::fmt::Write;

use thalweg_emulator::workloads::sizes::PUBLISHED;
use thalweg_experiment::experiment::key::{Choice, Section};
use thalweg_experiment::experiment::table::{PACKETS, ROUTING, SCHEME, TOPOLOGY, TRANSPORT, WORKLOAD};

/// A page with each choice on a line.
pub fn list() -> String {
    let mut page = String::new();
    let balances = ROUTING.keys[0].kind.choices();
    let sizes = PUBLISHED.iter().map(|published| (published.named.name, published.named.summary)).collect();
    let parts = [
        ("Topologies", "[topology] shape", choices(&TOPOLOGY)),
        ("Schemes", "[scheme] name", choices(&SCHEME)),
        ("Routing", "[routing] balance", balances),
        ("Transports", "[transport] name", choices(&TRANSPORT)),
        ("Patterns of flows", "[[workload]] pattern", choices(&WORKLOAD)),
        ("Sizes of flows", "[[workload]] sizes", sizes),
        ("Packets without transport", "[[packets]] sender", choices(&PACKETS)),
    ];
    let widest =
        parts.iter().flat_map(|(_, _, choices)| choices).map(|(name, _)| name.len()).max().unwrap_or(0);
    for (index, (title, key, choices)) in parts.iter().enumerate() {
        let _ = writeln!(page, "{}{title}: {key}", if index == 0 { "" } else { "\n" });
        for (name, summary) in choices {
            let _ = writeln!(page, "  {name:widest$}  {summary}");
        }
    }
    page
}

fn choices(section: &'static Section) -> Vec<Choice> {
    section.selector().map(|selector| selector.kind.choices()).unwrap_or_default()
}
