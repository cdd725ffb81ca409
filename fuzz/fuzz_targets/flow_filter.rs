//! See `thalweg_fuzz::flow_filter`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| thalweg_fuzz::flow_filter::check(data));
