//! One declaration drives types, parsing, messages, printing, the reference and the JSON Schema.

use proptest::prelude::*;
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::kind::{Amount, Number, Rate, Text, Texts, Time, Whole, one_of};
use super::*;

choices! {
    /// Severity of a log line.
    enum Level {
        /// failures
        Error = "error",
        /// starts
        /// and stops
        Info = "info",
    }
}

section! {
    /// The experiment.
    struct Top in TOP = "" {
        /// Duration of the run.
        duration: Nanos [Time] needed,
        /// Name of the author.
        name: String [Text("a name")] or "nobody",
    }
}

section! {
    /// A link.
    struct Wire in WIRE = ["wire"] max 3 {
        /// Its two ends.
        ends: Vec<String> [Texts("names")] needed,
        /// Its rate.
        rate: BitRate [Rate] default "10gbps",
        /// Verbosity.
        level: Level [one_of::<Level>()] default "info",
        /// Number of attempts.
        tries: u8 [Whole(1, 1_000)] default "3",
    }
}

keys! {
    /// Buffers.
    struct Buffers {
        /// Buffer size in packets.
        buffer: u32 [Whole(1, 100)] default "10",
    }
}

keys! {
    /// Queues that mark above a number of packets.
    struct Packets {
        /// Marking threshold.
        threshold: u32 [Whole(0, 100)] default "65",
    }
}

keys! {
    /// Phantom queues, which mark above a number of bytes.
    struct Phantom {
        /// Marking threshold.
        threshold: Bytes [Amount] default "15000B",
        /// Drain rate as a share of the link rate.
        gamma: f64 [Number(0.0, 1.0)] needed,
    }
}

keys! {
    /// Keys of every choice.
    struct Shared {
        /// Largest packet in bytes.
        mtu: u16 [Whole(100, 65_535)] default "1500",
    }
}

section! {
    /// Queue management.
    enum Queue in QUEUE = "queue" {
        /// Scheme.
        select name [|name| if name == "droptail" { "drops" } else { "marks" }] default "droptail",
        groups { Buffers, Packets, Phantom, Shared }
        DropTail = "droptail" (Buffers),
        Dctcp = "dctcp" (Buffers, Packets),
        Hull = "hull" (Buffers, Phantom),
    }
}

static SCHEMA: Schema = Schema::new("test", &[&TOP, &QUEUE, &WIRE]);

fn parse(text: &str) -> Result<Document, DocumentError> {
    Document::parse(&SCHEMA, text, "t.toml")
}

#[track_caller]
fn assert_rejected(text: &str, expected: &[&str]) {
    let message = parse(text).unwrap_err().to_string();
    assert_eq!(message.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_section_is_read_as_its_type() {
    let document = parse(
        "duration = \"5ms\"\n[queue]\nname = \"hull\"\ngamma = 0.9\nmtu = 9000\n[queue.dctcp]\nthreshold = 20\n\
         [[wire]]\nends = [\"a\", \"b\"]\nlevel = \"error\"\n[[wire]]\nends = \"c\"\nrate = 5\n",
    )
    .unwrap();
    assert_eq!(*document.one::<Top>(), Top { duration: Nanos::from_millis(5), name: None });
    let queue = document.one::<Queue>();
    let hull = Phantom { threshold: Bytes(15_000), gamma: 0.9 };
    assert_eq!(*queue, Queue::Hull(Buffers { buffer: 10 }, hull));
    assert_eq!(queue.keys::<Shared>().mtu, 9_000);
    assert!(queue.is_set(Phantom::gamma) && !queue.is_set(Phantom::threshold));
    let wires: Vec<Wire> = document.all::<Wire>().map(Typed::into_value).collect();
    assert_eq!(wires[0].ends, ["a", "b"]);
    assert_eq!((wires[0].level, wires[1].level.name()), (Level::Error, "info"));
    assert_eq!((wires[0].rate, wires[1].rate), (BitRate(10_000_000_000), BitRate(5)));
    let problem = document.all::<Wire>().nth(1).unwrap().refuse(Wire::rate, "too slow");
    assert_eq!(document.error(vec![problem]).to_string(), "t.toml:13: rate: too slow");
}

#[test]
fn a_value_beyond_the_type_of_a_key_is_rejected() {
    assert_rejected(
        "duration = '1s'\n[[wire]]\nends = 'a'\ntries = 256\n",
        &["t.toml:4: tries is 256: expected an integer from 1 to 1000"],
    );
}

#[test]
fn every_problem_has_its_line_and_the_expected_value() {
    assert_rejected(
        "nam = 'x'\n[queue]\nname = 'hul'\n[wires]\n[[wire]]\nrate = 0\nlevel = 'inf'\n",
        &[
            "t.toml:1: unknown key \"nam\"; did you mean \"name\"?",
            "t.toml:1: missing key \"duration\": expected a time above zero with a unit (ns, us, ms, s, min, h), such as 100ms or 1.5s, \
             in quotes",
            "t.toml:3: unknown queue \"hul\": expected one of droptail, dctcp, hull; did you mean \"hull\"?",
            "t.toml:4: unknown section \"wires\"; did you mean \"wire\"?",
            "t.toml:5: missing key \"ends\" in [[wire]]: expected names",
            "t.toml:6: rate is 0: expected a bit rate above zero, such as 40mbps or 10gbps, in quotes",
            "t.toml:7: level is 'inf': expected one of error, info; did you mean \"info\"?",
        ],
    );
    assert_rejected(
        "duration = '1s'\n[queue]\nthreshold = 3\n",
        &["t.toml:3: \"threshold\" does not apply to queue \"droptail\", only to dctcp, hull"],
    );
    let many = "[[wire]]\nends = 'a'\n".repeat(4);
    assert_rejected(
        &format!("duration = '1s'\n{many}"),
        &["t.toml:2: 4 [[wire]] sections: at most 3 are allowed"],
    );
}

#[test]
fn valid_sections_can_be_read_beside_invalid_ones() {
    let text = "duration = '1s'\n[[wire]]\nends = 3\n[[wire]]\nends = 'b'\nrat = 1\n";
    let (document, problems) = Document::read(&SCHEMA, text, "t.toml", Format::Toml).unwrap();
    assert_eq!(problems.len(), 2);
    assert_eq!(document.valid::<Wire>().map(|wire| wire.ends.clone()).collect::<Vec<_>>(), [["b"]]);
}

#[test]
fn json_has_the_same_messages_and_lines() {
    let text = "{\"duration\": \"1s\",\n \"wire\": [{\"ends\": [\"a\"], \"rate\": \"fast\"},\n 5]}";
    let (_, problems) = Document::read(&SCHEMA, text, "t.json", Format::Json).unwrap();
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "2: rate is \"fast\": expected a bit rate above zero, such as 40mbps or 10gbps, in quotes",
            "3: wire is 5: expected a list of objects, [{ ... }]",
        ]
    );
}

