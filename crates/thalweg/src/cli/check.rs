//! `thalweg check`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use thalweg_config::Format;
use thalweg_daemon::config::InterfaceCheck;
use thalweg_network::{NetworkState, Topology};

use super::exit_code::UsageError;
use super::file_kind::FileKind;
use crate::config::{self, Request};
use thalweg_experiment::{Experiment, Plan};

/// Check and describe a configuration, experiment or topology file.
///
/// Recognises configurations of `serve` and `watch`, experiments and topology files. Reports unknown keys and sections, invalid
/// values, and values that contradict each other or the topology. Checks that interfaces, files, directories and users exist on this host, with the rights of the
/// user that runs the check. Describes a valid file, and warns of values that are probably not meant.
#[derive(Args, Debug)]
pub(super) struct CheckArgs {
    /// File to check.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Kind of file, instead of detecting it. A topology file with `[forwarding]` is a `state`.
    #[arg(long, value_enum, value_name = "KIND")]
    kind: Option<FileKind>,

    /// Do not check that the interfaces and network namespaces of a configuration of `serve` exist.
    ///
    /// Everything else is checked. Use it for interfaces that are created later, or on another machine.
    #[arg(long)]
    skip_interfaces: bool,
}

impl CheckArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If the file is invalid.
    pub(super) fn run(self) -> anyhow::Result<()> {
        let interfaces = if self.skip_interfaces { InterfaceCheck::Skipped } else { InterfaceCheck::Done };
        super::print(check(&self.file, self.kind, interfaces)?)
    }
}

/// Checks and describes a file.
fn check(path: &Path, kind: Option<FileKind>, interfaces: InterfaceCheck) -> anyhow::Result<String> {
    let file = path.display().to_string();
    let text = thalweg_config::read_text(path)
        .map_err(|error| UsageError(format!("cannot read {file}: {error}")))?;
    let format = Format::of(path);
    let unknown = || {
        let kinds =
            FileKind::DETECTION_ORDER.map(|kind| format!("--kind {} ({})", kind.name(), kind.title()));
        UsageError(format!("{file}: cannot tell the kind of file: add {}", kinds.join(", ")))
    };
    let kind = kind.or_else(|| FileKind::of(&text, format)).ok_or_else(unknown)?;
    let described = match kind {
        FileKind::Daemon => daemon(path, interfaces)?,
        FileKind::Watch => watch(path)?,
        FileKind::TransfersAgent => transfers_agent(path)?,
        FileKind::Experiment => experiment(path)?,
        FileKind::Topology => {
            let topology =
                Topology::from_text(&text, &file, format).map_err(|error| UsageError(error.to_string()))?;
            format!("{file}: OK\n{}", sizes(&topology))
        }
        FileKind::State => {
            let state = NetworkState::from_text(&text, &file, format);
            network_state(&file, &state.map_err(|error| UsageError(error.to_string()))?)
        }
    };
    Ok(format!("{file}: {}\n{described}", kind.title()))
}

/// Reports the errors of a daemon configuration and of the files that it refers to.
fn daemon(path: &Path, interfaces: InterfaceCheck) -> anyhow::Result<String> {
    match thalweg_daemon::host::check(path, interfaces) {
        Ok(config) => {
            thalweg_daemon::plan::describe(&config).map_err(|error| UsageError(format!("{error:#}")).into())
        }
        Err(errors) => {
            let errors: Vec<String> =
                errors.into_iter().map(|error| super::format_error(&anyhow::Error::new(error))).collect();
            Err(UsageError(errors.join("\n")).into())
        }
    }
}

fn transfers_agent(path: &Path) -> anyhow::Result<String> {
    let described = thalweg_transfers::settings::describe(path);
    Ok(format!("{}: OK\n{}", path.display(), described.map_err(|error| UsageError(error.to_string()))?))
}

fn watch(path: &Path) -> anyhow::Result<String> {
    let config = config::Config::load(path)?;
    // The live view is valid on a terminal.
    config::resolve(&Request::default(), &config, true)?;
    Ok(format!("{}: OK, {} keys set\n", path.display(), config.key_count()))
}

