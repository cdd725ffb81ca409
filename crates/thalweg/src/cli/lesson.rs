//! What stands below the options in `--help`, in the man pages and in the reference: examples and exit codes.

use std::fmt::Write;

use clap::Command;
use clap::builder::Styles;
use clap_mangen::roff::{Roff, bold, roman};

use super::exit_code::ExitCode;

/// A command line that does something useful.
pub(super) struct Example {
    /// What it does.
    pub(super) about: &'static str,
    /// What to type.
    pub(super) command: &'static str,
}

const PROGRAM: [Example; 5] = [
    Example { about: "What runs on an interface, as it runs", command: "sudo thalweg watch eth0" },
    Example { about: "What ran in a capture file", command: "thalweg watch trace.pcap" },
    Example { about: "A monitor port, as a daemon", command: "sudo thalweg serve -c thalweg.toml" },
    Example { about: "A whole network, emulated", command: "thalweg emulate experiment.toml" },
    Example { about: "All about watching", command: "thalweg watch --help" },
];

const WATCH: [Example; 9] = [
    Example { about: "A capture file", command: "thalweg watch trace.pcap" },
    Example { about: "At the pace it was recorded at", command: "thalweg watch --replay trace.pcap" },
    Example {
        about: "What another program captures",
        command: "sudo tcpdump -i eth0 -U -w - | thalweg watch -",
    },
    Example { about: "An interface, for ten seconds", command: "sudo thalweg watch --duration 10s eth0" },
    Example { about: "Only some packets", command: "sudo thalweg watch -f 'tcp port 443' eth0" },
    Example {
        about: "Who sends more than 1 Gbit/s, through jq",
        command: "thalweg watch --json -R 1gbps trace.pcap | jq -r '\n    \
                  select(.type == \"cheetah\") | \"\\(.flow.src) \\(.rate_bps)\"'",
    },
    Example {
        about: "The published algorithm, long packets only",
        command: "thalweg watch --detector cfinf --packet-length-threshold 600 trace.pcap",
    },
    Example {
        about: "Heavy hitters, entropy, distinct flows, every second",
        command: "thalweg watch --tasks heavy:0.1%,entropy:src,distinct --window 1s trace.pcap",
    },
    Example {
        about: "In 2 MiB, on any traffic: who sends to more than 1,000 hosts",
        command: "sudo thalweg watch --no-table --tasks 'spread:src>1000' --memory 2MiB eth0",
    },
];

const COLLECT: [Example; 7] = [
    Example { about: "NetFlow, IPFIX and sFlow on their usual ports", command: "thalweg collect -o flows" },
    Example {
        about: "One port of one address, an hour of records at most a second late, kept for 30 days",
        command: "thalweg collect -o flows --file-span 1h --retention-age 720h 10.0.0.1:9995",
    },
    Example {
        about: "IPFIX over TLS, from exporters with a certificate of our authority",
        command: "thalweg collect -o flows --tls-certificate cert.pem --tls-key key.pem --tls-client-ca ca.pem tls:4740",
    },
    Example {
        about: "One packet in 1,000 is counted, says nobody but the router's configuration",
        command: "thalweg collect -o flows --sampling 10.0.0.1=1000",
    },
    Example {
        about: "Export messages that tcpdump has captured",
        command: "thalweg collect -o flows --replay export.pcap",
    },
    Example {
        about: "As a service, with metrics for Prometheus",
        command: "thalweg collect -o /var/lib/thalweg --json --metrics 127.0.0.1:9478",
    },
    Example {
        about: "Then, what moved most, through DuckDB",
        command: "duckdb -c \"SELECT source_address, sum(octets * greatest(sampling_interval, 1)) AS bytes\n    \
                  FROM 'flows/flows/*/*/*.parquet' GROUP BY 1 ORDER BY 2 DESC LIMIT 10\"",
    },
];

const EMULATE: [Example; 6] = [
    Example { about: "What there is to choose from", command: "thalweg emulate --list" },
    Example { about: "An experiment", command: "thalweg emulate examples/experiments/incast.toml" },
    Example {
        about: "With files and plots in a folder",
        command: "thalweg emulate --out results examples/experiments/incast.toml",
    },
    Example {
        about: "Three schemes beside each other, at eight loads",
        command: "thalweg emulate --sweep scheme=droptail,dctcp,pfabric --sweep load=0.1..0.8 \\\n    \
                  examples/experiments/web-search.toml",
    },
    Example {
        about: "How much DCTCP marks at which threshold, through jq",
        command: "thalweg emulate --json --sweep threshold=10..100:10 examples/experiments/incast.toml |\n    \
                  jq '[.sweep.threshold, .packets.marked]'",
    },
    Example {
        about: "The experiment as it is understood, with all defaults",
        command: "thalweg emulate --print examples/experiments/incast.toml",
    },
];

const SERVE: [Example; 3] = [
    Example { about: "A file to begin with", command: "thalweg check --default > thalweg.toml" },
    Example { about: "The daemon", command: "sudo thalweg serve -c thalweg.toml" },
    Example {
        about: "Without root, on a capture of an emulated network",
        command: "thalweg serve -c examples/collector/thalweg.toml",
    },
];

const TOP: [Example; 3] = [
    Example { about: "A daemon on this machine", command: "thalweg top" },
    Example {
        about: "One elsewhere, with a token",
        command: "thalweg top --api https://collector:9477 --ca ca.pem --token-file token",
    },
    Example {
        about: "Links above 90 %, through jq",
        command: "thalweg top --json | jq -r '.links[] | select(.utilisation > 0.9) | .link'",
    },
];

