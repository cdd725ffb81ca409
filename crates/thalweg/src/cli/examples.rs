//! Examples and exit codes, shown below the options in `--help`, man pages and the reference.

use std::fmt::Write;

use clap::Command;
use clap::builder::Styles;
use clap_mangen::roff::{Roff, bold, roman};

use super::exit_code::ExitCode;

/// An example command line.
pub(super) struct Example {
    /// What it does.
    pub(super) about: &'static str,
    /// Command line.
    pub(super) command: &'static str,
}

const PROGRAM: [Example; 5] = [
    Example { about: "Watch an interface", command: "sudo thalweg watch eth0" },
    Example { about: "Analyse a capture file", command: "thalweg watch trace.pcap" },
    Example { about: "Run the collector daemon", command: "sudo thalweg serve -c thalweg.toml" },
    Example { about: "Emulate a network", command: "thalweg emulate experiment.toml" },
    Example { about: "Help for a command", command: "thalweg help watch" },
];

const WATCH: [Example; 11] = [
    Example { about: "Analyse a capture file", command: "thalweg watch trace.pcap" },
    Example { about: "Replay it in real time", command: "thalweg watch --replay trace.pcap" },
    Example {
        about: "Read from another capture program",
        command: "sudo tcpdump -i eth0 -U -w - | thalweg watch -",
    },
    Example { about: "Watch an interface for 10 seconds", command: "sudo thalweg watch --duration 10s eth0" },
    Example { about: "List the interfaces", command: "thalweg watch -D" },
    Example { about: "Hosts by traffic, as CSV", command: "thalweg watch --csv --by host trace.pcap" },
    Example { about: "Capture HTTPS only", command: "sudo thalweg watch -f 'tcp port 443' eth0" },
    Example {
        about: "List senders above 1 Gbit/s with jq",
        command: "thalweg watch --json -R 1gbps trace.pcap | jq -r '\n    \
                  select(.type == \"cheetah\") | \"\\(.flow.src) \\(.rate_bps)\"'",
    },
    Example {
        about: "Detect with the published algorithm, ignoring short packets",
        command: "thalweg watch --detector cfinf --packet-length-threshold 600 trace.pcap",
    },
    Example {
        about: "Measure heavy hitters, entropy and distinct flows every second",
        command: "thalweg watch --tasks heavy:0.1%,entropy:src,distinct --window 1s trace.pcap",
    },
    Example {
        about: "Find hosts with more than 1,000 peers in 2 MiB of memory",
        command: "sudo thalweg watch --no-table --tasks 'spread:src>1000' --memory 2MiB eth0",
    },
];

const COLLECT: [Example; 7] = [
    Example { about: "Listen on the default ports", command: "thalweg collect -o flows" },
    Example {
        about: "Listen on one address, write hourly files, keep 30 days",
        command: "thalweg collect -o flows --file-span 1h --retention-age 720h 10.0.0.1:9995",
    },
    Example {
        about: "Accept IPFIX over TLS from authenticated exporters",
        command: "thalweg collect -o flows --tls-certificate cert.pem --tls-key key.pem --tls-client-ca-file ca.pem tls:4740",
    },
    Example {
        about: "Set the sampling interval of a router that does not report it",
        command: "thalweg collect -o flows --sampling 10.0.0.1=1000",
    },
    Example {
        about: "Read captured export messages",
        command: "thalweg collect -o flows --replay export.pcap",
    },
    Example {
        about: "Run as a service with Prometheus metrics",
        command: "thalweg collect -o /var/lib/thalweg --json --metrics 127.0.0.1:9478",
    },
    Example {
        about: "Query the top senders with DuckDB",
        command: "duckdb -c \"SELECT src, sum(bytes * greatest(sampling_interval, 1)) AS bytes\n    \
                  FROM 'flows/flows/*/*/*.parquet' GROUP BY 1 ORDER BY 2 DESC LIMIT 10\"",
    },
];

