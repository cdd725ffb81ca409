//! See `thalweg_fuzz::flow_export`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| thalweg_fuzz::flow_export::check_sflow(data));
