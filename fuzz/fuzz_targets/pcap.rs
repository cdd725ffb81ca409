//! See `thalweg_fuzz::capture_file`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| thalweg_fuzz::capture_file::check_pcap(data));
