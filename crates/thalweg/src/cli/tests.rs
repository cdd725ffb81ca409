//! Tests of command-line parsing.

use super::*;
use crate::config::Request;

fn request(arguments: &[&str]) -> Result<Request, clap::Error> {
    let arguments = ["thalweg", "watch"].iter().chain(arguments);
    let matches = command().try_get_matches_from(arguments)?;
    match Cli::from_arg_matches(&matches)?.command {
        Command::Watch(args) => Ok(args.request()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_command_line_is_consistent() {
    command().debug_assert();
}

#[test]
fn omitted_flags_are_not_set() {
    let request = request(&["trace.pcap"]).unwrap();
    assert_eq!(request, Request { sources: vec!["trace.pcap".to_owned()], ..Request::default() });
}

#[test]
fn every_flag_sets_its_key() {
    for (_, key) in keys() {
        let flag = key.flag_name().unwrap();
        let (text, flag) = match key.name {
            // Their flags are inverted.
            "promiscuous" | "table" | "mouse" => ("true".to_owned(), format!("{flag}=false")),
            _ => {
                let given = key.default_value().map(|given| given.text().into_owned());
                let text = given.unwrap_or_else(|| key.extra.sample.to_owned());
                (text.clone(), format!("{flag}={text}"))
            }
        };
        let flags = request(&[&flag, "-"]).unwrap().flags;
        assert_eq!(flags.get(key.name), Some(&*text), "{flag}");
        assert_eq!(flags.len(), 1, "{flag}");
    }
}

#[test]
fn shorthand_flags_set_their_keys() {
    for (flag, key, value) in [
        ("--json", "show", "json"),
        ("--summary", "show", "summary"),
        ("--flows", "flows", "true"),
        ("--decapsulate", "decapsulate", "true"),
        ("--no-promiscuous", "promiscuous", "false"),
    ] {
        assert_eq!(request(&[flag, "-"]).unwrap().flags.get(key), Some(value), "{flag}");
    }
    assert_eq!(request(&["--replay", "-"]).unwrap().replay, Some(1.0));
    assert_eq!(request(&["--replay=0.5", "-"]).unwrap().replay, Some(0.5));
}

#[test]
fn contradictory_flags_are_refused() {
    for flags in [["--json", "--summary"], ["--json", "--show=auto"], ["--summary", "--show=json"]] {
        let error = request(&[flags[0], flags[1], "-"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ArgumentConflict, "{flags:?}");
    }
    for flag in ["--replay=0", "--replay=-1", "--replay=inf", "--replay=NaN", "--replay=fast"] {
        assert_eq!(request(&[flag, "-"]).unwrap_err().kind(), ErrorKind::ValueValidation, "{flag}");
    }
    // Without a source the interfaces are listed.
    assert_eq!(request(&[]).unwrap(), Request::default());
}

#[test]
fn help_names_every_default() {
    let help = command().find_subcommand_mut("watch").unwrap().render_help().to_string();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let help = words(&help);
    for (_, key) in keys().filter(|(_, key)| key.form() != Form::Boolean) {
        let default = format!("[default: {}]", key.default_description());
        assert!(help.contains(&default), "{key:?}: {default}");
    }
}

#[test]
fn a_repeated_cause_is_printed_once() {
    let error = anyhow::anyhow!("no space").context("cannot write: no space").context("cannot go on");
    assert_eq!(format_error(&error), "cannot go on: cannot write: no space");
}

#[test]
fn every_command_and_subcommand_has_a_man_page() {
    let page = |name: &str| {
        let arguments = ["thalweg", "man", name].map(OsString::from);
        command().try_get_matches_from(arguments).is_ok()
    };
    for name in [
        "watch",
        "top",
        "lab",
        "lab-run",
        "emulate",
        "endpoint",
        "flows",
        "flows-report",
        "flows-flowsets",
        "sketch-diff",
    ] {
        assert!(page(name), "{name}");
    }
    assert!(!page("nothing") && !page("flows-nothing"));
}
