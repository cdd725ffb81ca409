//! Tests of files and flags, valid and invalid.

use proptest::prelude::*;
use thalweg_config::{Form, Key, Literal};
use thalweg_measure::detect::CheetahThreshold;
use thalweg_measure::detect::cfinf::CfinfParameters;
use thalweg_measure::meter::flow_table::FlowTableOptions;
use thalweg_measure::tasks::{TaskList, TasksOptions};
use thalweg_wire::{BitRate, Bytes, Nanos, Protocol};

use super::settings::{Detection, DetectorName};
use super::*;
use crate::watch::options::{Detector, Show, WatchOptions};

fn parsed(text: &str) -> Config {
    Config::parse(text, "lab.toml").unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    Config::parse(text, "lab.toml").unwrap_err().to_string()
}

/// With a terminal as standard output.
fn resolved(text: &str) -> Result<WatchOptions, OptionsError> {
    resolve(&Request::default(), &parsed(text), true)
}

fn resolution_refused(text: &str) -> String {
    resolved(text).unwrap_err().to_string()
}

/// Creates a command line from pairs of key and value.
fn typed(pairs: &[(&str, &str)]) -> Request {
    let mut flags = Flags::default();
    for (name, text) in pairs {
        let (_, key) = keys().find(|(_, key)| key.name == *name).unwrap();
        assert!((key.accepts)(&Literal::from_text(key.form(), text)), "{name} = {text}");
        flags.set(key.name, *text);
    }
    Request { flags, ..Request::default() }
}

/// Returns the text of the value or default of a key.
fn value_text(document: &Document, key: &'static Key) -> Option<String> {
    let entry = document.entries().iter().find(|entry| entry.section.has(key.name))?;
    entry.literal(key).map(|literal| literal.text().into_owned())
}

/// Returns two valid values of a key.
fn samples(key: &Key) -> [&'static str; 2] {
    match key.name {
        "show" => ["json", "summary"],
        "detector" => ["cfinf", "none"],
        "capture_filter" => ["tcp", "host \"a\" and 'b' \\"],
        "filter" => ["proto tcp", "port in [80, 443] # web"],
        "rate_threshold" => ["1gbps", "800kbps"],
        "sampling_probability" => ["0.5", "0.25"],
        "protocol_filter" => ["", "udp,proto-200"],
        "snap_length" | "ring_size" | "packet_length_threshold" | "memory" => ["1MiB", "600B"],
        "tasks" => ["heavy:0.1%", "distinct:src,entropy:dst"],
        "sampling" => ["1/16", "correct"],
        "ipfix" => ["udp://10.0.0.1:4739", "tcp://[::1]:4739"],
        "ipfix_times" => ["microseconds", "milliseconds"],
        "backend" => ["af_xdp", "prompt"],
        "hook" => ["xdp", "tc"],
        "by" => ["host", "pair"],
        "names" => ["always", "never"],
        "capture_limit" => ["1MiB", "600B"],
        _ => match key.form() {
            Form::Boolean => ["true", "false"],
            Form::Integer => ["1", "77"],
            _ => ["20ms", "3s"],
        },
    }
}

#[test]
fn defaults_match_those_of_the_libraries() {
    let options = resolved("").unwrap();
    assert_eq!(options.show, Show::LiveView);
    assert_eq!(options.flow_table, FlowTableOptions::default());
    assert_eq!(options.threshold, CheetahThreshold::default());
    assert_eq!(options.detector, Detector::SlidingWindow { tracks: 32_768 });
    assert_eq!(options.live, thalweg_capture::live::LiveOptions::new(""));
    assert_eq!(options.backend, Some(thalweg_capture::backend::Backend::AfPacket));
    assert_eq!((options.top, options.workers, options.seed), (10, None, None));
    assert_eq!(options.flow_capture, thalweg_watch::flow_capture::FlowCaptureOptions::default());
    let Detector::Cfinf(cfinf) = resolved("[detection]\ndetector = 'cfinf'").unwrap().detector else {
        panic!("not CFINF");
    };
    assert_eq!(cfinf, CfinfParameters::default());
}

