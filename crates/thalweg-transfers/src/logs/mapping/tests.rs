use super::*;

/// A mapping with all that is required.
pub(in super::super) fn bytes_and_times() -> Mapping {
    let column = |name: &str| Source { column: name.to_owned(), ..Source::default() };
    let fields = [
        (Field::Direction, Source { constant: "send".to_owned(), ..Source::default() }),
        (Field::Bytes, column("size")),
        (Field::Start, column("begin")),
        (Field::End, column("end")),
    ];
    Mapping { fields: fields.into_iter().collect(), ..Mapping::default() }
}

fn parser(mapping: &Mapping) -> MappingParser {
    MappingParser::new(mapping, String::new(), TimeZone::UTC).unwrap()
}

fn parse(mapping: &Mapping, lines: &[&str]) -> Result<Vec<LoggedTransfer>, LineError> {
    let mut parser = parser(mapping);
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        if number > 0 || !parser.header(line) {
            parser.line(line, number as u64, &mut found)?;
        }
    }
    Ok(found)
}

/// A mapping of all fields, of a log of dCache or similar.
const ALL_FIELDS: &str = r#"{
    "input": "json",
    "fields": {
        "application": {"column": "protocol"},
        "direction": {"column": "operation", "send": ["read", "get"], "receive": ["write"]},
        "user": {"column": "owner.name"},
        "file": {"column": "/paths/0"},
        "local": {"column": "door"},
        "remote": {"column": "client"},
        "local_port": {"constant": "1094"},
        "remote_port": {"column": "client_port"},
        "end": {"column": "finished", "time": "epoch_milliseconds"},
        "duration": {"column": "took_ms", "scale": 0.001},
        "bytes": {"column": "kilobytes", "scale": 1000},
        "streams": {"column": "streams"},
        "send_buffer_bytes": {"column": "buffer_kib", "scale": 1024},
        "receive_buffer_bytes": {"column": "missing"},
        "congestion_control": {"column": "cc"},
        "error": {"column": "status", "success": ["0:ok"]}
    }
}"#;

const ALL_VALUES: &str = r#"{"protocol":"xrootd","operation":"get","owner":{"name":"ada"},"paths":["/f"],"door":"192.0.2.1","client":"::ffff:192.0.2.7","client_port":40000,"finished":1795896900500,"took_ms":2250,"kilobytes":300.5,"streams":4,"buffer_kib":64,"cc":"bbr","status":"0:ok"}"#;

#[test]
fn every_field_of_json_lines_is_mapped() {
    let mapping: Mapping = serde_json::from_str(ALL_FIELDS).unwrap();
    let expected = LoggedTransfer {
        application: "xrootd".to_owned(),
        direction: TransferDirection::Send,
        user: "ada".to_owned(),
        file: "/f".to_owned(),
        local: Some("192.0.2.1".parse().unwrap()),
        remote: Peer::parse("192.0.2.7"),
        local_port: 1_094,
        remote_port: 40_000,
        start_us: 1_795_896_898_250_000,
        end_us: 1_795_896_900_500_000,
        bytes: 300_500,
        streams: 4,
        send_buffer_bytes: 65_536,
        congestion_control: "bbr".to_owned(),
        ..LoggedTransfer::default()
    };
    assert_eq!(parse(&mapping, &[ALL_VALUES]), Ok(vec![expected]));
    let failed = parse(&mapping, &[&ALL_VALUES.replace("0:ok", "7:no space")]).unwrap();
    assert_eq!(failed[0].error, "7:no space");
}

#[test]
fn columns_of_csv_are_found_by_the_header() {
    let mapping = bytes_and_times();
    let lines = ["note,end,begin,size", "\"a, b\",2026-11-28T20:15:02Z,2026-11-28T20:15:00Z,300000"];
    let found = parse(&mapping, &lines).unwrap();
    assert_eq!((found.len(), found[0].bytes), (1, 300_000));
    assert_eq!(found[0].end_us - found[0].start_us, 2_000_000);
    assert_eq!(found[0].application, "mapping");
}

