//! See `thalweg_fuzz::emulation_protocol`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| thalweg_fuzz::emulation_protocol::check(data));
