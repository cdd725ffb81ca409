//! See `thalweg_fuzz::kernel_parser`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| thalweg_fuzz::kernel_parser::check(data));
