//! See `thalweg_fuzz::workload`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| thalweg_fuzz::workload::check(data));
