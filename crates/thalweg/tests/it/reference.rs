//! The reference pages say what the program says. Rewritten from the program by
//! `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference`.

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
        "docs/reference/{page} is not what the program says; to rewrite it: \
         THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference"
    );
}

#[test]
fn the_command_line_page_is_that_of_the_program() {
    check("command-line.md", &cli::reference::command_line());
}

#[test]
fn the_configuration_page_is_that_of_the_program() {
    check("configuration.md", &config::reference());
}

#[test]
fn the_page_about_the_configuration_of_the_daemon_is_that_of_the_program() {
    check("daemon-configuration.md", &thalweg_daemon::config::reference());
}

#[test]
fn the_page_about_topology_files_is_that_of_the_program() {
    check("topology-file.md", &thalweg_network::topology::file::reference());
}

#[test]
fn the_exit_codes_page_is_that_of_the_program() {
    check("exit-codes.md", &cli::exit_code::reference());
}

#[test]
fn the_page_about_the_files_of_emulations_is_that_of_the_program() {
    check("emulation-files.md", &thalweg_experiment::files::reference());
}

#[test]
fn the_page_about_experiment_files_is_that_of_the_program() {
    check("experiment-file.md", &thalweg_experiment::experiment::reference());
}

#[test]
fn the_page_about_the_http_api_is_that_of_the_program() {
    check("http-api.md", &thalweg_daemon::api::reference::reference());
}

#[test]
fn the_page_about_the_collectors_metrics_is_that_of_the_program() {
    check("collect-metrics.md", &collect::metrics::reference());
}

#[test]
fn the_page_about_metrics_is_that_of_the_program() {
    check("metrics.md", &thalweg_daemon::metrics::reference());
}
