//! See `thalweg_fuzz::topology`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| thalweg_fuzz::topology::check_state(data));
