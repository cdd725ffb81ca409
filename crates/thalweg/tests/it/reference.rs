//! The reference pages match the program. `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference` rewrites
//! them.

use std::path::Path;

use thalweg::{cli, collect, config};

fn check(page: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(page);
    if std::env::var_os("THALWEG_REFRESH_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "docs/reference/{page} is outdated; to rewrite it: \
         THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference"
    );
}

#[test]
fn the_command_line_reference_is_current() {
    check("command-line.md", &cli::reference::command_line());
}

#[test]
fn the_configuration_reference_is_current() {
    check("configuration.md", &config::reference());
}

#[test]
fn the_daemon_configuration_reference_is_current() {
    check("daemon-configuration.md", &thalweg_daemon::config::reference());
}

#[test]
fn the_transfer_agent_configuration_reference_is_current() {
    check("transfer-agent-configuration.md", &thalweg_transfers::settings::reference());
}

#[test]
fn the_topology_reference_is_current() {
    check("topology-file.md", &thalweg_network::topology::file::reference());
}

#[test]
fn the_exit_code_reference_is_current() {
    check("exit-codes.md", &cli::exit_code::reference());
}

#[test]
fn the_result_file_reference_is_current() {
    check("emulation-files.md", &thalweg_experiment::files::reference());
}

#[test]
fn the_experiment_reference_is_current() {
    check("experiment-file.md", &thalweg_experiment::experiment::reference());
}

#[test]
fn the_http_api_reference_is_current() {
    check("http-api.md", &thalweg_daemon::api::reference::reference());
}

#[test]
fn the_open_api_document_is_current() {
    let document = serde_json::to_string_pretty(&thalweg_daemon::api::open_api::document()).unwrap();
    check("openapi.json", &(document + "\n"));
}

#[test]
fn the_flow_receiver_metrics_reference_is_current() {
    check("collect-metrics.md", &collect::metrics::reference());
}

#[test]
fn the_metrics_reference_is_current() {
    check("metrics.md", &thalweg_daemon::metrics::reference());
}
