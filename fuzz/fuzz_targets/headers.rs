//! See `thalweg_fuzz::headers`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| thalweg_fuzz::headers::check(data));