const EMULATE: [Example; 6] = [
    Example { about: "List topologies, schemes, transports and traffic", command: "thalweg emulate --list" },
    Example { about: "Run an experiment", command: "thalweg emulate examples/experiments/incast.toml" },
    Example {
        about: "Write tables and plots",
        command: "thalweg emulate --output results examples/experiments/incast.toml",
    },
    Example {
        about: "Compare three schemes at eight loads",
        command: "thalweg emulate --sweep scheme=droptail,dctcp,pfabric --sweep load=0.1..0.8 \\\n    \
                  examples/experiments/web-search.toml",
    },
    Example {
        about: "Show DCTCP marks by threshold with jq",
        command: "thalweg emulate --json --sweep scheme=dctcp --sweep threshold=10..100:10 \\\n    \
                  examples/experiments/incast.toml |\n    \
                  jq '[.sweep.threshold, .packets.marked]'",
    },
    Example {
        about: "Print the resolved experiment",
        command: "thalweg emulate --print-config examples/experiments/incast.toml",
    },
];

const SERVE: [Example; 3] = [
    Example { about: "Create a configuration file", command: "thalweg config serve > thalweg.toml" },
    Example { about: "Run the daemon", command: "sudo thalweg serve -c thalweg.toml" },
    Example {
        about: "Try it without root on an example capture",
        command: "thalweg serve -c examples/collector/thalweg.toml",
    },
];

const TOP: [Example; 3] = [
    Example { about: "Watch the local daemon", command: "thalweg top" },
    Example {
        about: "Watch a remote daemon with a token",
        command: "thalweg top --api https://collector:9477 --ca-file ca.pem --token-file token",
    },
    Example {
        about: "List links above 90 % with jq",
        command: "thalweg top --json | jq -r '.links[] | select(.utilisation > 0.9) | .link'",
    },
];

const CHECK: [Example; 2] = [
    Example { about: "Check a configuration", command: "thalweg check thalweg.toml" },
    Example {
        about: "Check it before the interfaces exist",
        command: "thalweg check --skip-interfaces thalweg.toml",
    },
];

const FLOWS: [Example; 5] = [
    Example {
        about: "Report transfers between networks, with plots",
        command: "thalweg flows report records --by asn --output report",
    },
    Example {
        about: "Top senders of the last hour",
        command: "thalweg flows top records --by src --from -1h",
    },
    Example {
        about: "Traffic of a service over time",
        command: "thalweg flows series records --every 5m 'dst port 443'",
    },
    Example {
        about: "Query with an nfdump filter, or with SQL",
        command: "thalweg flows query records 'src net 10.0.0.0/8 and bytes > 1g'\n\
                  thalweg flows query records 'SELECT exporter, count(*) FROM records GROUP BY ALL'",
    },
    Example { about: "List the subcommands", command: "thalweg flows --help" },
];

const SYNTH: [Example; 6] = [
    Example {
        about: "Generate a trace and its truth",
        command: "thalweg synth -o trace.pcap --truth truth.csv",
    },
    Example {
        about: "Generate a trace of the size used in the dissertation",
        command: "thalweg synth --packets 38M -o trace.pcap --truth truth.csv",
    },
    Example { about: "Pipe a trace into watch", command: "thalweg synth -o - | thalweg watch -" },
    Example {
        about: "Generate two days of flow records with planted transfers",
        command: "thalweg synth --netflow --parquet records --records 20M --truth-transfers truth.csv",
    },
    Example {
        about: "Generate flowsets of 16 flows at one router without sampling",
        command: "thalweg synth --netflow --flowset-flows 16 --path-routers 1 --sampling-interval 1 \\\n    \
                  -o records.pcap",
    },
    Example {
        about: "Send 500,000 records per second to a flow receiver",
        command: "thalweg synth --netflow --records 50M --send localhost:2055 --rate 500k",
    },
];

const SKETCH: [Example; 3] = [
    Example { about: "Show sketches", command: "thalweg sketch show states/*heavy*.tsk" },
    Example {
        about: "Merge the sketches of three hosts",
        command: "thalweg sketch merge a.tsk b.tsk c.tsk -o network.tsk",
    },
    Example { about: "Compare two windows", command: "thalweg sketch diff 12-00.tsk 12-01.tsk" },
];

