//! See `thalweg_fuzz::transfer_logs`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| thalweg_fuzz::transfer_logs::check(data));
