//! What is typed, as it is understood.

use super::*;
use crate::config::Request;
use crate::config::settings::{Settings, ShowChoice};

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
fn nothing_is_set_that_was_not_typed() {
    let request = request(&["trace.pcap"]).unwrap();
    assert_eq!(request, Request { sources: vec!["trace.pcap".to_owned()], ..Request::default() });
}

#[test]
fn every_flag_sets_its_key() {
    for key in &KEYS {
        let defaults = Settings::defaults();
        let (text, flag) = match key.name {
            // Their flags say the opposite.
            "promiscuous" | "table" => ("true".to_owned(), format!("{}=false", key.flag())),
            _ => {
                let text = key.get(&defaults).unwrap_or_else(|| key.sample.to_owned());
                (text.clone(), format!("{}={text}", key.flag()))
            }
        };
        let settings = request(&[&flag, "-"]).unwrap().settings;
        assert_eq!(key.get(&settings), Some(text), "{flag}");
        assert_eq!(KEYS.iter().filter(|key| key.get(&settings).is_some()).count(), 1, "{flag}");
    }
}

#[test]
fn shorthands_set_what_they_stand_for() {
    assert_eq!(request(&["--json", "-"]).unwrap().settings.output.show, Some(ShowChoice::Json));
    assert_eq!(request(&["--summary", "-"]).unwrap().settings.output.show, Some(ShowChoice::Summary));
    assert_eq!(request(&["--flows", "-"]).unwrap().settings.output.flows, Some(true));
    assert_eq!(request(&["--peel-tunnels", "-"]).unwrap().settings.input.peel_tunnels, Some(true));
    assert_eq!(request(&["--no-promiscuous", "eth0"]).unwrap().settings.live.promiscuous, Some(false));
    assert_eq!(request(&["--replay", "-"]).unwrap().replay, Some(1.0));
    assert_eq!(request(&["--replay=0.5", "-"]).unwrap().replay, Some(0.5));
}

#[test]
fn contradictions_are_refused() {
    for flags in [["--json", "--summary"], ["--json", "--show=auto"], ["--summary", "--show=json"]] {
        let error = request(&[flags[0], flags[1], "-"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ArgumentConflict, "{flags:?}");
    }
    for flag in ["--replay=0", "--replay=-1", "--replay=inf", "--replay=NaN", "--replay=fast"] {
        assert_eq!(request(&[flag, "-"]).unwrap_err().kind(), ErrorKind::ValueValidation, "{flag}");
    }
    assert_eq!(request(&[]).unwrap_err().kind(), ErrorKind::MissingRequiredArgument);
}

#[test]
fn help_names_every_default() {
    let help = command().find_subcommand_mut("watch").unwrap().render_help().to_string();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let help = words(&help);
    for key in KEYS.iter().filter(|key| key.form() != Form::Boolean) {
        let default = format!("[default: {}]", key.default_in_words());
        assert!(help.contains(&default), "{key:?}: {default}");
    }
}

#[test]
fn a_cause_is_told_once() {
    let error = anyhow::anyhow!("no space").context("cannot write: no space").context("cannot go on");
    assert_eq!(told(&error), "cannot go on: cannot write: no space");
}