const LAB: [Example; 6] = [
    Example { about: "Create a leaf-spine lab", command: "sudo thalweg lab up leaf-spine --rate 100mbps" },
    Example { about: "Ping between hosts", command: "sudo thalweg lab exec h0 -- ping -c 3 10.0.0.5" },
    Example { about: "Show counters", command: "sudo thalweg lab status" },
    Example { about: "Remove the lab", command: "sudo thalweg lab down" },
    Example {
        about: "Measure how fast colliding flows are rerouted",
        command: "sudo thalweg lab run collide --trials 60 --output results",
    },
    Example {
        about: "Connect hosts by an emulated network, here two sites 100 ms apart",
        command: "sudo thalweg lab up --emulate examples/wan-lab/wan.toml --late-after 1ms",
    },
];

const ENDPOINT: [Example; 2] = [
    Example {
        about: "Send the packets of this host through an emulated network",
        command: "sudo thalweg endpoint -i eth0 -n 1 -a 10.9.0.1:6589 --hosts hosts.txt",
    },
    Example {
        about: "The same for a network namespace, with an arbiter in this one, as fast as possible",
        command: "sudo thalweg endpoint -i eth0 -n 1 -a 127.0.0.1:6589 --hosts hosts.txt --namespace h1 --wait busy-poll",
    },
];

const SCHEMA: [Example; 2] = [
    Example {
        about: "Schema of the daemon configuration",
        command: "thalweg schema daemon > daemon.schema.json",
    },
    Example {
        about: "Validate in an editor with taplo",
        command: "sed -i '1i #:schema ./daemon.schema.json' thalweg.toml",
    },
];

const TOPOLOGY: [Example; 2] = [
    Example {
        about: "Import from switches that run lldpd",
        command: "for switch in leaf0 leaf1; do ssh $switch lldpcli -f json show neighbors > $switch.json; done\n\
                  thalweg topology import --lldp leaf0=leaf0.json --lldp leaf1=leaf1.json -o topology.toml",
    },
    Example {
        about: "Import a bridge of Open vSwitch and its flows",
        command: "ovs-ofctl show br0 > br0.show; ovs-ofctl dump-flows br0 > br0.flows\n\
                  ovs-vsctl --format=json list Interface > interfaces.json\n\
                  thalweg topology import --ovs-show br0=br0.show --ovs-flows br0=br0.flows --ovs-interfaces interfaces.json",
    },
];

const CONFIG: [Example; 2] = [
    Example {
        about: "Create a configuration file of the daemon",
        command: "thalweg config serve > thalweg.toml",
    },
    Example { about: "Create a configuration file of watch", command: "thalweg config watch > watch.toml" },
];

/// Examples of a command, or of the program.
pub(super) fn examples(command: Option<&str>) -> &'static [Example] {
    match command {
        None => &PROGRAM,
        Some("watch") => &WATCH,
        Some("collect") => &COLLECT,
        Some("serve") => &SERVE,
        Some("check") => &CHECK,
        Some("schema") => &SCHEMA,
        Some("topology") => &TOPOLOGY,
        Some("top") => &TOP,
        Some("emulate") => &EMULATE,
        Some("endpoint") => &ENDPOINT,
        Some("sketch") => &SKETCH,
        Some("flows") => &FLOWS,
        Some("synth") => &SYNTH,
        Some("lab") => &LAB,
        Some("config") => &CONFIG,
        Some(_) => &[],
    }
}

/// Adds examples and exit codes to the help of all commands.
pub(super) fn add_to(program: Command) -> Command {
    program.after_long_help(help(None)).mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        let text = help(Some(&name));
        match examples(Some(&name)) {
            [] => command.after_long_help(text),
            _ => command
                .after_long_help(text)
                .after_help(format!("See `thalweg help {name}` for details and examples.")),
        }
    })
}

/// Text for `--help`.
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
    for &code in ExitCode::of_command(command) {
        let _ = write!(text, "\n  {}  {}", code as u8, code.meaning());
    }
    text
}

/// Sections for a man page.
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
    for &code in ExitCode::of_command(command) {
        roff.control("TP", []).text([bold((code as u8).to_string())]).text([roman(code.meaning())]);
    }
    roff
}