const CHECK: [Example; 2] = [
    Example { about: "Whether it is right, and what it would do", command: "thalweg check -c thalweg.toml" },
    Example { about: "A file to begin with", command: "thalweg check --default > thalweg.toml" },
];

const FLOWS: [Example; 5] = [
    Example {
        about: "Who moved what between which networks, as a page with plots",
        command: "thalweg flows report records --by asn --out report",
    },
    Example {
        about: "Who sent most in the last hour",
        command: "thalweg flows top records --by source --from -1h",
    },
    Example {
        about: "Traffic of a service over the day",
        command: "thalweg flows series records --every 5m 'dst port 443'",
    },
    Example {
        about: "In nfdump's language, or in SQL",
        command: "thalweg flows query records 'src net 10.0.0.0/8 and bytes > 1g'\n\
                  thalweg flows query records 'SELECT exporter, count(*) FROM records GROUP BY ALL'",
    },
    Example { about: "All of it", command: "thalweg flows --help" },
];

const SYNTH: [Example; 6] = [
    Example {
        about: "A small trace and its truth",
        command: "thalweg synth -o trace.pcap --truth truth.csv",
    },
    Example {
        about: "As many packets and flows as the dissertation's trace",
        command: "thalweg synth --packets 38M -o trace.pcap --truth truth.csv",
    },
    Example { about: "Without a file between", command: "thalweg synth -o - | thalweg watch -" },
    Example {
        about: "Two days of flow records as they are kept, and what was planted",
        command: "thalweg synth --netflow --parquet records --records 20M --truth-transfers truth.csv",
    },
    Example {
        about: "Flowsets of 16 flows, seen by one router that samples nothing",
        command: "thalweg synth --netflow --components 16 --path-routers 1 --sampling-interval 1 \\\n    \
                  -o records.pcap",
    },
    Example {
        about: "Straight to a collector, 500,000 records a second",
        command: "thalweg synth --netflow --records 50M --send localhost:2055 --rate 500k",
    },
];

const SKETCH: [Example; 3] = [
    Example {
        about: "What was counted, window by window",
        command: "thalweg sketch show states/*heavy*.tsk",
    },
    Example {
        about: "Three collectors' windows as one",
        command: "thalweg sketch merge a.tsk b.tsk c.tsk -o network.tsk",
    },
    Example { about: "What changed in a minute", command: "thalweg sketch diff 12-00.tsk 12-01.tsk" },
];

const LAB: [Example; 5] = [
    Example { about: "A network to play with", command: "sudo thalweg lab up leaf-spine --rate 100mbit" },
    Example {
        about: "From one of its hosts to another",
        command: "sudo thalweg lab exec h0 -- ping -c 3 10.0.0.5",
    },
    Example { about: "What its switches have counted", command: "sudo thalweg lab status" },
    Example { about: "Gone without a trace", command: "sudo thalweg lab down" },
    Example {
        about: "How fast two flows that collide are taken apart, with a plot",
        command: "sudo thalweg lab run collide --trials 60 --out results",
    },
];

const SCHEMA: [Example; 2] = [
    Example { about: "For the daemon's file", command: "thalweg schema daemon > daemon.schema.json" },
    Example {
        about: "Checked as it is written, by an editor with taplo",
        command: "sed -i '1i #:schema ./daemon.schema.json' thalweg.toml",
    },
];

const CONFIG: [Example; 2] = [
    Example { about: "A file to edit", command: "thalweg config > lab.toml" },
    Example { about: "Whether it is right", command: "thalweg config --check lab.toml" },
];

/// Examples for a command, or for the whole program.
pub(super) fn examples(command: Option<&str>) -> &'static [Example] {
    match command {
        None => &PROGRAM,
        Some("watch") => &WATCH,
        Some("collect") => &COLLECT,
        Some("serve") => &SERVE,
        Some("check") => &CHECK,
        Some("schema") => &SCHEMA,
        Some("top") => &TOP,
        Some("emulate") => &EMULATE,
        Some("sketch") => &SKETCH,
        Some("flows") => &FLOWS,
        Some("synth") => &SYNTH,
        Some("lab") => &LAB,
        Some("config") => &CONFIG,
        Some(_) => &[],
    }
}

/// Adds the lesson to the help of the program and of its commands.
pub(super) fn add_to(program: Command) -> Command {
    program.after_long_help(help(None)).mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        let text = help(Some(&name));
        match examples(Some(&name)) {
            [] => command.after_long_help(text),
            _ => command
                .after_long_help(text)
                .after_help(format!("For more, with examples: thalweg {name} --help")),
        }
    })
}

/// As `--help` shows it.
fn help(command: Option<&str>) -> String {
    let styles = Styles::default();
    let header = styles.get_header();
    let mut text = String::new();
    let examples = examples(command);
    if !examples.is_empty() {
        let _ = writeln!(text, "{header}Examples:{header:#}");
        for Example { about, command } in examples {
            let _ = writeln!(text, "  {about}:\n    {}", command.replace('\n', "\n    "));
        }
        text.push('\n');
    }
    let _ = write!(text, "{header}Exit codes:{header:#}");
    for code in ExitCode::ALL {
        let _ = write!(text, "\n  {}  {}", code as u8, code.meaning());
    }
    text
}

/// As a man page has it.
pub(super) fn roff(command: Option<&str>) -> Roff {
    let mut roff = Roff::new();
    let examples = examples(command);
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
        for Example { about, command } in examples {
            roff.control("TP", []).text([roman(format!("{about}:"))]);
            roff.control("nf", []).text([bold(*command)]).control("fi", []);
        }
    }
    roff.control("SH", ["EXIT STATUS"]);
    for code in ExitCode::ALL {
        roff.control("TP", []).text([bold((code as u8).to_string())]).text([roman(code.meaning())]);
    }
    roff
}