fn experiment(path: &Path) -> anyhow::Result<String> {
    let experiment = Experiment::load(path)?;
    let plan = Plan::new(&experiment)?;
    let mut text = format!("{}: OK\n", path.display());
    let _ =
        writeln!(text, "emulates {} on {}, scheme {}", plan.duration, plan.topology_name, plan.scheme.name());
    text.push_str(&sizes(&plan.topology));
    let (workloads, packets) = (plan.flows.len(), plan.packets.len());
    let _ = writeln!(
        text,
        "traffic: workloads: {workloads} over {}, packet senders: {packets}; monitor ports: {}, link changes: {}",
        plan.transport_name,
        plan.monitors.len(),
        plan.events.len()
    );
    Ok(text)
}

fn network_state(file: &str, state: &NetworkState) -> String {
    let mut text = format!("{file}: OK\n{}", sizes(state.topology()));
    let by = match state.forwarding().seed() {
        Some(seed) => format!("equal-cost paths with seed {seed}"),
        None => "tables".to_owned(),
    };
    let entries = state.forwarding().entries(state.topology()).count();
    let _ = writeln!(
        text,
        "forwarding: {by}, {entries} table entries, {} links down",
        state.links().failed().count()
    );
    text
}

fn sizes(topology: &Topology) -> String {
    format!(
        "network: {} switches, {} hosts, {} links\n",
        topology.routers().len(),
        topology.endpoints().len(),
        topology.links().len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::exit_code::ExitCode;

    fn written(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[track_caller]
    fn refused(name: &str, text: &str) -> String {
        let (folder, path) = written(name, text);
        let error = check(&path, None, InterfaceCheck::Done).unwrap_err();
        assert_eq!(ExitCode::of(&error), ExitCode::Usage, "{error}");
        error.to_string().replace(&format!("{}/", folder.path().display()), "")
    }

    #[test]
    fn every_kind_of_file_is_recognised_and_described() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        for (file, expected) in [
            ("collector/thalweg.toml", "configuration of thalweg serve\n"),
            ("collector/experiment.toml", "experiment of thalweg emulate\n"),
            ("collector/topology.toml", "network topology and state\n"),
        ] {
            let text = check(&root.join(file), None, InterfaceCheck::Done).unwrap();
            assert!(text.contains(expected) && text.contains(": OK"), "{text}");
        }
        let (_folder, path) = written("lab.toml", &config::default_file());
        assert!(check(&path, None, InterfaceCheck::Done).unwrap().contains("configuration of thalweg watch"));
        let network =
            "{\"router\": [{\"name\": \"a\"}], \"endpoint\": [{\"name\": \"h\", \"router\": \"a\"}]}";
        let (_folder, path) = written("net.json", network);
        assert!(
            check(&path, None, InterfaceCheck::Done)
                .unwrap()
                .contains("network: 1 switches, 1 hosts, 1 links")
        );
    }

    #[test]
    fn all_errors_are_reported_including_missing_interfaces() {
        let text = "[api]\nlistne = '127.0.0.1:1'\n[[collector]]\nname = 'a'\ninterface = 'no-such0'\n\
                    [[collector]]\nname = 'a'\ninterface = 'lo'\n";
        let expected = "t.toml:2: unknown key \"listne\"; did you mean \"listen\"?\nt.toml:5: interface: \"no-such0\" does not exist\n\
                        t.toml:7: name: duplicate collector name a";
        assert_eq!(refused("t.toml", text), expected);
        let missing = "[network]\ntopology = 'none.toml'\n[[collector]]\nname = 'a'\ninterface = 'no-such0'\n\
             sample_ring = '1B'\n[control]\n";
        let message = refused("t.toml", missing);
        for expected in [
            "t.toml:5: interface: \"no-such0\" does not exist",
            "t.toml:6: sample_ring: expected at least 8192B",
            "cannot read the topology file none.toml",
        ] {
            assert!(message.contains(expected), "{message}");
        }
        assert!(!message.contains("[control]"), "{message}");
        let missing =
            "[emulate]\nfile = 'none.toml'\n[api]\nlisten = '99999'\n[[collector]]\nname = '*'\n[control]\n";
        let message = refused("t.toml", missing);
        let expected = ["t.toml:4: listen: expected an address", "cannot read the experiment file none.toml"];
        let lines: Vec<&str> = message.lines().collect();
        assert_eq!(lines.len(), expected.len(), "{message}");
        assert!(lines.iter().zip(expected).all(|(line, start)| line.starts_with(start)), "{message}");
        assert!(
            refused("x.toml", "duration = '1s'\n[scheme]\nname = 'dctp'\n")
                .contains("did you mean \"dctcp\"?")
        );
        assert!(
            refused("n.toml", "[[router]]\nnam = 'a'\n")
                .starts_with("n.toml:1: missing key \"name\" in router 1")
        );
        assert!(refused("e.toml", "a = 1\n").starts_with("e.toml: cannot tell the kind of file"));
    }

    #[test]
    fn files_directories_and_users_of_this_host_are_checked() {
        let text = "[api]\ntoken_file = 'none1'\n[process]\nuser = 'no-such-user'\n[[collector]]\nname = 'a'\ninterface = 'lo'\n\
                    [isolation]\nactuator = 'webhook'\nurl = 'https://user:geheim@x/?geheim'\ntoken_file = 'none2'\n[[poll]]\n\
                    name = 'p'\ninterface = 'x'\ntarget = '192.0.2.1:161'\ncredentials_file = 'none3'\n\
                    [records]\nfile = 'none4/x'\nipfix = 'tls://x'\nipfix_ca_file = 'none5'\n";
        let none = "No such file or directory (os error 2)";
        let expected = [
            format!("t.toml:2: token_file: cannot read the token file none1: {none} (on this host)"),
            "t.toml:4: user: unknown user \"no-such-user\" (on this host)".to_owned(),
            format!("t.toml:11: token_file: cannot read the token file none2: {none} (on this host)"),
            format!(
                "t.toml:16: credentials_file: cannot read the credentials file none3: {none} (on this host)"
            ),
            format!("t.toml:18: file: cannot write to none4/x: {none} (on this host)"),
            "t.toml:20: ipfix_ca_file: cannot read an authority's certificate from none5: ".to_owned(),
        ];
        let message = refused("t.toml", text);
        let lines: Vec<&str> = message.lines().collect();
        assert_eq!(lines.len(), expected.len(), "{message}");
        assert!(lines.iter().zip(&expected).all(|(line, start)| line.starts_with(start)), "{message}");
        let flowspec =
            "actuator = 'flowspec'\npeer = '192.0.2.1'\npeer_as = 1\nlocal_as = 1\npassword_file = 'none'\n";
        let text = format!(
            "[[collector]]\nname = 'a'\ninterface = 'lo'\n[isolation]\n{flowspec}[threshold]\ncollector = 'a'\n\
             folder = 't.toml/state'\nacceptable_loss = 1e-5\nlink_rate = '1gbps'\n"
        );
        let message = refused("t.toml", &text);
        assert!(
            message.contains("t.toml:9: password_file: cannot read the password file none: "),
            "{message}"
        );
        assert!(message.contains("t.toml:12: folder: the user "), "{message}");
        assert!(
            message.contains("cannot create files in t.toml/state: not a directory (on this host)"),
            "{message}"
        );
    }

    #[test]
    fn warnings_are_printed_and_no_secret() {
        let text = "[[collector]]\nname = 'a'\ninterface = 'lo'\nmonitor_rate = '1gbps'\nmonitor_buffer = '1MB'\nrate_threshold = '2gbps'\n\
                    [isolation]\nactuator = 'webhook'\nurl = 'https://user:geheim@x/y?geheim'\n";
        let (_folder, path) = written("t.toml", text);
        let described = check(&path, None, InterfaceCheck::Done).unwrap();
        assert!(
            described.contains("by requests to https://***@x/y?***") && !described.contains("geheim"),
            "{described}"
        );
        assert!(
            described.contains("t.toml:6: rate_threshold: 2.00 Gbit/s is not below monitor_rate"),
            "{described}"
        );
        assert!(described.contains("\nwarning: "), "{described}");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_a_wrong_input() {
        let error = check(Path::new("none.toml"), None, InterfaceCheck::Done).unwrap_err();
        assert_eq!(ExitCode::of(&error), ExitCode::Usage);
        assert!(error.to_string().starts_with("cannot read none.toml: "), "{error}");
    }

    #[test]
    fn interfaces_are_skipped_on_request_and_nothing_else() {
        let collector = "[[collector]]\nname = 'a'\ninterface = 'no-such0'\n";
        let (_folder, path) = written("t.toml", collector);
        let described = check(&path, None, InterfaceCheck::Skipped).unwrap();
        assert!(described.contains("the interface does not exist now"), "{described}");
        let (_folder, path) = written("t.toml", &format!("[colector]\n{collector}"));
        let message = check(&path, None, InterfaceCheck::Skipped).unwrap_err().to_string();
        let expected = "t.toml:1: unknown section \"colector\"; did you mean \"collector\"?";
        assert!(message.ends_with(expected), "{message}");
    }
}