#[test]
fn the_default_output_depends_on_the_terminal() {
    let shown = |text, terminal| resolve(&Request::default(), &parsed(text), terminal).map(|it| it.show);
    assert_eq!(shown("", true), Ok(Show::LiveView));
    assert_eq!(shown("", false), Ok(Show::Summary));
    assert_eq!(shown("output.show = 'summary'", true), Ok(Show::Summary));
    assert_eq!(shown("output.show = 'json'\noutput.flows = true", true), Ok(Show::Json { flows: true }));
    assert_eq!(
        shown("\noutput.show = 'live-view'", false).unwrap_err().to_string(),
        "show (lab.toml, line 2): the live view requires a terminal as standard output"
    );
}

#[test]
fn a_file_sets_all_options() {
    let options = resolved(
        "input = { capture_filter = 'udp', decapsulate = true, threads = 4, duration = '10s', seed = 0xff }\n\
         [output]\nlimit = 3\nfilter = 'port 53'\n\
         [detection]\nflight_duration = '20ms'\nrate_threshold = 1_000_000\ndetector = 'cfinf'\n\
         packet_length_threshold = 600\nsampling_probability = 0.5\nflow_cache_entries = 99\n\
         protocol_filter = ['udp', '89']\n\
         [flow_table]\nflow_capacity = 1000\nidle_timeout = '2s'\nactive_timeout = '1min'\nlinger = '5ms'\n\
         [live]\nsnap_length = '128B'\nring_size = '1MiB'\nblock_timeout = '1ms'\npromiscuous = false\n",
    )
    .unwrap();
    assert_eq!((options.capture_filter.as_deref(), options.flow_filter.text()), (Some("udp"), "port 53"));
    assert_eq!((options.decapsulate, options.workers, options.seed), (true, Some(4), Some(255)));
    assert_eq!((options.duration, options.top), (Some(Nanos::from_secs(10)), 3));
    let threshold =
        CheetahThreshold { flight_duration: Nanos::from_millis(20), rate_threshold: BitRate(1_000_000) };
    assert_eq!(options.threshold, threshold);
    assert_eq!(
        options.detector,
        Detector::Cfinf(CfinfParameters {
            threshold,
            packet_length_threshold: 600,
            sampling_probability: 0.5,
            dropped_protocols: vec![Protocol::UDP, Protocol(89)],
            flow_cache_entries: 99,
        })
    );
    assert_eq!(
        options.flow_table,
        FlowTableOptions {
            capacity: 1000,
            idle_timeout: Nanos::from_secs(2),
            active_timeout: Nanos::from_secs(60),
            linger: Nanos::from_millis(5),
        }
    );
    assert_eq!((options.live.snap_length, options.live.ring_size), (128, Bytes(1 << 20)));
    assert_eq!((options.live.block_timeout, options.live.promiscuous), (Nanos::from_millis(1), false));
}

#[test]
fn mac_addresses_are_for_exported_records() {
    let options = resolved("[export]\nrecords = 'records'\nmac_addresses = true\n").unwrap();
    assert!(options.mac_addresses && !resolved("").unwrap().mac_addresses);
}

#[test]
fn a_file_sets_tasks_and_memory() {
    let options = resolved(
        "[tasks]\ntasks = ['heavy:0.1%', 'change:30s>2%:src:bytes']\nmemory = '1MiB'\nwindow = '15s'\n\
         keep_windows = 2\nsampling = '1/16'\ntable = false\nsave_sketches = 'states'\n\
         [output]\nshow = 'json'\nflows = true\n[input]\nthreads = 2\n",
    )
    .unwrap();
    let list: TaskList = "heavy:0.1%,change:30s>2%:src:bytes".parse().unwrap();
    let tasks = TasksOptions {
        tasks: list.0,
        memory: Bytes(1 << 20),
        window: Nanos::from_secs(15),
        kept_windows: 2,
        sampling: "1/16".parse().unwrap(),
        seed: 0,
        workers: 2,
    };
    assert_eq!(options.tasks, Some(tasks));
    assert_eq!((options.table, options.save_sketches), (false, Some("states".into())));
    assert_eq!((options.show, options.detector), (Show::Json { flows: false }, Detector::None));
    assert_eq!(resolved("").unwrap().tasks, None);
}