#[test]
fn a_printed_document_reads_back() {
    let text =
        "duration = '1s'\n[queue]\nname = 'dctcp'\n[queue.hull]\ngamma = 0.5\n[[wire]]\nends = ['a', 'b']\n";
    let printed = parse(text).unwrap().print();
    assert!(printed.contains("[queue.hull]\ngamma = 0.5\n"), "{printed}");
    assert_eq!(parse(&printed).unwrap().print(), printed);
}

#[test]
fn the_reference_page_describes_every_key() {
    let page = reference(&SCHEMA, "# Test\n");
    for text in [
        "## Top-level keys\n\nThe experiment.\n\n### `duration`\n\nDuration of the run.\n\nExpects a time",
        "### `threshold` (dctcp)\n\nMarking threshold.\n\nExpects an integer from 0 to 100. Default: `65`.\n",
        "- `info`: starts and stops.\n\nDefault: `\"info\"`.\n",
        "### `mtu`\n",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
}

#[test]
fn the_json_schema_has_the_keys_of_every_variant_of_a_section() {
    let schema = json_schema(&SCHEMA, "Test");
    assert_eq!(schema["required"], serde_json::json!(["duration"]));
    let queue = &schema["properties"]["queue"];
    assert_eq!(queue["properties"]["hull"]["properties"]["gamma"]["maximum"], 1.0);
    let hull = &queue["allOf"][2];
    assert_eq!(hull["if"]["properties"]["name"]["const"], "hull");
    assert_eq!(hull["then"]["required"], serde_json::json!(["gamma"]));
    assert_eq!(queue["allOf"][0]["then"]["properties"]["threshold"], false);
    assert_eq!(queue["allOf"][0]["if"].get("required"), None, "the default choice needs no key");
    assert_eq!(schema["properties"]["wire"]["items"]["properties"]["rate"]["default"], "10gbps");
}

/// Fragments of files, and arbitrary text.
fn piece() -> impl Strategy<Value = String> {
    const KNOWN: &[&str] = &[
        "duration",
        "[queue]",
        "name",
        "[[wire]]",
        "ends",
        "threshold",
        "[queue.hull]",
        "gamma",
        "=",
        "\n",
        "'1s'",
        "\"",
        "5",
        "true",
        "[",
        "]",
        "{",
        "}",
        ".",
        ",",
        "'hull'",
        "1e9",
        "#",
    ];
    prop_oneof![4 => prop::sample::select(KNOWN).prop_map(String::from), 1 => any::<String>()]
}

proptest! {
    #[test]
    fn any_text_parses_or_gives_problems_with_lines(pieces in prop::collection::vec(piece(), 0..40)) {
        let text = pieces.concat();
        for format in [Format::Toml, Format::Json] {
            match Document::read(&SCHEMA, &text, "t", format) {
                Ok((document, problems)) => {
                    let _ = document.valid::<Wire>().count() + document.valid::<Queue>().count();
                    if problems.is_empty() {
                        let _ = (document.one::<Top>(), document.one::<Queue>());
                    }
                }
                Err(wrong) => {
                    let last = 1 + text.bytes().filter(|&byte| byte == b'\n').count();
                    prop_assert!(wrong.problems.iter().all(|p| (1..=last).contains(&p.line().unwrap())));
                }
            }
        }
    }
}
