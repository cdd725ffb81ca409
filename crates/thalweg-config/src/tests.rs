//! What is declared once gives the type, the reading, the messages, the printing and the schema.

use proptest::prelude::*;
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::kind::{Amount, Number, Rate, Text, Texts, Time, Whole, one_of};
use super::*;

choices! {
    /// How important a line is.
    enum Level {
        /// what fails
        Error = "error",
        /// what begins
        /// and ends
        Info = "info",
    }
}

section! {
    /// The whole.
    struct Top in TOP = "" {
        /// How long it takes.
        duration: Nanos [Time] needed,
        /// Who did it.
        name: String [Text("a name")] or "nobody",
    }
}

section! {
    /// How a link is.
    struct Wire in WIRE = ["wire"] most 3 {
        /// Its two ends.
        ends: Vec<String> [Texts("names")] needed,
        /// Its rate.
        rate: BitRate [Rate] default "10gbps",
        /// How much it says.
        level: Level [one_of::<Level>()] default "info",
        /// Small.
        tries: u8 [Whole(1, 1_000)] default "3",
    }
}

keys! {
    /// Room.
    struct Room {
        /// Packets that have room.
        buffer: u32 [Whole(1, 100)] default "10",
    }
}

keys! {
    /// Of queues that mark from a number of packets on.
    struct Packets {
        /// From when on.
        threshold: u32 [Whole(0, 100)] default "65",
    }
}

keys! {
    /// Of queues that mark from an amount on.
    struct Phantom {
        /// From when on.
        threshold: Bytes [Amount] default "15000B",
        /// How fast they drain.
        gamma: f64 [Number(0.0, 1.0)] needed,
    }
}

keys! {
    /// Of all queues.
    struct Shared {
        /// Of all.
        mtu: u16 [Whole(100, 65_535)] default "1500",
    }
}

section! {
    /// How queues are managed.
    enum Queue in QUEUE = "queue" {
        /// By what.
        select name [|name| if name == "droptail" { "drops" } else { "marks" }] default "droptail",
        groups { Room, Packets, Phantom, Shared }
        DropTail = "droptail" (Room),
        Dctcp = "dctcp" (Room, Packets),
        Hull = "hull" (Room, Phantom),
    }
}

static SCHEMA: Schema = Schema::new("test", &[&TOP, &QUEUE, &WIRE]);

fn parse(text: &str) -> Result<Document, DocumentError> {
    Document::parse(&SCHEMA, text, "t.toml")
}

#[track_caller]
fn refused(text: &str, expected: &[&str]) {
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
    assert_eq!(*queue, Queue::Hull(Room { buffer: 10 }, hull));
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
fn what_is_beyond_the_type_of_a_key_is_refused_and_not_cut() {
    refused(
        "duration = '1s'\n[[wire]]\nends = 'a'\ntries = 256\n",
        &["t.toml:4: tries is 256: expected an integer from 1 to 1000"],
    );
}

#[test]
fn every_mistake_has_its_line_and_what_was_expected() {
    refused(
        "nam = 'x'\n[queue]\nname = 'hul'\n[wires]\n[[wire]]\nrate = 0\nlevel = 'inf'\n",
        &[
            "t.toml:1: unknown key nam; did you mean name?",
            "t.toml:1: the test has no duration: expected a time longer than zero, such as 200us, 100ms, 1.5s or 30min, \
             in quotes",
            "t.toml:3: name is 'hul': expected one of droptail, dctcp, hull, in quotes; did you mean hull?",
            "t.toml:4: unknown section [wires]; did you mean wire?",
            "t.toml:5: [[wire]] has no ends: expected names",
            "t.toml:6: rate is 0: expected a bit rate above zero, such as 40mbps or 10gbps, in quotes",
            "t.toml:7: level is 'inf': expected one of error, info, in quotes; did you mean info?",
        ],
    );
    refused(
        "duration = '1s'\n[queue]\nthreshold = 3\n",
        &["t.toml:3: threshold is not for droptail: it is for dctcp, hull"],
    );
    let many = "[[wire]]\nends = 'a'\n".repeat(4);
    refused(&format!("duration = '1s'\n{many}"), &["t.toml:2: there are 4 [[wire]]: 3 are the most"]);
}

#[test]
fn what_is_sound_can_be_read_beside_what_is_not() {
    let text = "duration = '1s'\n[[wire]]\nends = 3\n[[wire]]\nends = 'b'\nrat = 1\n";
    let (document, problems) = Document::read(&SCHEMA, text, "t.toml", Format::Toml).unwrap();
    assert_eq!(problems.len(), 2);
    assert_eq!(document.sound::<Wire>().map(|wire| wire.ends.clone()).collect::<Vec<_>>(), [["b"]]);
}

#[test]
fn keys_of_json_have_the_same_messages_and_lines() {
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
fn the_reference_names_every_key_with_its_meaning_and_default() {
    let page = reference(&SCHEMA, "# Test\n");
    for text in [
        "## Above all sections\n\nThe whole.\n\n### `duration`\n\nHow long it takes.\n\nExpects a time",
        "### `threshold` (dctcp)\n\nFrom when on.\n\nExpects an integer from 0 to 100. Default: `65`.\n",
        "- `info`: what begins and ends.\n\nDefault: `\"info\"`.\n",
        "### `mtu`\n",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
}

#[test]
fn the_schema_has_what_is_selected_and_what_waits() {
    let schema = json_schema(&SCHEMA, "Test");
    assert_eq!(schema["required"], serde_json::json!(["duration"]));
    let queue = &schema["properties"]["queue"];
    assert_eq!(queue["properties"]["hull"]["properties"]["gamma"]["maximum"], 1.0);
    let hull = &queue["allOf"][2];
    assert_eq!(hull["if"]["properties"]["name"]["const"], "hull");
    assert_eq!(hull["then"]["required"], serde_json::json!(["gamma"]));
    assert_eq!(queue["allOf"][0]["then"]["properties"]["threshold"], false);
    assert_eq!(queue["allOf"][0]["if"].get("required"), None, "it is selected by default");
    assert_eq!(schema["properties"]["wire"]["items"]["properties"]["rate"]["default"], "10gbps");
}

/// Pieces of which files are made, and some of which they are not.
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
    fn any_text_is_a_document_or_problems_with_lines(pieces in prop::collection::vec(piece(), 0..40)) {
        let text = pieces.concat();
        for format in [Format::Toml, Format::Json] {
            match Document::read(&SCHEMA, &text, "t", format) {
                Ok((document, problems)) => {
                    let _ = document.sound::<Wire>().count() + document.sound::<Queue>().count();
                    if problems.is_empty() {
                        let _ = (document.one::<Top>(), document.one::<Queue>());
                    }
                }
                Err(DocumentError::Wrong(wrong)) => {
                    let last = 1 + text.bytes().filter(|&byte| byte == b'\n').count();
                    prop_assert!(wrong.problems.iter().all(|p| (1..=last).contains(&p.line().unwrap())));
                }
                Err(error) => prop_assert!(false, "{error}"),
            }
        }
    }
}