#[test]
fn invalid_tasks_are_refused_with_a_suggestion() {
    for (text, message) in [
        (
            "[tasks]\ntasks = ['hevy:1%']",
            "2: tasks: unknown task `hevy` (did you mean heavy?): expected one of heavy, change,",
        ),
        (
            "[tasks]\ntasks = ['distinct', 'entropy:scr']",
            "2: tasks: task entropy: invalid flow key `scr` (did you mean src?): expected 5tuple,",
        ),
        ("[tasks]\ntasks = 'heavy:1%'", "2: tasks is 'heavy:1%': expected a list of measurement tasks,"),
        (
            "[tasks]\nsampling = '1/3'",
            "2: sampling is '1/3': expected 1, 1/2, 1/4, ... 1/1024, line-rate or correct",
        ),
    ] {
        let refused = refused(text);
        assert!(refused.starts_with(&format!("lab.toml:{message}")), "{refused}");
    }
    for (text, message) in [
        ("[tasks]\ntable = false", "table (lab.toml, line 2): nothing to measure without the flow table"),
        (
            "[tasks]\ntasks = ['heavy:1%']\nmemory = '1KiB'",
            "memory (lab.toml, line 3): 1.02 kB is too small for these tasks with 1 thread(s) and 3 kept window(s)",
        ),
        (
            "[tasks]\ntasks = ['change:15s']",
            "tasks (lab.toml, line 2) and --window (default): task change:15s: the period must be a multiple of the window",
        ),
        (
            "[tasks]\ntasks = ['distinct', 'distinct']",
            "tasks (lab.toml, line 2): task distinct is repeated: expected each task once",
        ),
    ] {
        let refused = resolution_refused(text);
        assert!(refused.starts_with(message), "{refused}");
    }
}

#[test]
fn the_default_file_sets_all_defaults_and_has_valid_examples() {
    let file = default_file();
    let config = parsed(&file);
    for (_, key) in keys() {
        let set = config.0.entries().iter().any(|entry| entry.is_set(key.name));
        assert_eq!(set, key.default_value().is_some(), "{key:?}");
        assert_eq!(value_text(&config.0, key), value_text(&Config::default().0, key), "{key:?}");
    }
    let mut uncommented = file.clone();
    for (_, key) in keys().filter(|(_, key)| key.default_value().is_none()) {
        uncommented = uncommented.replace(&format!("# {} = ", key.name), &format!("{} = ", key.name));
    }
    assert_eq!(parsed(&uncommented).key_count(), keys().count());
}

#[test]
fn all_errors_of_a_file_are_reported_by_line() {
    let text = "[outptu]\n\
                limit = 1\n\
                [detection]\n\
                rate_treshold = '50mbps'\n\
                flight_duration = 100\n\
                threads = 4\n\
                sampling_probability = 1.5\n\
                [live]\n\
                promiscuous = 'no'\n";
    assert_eq!(
        refused(text),
        "lab.toml:1: unknown section \"outptu\"; did you mean \"output\"?\n\
         lab.toml:4: unknown key \"rate_treshold\"; did you mean \"rate_threshold\"?\n\
         lab.toml:5: flight_duration is 100: expected a time above zero with a unit (ns, us, ms, s, min, h), such as 100ms or 1.5s, \
         in quotes\n\
         lab.toml:6: unknown key \"threads\"; it belongs in [input]\n\
         lab.toml:7: sampling_probability is 1.5: expected a probability above 0 and at most 1, such as 0.5\n\
         lab.toml:9: promiscuous is 'no': expected true or false"
    );
}

