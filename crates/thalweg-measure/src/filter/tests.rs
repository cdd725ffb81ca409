//! Tests of the language: canonical forms, limits and error messages.

mod cases;
mod oracle;
mod views;

use super::*;

fn compile(text: &str) -> FlowFilter {
    FlowFilter::compile(text, &RECORDS).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn filters_print_in_canonical_form() {
    for (text, printed) in [
        ("", ""),
        (" # nothing ", ""),
        ("INET and HOST 10.0.0.1", "ipv4 and ip 10.0.0.1"),
        ("(proto tcp or proto 17) and not(port >= 0x50)", "(proto 6 or proto 17) and not port >= 80"),
        ("proto 6 or (proto 17 and port eq 53)", "proto 6 or proto 17 and port 53"),
        ("any and (any and any)", "any and (any and any)"),
        ("! ! (any || any)", "not not (any or any)"),
        ("dst or src net 10.1.2.3/8", "ip 10.0.0.0/8"),
        ("dst and src port in [80, 80 53]", "src and dst port in [53, 80]"),
        ("ip in [10/8 10.0.0.1 10.0.0.1]", "ip in [10.0.0.1, 10.0.0.0/8]"),
        ("ip in [10.0.0.1]", "ip 10.0.0.1"),
        ("net 10.0.0.0 255.0.0.0", "ip 10.0.0.0/8"),
        ("in bytes > 1M", "in bytes > 1000000"),
        ("flags = 0x1b or flags > 2 or flags AS", "flags 27 or flags > 2 or flags SA"),
        (
            "dir ingress or out if 3 or observation domain id 7",
            "flowdir 0 or out if 3 or observation domain id 7",
        ),
        ("not (flags X or src as in [1])", "not (flags FSRPAU or src as in [1])"),
    ] {
        assert_eq!(compile(text).to_string(), printed, "{text}");
        assert_eq!(compile(printed).expression, compile(text).expression, "{text}");
    }
}

#[test]
fn the_empty_filter_selects_every_flow() {
    for text in ["", "  ", "# comment", "\n# one\n# two\n"] {
        assert!(compile(text).is_empty(), "{text}");
    }
    assert_eq!(FlowFilter::default(), compile(""));
    assert!(!compile("any").is_empty());
    assert_eq!(compile(" port 80 ").text(), "port 80");
    assert_eq!(compile(" port 0x50 ").line(), "port 0x50");
    assert_eq!(compile("port 0x50 # web\n or any").line(), "port 80 or any");
}

#[test]
fn nesting_and_length_are_bounded() {
    let nested = |depth: usize| format!("{}any{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(compile(&nested(MAX_DEPTH)).to_string(), "any");
    for text in
        [nested(MAX_DEPTH + 1), "not ".repeat(MAX_DEPTH + 1), "(".repeat(MAX_LENGTH), "!".repeat(MAX_LENGTH)]
    {
        assert_eq!(FlowFilter::compile(&text, &RECORDS).unwrap_err().kind, FilterErrorKind::TooDeep);
    }
    // A long chain is not nested.
    let chain = format!("any{}", " or any".repeat((MAX_LENGTH - 3) / 7));
    assert_eq!(compile(&chain).to_string(), chain);
    let error = FlowFilter::compile(&" ".repeat(MAX_LENGTH + 1), &RECORDS).unwrap_err();
    assert_eq!(error.to_string(), "filter, column 1: the filter is longer than 65536 characters");
}

#[test]
fn an_excerpt_marks_the_column() {
    for (text, excerpt) in [
        ("src port 443 or port https", "  src port 443 or port https\n                       ^"),
        ("port 80 # web\nor any 5", "  or any 5\n         ^"),
        ("port", "  port\n      ^"),
        ("", "  \n  ^"),
    ] {
        let error = FlowFilter::compile(text, &RECORDS).err();
        let error = error.unwrap_or(FilterError { line: None, column: 1, kind: FilterErrorKind::EmptyList });
        assert_eq!(error.excerpt(text), excerpt);
    }
}

#[test]
fn messages_quote_no_control_characters_and_no_long_words() {
    let long = format!("port \x1b[31m{}", "x".repeat(1_000));
    let message = FlowFilter::compile(&long, &RECORDS).unwrap_err().to_string();
    assert_eq!(message, "filter, column 6: expected a number, found '?'");
    let long = format!("port {}", "x".repeat(1_000));
    let message = FlowFilter::compile(&long, &RECORDS).unwrap_err().to_string();
    assert_eq!(message, format!("filter, column 6: expected a number, found '{}...'", "x".repeat(40)));
}
