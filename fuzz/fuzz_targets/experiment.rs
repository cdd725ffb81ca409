//! See `thalweg_fuzz::experiment`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| thalweg_fuzz::experiment::check(data));
