//! The list of choices: `thalweg emulate --list`.

use std::fmt::Write;

use thalweg_config::Declared as _;
use thalweg_config::kind::Choice;
use thalweg_emulator::workloads::sizes::PUBLISHED;
use thalweg_experiment::experiment::own_scheme::Scheme;
use thalweg_experiment::experiment::table::{PACKETS, ROUTING, TOPOLOGY, TRANSPORT, WORKLOAD};

/// Returns a page with one line per choice.
pub fn list() -> String {
    let mut page = String::new();
    let balances = ROUTING.keys().flat_map(|key| key.kind.choices()).collect();
    let sizes = PUBLISHED.iter().map(|published| (published.named.name, published.named.summary.to_owned()));
    let sizes: Vec<Choice> = sizes.collect();
    let parts = [
        ("Topologies", "[topology] shape", TOPOLOGY.choices()),
        ("Schemes", "[scheme] name", Scheme::section().choices()),
        ("Routing", "[routing] balance", balances),
        ("Transports", "[transport] name", TRANSPORT.choices()),
        ("Flow patterns", "[[workload]] pattern", WORKLOAD.choices()),
        ("Flow sizes", "[[workload]] sizes", sizes),
        ("Packet senders without transport", "[[packets]] sender", PACKETS.choices()),
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
