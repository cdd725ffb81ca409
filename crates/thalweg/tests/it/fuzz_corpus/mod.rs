//! The kept corpus of every fuzz target, run as ordinary tests: what the fuzzer is to find nothing wrong with.
//!
//! `fuzz/corpus/TARGET` has seeds, which `seeds` makes, and what fuzzing found. `THALWEG_SEEDS=write cargo test
//! --test it fuzz_corpus` writes the seeds anew.

mod flow_export;
mod openflow;
mod seeds;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use thalweg_capture::filter::{Filter, FilterError};
use thalweg_wire::LinkType;

use crate::fuzz;

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// Runs `check` over a target's corpus; the file at fault is named.
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
fn every_frame_of_the_corpus_gives_a_sound_packet_or_a_reason() {
    run("headers", fuzz::headers::check);
}

#[test]
fn every_pcap_file_of_the_corpus_decodes_alike_however_it_is_fed() {
    run("pcap", fuzz::capture_file::check_pcap);
}

#[test]
fn every_pcapng_file_of_the_corpus_decodes_alike_however_it_is_fed() {
    run("pcapng", fuzz::capture_file::check_pcapng);
}

#[test]
fn every_filter_of_the_corpus_compiles_to_a_closed_program_or_is_refused() {
    if let Err(FilterError::NoLibpcap { .. }) = Filter::compile("", LinkType::Ethernet, 0) {
        let line = b"skipped: every_filter_of_the_corpus_compiles: needs libpcap\n";
        std::io::stderr().write_all(line).unwrap();
        return;
    }
    run("filter", fuzz::filter::check);
}

#[test]
fn every_flow_filter_of_the_corpus_reads_back_as_itself_or_is_refused_with_its_place() {
    run("flow_filter", fuzz::flow_filter::check);
}

#[test]
fn every_configuration_of_the_corpus_is_read_or_refused_with_its_lines() {
    run("config", fuzz::config::check);
}

#[test]
fn every_sketch_state_of_the_corpus_is_read_or_refused_and_has_one_form() {
    run("sketch_state", fuzz::sketch_state::check);
}

#[test]
fn every_topology_of_the_corpus_is_sound_or_is_refused_with_its_lines() {
    run("topology", fuzz::topology::check);
}

#[test]
fn every_state_of_a_network_of_the_corpus_is_sound_or_is_refused_with_its_lines() {
    run("network", fuzz::topology::check_state);
}

#[test]
fn every_workload_of_the_corpus_is_in_order_or_is_refused() {
    run("workload", fuzz::workload::check);
}

#[test]
fn every_openflow_stream_of_the_corpus_is_cut_into_messages_that_are_read_back_or_refused() {
    run("openflow", fuzz::openflow::check);
}

#[test]
fn every_netflow_datagram_of_the_corpus_gives_whole_rows_or_is_refused_within_all_bounds() {
    run("netflow", fuzz::flow_export::check_netflow);
}

#[test]
fn every_ipfix_message_of_the_corpus_gives_whole_rows_or_is_refused_within_all_bounds() {
    run("ipfix", fuzz::flow_export::check_ipfix);
}

#[test]
fn every_sflow_datagram_of_the_corpus_gives_whole_rows_or_is_refused_within_all_bounds() {
    run("sflow", fuzz::flow_export::check_sflow);
}

#[test]
fn every_experiment_of_the_corpus_prints_and_reads_back_or_is_refused_with_its_lines() {
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
        assert!(kept == bytes, "{} is not what seeds.rs makes", path.display());
    }
}
