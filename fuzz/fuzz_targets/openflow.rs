//! See `thalweg_fuzz::openflow`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| thalweg_fuzz::openflow::check(data));