#[test]
fn each_kind_of_error_has_its_message() {
    for (text, message) in [
        ("limit = 5", "1: unknown key \"limit\"; it belongs in [output]"),
        ("zzz = 5", "1: unknown key \"zzz\""),
        ("\n[zzz]", "2: unknown section \"zzz\""),
        ("output = 5", "1: \"output\" is a section: write [output] on its own line, and its keys below"),
        ("[[output]]", "1: \"output\" is a section: write [output] on its own line, and its keys below"),
        ("[output]\nLIMIT = 1", "2: unknown key \"LIMIT\"; did you mean \"limit\"?"),
        (
            "[flow_table]\nidle-timeout = '1s'",
            "2: unknown key \"idle-timeout\"; did you mean \"idle_timeout\"?",
        ),
        ("[output]\nlimit = 0", "2: limit is 0: expected an integer of at least 1"),
        ("[output]\nlimit = '5'", "2: limit is '5': expected an integer of at least 1"),
        ("[input]\nseed = -1", "2: seed is -1: expected an integer from 0 to 2^64 - 1"),
        ("[output]\nshow = 'all'", "2: show is 'all': expected one of auto, live-view, summary, json, csv"),
        (
            "[live]\nring_size = '64 apples'",
            "2: ring_size is '64 apples': expected an amount of data, such as 600, 192B, 1.5GB or 64MiB, in quotes \
             if it has a unit",
        ),
        (
            "[detection]\nprotocol_filter = ['icmp', '']",
            "2: protocol_filter is ['icmp', '']: expected a list of names or numbers of IP protocols, such as icmp, \
             icmp6, 89, each in quotes",
        ),
        (
            "[flow_table]\nflow_capacity = 3000000000",
            "2: flow_capacity is 3000000000: expected an integer from 1 to 2147483648",
        ),
    ] {
        assert_eq!(refused(text), format!("lab.toml:{message}"), "{text}");
    }
}

