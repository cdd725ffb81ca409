//! See `thalweg_fuzz::sketch_state`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| thalweg_fuzz::sketch_state::check(data));
