//! See `thalweg_fuzz::arbiter`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| thalweg_fuzz::arbiter::check(data));