#[test]
fn syntax_errors_name_the_line() {
    for (text, line) in
        [("[output]\nlimit = ", 2), ("\n\n[detection]\nflight_duration = 100ms", 4), ("[output", 1)]
    {
        let message = refused(text);
        assert!(message.starts_with(&format!("lab.toml:{line}: invalid TOML: ")), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    let twice = refused("[output]\nlimit = 1\nlimit = 2");
    assert_eq!(
        twice,
        "lab.toml:3: invalid TOML: duplicate key \"limit\": a key or a section may appear once"
    );
}

#[test]
fn long_and_hostile_names_are_shortened_and_escaped() {
    let message = refused(&format!("\"\\u001b[31m{}\" = 1", "x".repeat(1_000_000)));
    assert_eq!(message, format!("lab.toml:1: unknown key \"\\u{{1b}}[31m{}...\"", "x".repeat(35)));
}

#[test]
fn contradictory_values_are_reported_with_their_origins() {
    for (text, message) in [
        (
            "[detection]\nflight_duration = '20s'",
            "--idle-timeout (default) and flight_duration (lab.toml, line 2): the idle timeout (15s) must be at least the \
             flight duration (20s)",
        ),
        (
            "[detection]\nrate_threshold = '0bps'",
            "--flight-duration (default) and rate_threshold (lab.toml, line 2): a flight of 100 ms at 0 bit/s is less \
             than one byte. Raise the flight duration or the rate threshold; a rate without a unit is in bit/s, so \
             write 50mbps or 1.5gbps",
        ),
        ("[live]\nblock_timeout = '5s'", "block_timeout (lab.toml, line 2): expected 1 ms to 1 s"),
        (
            "[live]\nring_size = 1",
            "ring_size (lab.toml, line 2): expected at least 524288 bytes, two blocks, and less than 4 GiB",
        ),
        ("[live]\nsnap_length = '1TB'", "snap_length (lab.toml, line 2): expected at most 4294967295 bytes"),
    ] {
        assert_eq!(resolution_refused(text), message, "{text}");
    }
    let flag = resolve(&typed(&[("snap_length", "63")]), &Config::default(), true).unwrap_err().to_string();
    assert!(flag.starts_with("--snap-length: expected 64 to 261888 bytes"), "{flag}");
}

#[test]
fn cfinf_does_not_limit_the_idle_timeout() {
    assert!(resolved("[detection]\nflight_duration = '20s'\ndetector = 'cfinf'").is_ok());
}

#[test]
fn a_flag_without_effect_is_refused_but_a_key_is_ignored() {
    for (name, text, file, needs) in [
        ("tracks", "9", "detection.detector = 'cfinf'", "the detector sliding-window"),
        ("sampling_probability", "0.5", "", "the detector cfinf (--detector cfinf)"),
        ("flight_duration", "1s", "detection.detector = 'none'", "the detectors sliding-window and cfinf"),
        ("flows", "true", "output.show = 'summary'", "JSON output (--json)"),
        ("window", "1s", "", "measurement tasks (--tasks)"),
    ] {
        let request = typed(&[(name, text)]);
        let error = resolve(&request, &parsed(file), true).unwrap_err();
        let (section, key) = keys().find(|(_, key)| key.name == name).unwrap();
        assert_eq!(error, OptionsError::NoEffect { flag: key.flag_name().unwrap(), needs });

        let line = format!("{}.{name} = {}", section.name, key.form().in_toml(text));
        assert!(resolve(&Request::default(), &parsed(&format!("{file}\n{line}")), true).is_ok(), "{line}");
    }
    let json = typed(&[("flows", "true")]);
    assert_eq!(
        resolve(&json, &parsed("output.show = 'json'"), true).unwrap().show,
        Show::Json { flows: true }
    );
    let cfinf = typed(&[("flow_cache_entries", "7"), ("detector", "cfinf")]);
    assert!(resolve(&cfinf, &parsed("detection.tracks = 5"), true).is_ok());
    let cfinf = cfinf.flags.over(&Config::default().0).one::<Detection>().into_value();
    assert_eq!(cfinf.detector, DetectorName::Cfinf);
}

/// For each key, which of its samples is set: none, the first, the second.
fn choices() -> impl Strategy<Value = Vec<Option<bool>>> {
    proptest::collection::vec(proptest::option::of(any::<bool>()), keys().count())
}

fn chosen(choices: &[Option<bool>]) -> impl Iterator<Item = (&'static Key, &'static str)> {
    let keys = keys().map(|(_, key)| key).zip(choices);
    keys.filter_map(|(key, choice)| Some((key, samples(key)[usize::from((*choice)?)])))
}

fn file_of(choices: &[Option<bool>]) -> String {
    let section = |key: &Key| keys().find(|(_, other)| *other == key).map_or("", |(section, _)| section.name);
    chosen(choices)
        .map(|(key, text)| format!("{}.{} = {}\n", section(key), key.name, key.form().in_toml(text)))
        .collect()
}

/// Pieces of configuration files, and arbitrary text.
fn piece() -> impl Strategy<Value = String> {
    let known: Vec<String> = keys()
        .flat_map(|(section, key)| [key.name.to_owned(), format!("[{}]", section.name)])
        .chain(
            ["=", "\n", "'1s'", "\"", "5", "true", "[", "]", "{", "}", ".", ",", "#", "1e9"]
                .map(String::from),
        )
        .collect();
    prop_oneof![4 => proptest::sample::select(known), 1 => any::<String>()]
}

proptest! {
    #[test]
    fn flags_override_the_file_and_the_file_the_defaults(in_file in choices(), in_flags in choices()) {
        let config = parsed(&file_of(&in_file));
        let pairs: Vec<_> = chosen(&in_flags).map(|(key, text)| (key.name, text)).collect();
        let request = typed(&pairs);
        let merged = request.flags.over(&config.0);
        for (((_, key), in_file), in_flags) in keys().zip(&in_file).zip(&in_flags) {
            let expected = match in_flags.or(*in_file) {
                Some(choice) => Some(samples(key)[usize::from(choice)].to_owned()),
                None => value_text(&Config::default().0, key),
            };
            prop_assert_eq!(value_text(&merged, key), expected, "{:?}", key);
        }
        // The result is options or an error, never a panic.
        let _ = resolve(&request, &config, true);
    }

    #[test]
    fn any_text_gives_settings_or_errors_with_lines(pieces in proptest::collection::vec(piece(), 0..40)) {
        let text = pieces.concat();
        match Config::parse(&text, "lab.toml") {
            Ok(config) => { let _ = resolve(&Request::default(), &config, false); }
            Err(ConfigError::Invalid(wrong)) => {
                prop_assert!(!wrong.problems.is_empty());
                let last = 1 + text.bytes().filter(|&byte| byte == b'\n').count();
                let lines = wrong.problems.iter().map(|problem| problem.line().unwrap());
                prop_assert!(lines.into_iter().all(|line| (1..=last).contains(&line)));
            }
            Err(error) => prop_assert!(false, "{}", error),
        }
    }

    #[test]
    fn a_damaged_file_gives_settings_or_errors(at in 0..4000usize, junk in any::<char>()) {
        let mut text: Vec<char> = default_file().chars().collect();
        let at = at % text.len();
        text[at] = junk;
        let _ = Config::parse(&text.into_iter().collect::<String>(), "lab.toml");
    }
}
