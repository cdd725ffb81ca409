//! Runs the saved corpus of every fuzz target as tests.
//!
//! `fuzz/corpus/TARGET` contains the seeds from `seeds` and inputs found by fuzzing. `THALWEG_SEEDS=write cargo test
//! --test it fuzz_corpus` rewrites the seeds.

mod arbiter;
mod emulation_protocol;
mod flow_export;
mod openflow;
mod seeds;
mod transfer_logs;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use thalweg_capture::filter::{Filter, FilterError};
use thalweg_wire::LinkType;

use crate::fuzz;

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// Runs `check` over the corpus of a target and names the failing file.
fn run(target: &str, check: fn(&[u8])) {
    let mut paths: Vec<_> =
        fs::read_dir(corpus(target)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 10, "only {} files in the corpus of {target}", paths.len());
    for path in paths {
        let data = fs::read(&path).unwrap();
        if let Err(panic) = std::panic::catch_unwind(|| check(&data)) {
            eprintln!("at fault: {}", path.display());
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn corpus_frames_give_a_valid_packet_or_an_error() {
    run("headers", fuzz::headers::check);
}

/// The frames of the corpus of user space are those of the kernel.
#[test]
fn corpus_frames_are_parsed_in_the_kernel_as_in_user_space() {
    run("headers", fuzz::kernel_parser::check);
}

#[test]
fn corpus_pcap_files_decode_independently_of_chunking() {
    run("pcap", fuzz::capture_file::check_pcap);
}

#[test]
fn corpus_pcapng_files_decode_independently_of_chunking() {
    run("pcapng", fuzz::capture_file::check_pcapng);
}

#[test]
fn corpus_filters_compile_or_are_refused() {
    if let Err(FilterError::NoLibpcap { .. }) = Filter::compile("", LinkType::Ethernet, 0) {
        let line = b"skipped: every_filter_of_the_corpus_compiles: needs libpcap\n";
        std::io::stderr().write_all(line).unwrap();
        return;
    }
    run("filter", fuzz::filter::check);
}

#[test]
fn corpus_flow_filters_compile_or_are_refused_with_a_position() {
    run("flow_filter", fuzz::flow_filter::check);
}

#[test]
fn corpus_configurations_parse_or_give_errors_with_lines() {
    run("config", fuzz::config::check);
}

#[test]
fn corpus_sketches_decode_or_are_refused() {
    run("sketch_state", fuzz::sketch_state::check);
}

#[test]
fn corpus_topologies_parse_or_give_errors_with_lines() {
    run("topology", fuzz::topology::check);
}

#[test]
fn corpus_network_states_parse_or_give_errors_with_lines() {
    run("network", fuzz::topology::check_state);
}

#[test]
fn corpus_workloads_parse_or_are_refused() {
    run("workload", fuzz::workload::check);
}

#[test]
fn corpus_openflow_streams_decode_or_are_refused() {
    run("openflow", fuzz::openflow::check);
}

#[test]
fn corpus_emulation_datagrams_decode_or_are_refused() {
    run("emulation_protocol", fuzz::emulation_protocol::check);
}

#[test]
fn corpus_datagrams_leave_an_arbiter_with_correct_counters() {
    run("arbiter", fuzz::arbiter::check);
}

#[test]
fn corpus_netflow_datagrams_decode_or_are_refused() {
    run("netflow", fuzz::flow_export::check_netflow);
}

#[test]
fn corpus_ipfix_messages_decode_or_are_refused() {
    run("ipfix", fuzz::flow_export::check_ipfix);
}

#[test]
fn corpus_sflow_datagrams_decode_or_are_refused() {
    run("sflow", fuzz::flow_export::check_sflow);
}

#[test]
fn corpus_transfer_logs_parse_or_give_errors() {
    run("transfer_logs", fuzz::transfer_logs::check);
}

#[test]
fn corpus_experiments_parse_or_give_errors_with_lines() {
    run("experiment", fuzz::experiment::check);
}

#[test]
fn the_corpus_has_every_seed() {
    let write = std::env::var("THALWEG_SEEDS").is_ok_and(|value| value == "write");
    for (target, name, bytes) in seeds::all() {
        let path = corpus(target).join(name);
        if write {
            fs::create_dir_all(corpus(target)).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        let kept = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(kept == bytes, "{} differs from seeds.rs", path.display());
    }
}