#[test]
fn columns_of_csv_without_a_header_are_configured() {
    let mut mapping = bytes_and_times();
    mapping.columns = ["size", "begin", "end"].map(str::to_owned).to_vec();
    mapping.delimiter = Some(';');
    let found = parse(&mapping, &["300000;2026-11-28T20:15:00Z;2026-11-28T20:15:02Z"]).unwrap();
    assert_eq!(found[0].bytes, 300_000);
}

#[test]
fn a_log_without_its_header_is_refused_until_one_comes() {
    let mut parser = parser(&bytes_and_times());
    let line = "300000,2026-11-28T20:15:00Z,2026-11-28T20:15:02Z";
    let mut found = Vec::new();
    assert!(!parser.header(line));
    assert!(parser.line(line, 0, &mut found).is_err());
    assert!(parser.line("size,begin,end", 0, &mut found).is_ok());
    assert!(parser.line(line, 0, &mut found).is_ok());
    assert_eq!(found.len(), 1);
}

#[test]
fn a_transfer_with_an_end_alone_has_no_duration() {
    let mut mapping = bytes_and_times();
    mapping.fields.remove(&Field::Start);
    let found = parse(&mapping, &["size,end", "7,2026-11-28T20:15:02Z"]).unwrap();
    assert_eq!(found[0].start_us, found[0].end_us);
}

#[test]
fn wrong_values_are_refused() {
    let mapping = bytes_and_times();
    for (line, expected) in [
        ("x,2026-11-28T20:15:00Z,2026-11-28T20:15:02Z", "a number"),
        ("-1,2026-11-28T20:15:00Z,2026-11-28T20:15:02Z", "a number"),
        ("1,20:15,2026-11-28T20:15:02Z", "a time such as `2026-11-28T20:00:00.5+01:00`"),
        ("1,2026-11-28T20:15:00Z", "as many values as the header has columns"),
        ("1,,", "a start or an end"),
    ] {
        let error = parse(&mapping, &["size,begin,end", line]).unwrap_err();
        assert_eq!(error.expected, expected, "{line}");
    }
    let mut mapping: Mapping = serde_json::from_str(ALL_FIELDS).unwrap();
    let error = parse(&mapping, &[&ALL_VALUES.replace("\"get\"", "\"list\"")]).unwrap_err();
    assert_eq!(
        (error.expected, error.found.as_str()),
        ("a direction: one of the values of `send`, `receive` or `ignore`", "list")
    );
    if let Some(direction) = mapping.fields.get_mut(&Field::Direction) {
        direction.ignore.push("list".to_owned());
    }
    assert_eq!(parse(&mapping, &[&ALL_VALUES.replace("\"get\"", "\"list\"")]), Ok(Vec::new()));
}

#[test]
fn an_unusable_mapping_is_refused() {
    let refused = |change: &dyn Fn(&mut Mapping)| {
        let mut mapping = bytes_and_times();
        change(&mut mapping);
        MappingParser::new(&mapping, String::new(), TimeZone::UTC).unwrap_err().to_string()
    };
    let source = |mapping: &mut Mapping, field, change: &dyn Fn(&mut Source)| {
        if let Some(source) = mapping.fields.get_mut(&field) {
            change(source);
        }
    };
    let cases: [(String, &str); 7] = [
        (refused(&|mapping| drop(mapping.fields.remove(&Field::Bytes))), "field `bytes` is missing"),
        (refused(&|mapping| drop(mapping.fields.remove(&Field::Direction))), "field `direction` is missing"),
        (
            refused(&|mapping| drop(mapping.fields.remove(&Field::End))),
            "expected `end`, or `start` and `duration`",
        ),
        (
            refused(&|mapping| source(mapping, Field::End, &|source| "x".clone_into(&mut source.constant))),
            "field `end`: expected either `column` or `constant`",
        ),
        (
            refused(&|mapping| source(mapping, Field::End, &|source| source.scale = Some(2.0))),
            "field `end` has no `scale`",
        ),
        (refused(&|mapping| mapping.columns = vec!["size".to_owned()]), "`columns` has no column"),
        (refused(&|mapping| mapping.delimiter = Some('→')), "expected a delimiter of one ASCII character"),
    ];
    for (message, problem) in cases {
        assert!(message.contains(problem), "{message}");
    }
}

#[test]
fn an_unknown_option_of_a_source_is_refused() {
    assert!(serde_json::from_str::<Source>(r#"{"colum": "size"}"#).is_err());
}
